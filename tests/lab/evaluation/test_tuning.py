"""A base is tuned by its questions: the better method is found, judged on other questions, kept, taken and undone."""

import json
import sys
from dataclasses import dataclass

import pytest

import clew
from clew.answering.methods import catalog
from clew.answering.methods.protocol import Method
from clew.answering.methods.tuned import TUNED, Tuned, keep_tuned, read_tuned
from clew.cli import main
from clew.core.errors import CorruptError, InputError
from clew.core.types import Answer, Candidate
from clew.lab.datasets.questions import Dataset, Question
from clew.lab.evaluation import tuning
from clew.lab.evaluation.tuning import AUTO, questions_of, tune
from clew.lab.evaluation.tuning import TriedMethod as Tried
from clew.store.building import build
from clew.store.open_base import OpenBase
from conftest import tables


@dataclass(frozen=True)
class Named(Method):
    """Answers every question with one node: right where `right` is set."""

    name = "named"
    right: bool = False
    path: str = ""

    def answer(self, question, tools):
        key = question.split()[-1].rstrip("?") if self.right else "P3"
        return Answer(question, (Candidate(tools.kb.refs([tools.kb.find(key)])[0], 1.0),))


@pytest.fixture(autouse=True)
def _methods(monkeypatch, tmp_path):
    monkeypatch.setitem(catalog.METHODS, "named", Named)
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def base(tmp_path):
    build(tables(), tmp_path / "tiny.kb")
    return tmp_path / "tiny.kb"


def questions(count=20):
    keys = ("FBN1", "P1", "P2", "MFS")
    return Dataset(
        "own", tuple(Question(f"q{n}", f"{n} {keys[n % 4]}?", (keys[n % 4],)) for n in range(count)), "graph"
    )


def test_the_better_candidate_is_found_and_judged_on_questions_that_did_not_choose_it(base):
    found = tune(OpenBase.open(base), questions(), 60, (AUTO, Tried.of("named", right=True), Tried.of("named")))
    assert found.chosen == Tried.of("named", right=True)
    assert (found.after, found.judged, found.is_better) == (1.0, 10, True)
    assert found.before < 1.0
    assert found.gain.low <= found.after - found.before <= found.gain.high


def test_nothing_is_taken_where_nothing_is_better(base):
    found = tune(OpenBase.open(base), questions(), 60, (AUTO, Tried.of("named")))
    assert not found.is_better


def test_the_time_ends_the_choice_but_not_the_judging(base):
    found = tune(OpenBase.open(base), questions(), 0.001, (AUTO, Tried.of("named", right=True)))
    assert found.ran_out
    assert found.judged == 10


def test_auto_takes_what_was_chosen_and_says_so_until_it_is_forgotten(base, monkeypatch, capsys):
    keep_tuned(base, Tuned(method="named", options={"right": True}, before=0.2, after=1.0, questions=10))
    answer = clew.open(base).ask("say FBN1")
    assert (answer.method, answer.candidates[0].node.key) == ("named", "FBN1")
    assert "clew tune" in answer.notes[0]
    monkeypatch.setattr(sys, "argv", ["clew", "tune", str(base), "--undo"])
    with pytest.raises(SystemExit):
        main()
    assert "forgotten" in capsys.readouterr().out
    assert not (base / TUNED).exists()
    assert clew.open(base).ask("say FBN1").method != "named"


def test_a_base_from_elsewhere_can_set_no_free_text(base):
    keep_tuned(base, Tuned(method="named", options={"right": True, "path": "/etc"}, before=0, after=1, questions=1))
    assert read_tuned(base).create() == Named(right=True)


def test_a_broken_choice_says_how_to_remove_it(base):
    (base / TUNED).write_text('{"method": 3}')
    with pytest.raises(CorruptError, match="--undo"):
        clew.open(base).ask("say FBN1")


def test_the_command_makes_questions_and_says_what_was_gained(base, monkeypatch, capsys, tmp_path):
    candidates = {"auto", "focus_plus", "bm25"}
    monkeypatch.setattr(tuning, "OVER_GRAPHS", [one for one in tuning.OVER_GRAPHS if str(one) in candidates])
    file = tmp_path / "own.jsonl"
    lines = [{"id": q.id, "question": q.text, "answers": list(q.answers)} for q in questions().questions]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ["clew", "tune", str(base), "-q", str(file), "--seconds", "250", "--dry-run", "--json"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    told = json.loads(capsys.readouterr().out)
    assert told["kept"] is False
    assert {one["candidate"] for one in told["tried"]} == candidates
    assert not (base / TUNED).exists()


def test_too_few_questions_are_refused(base):
    tools = OpenBase.open(base)
    tools.local.edge_count = 0  # nothing to make questions from
    with pytest.raises(InputError, match="at least 8"):
        questions_of(tools)
