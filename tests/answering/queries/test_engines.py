"""Random queries of every form give the same rows by brute force, on arrays, and in three databases."""

import random
import sys
from collections import Counter

import pytest

from conftest import TESTS
from repeats import repeats

pytest.importorskip("duckdb")
pytest.importorskip("kuzu")
pytest.importorskip("pyoxigraph")
sys.path.insert(0, str(TESTS / "campaign"))
from query_engines_campaign import DuckDB, built_from_csv, compared


@pytest.mark.long
def test_random_queries_give_the_same_rows_everywhere():
    outcomes = list(compared(seed=11, count=repeats(96, 5_000)))
    assert [(engine, text) for _, engine, result, text in outcomes if result == "different"] == []
    compared_with = Counter(engine for _, engine, result, _ in outcomes if result == "equal")
    assert min(compared_with[name] for name in ("DuckDB", "Oxigraph", "Kuzu")) > 50
    assert len({form for form, *_ in outcomes}) == 12


@pytest.mark.long
def test_the_sql_of_queries_over_csv_files_gives_their_rows():
    outcomes = list(compared(13, repeats(48, 5_000), (DuckDB,), built_from_csv, rounds=1))
    assert [(engine, text) for _, engine, result, text in outcomes if result == "different"] == []
    compared_with = Counter(result for _, engine, result, _ in outcomes if engine == "DuckDB")
    assert compared_with["equal"] > 0.95 * compared_with.total()


@pytest.mark.long
def test_the_executor_gives_what_brute_force_gives():
    outcomes = list(compared(seed=12, count=repeats(240, 10_000), engines=()))
    assert [(engine, text) for _, engine, result, text in outcomes if result == "different"] == []


def test_truth_values_are_ordered_in_every_language(tmp_path):
    from clew.answering.queries.parsing import parse
    from clew.store.graph.arrays import ArrayKnowledgeBase
    from clew.store.graph.build import write_graph
    from clew.store.graph.tables import Problems
    from query_engines import DuckDB, Kuzu, Oxigraph
    from random_queries import random_tables

    facts = write_graph(random_tables(random.Random(0)), tmp_path, Problems(False)).to_json()
    kb = ArrayKnowledgeBase.staged(tmp_path, facts)
    query = parse("find distinct x.rare where (x) order by x.rare first 2 with ties")
    for engine in (DuckDB(kb), Oxigraph(kb), Kuzu(kb)):
        assert [tuple(row) for row in engine.rows(engine.text(query))] == [(False,), (True,)]


@pytest.mark.parametrize("condition", ['contains "finger"', '= ""', "is missing", 'starts with "a "'])
def test_texts_are_searched_by_sql_and_refused_where_they_are_not(kb, condition):
    from clew.answering.queries.execution import execute
    from clew.answering.queries.lowering import CannotPrintError
    from clew.answering.queries.parsing import parse
    from query_engines import DuckDB, Kuzu, Oxigraph
    from query_reference import Reference

    query = parse(f"find x.key where (x) and x.text {condition} order by x.key")
    expected = [row[0] for row in Reference(kb).rows(query)]
    assert [row[0] for row in execute(kb, query).rows] == expected
    duckdb = DuckDB(kb)
    assert [row[0] for row in duckdb.rows(duckdb.text(query))] == expected
    for engine in (Oxigraph(kb), Kuzu(kb)):
        with pytest.raises(CannotPrintError):
            engine.text(query)
