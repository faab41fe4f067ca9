"""Reports label every set of questions, compare runs in pairs, and show what went wrong."""

import xml.etree.ElementTree as ElementTree

import pytest

from clew.core.errors import InputError, ModelError, NotFoundError
from clew.core.plots import Axis, Series, line_plot
from clew.core.types import Answer, Candidate, NodeRef
from clew.lab.datasets.questions import Dataset, Question
from clew.lab.evaluation.page import (
    comparison_table,
    costs,
    curve_plot,
    latency_plot,
    overview,
    report_page,
    type_table,
)
from clew.lab.evaluation.report import load_runs, make_report, report_json, worst_failures
from clew.lab.evaluation.run_folder import Setup
from clew.lab.evaluation.runs import evaluate

QUESTIONS = tuple(Question(f"q{n}", f"what is <{n}>?", (f"a{n}",), f"type {n % 2}") for n in range(60))
WHOLE = Dataset("toy", QUESTIONS, "graph", "dev")


def run_of(dataset, method, right, folder=None, **parameters):
    def answering(question, recorder):
        number = int(question.id[1:])
        if number == 59 and method == "bad":
            raise ModelError("gave up")
        key = f"a{number}" if right(number) else "x"
        return Answer(question.text, method=method, candidates=(Candidate(NodeRef(0, key, key, "t"), 1.0),))

    setup = Setup.of(dataset, method, parameters)
    out = None if folder is None else folder / setup.folder_name()
    return evaluate(dataset.questions, answering, setup, names_of=lambda node: (), out=out)


@pytest.fixture
def runs(tmp_path):
    run_of(WHOLE, "good", lambda n: n % 10 > 0, tmp_path)
    run_of(WHOLE, "bad", lambda n: n % 10 > 6, tmp_path)
    return load_runs([tmp_path])


def test_every_set_has_a_section_of_its_own(runs):
    human = Dataset("toy", QUESTIONS, "graph", "dev", portion="human")
    runs += [run_of(WHOLE.sample(20), "good", bool), run_of(human, "good", bool)]
    titles = [section.title for section in make_report(runs)]
    assert titles == [
        "toy dev (full, n = 60, strict match)",
        "toy dev (20 of 60, seed 0, n = 20, strict match)",
        "toy dev (human, n = 60, strict match)",
    ]
    assert [len(section.runs) for section in make_report(runs)] == [2, 1, 1]


def by_method(table):
    return {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}


def test_tables_show_intervals_costs_types_and_paired_differences(runs):
    section = make_report(runs)[0]
    metrics, taken = by_method(overview(section)), by_method(costs(section))
    assert metrics["good"]["Hit@1"].startswith("90.0 [")
    assert {"n", "Hit@5", "Recall@20", "Recall@20/min", "MRR", "F1"} <= set(metrics["good"])
    assert taken["bad"]["failed"] == "1"
    assert {"p50 ms", "p95 ms", "calls", "tokens", "cost", "fallbacks"} <= set(taken["good"])
    (pair,) = comparison_table(section).rows
    assert pair[:3] == ("bad", "good", "60")
    assert pair[3].startswith("-61.7 [")
    assert pair[4] == "< 0.001"
    assert [row[:2] for row in type_table(section).rows] == [("type 0", "30"), ("type 1", "30")]


def test_the_worst_failures_come_first(runs):
    bad = next(run for run in runs if run.setup.method == "bad")
    worst = worst_failures(bad, "hit@1", 3)
    assert worst[0].error == "ModelError: gave up"
    assert len(worst) == 3


def test_runs_of_one_method_are_told_apart_by_what_differs():
    runs = [run_of(WHOLE, "m", bool, k=5, depth=2), run_of(WHOLE, "m", bool, k=9, depth=2), run_of(WHOLE, "n", bool)]
    assert [label for label, _ in make_report(runs)[0].runs] == ["m (k = 5)", "m (k = 9)", "n"]


def test_the_json_report_holds_what_the_command_promises(runs):
    report = report_json(make_report(runs))
    entry = next(run for run in report["runs"] if run["method"] == "good")
    assert {"dataset", "split", "method", "model", "n", "metrics", "latency_ms", "calls", "tokens", "cost"} <= set(
        entry
    )
    assert entry["metrics"]["hit@1"] == 0.9
    assert set(entry["latency_ms"]) == {"p50", "p95"}
    assert report["comparisons"][0]["p"] < 0.001
    assert report["types"][0]["hit@1"].keys() == {"bad", "good"}
    assert report["failures"]


def test_the_page_needs_nothing_from_outside_and_shows_foreign_text_as_text(runs):
    page = report_page(make_report(runs))
    assert "what is &lt;50&gt;?" in page
    assert "<50>" not in page
    assert "<script" not in page
    assert "href=" not in page
    assert page.count("<svg") == 2
    assert "prefers-color-scheme: dark" in page
    assert "gave up" in page


def test_plots_are_wellformed_and_tell_their_values(runs):
    section = make_report(runs)[0]
    for plot in (curve_plot(section), latency_plot(section)):
        ElementTree.fromstring(plot)
    plot = line_plot(
        "Density & recall",
        [Series("tfidf <1>", ((0.1, 40.0), (10.0, 90.0))), Series("empty", ())],
        Axis("edges", logarithmic=True),
        Axis("recall", low=0, high=100),
        marks=True,
    )
    tree = ElementTree.fromstring(plot)
    titles = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == ["tfidf <1>", "tfidf <1>: 0.1, 40", "tfidf <1>: 10, 90"]


def test_an_unknown_metric_and_an_empty_folder_are_refused(runs, tmp_path):
    with pytest.raises(InputError, match="use hit@1"):
        make_report(runs, metric="ndcg")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFoundError, match="no run of"):
        load_runs([tmp_path / "empty"])


def test_an_unfinished_run_says_so(tmp_path):
    done = run_of(WHOLE, "good", bool)
    part = type(done)(done.setup, done.rows[:25])
    assert overview(make_report([part])[0]).rows[0][1] == "25 of 60"
