"""Every view of an answer shows exactly what trying everything finds. The long run is in tests/campaign."""

import sys

import pytest

from conftest import TESTS

pytest.importorskip("duckdb")
pytest.importorskip("kuzu")
pytest.importorskip("pyoxigraph")
pytest.importorskip("pandas")
sys.path.insert(0, str(TESTS / "campaign"))
from exact_answers import compared


def test_all_views_of_random_answers_are_what_trying_everything_finds():
    outcomes = list(compared(seed=11, count=150))
    assert [(query, wrong) for _, _, query, wrong in outcomes if wrong] == []
    assert len({form for form, *_ in outcomes}) >= 15
    assert sum(finds for _, finds, _, _ in outcomes) > len(outcomes) / 2  # finding nothing shows little
