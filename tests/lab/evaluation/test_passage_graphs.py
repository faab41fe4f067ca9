"""What the graph of passages is worth: neighbours of the seeds, and structures that questions name."""

import sys

import pytest
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

import clew
from clew.answering.methods.catalog import create
from clew.core.errors import InputError
from clew.core.types import Answer, Candidate, NodeRef, Passage
from clew.documents.passage_graph import EdgeOptions
from clew.documents.rows import TitledText, corpus_tables
from clew.lab.datasets.questions import Question
from clew.lab.evaluation.benchmark import Benchmark
from clew.lab.evaluation.judging import structures_in
from clew.store.building import build
from clew.store.open_base import OpenBase
from conftest import ROOT, tables

sys.path.append(str(ROOT / "benchmarks"))
from passage_graphs import seed_neighbours, structural_questions


def test_neighbours_of_the_seeds_hold_the_gold_passages_or_not(tmp_path):
    texts = [
        TitledText("Blue Song", "Blue Song", "Blue Song was written by Ann Lee in Oslo."),
        TitledText("Ann Lee", "Ann Lee", "Ann Lee was born in Bergen."),
        TitledText("Red Song", "Red Song", "Red Song mentions nobody at all."),
        TitledText("Bo Ray", "Bo Ray", "Bo Ray was born in Kiel."),
    ]
    build(corpus_tables(texts, EdgeOptions(("mentions",))), tmp_path / "kb")
    tools = OpenBase.open(tmp_path / "kb", embedder="hash")
    asked = "Who wrote the Blue Song?"

    def measured(*gold):
        return seed_neighbours([Question("1", asked, ("x",), passages=gold)], lambda _: tools, ("mentions",), seeds=1)

    assert (measured("Ann Lee").sf_em, measured("Ann Lee").precision) == (1.0, 1.0)
    assert (measured("Ann Lee", "Bo Ray").sf_em, measured("Bo Ray").precision) == (0.0, 0.0)
    assert measured("Ann Lee").density == pytest.approx(1 / 6)


def test_structures_are_those_located_and_those_in_which_passages_stand():
    node = NodeRef(1, "a.pdf#passage=1", "p", "passage")
    found = Answer(
        "q",
        (Candidate(node, 1.0, (Passage(node, "text", "a.pdf", 3),)),),
        query={"structure": [{"node": "a.pdf#table=00002"}]},
    )
    assert structures_in(found) == {"a.pdf#passage=1", "a.pdf#page=00003", "a.pdf#table=00002"}


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("structures")
    style = getSampleStyleSheet()["Normal"]
    for name, subject in (("log.pdf", "ship"), ("diary.pdf", "garden")):
        pages = [
            f"On day {number} the {subject} was looked after by {who}."
            for number, who in enumerate(("Ann", "Bo", "Cy", "Di"))
        ]
        story = [part for text in pages for part in (Paragraph(text, style), PageBreak())][:-1]
        SimpleDocTemplate(str(folder / name), title=f"The {subject} log").build(story)
    clew.build([folder], folder / "docs.kb")
    return OpenBase.open(folder / "docs.kb")


def test_structural_questions_are_made_from_pages_and_struct_em_tells_who_finds_them(documents):
    dataset = structural_questions(documents.local, 12)
    assert len(dataset.questions) == 12
    assert {question.type for question in dataset.questions} == {"page", "two pages"}
    two = next(question for question in dataset.questions if question.type == "two pages")
    assert len(two.structures) == 2
    assert all("#page=" in key for key in two.structures)
    run = Benchmark(dataset, given=documents).run(create("knowledge_graph_prompting", {"closely": 0}))
    assert sum(row.metrics["struct-em"] for row in run.rows) >= 10


def test_a_base_without_pages_is_refused(tmp_path):
    build(tables(), tmp_path / "kb")
    with pytest.raises(InputError, match="no pages"):
        structural_questions(OpenBase.open(tmp_path / "kb").local, 3)
