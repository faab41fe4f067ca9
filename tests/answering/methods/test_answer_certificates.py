"""Every answer of a graph method carries its query, and that query gives the matches in other databases."""

import sys

import pytest

import clew
from clew.answering.methods.catalog import ask, create
from clew.answering.methods.paths.execution import Step, Trail, answer_paths, answer_read, refine
from clew.answering.queries.relation_paths import Explorer, Move, RelationPath
from clew.core.query import Best, Condition, Constant, Triplet, TripletQuery, Variable
from clew.core.roles import Parse
from clew.core.types import NodeSet
from clew.store.building import build
from clew.store.open_base import OpenBase
from conftest import EDGES, NODES, ROOT, tables

pytest.importorskip("kuzu")
pytest.importorskip("pyoxigraph")
sys.path.insert(0, str(ROOT / "benchmarks"))
from certificates import property_graph_of, rdf_of

GENE, DISEASE = Variable("", "gene"), Variable("some disease", "disease")  # parsers call variables what they like


@pytest.fixture(scope="module")
def toolbox(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers") / "tiny.kb"
    build(tables(), folder)
    return OpenBase.open(folder)


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
    return {candidate.node.key for candidate in answer.matches}


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
    assert answer.query["text"]


def test_the_query_of_two_paths_is_that_of_both(toolbox):
    answer = ask(create("aligned_paths"), "which disease has [Polydactyly] and [Rod-cone dystrophy]?", toolbox)
    assert answer.query["text"] == "things that have Rod-cone dystrophy and Polydactyly"
    assert "node:P1" in answer.query["sparql"]
    assert "node:P2" in answer.query["sparql"]


SIGNS = [
    *NODES,
    ("X", "disease", "Joubert syndrome", [], "Another ciliopathy."),
]
MORE = [
    *EDGES,
    ("BBS", "has_phenotype", "P3", None),
    ("X", "has_phenotype", "P1", None),
    ("X", "has_phenotype", "P2", None),
]


@pytest.mark.parametrize(
    ("method", "options"),
    [("aligned_paths", {}), ("tournament_on_path", {}), ("tournament_on_path", {"system": 1, "explore": "paths"})],
)
def test_three_topics_are_one_query_and_it_gives_the_matches(tmp_path, method, options):
    tools = OpenBase.open(build(tables(SIGNS, MORE), tmp_path / "three.kb").folder)
    asked = "which disease has [Polydactyly] and [Rod-cone dystrophy] and [Arachnodactyly]?"
    answer = ask(create(method, {**options, "depth": 1}), asked, tools)
    query = answer.query["sparql"]
    assert all(f"node:{key}" in query for key in ("P1", "P2", "P3"))
    by_sparql = {row[0].value.rpartition(":")[2] for row in rdf_of(tools.kb).query(query)}
    by_cypher = {row[0] for row in property_graph_of(tools.kb).execute(answer.query["cypher"])}
    assert by_sparql == by_cypher == matches(answer) == {"BBS"}  # two of the three signs are not enough
    assert len(answer.candidates[0].evidence) == 3


def test_what_is_read_from_several_walks_is_the_union_of_their_queries(toolbox, run):
    kb = toolbox.kb
    start = kb.find("BBS")
    trails = [Trail(start, (Step("has_phenotype", "out", kb.find(key)),)) for key in ("P1", "P2")]
    trails += [Trail(start, (Step("associated_with", "in", kb.find("BBS2")),))]
    answer = answer_read(kb, "q", "tog", trails, ["rod-cone dystrophy", "BBS2", "Atlantis"], None)
    assert run(answer) == matches(answer) == {"P2", "BBS2"}
    assert len(answer.matches) == 2


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    (folder / "nodes.csv").write_text(
        "key,type,name,height_cm\n"
        "a,person,Ann Low,170\nb,person,Bo High,201\nc,person,Cy Mid,185\n"
        "n,country,Norland,\ns,country,Sudland,\nt,team,Red Team,\n"
    )
    (folder / "edges.csv").write_text(
        "head,relation,tail\na,plays_for,t\nb,plays_for,t\nc,plays_for,t\na,citizen_of,n\nb,citizen_of,s\nc,citizen_of,n\n"
    )
    clew.build([folder / "nodes.csv", folder / "edges.csv"], folder / "people.kb")
    return OpenBase.open(folder / "people.kb")


def path_from(kb, topic, *moves):
    hops = tuple((Move(move.strip("^"), "in" if move.startswith("^") else "out"),) for move in moves)
    return RelationPath(NodeSet.of([kb.find(topic)]), hops)


HEIGHT = Variable("x", "person")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (TripletQuery((), HEIGHT, best=Best(True, attribute="height_cm")), {"b"}),
        (TripletQuery((), HEIGHT, best=Best(False, attribute="height_cm")), {"a"}),
        (TripletQuery((), HEIGHT, (Condition("x", "height_cm", "<", 190),)), {"a", "c"}),
        (
            TripletQuery((), HEIGHT, (Condition("x", "height_cm", "<", 190),), best=Best(True, attribute="height_cm")),
            {"c"},
        ),
    ],
)
def test_ends_are_narrowed_by_attributes_and_the_query_says_so(people, query, expected):
    explorer = Explorer(people.kb)
    path = path_from(people.kb, "t", "^plays_for")
    refined = refine(explorer, [path], explorer.execute(path), query)
    answer = answer_paths(explorer, "q", "top", refined.paths, refined.ends, refined.conditions, refined.best)
    by_sparql = {row[0].value.rpartition(":")[2] for row in rdf_of(people.kb).query(answer.query["sparql"])}
    assert by_sparql == {row[0] for row in property_graph_of(people.kb).execute(answer.query["cypher"])} == expected
    assert matches(answer) == expected


def test_a_superlative_on_the_way_is_found_first_and_the_path_goes_on_from_it(people):
    explorer = Explorer(people.kb)
    path = path_from(people.kb, "t", "^plays_for", "citizen_of")
    query = TripletQuery((), HEIGHT, best=Best(True, attribute="height_cm"))
    refined = refine(explorer, [path], explorer.execute(path), query)
    assert [ref.key for ref in people.kb.refs(refined.ends.array)] == ["s"]
    assert refined.notes == ("of what <- plays_for leads to, those with the most height_cm: 1",)
    answer = answer_paths(explorer, "q", "top", refined.paths, refined.ends)
    assert {row[0].value.rpartition(":")[2] for row in rdf_of(people.kb).query(answer.query["sparql"])} == {"s"}


def test_the_words_of_a_superlative_reach_the_ends_of_a_path(people):
    answer = ask(create("aligned_paths"), "who is the tallest person that plays for [Red Team]?", people)
    assert matches(answer) == {"b"}


def parsed(monkeypatch, query):
    class Parser:
        def parse(self, question, schema):
            return Parse(query, certainty=0.99)

    monkeypatch.setattr("clew.answering.methods.focus.focus_plus.parser_for", lambda *_: Parser())


def test_either_or_is_one_query_with_both(toolbox, run, monkeypatch):
    first, second = (
        TripletQuery((Triplet(GENE, "associated_with", Constant(name, "disease")),), GENE) for name in ("BBS", "MFS")
    )
    parsed(monkeypatch, TripletQuery(first.triplets, GENE, either=(second,)))
    answer = ask(create("focus_plus"), "genes of either", toolbox)
    assert run(answer) == matches(answer) == {"BBS2", "FBN1"}
    assert len(answer.matches) == 2


def test_a_superlative_is_part_of_the_query_and_equal_ones_all_stay(toolbox, run, monkeypatch):
    parsed(monkeypatch, TripletQuery((), DISEASE, best=Best(True, relation="has_phenotype")))
    answer = ask(create("focus_plus"), "the disease with the most signs", toolbox)
    assert run(answer) == matches(answer) == {"BBS"}
    assert answer.query["text"] == "diseases that have the most phenotypes"


def test_where_nothing_has_what_is_compared_nothing_is_put_forward(toolbox, monkeypatch):
    parsed(monkeypatch, TripletQuery((), DISEASE, best=Best(True, attribute="age")))
    answer = ask(create("focus_plus"), "the oldest disease", toolbox)
    assert not answer.found


def test_the_papers_fixpoint_has_no_formal_query_where_it_keeps_more_than_is_right(toolbox, monkeypatch):
    one, two = Variable("a"), Variable("b")
    triangle = (Triplet(DISEASE, None, one), Triplet(one, None, two), Triplet(two, None, DISEASE))
    monkeypatch.setattr(
        "clew.answering.methods.focus.four_step_focus.parser_for",
        lambda *_: type("P", (), {"parse": lambda *_: Parse(TripletQuery(triangle, DISEASE))})(),
    )
    answer = ask(create("four_step_focus"), "a triangle", toolbox)
    assert "sparql" not in answer.query
    assert "by itself" in answer.query["text"]
