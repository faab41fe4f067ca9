"""Every answer of a graph method carries its query, and that query gives the matches in other databases."""

import sys

import pytest

import clew
from clew.answering.methods.catalog import ask, create
from clew.answering.methods.paths.execution import Trail, TrailStep, answer_paths, answer_read, refine
from clew.answering.queries.relation_paths import Explorer, Move, RelationPath
from clew.core.roles import Parse
from clew.core.types import NodeSet
from clew.store.building import build
from clew.store.open_base import OpenBase
from conftest import EDGES, NODES, TESTS, asked, tables

pytest.importorskip("duckdb")
pytest.importorskip("kuzu")
pytest.importorskip("pyoxigraph")
sys.path.insert(0, str(TESTS))
from query_engines import DuckDB, Kuzu, Oxigraph


@pytest.fixture(scope="module")
def toolbox(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers") / "tiny.kb"
    build(tables(), folder)
    return OpenBase.open(folder)


@pytest.fixture(scope="module")
def run(toolbox):
    return runner(toolbox.kb)


def runner(kb):
    engines = {"sparql": Oxigraph(kb), "cypher": Kuzu(kb), "sql": DuckDB(kb)}

    def carried_out(answer):
        """What the queries of an answer give, and that they agree."""
        first, *others = (
            {row[0] for row in engine.rows(answer.query[language])} for language, engine in engines.items()
        )
        assert others == [first, first]
        return first

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
    assert runner(tools.kb)(answer) == matches(answer) == {"BBS"}  # two of the three signs are not enough
    assert len(answer.candidates[0].evidence) == 3


def test_what_is_read_from_several_walks_is_the_union_of_their_queries(toolbox, run):
    kb = toolbox.kb
    start = kb.find("BBS")
    trails = [Trail(start, (TrailStep("has_phenotype", "out", kb.find(key)),)) for key in ("P1", "P2")]
    trails += [Trail(start, (TrailStep("associated_with", "in", kb.find("BBS2")),))]
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


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("(p: person) order by p.height_cm desc first 1 with ties", {"b"}),
        ("(p: person) order by p.height_cm first 1 with ties", {"a"}),
        ("(p: person) and p.height_cm < 190", {"a", "c"}),
        ("(p: person) and p.height_cm < 190 order by p.height_cm desc first 1 with ties", {"c"}),
    ],
)
def test_ends_are_narrowed_by_attributes_and_the_query_says_so(people, query, expected):
    explorer = Explorer(people.kb)
    path = path_from(people.kb, "t", "^plays_for")
    refined = refine(explorer, [path], explorer.execute(path), asked(f"find p where {query}"))
    answer = answer_paths(explorer, "q", "top", refined.paths, refined.ends, refined.conditions, refined.best)
    assert runner(people.kb)(answer) == matches(answer) == expected


def test_a_superlative_on_the_way_is_found_first_and_the_path_goes_on_from_it(people):
    explorer = Explorer(people.kb)
    path = path_from(people.kb, "t", "^plays_for", "citizen_of")
    query = asked("find p where (p: person) order by p.height_cm desc first 1 with ties")
    refined = refine(explorer, [path], explorer.execute(path), query)
    assert [ref.key for ref in people.kb.refs(refined.ends.array)] == ["s"]
    assert "<- plays_for" in refined.notes[0]
    answer = answer_paths(explorer, "q", "top", refined.paths, refined.ends)
    assert runner(people.kb)(answer) == {"s"}


def test_the_words_of_a_superlative_reach_the_ends_of_a_path(people):
    answer = ask(create("aligned_paths"), "who is the tallest person that plays for [Red Team]?", people)
    assert matches(answer) == {"b"}


def parsed(monkeypatch, query):
    class Parser:
        def parse(self, question, schema):
            return Parse(query, certainty=0.99)

    monkeypatch.setattr("clew.answering.methods.focus.focus_plus.parser_for", lambda *_: Parser())


def test_either_or_is_one_query_with_both(toolbox, run, monkeypatch):
    either = '((x) -[associated_with]-> "BBS": disease or (x) -[associated_with]-> "MFS": disease)'
    parsed(monkeypatch, asked(f"find x where (x: gene) and {either}"))
    answer = ask(create("focus_plus"), "genes of either", toolbox)
    assert run(answer) == matches(answer) == {"BBS2", "FBN1"}
    assert len(answer.matches) == 2


def test_a_superlative_is_part_of_the_query_and_equal_ones_all_stay(toolbox, run, monkeypatch):
    most = "count(distinct p for (d) -[has_phenotype]-> (p))"
    parsed(monkeypatch, asked(f"find d where (d: disease) order by {most} desc first 1 with ties"))
    answer = ask(create("focus_plus"), "the disease with the most signs", toolbox)
    assert run(answer) == matches(answer) == {"BBS"}
    assert answer.query["text"] == "diseases that have the most phenotypes"


def test_where_nothing_has_what_is_compared_nothing_is_put_forward(toolbox, monkeypatch):
    parsed(monkeypatch, asked("find d where (d: disease) order by d.age desc first 1 with ties"))
    answer = ask(create("focus_plus"), "the oldest disease", toolbox)
    assert not answer.found


def test_the_papers_fixpoint_has_no_formal_query_where_it_keeps_more_than_is_right(toolbox, monkeypatch):
    triangle = asked("find d where (d: disease) -[any]- (a) and (a) -[any]- (b) and (b) -[any]- (d)")
    monkeypatch.setattr(
        "clew.answering.methods.focus.four_step_focus.parser_for",
        lambda *_: type("P", (), {"parse": lambda *_: Parse(triangle)})(),
    )
    answer = ask(create("four_step_focus"), "a triangle", toolbox)
    assert "sparql" not in answer.query
    assert "separately" in answer.query["text"]
