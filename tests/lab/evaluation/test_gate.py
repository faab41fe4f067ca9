"""The quality gate: a file of pytest that holds, misses, or is wrong."""

import json

import pytest

from clew.store.building import build
from conftest import tables

pytest_plugins = ["pytester"]


@pytest.fixture
def gate(pytester, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(pytester.path / "cache"))
    build(tables(), pytester.path / "tiny.kb")
    lines = [{"id": "a", "question": "Which gene encodes fibrillin?", "answers": ["FBN1"]}]
    lines += [{"id": "b", "question": "Which gene encodes zyxwv?", "answers": ["P3"]}]
    (pytester.path / "own.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def run(least):
        told = f'kb = "tiny.kb"\nquestions = "own.jsonl"\nmethod = "bm25"\nleast = {least}\n'
        (pytester.path / "quality.clew.toml").write_text(told)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-q")  # found by its entry point

    return run


def test_a_gate_that_is_reached_passes(gate):
    gate('{ "hit@1" = 0.5 }').assert_outcomes(passed=1)


def test_a_gate_that_is_missed_fails_and_says_by_how_much_and_where(gate):
    result = gate('{ "hit@1" = 0.9 }')
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*hit@1 is 0.500, required is 0.9*", "*wrong: Which gene encodes zyxwv?*"])


def test_an_unknown_metric_is_named_with_those_there_are(gate):
    result = gate('{ "hits" = 0.9 }')
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no metric 'hits': use *hit@1*"])
