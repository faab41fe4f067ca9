"""Queries that a database carries out whole have the rows that the embedded base gives."""

import random
import sys

import pytest

from bolt_server import PASSWORD, USER
from clew.answering.queries.execution import execute as execute_here
from clew.answering.queries.parsing import parse
from clew.answering.queries.pushdown import execute
from clew.core.trace import recording
from clew.store.building import build, into
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.open_base import OpenBase
from conftest import TESTS, build_graph, tables
from repeats import repeats

pytest.importorskip("duckdb")
pytest.importorskip("kuzu")
pytest.importorskip("pyoxigraph")
sys.path.insert(0, str(TESTS / "campaign"))
from query_engines_campaign import compared

from query_engines import Postgres, normal
from random_queries import FORMS, Maker, random_query, random_tables


@pytest.mark.long
def test_postgres_gives_what_brute_force_gives(postgres, monkeypatch):
    monkeypatch.setattr(Postgres, "url", postgres)
    outcomes = list(compared(seed=13, count=repeats(96, 5_000), engines=(Postgres,)))
    assert [(engine, text) for _, engine, result, text in outcomes if result == "different"] == []
    whole = [result for _, engine, result, _ in outcomes if engine == "Postgres"]
    assert whole.count("equal") > 0.9 * len(whole), "few are carried out edge by edge"


@pytest.mark.long
def test_a_graph_database_joins_and_clew_computes(graphs, database, tmp_path, monkeypatch):
    monkeypatch.setenv("NEO4J_USERNAME", USER)
    monkeypatch.setenv("NEO4J_PASSWORD", PASSWORD)
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    chance = random.Random(5)
    kb = build_graph(random_tables(chance), tmp_path / "graph")
    there, maker = OpenBase.open(graphs.load(kb, database)).kb, Maker(kb, chance)
    requests = []
    for form in FORMS * repeats(4, 40):
        query = random_query(maker, form)
        with recording() as recorded:
            assert normal(query, execute(there, query).rows) == normal(query, execute_here(kb, query).rows), str(query)
        requests.append(sum(span.name == "cypher" for span in recorded.spans))
    assert sum(count <= 1 for count in requests) > 0.7 * len(requests), "one request for most queries"


def test_a_whole_query_is_one_request_and_what_it_cannot_say_is_found_edge_by_edge(both, monkeypatch):
    from clew.store.postgres.knowledge_base import PostgresKnowledgeBase

    folder, address = both
    asked, solve = [], PostgresKnowledgeBase.solve
    monkeypatch.setattr(PostgresKnowledgeBase, "solve", lambda *given: asked.append(given) or solve(*given))
    here, there = ArrayKnowledgeBase.open(folder), OpenBase.open(address).kb
    texts = {
        "find d.name, count(p) where (d: disease) -[has_phenotype]-> (p) group by d order by count(p) desc first 1": 1,
        'find distinct d where (d: disease) -[has_phenotype]-> (p) and (p) -[is_a*]-> node("P4")': 1,
        "find p, q where (p: phenotype) -[is_a+]-> (q)": 0,
        'find d where (d: disease) and d.name matches ".*syndrome"': 0,
        "find e where (d: disease) -[e: has_phenotype]-> (p)": 0,
    }
    for text, requests in texts.items():
        query = parse(text)
        asked.clear()
        assert execute(there, query).rows == execute_here(here, query).rows, text
        assert len(asked) == requests, text


def test_letters_that_a_database_writes_otherwise_are_compared_by_clew(address, tmp_path):
    names = ["\u0130zmir", "\u039f\u0394\u039f\u03a3", "\u00c4rger"]
    source = tables([(f"n{place}", "city", name, [], "") for place, name in enumerate(names)], [])
    build(source, tmp_path / "cities.kb")
    into(address, lambda folder: build(source, folder))
    here, there = ArrayKnowledgeBase.open(tmp_path / "cities.kb"), OpenBase.open(address).kb
    for name in names:
        query = parse(f'find distinct c where (c: city) and c.name = "{name.lower()}"')
        assert [row[0].name for row in execute(there, query).rows] == [name]
        assert execute(there, query).rows == execute_here(here, query).rows
