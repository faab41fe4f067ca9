"""From questions with gold answers to a ranker that answers better, through the command line."""

import json
import random
import xml.etree.ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from clew import cli
from clew.answering.methods import catalog
from clew.answering.methods.subgraph_reranking.features import CandidatePool
from clew.core.errors import InputError, SchemaError
from clew.core.plots import Bar, bar_plot
from clew.lab.evaluation.rankers import hit_curve
from clew.lab.training.labelled import LabelledPool
from clew.models.scripted import ScriptedModel
from clew.store.building import build
from clew.store.graph.tables import Piece, Tables
from clew.store.open_base import OpenBase
from conftest import tables

FILMS, PEOPLE = 36, 25


@pytest.fixture(scope="module")
def cinema(tmp_path_factory):
    """Films with directors, actors and years, and questions for directors: only the relation tells which neighbour."""
    folder = tmp_path_factory.mktemp("cinema")
    rng = random.Random(0)
    people = [f"Person {number}" for number in range(PEOPLE)]
    edges, questions = [], []
    for film in range(FILMS):
        director, *actors = rng.sample(people, 4)
        edges += [(f"Film {film}", "directed_by", director)]
        edges += [(f"Film {film}", "starred_actors", actor) for actor in actors]
        edges += [(f"Film {film}", "release_year", str(1990 + film % 7))]
        asked = f"who is directed_by for [Film {film}]"
        questions.append({"id": str(film), "question": asked, "answers": [director], "topics": [f"Film {film}"]})
    heads, relations, tails = zip(*edges, strict=True)
    table = pa.table({"head": heads, "relation": relations, "tail": tails})
    base = build(
        Tables((), (Piece(table, "films.tsv"),), implicit=True, implicit_type="film"), folder / "films.kb"
    ).folder
    OpenBase.switch_embedder(base, "hash")
    file = folder / "questions.jsonl"
    file.write_text("".join(json.dumps(question) + "\n" for question in questions))
    return base, file


def run(*arguments):
    cli._register()
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def test_a_ranker_is_trained_judged_saved_and_used(cinema, tmp_path):
    base, questions = cinema
    out = tmp_path / "ranker"
    arguments = ["--questions", questions, "--kb", base, "--features", "graph,match,source", "--candidates", 6]
    shown = run("train", "ranker", *arguments, "--out", out, "--json")
    assert shown.exit_code == 0, (shown.output, shown.exception)
    told = json.loads(shown.stdout)
    assert sum(told["questions"].values()) == FILMS
    assert told["test"]["hit@1_after"][0] > told["test"]["hit@1_before"][0]
    assert told["test"]["hits_after"][-1] == told["test"]["hits_before"][-1]  # the same candidates in another order
    ET.parse(out / "permutation_importance.svg")
    card = json.loads((out / "ranker.json").read_text())
    assert card["data"]["source"] == "nearby"
    method = catalog.create("subgraph_reranking", {"ranker": str(out)})
    answer = catalog.ask(method, "who is directed_by for [Film 3]", OpenBase.open(base))
    assert "directed_by" in answer.candidates[0].evidence[0].in_words()
    table = run("train", "ranker", *arguments, "--out", out)
    assert "no topic in two of them" in table.stdout
    assert "Loss of Hit@1 when shuffled" in table.stdout

    other = build(tables(), tmp_path / "other.kb").folder
    with pytest.raises(SchemaError, match="another schema"):
        catalog.ask(method, "who is it?", OpenBase.open(other))


def test_a_ranker_worse_than_its_source_is_kept_but_not_used(cinema, tmp_path):
    """Candidates whose first is always right cannot be ranked better, and noise ranks them worse."""
    base, questions = cinema
    lines = [json.loads(line) for line in questions.read_text().splitlines()]
    people = [f"Person {number}" for number in range(PEOPLE)]
    given = tmp_path / "candidates.jsonl"
    rows = [
        {"id": line["id"], "question": line["question"], "candidates": [*line["answers"], *people[:8]]}
        for line in lines
    ]
    given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "ranker"
    arguments = ["--questions", questions, "--kb", base, "--features", "text", "--ranker", "linear", "--source", given]
    shown = run("train", "ranker", *arguments, "--out", out, "--json")
    assert shown.exit_code == 0, (shown.output, shown.exception)
    told = json.loads(shown.stdout)
    assert told["test"]["hit@1_before"][0] == 1.0
    assert not told["usable"]
    assert "not usable" in run("train", "ranker", *arguments, "--out", out).output
    with pytest.raises(InputError, match="worse than the source"):
        catalog.ask(catalog.create("subgraph_reranking", {"ranker": str(out)}), "who?", OpenBase.open(base))


def scripted(tmp_path, reply):
    """A model on the command line that always says the same."""
    file = tmp_path / "replies.jsonl"
    file.write_text(json.dumps({"reply": reply}))
    return f"scripted:{file}"


def test_a_ranker_that_was_told_subgraphs_by_a_model_asks_one_when_it_ranks(cinema, tmp_path):
    base, questions = cinema
    out = tmp_path / "ranker"
    arguments = ["--questions", questions, "--kb", base, "--features", "g2t,graph,match", "--candidates", 4]
    model = scripted(tmp_path, "nothing that is true")  # refused by the check: the facts stand in
    shown = run("train", "ranker", *arguments, "--texts", "model", "--model", model, "--out", out, "--json")
    assert shown.exit_code == 0, (shown.output, shown.exception)
    assert json.loads((out / "ranker.json").read_text())["texts"] == "model"
    method = catalog.create("subgraph_reranking", {"ranker": str(out), "candidates": 4})
    with pytest.raises(InputError, match="--model"):
        catalog.ask(method, "who is directed_by for [Film 3]", OpenBase.open(base))
    told = ScriptedModel.saying("nothing that is true")
    catalog.ask(method, "who is directed_by for [Film 3]", OpenBase.open(base).with_model(told))
    assert len(told.asked) == 4


def test_the_subgraphs_of_a_data_set_are_written_with_labels_features_and_rates(cinema, tmp_path):
    base, questions = cinema
    file = tmp_path / "subgraphs.jsonl"
    writer = scripted(tmp_path, "nothing that is true")
    arguments = ["--questions", questions, "--kb", base, "--candidates", 5, "--limit", 8, "--writer", writer]
    shown = run("subgraphs", *arguments, "--out", file, "--json")
    assert shown.exit_code == 0, (shown.output, shown.exception)
    told = json.loads(shown.stdout)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == told["subgraphs"] == 40
    assert sum(row["right"] for row in rows) == told["right"] > 0
    assert told["told"]["coverage"] == 0.0
    assert {"nodes", "edges", "features", "text", "written", "question_entities"} <= rows[0].keys()
    assert "texts that invent" in run("subgraphs", *arguments, "--out", file, "--force").stdout


def test_too_few_topics_are_told(cinema, tmp_path):
    base, questions = cinema
    one = tmp_path / "one.jsonl"
    one.write_text(questions.read_text().splitlines()[0] + "\n")
    shown = run("train", "ranker", "--questions", one, "--kb", base, "--out", tmp_path / "r", "--features", "graph")
    assert "too few topics" in str(shown.exception)


def test_a_hit_curve_counts_questions_without_candidates_as_missed():
    def pool(*right):
        return LabelledPool("", CandidatePool("", ("",) * len(right), (), (), ()), np.array(right, dtype=bool))

    curve = hit_curve(
        [pool(False, True), pool(True, False), pool()], [np.array([1, 2]), np.array([1, 2]), np.empty(0)], 3
    )
    assert curve.hits == (1 / 3, 2 / 3, 2 / 3)
    assert curve.first == (1.0, 0.0, 0.0)


def test_bars_show_values_on_both_sides_of_zero():
    root = ET.fromstring(bar_plot("Loss & gain", [Bar("a", 2.0, 0.5), Bar("b", -1.0)]))
    boxes = [rect.attrib for rect in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert float(boxes[1]["x"]) + float(boxes[1]["width"]) == pytest.approx(float(boxes[0]["x"]))
    assert float(boxes[0]["width"]) == pytest.approx(2 * float(boxes[1]["width"]), rel=0.01)
