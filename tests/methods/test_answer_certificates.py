"""Every answer of a graph method carries its query, and that query gives the matches in other databases."""

import sys

import pytest

from clew.building import build
from clew.core.query import Best, Constant, Triplet, TripletQuery, Variable
from clew.core.roles import Parse
from clew.methods.catalog import ask, create
from clew.toolbox import Toolbox
from conftest import ROOT, tables

pytest.importorskip("kuzu")
pytest.importorskip("pyoxigraph")
sys.path.insert(0, str(ROOT / "benchmarks"))
from certificates import property_graph_of, rdf_of

GENE, DISEASE = Variable("", "gene"), Variable("some disease", "disease")  # parsers call variables what they like


@pytest.fixture(scope="module")
def toolbox(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers") / "tiny.kb"
    build(tables(), folder)
    return Toolbox.open(folder)


@pytest.fixture(scope="module")
def run(toolbox):
    rdf, graph = rdf_of(toolbox.kb), property_graph_of(toolbox.kb)

    def carried_out(answer):
        """What both queries of an answer give, and that they agree."""
        by_cypher = {row[0] for row in graph.execute(answer.query["cypher"])}
        rows = rdf.query(answer.query["sparql"])
        by_sparql = {row[0].value.rpartition(":")[2] for row in rows}
        assert by_sparql == by_cypher
        return by_cypher

    return carried_out


def matches(answer):
    return {candidate.node.key for candidate in answer.answer_set}


@pytest.mark.parametrize(
    ("method", "question"),
    [
        ("focus_plus", "Which genes are associated with diseases that present with polydactyly?"),
        ("focus_plus", "Which diseases do not show arachnodactyly?"),
        ("aligned_paths", "which phenotypes do the diseases associated with [BBS2] have?"),
        ("aligned_paths", "which disease has [Polydactyly] and [Rod-cone dystrophy]?"),
        ("tournament_on_path", "which phenotype does [Marfan syndrome] have?"),
        ("think_on_graph", "Which phenotype does [Marfan syndrome] have?"),
    ],
)
def test_the_query_of_an_answer_gives_its_matches(method, question, toolbox, run):
    answer = ask(create(method), question, toolbox)
    assert run(answer) == matches(answer) != set()
    assert answer.query["matches"] == len(matches(answer))
    assert answer.query["text"]


def test_the_query_of_two_paths_is_that_of_both(toolbox):
    answer = ask(create("aligned_paths"), "which disease has [Polydactyly] and [Rod-cone dystrophy]?", toolbox)
    assert answer.query["text"] == "things that have phenotype Rod-cone dystrophy and have phenotype Polydactyly"
    assert "node:P1" in answer.query["sparql"]
    assert "node:P2" in answer.query["sparql"]


def parsed(monkeypatch, query):
    class Parser:
        def parse(self, question, schema):
            return Parse(query, certainty=0.99)

    monkeypatch.setattr("clew.methods.focus.focus_plus.parser_for", lambda *_: Parser())


def test_either_or_is_one_query_with_both(toolbox, run, monkeypatch):
    first, second = (
        TripletQuery((Triplet(GENE, "associated_with", Constant(name, "disease")),), GENE) for name in ("BBS", "MFS")
    )
    parsed(monkeypatch, TripletQuery(first.triplets, GENE, either=(second,)))
    answer = ask(create("focus_plus"), "genes of either", toolbox)
    assert run(answer) == matches(answer) == {"BBS2", "FBN1"}
    assert answer.query["matches"] == 2


def test_a_superlative_is_part_of_the_query_and_equal_ones_all_stay(toolbox, run, monkeypatch):
    parsed(monkeypatch, TripletQuery((), DISEASE, best=Best(True, relation="has_phenotype")))
    answer = ask(create("focus_plus"), "the disease with the most signs", toolbox)
    assert run(answer) == matches(answer) == {"BBS"}
    assert answer.query["text"] == "diseases, those with the most edges “has phenotype” from them"


def test_where_nothing_has_what_is_compared_nothing_is_put_forward(toolbox, monkeypatch):
    parsed(monkeypatch, TripletQuery((), DISEASE, best=Best(True, attribute="age")))
    answer = ask(create("focus_plus"), "the oldest disease", toolbox)
    assert not answer.found


def test_the_papers_fixpoint_has_no_formal_query_where_it_keeps_more_than_is_right(toolbox, monkeypatch):
    one, two = Variable("a"), Variable("b")
    triangle = (Triplet(DISEASE, None, one), Triplet(one, None, two), Triplet(two, None, DISEASE))
    monkeypatch.setattr(
        "clew.methods.focus.four_step_focus.parser_for",
        lambda *_: type("P", (), {"parse": lambda *_: Parse(TripletQuery(triangle, DISEASE))})(),
    )
    answer = ask(create("four_step_focus"), "a triangle", toolbox)
    assert "sparql" not in answer.query
    assert "by itself" in answer.query["text"]
