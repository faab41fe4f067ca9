"""Runs resume after any kill with no question lost or counted twice, and what failed is counted."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Barrier

import pytest

import clew.answering.reading
from clew.answering.methods.catalog import create
from clew.answering.queries.relation_paths import Move
from clew.answering.reading import reader_version
from clew.answering.reading.path_ranker import Taught, keep_taught
from clew.core.errors import (
    BudgetError,
    CorruptError,
    InputError,
    LockedError,
    MissingExtraError,
    ModelError,
    PendingError,
)
from clew.core.trace import ModelCall, fallback, recording, span
from clew.core.types import Answer, Candidate, Judgement, NodeRef
from clew.lab.datasets.questions import Dataset, Question
from clew.lab.evaluation.comparison import summarise
from clew.lab.evaluation.report import load_runs, make_report, report_json
from clew.lab.evaluation.run_folder import ANSWERS, QuestionRow, Setup, identity, open_run, read_rows
from clew.lab.evaluation.runs import evaluate
from clew.store.building import build
from clew.store.open_base import OpenBase
from conftest import TESTS, tables
from repeats import repeats

COUNT = 40
DATASET = Dataset(
    "toy", tuple(Question(f"q{n}", f"what is {n}?", (f"a{n}",), f"t{n % 3}") for n in range(COUNT)), "graph"
)


def setup_of(dataset=DATASET, method="parity", **options):
    return Setup.of(dataset, method, options, base="base-1")


def parity(question: Question) -> Answer:
    """Right on every even question, second on every third, with a fallback on every fifth."""
    number = int(question.id[1:])
    with span("look", number=number):
        if number % 5 == 0:
            fallback("look", "tired", "guessed")
    keys = [f"a{number}" if number % 2 == 0 else "x", f"a{number}" if number % 3 == 0 else "y"]
    found = tuple(Candidate(NodeRef(0, k, k, "t"), 1.0 - p, (Judgement("eye", 0.5),)) for p, k in enumerate(keys))
    return Answer(question.text, method="parity", candidates=found)


def no_names(node):
    return ()


def run(answering=parity, dataset=DATASET, setup=None, **more):
    def recorded(question, recorder):
        with recording(recorder):
            return answering(question)

    return evaluate(dataset.questions, recorded, setup or setup_of(dataset), names_of=no_names, **more)


def without_times(report):
    for entry in report["runs"]:
        del entry["latency_ms"]
    for failure in report["failures"]:
        del failure["trace"]
    return report


def report_of(folder):
    return without_times(report_json(make_report(load_runs([folder]))))


def test_a_run_judges_every_question_and_counts_what_it_took(tmp_path):
    done = run(out=tmp_path / "r", concurrency=4)
    summary = summarise(done)
    assert summary.n == COUNT
    assert done.complete
    assert [row.id for row in done.rows] == [question.id for question in DATASET.questions]
    assert summary.metrics["hit@1"] == 0.5
    assert summary.metrics["hits@1"] == 0.5
    assert summary.metrics["mrr"] == pytest.approx((20 + 7 * 0.5) / COUNT)
    assert summary.fallback_steps == {"look": 8}
    assert summary.intervals["hit@1"].low < 0.5 < summary.intervals["hit@1"].high
    assert read_rows(tmp_path / "r")[0].to_line()
    assert {row.id: row for row in read_rows(tmp_path / "r")} == {row.id: row for row in done.rows}


def test_only_failed_questions_keep_their_trace():
    for row in run().rows:
        assert bool(row.trace) == (row.metrics["hit@1"] < 1)


def test_model_calls_tokens_and_cost_are_counted():
    def with_calls(question):
        with span("model") as opened:
            opened.calls.append(ModelCall("h", 10, 5, 0.01, 0.1, cached=False))
            opened.calls.append(ModelCall("h", 10, 5, 0.01, 0.1, cached=True))
        return parity(question)

    summary = summarise(run(with_calls))
    assert (summary.calls, summary.cached, summary.tokens) == (80, 40, 40 * 30)
    assert summary.cost == pytest.approx(0.4)  # what came from the cache was not paid for again


def test_a_question_that_fails_scores_zero_and_is_counted():
    def fails(question):
        if question.id == "q4":
            raise ModelError("no reply")
        return parity(question)

    done = run(fails)
    failed = next(row for row in done.rows if row.id == "q4")
    assert failed.error == "ModelError: no reply"
    assert set(failed.metrics.values()) == {0.0}
    summary = summarise(done)
    assert (summary.n, summary.failed) == (COUNT, 1)
    assert summary.metrics["hit@1"] == pytest.approx(19 / COUNT)


def test_an_error_of_the_setting_ends_the_run():
    def fails(question):
        raise MissingExtraError("torch", "train")

    with pytest.raises(MissingExtraError):
        run(fails)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_questions_whose_replies_are_pending_wait_and_are_asked_again(tmp_path, concurrency):
    def pending(question):
        if int(question.id[1:]) >= 30:
            raise PendingError("batch")
        return parity(question)

    first = run(pending, out=tmp_path / "r", concurrency=concurrency)
    assert (len(first.rows), first.waiting, first.complete) == (30, 10, False)
    second = run(out=tmp_path / "r")
    assert second.complete
    assert len(read_rows(tmp_path / "r")) == COUNT


def test_answers_cut_short_by_a_spent_budget_are_not_kept(tmp_path):
    def cut(question):
        with span("model") as opened:
            if question.id == "q7":
                opened.calls.append(
                    ModelCall("h", 0, 0, 0, 0, cached=False, error="10 calls are spent", failure="budget")
                )
        return parity(question)

    with pytest.raises(BudgetError, match="10 calls are spent; run again"):
        run(cut, out=tmp_path / "r")
    assert [row.id for row in read_rows(tmp_path / "r")] == [f"q{n}" for n in range(7)]


def test_another_configuration_in_the_same_folder_is_refused(tmp_path):
    run(out=tmp_path / "r")
    with pytest.raises(InputError, match=r"holds another run \(parameters is .*choose another --out"):
        run(setup=setup_of(k=5), out=tmp_path / "r")
    sampled = DATASET.sample(5)
    with pytest.raises(InputError, match="portion is 'full', not '5 of 40, seed 0'"):
        run(dataset=sampled, out=tmp_path / "r")


def test_two_processes_never_write_one_run(tmp_path):
    with open_run(tmp_path / "r", setup_of()), pytest.raises(LockedError):
        run(out=tmp_path / "r")


def test_a_torn_last_line_is_asked_again_and_a_damaged_one_is_named(tmp_path):
    run(out=tmp_path / "r")
    file = tmp_path / "r" / ANSWERS
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    asked = []

    def watched(question):
        asked.append(question.id)
        return parity(question)

    run(watched, out=tmp_path / "r")
    assert len(asked) == 1
    assert len(read_rows(tmp_path / "r")) == COUNT
    lines = file.read_bytes().split(b"\n")
    file.write_bytes(b"\n".join([*lines[:3], b'{"id": oops', *lines[3:]]))
    with pytest.raises(CorruptError, match="line 4"):
        run(out=tmp_path / "r")


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    gate = Barrier(2)

    def slow(question):
        if question.id == "q1":
            gate.wait(60)
            os.kill(os.getpid(), signal.SIGINT)
        elif question.id == "q0":
            gate.wait(60)
            time.sleep(0.3)  # under way when the interrupt comes
        return parity(question)

    with pytest.raises(KeyboardInterrupt):
        run(slow, out=tmp_path / "r", concurrency=2)
    kept = {row.id for row in read_rows(tmp_path / "r")}
    assert {"q0", "q1"} <= kept
    assert len(kept) < COUNT
    assert run(out=tmp_path / "r").complete


def test_a_row_survives_the_way_to_disk_and_back():
    for row in run().rows:
        assert QuestionRow.from_json(json.loads(row.to_line())) == row


def test_a_run_is_not_resumed_after_weights_embedder_or_reader_have_changed(tmp_path):
    """Whatever can change an answer is part of what a run is."""
    build(tables(), tmp_path / "kb")
    tools = OpenBase.open(tmp_path / "kb", embedder="hash")
    method = create("aligned_paths")
    before = identity(method, tools)
    assert before == identity(method, OpenBase.open(tmp_path / "kb", embedder="hash"))
    keep_taught(tmp_path / "kb", [Taught("who has § disease §", (Move("has_phenotype", "in"),))])
    changed = [
        identity(method, tools),
        identity(create("aligned_paths", {"depth": "2"}), tools),
        identity(method, OpenBase.open(tmp_path / "kb", embedder="minilm")),
    ]
    assert all(other != before for other in changed)
    with open_run(tmp_path / "run", Setup.of(DATASET, "aligned_paths", before)):
        pass
    for other in changed:
        setup = Setup.of(DATASET, "aligned_paths", other)
        with pytest.raises(InputError, match="holds another run"), open_run(tmp_path / "run", setup):
            pass


def test_the_version_of_the_reader_is_a_digest_of_what_it_learned(monkeypatch, tmp_path):
    reader_version.cache_clear()
    before = reader_version()
    copied = tmp_path / "reading"
    shutil.copytree(Path(clew.answering.reading.__file__).parent, copied)
    monkeypatch.setattr("clew.answering.reading.__file__", str(copied / "__init__.py"))
    reader_version.cache_clear()
    assert reader_version() == before
    learned = next(file for file in copied.rglob("*.json"))
    learned.write_text(learned.read_text() + " ")
    reader_version.cache_clear()
    assert reader_version() != before
    reader_version.cache_clear()


KILLED = """
import sys, time
from pathlib import Path
sys.path[:0] = {tests!r}
from test_runs import run, parity
print("ready", flush=True)
def slow(question):
    time.sleep(0.03)
    return parity(question)
run(slow, out=Path({out!r}), concurrency=3)
"""


@pytest.mark.long
def test_a_run_killed_at_random_moments_gives_the_identical_report(tmp_path):
    run(out=tmp_path / "whole")
    expected = report_of(tmp_path / "whole")
    dice = random.Random(11)
    script = KILLED.format(tests=[str(TESTS), str(Path(__file__).parent)], out=str(tmp_path / "killed"))
    kills = 0
    for _ in range(repeats(2, 20)):
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(dice.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        process.stdout.close()
    assert kills
    run(out=tmp_path / "killed")
    assert len((tmp_path / "killed" / ANSWERS).read_bytes().splitlines()) == COUNT
    assert report_of(tmp_path / "killed") == expected
