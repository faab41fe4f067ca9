"""Every view of an answer shows exactly what trying everything finds. The long run is in tests/campaign."""

import sys
from dataclasses import replace

import pytest

import clew
from clew.answering.methods.catalog import ask, create
from clew.answering.queries.parsing import parse
from clew.core.roles import Interpretation
from conftest import TESTS

pytest.importorskip("duckdb")
pytest.importorskip("kuzu")
pytest.importorskip("pyoxigraph")
pytest.importorskip("pandas")
sys.path.insert(0, str(TESTS / "campaign"))
from exact_answers import Said, compared


def test_all_views_of_random_answers_are_what_trying_everything_finds():
    outcomes = list(compared(seed=11, count=150))
    assert [(query, wrong) for _, _, query, wrong in outcomes if wrong] == []
    assert len({form for form, *_ in outcomes}) >= 15
    assert sum(finds for _, finds, _, _ in outcomes) > len(outcomes) / 2  # finding nothing shows little


@pytest.mark.parametrize(("longer", "value", "state"), [(200, 2, "found"), (900, 0, "maybe")])
def test_a_count_of_zero_is_at_most_a_maybe(longer, value, state, tmp_path):
    (tmp_path / "bridges.csv").write_text("name,length\nTower Bridge,244\nLondon Bridge,269\nShort Bridge,20\n")
    clew.build([tmp_path / "bridges.csv"], tmp_path / "bridges.kb")
    asked = Interpretation(parse(f"find distinct x where (x: bridge) and x.length > {longer}"), asks="number")
    tools = replace(clew.open(tmp_path / "bridges.kb").tools, parser=Said(asked))
    answer = ask(create("focus_plus", {}), "?", tools)
    assert (answer.value, answer.state) == (value, state)
