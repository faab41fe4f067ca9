"""Random queries of every form give the same rows by brute force, on arrays, and in three databases."""

import sys
from collections import Counter

import pytest

from conftest import TESTS
from repeats import repeats

pytest.importorskip("duckdb")
pytest.importorskip("kuzu")
pytest.importorskip("pyoxigraph")
sys.path.insert(0, str(TESTS / "campaign"))
from query_engines_campaign import compared


@pytest.mark.long
def test_random_queries_give_the_same_rows_everywhere():
    outcomes = list(compared(seed=11, count=repeats(96, 5_000)))
    assert [(engine, text) for _, engine, result, text in outcomes if result == "different"] == []
    compared_with = Counter(engine for _, engine, result, _ in outcomes if result == "equal")
    assert min(compared_with[name] for name in ("DuckDB", "Oxigraph", "Kuzu")) > 50
    assert len({form for form, *_ in outcomes}) == 12


@pytest.mark.long
def test_the_executor_gives_what_brute_force_gives():
    outcomes = list(compared(seed=12, count=repeats(240, 10_000), engines=()))
    assert [(engine, text) for _, engine, result, text in outcomes if result == "different"] == []
