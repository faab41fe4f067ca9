"""Conditions on a part of a value, and on the month of a date."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew.answering.reading.attribute_values import SaidParts
from clew.answering.reading.vocabulary import Vocabulary
from clew.core.schema import NodeType, Schema
from clew.store.index.tokens import tokenise

ROWS = """player,points,withdrew due to,date
Ann Abel,510,right wrist surgery,12 March 2009
Bea Boll,480,broken wrist,3 May 2010
Cid Cole,470,hip surgery,9 November 2010
Dan Dorn,450,fatigue,21 November 2011
Eve East,430,left knee injury,2 June 2012
"""


@pytest.fixture(scope="module")
def players(tmp_path_factory):
    folder = tmp_path_factory.mktemp("players")
    (folder / "players.csv").write_text(ROWS)
    clew.build([folder / "players.csv"], folder / "players.kb")
    return clew.open(folder / "players.kb")


def names(answer):
    return {one.node.name for one in answer.matches}


def test_a_word_inside_values_is_a_condition(players):
    answer = players.ask("Which players withdrew due to a surgery?")
    assert names(answer) == {"Ann Abel", "Cid Cole"}
    assert "contains" in answer.query["text"]


def test_a_month_without_a_year_is_a_condition_on_dates(players):
    answer = players.ask("How many players have a date in November?")
    assert answer.value == 2
    assert names(players.ask("Which players have a date on 3 May?")) == {"Bea Boll"}


def said_in(texts, question):
    schema = Schema((NodeType("row", 9, attributes=("remark",)),), (), {"remark": "text"})
    parts = SaidParts(Vocabulary(schema), {"remark": texts})
    tokens = tokenise(question)
    return [phrase for _, phrase in parts.of(tokens, range(len(tokens)))]


def test_the_longest_phrase_counts():
    texts = ["restored for tourism", "restored in 1990", "tourism office"]
    assert said_in(texts, "how many are restored for tourism") == ["restored for tourism"]


def test_words_of_long_texts_are_no_conditions(tmp_path):
    remark = "has been with the club since the first season and withdrew only once because of a surgery"
    rows = "".join(f"Player {letter},{remark} in {1990 + place}\n" for place, letter in enumerate("ABCDEF"))
    (tmp_path / "players.csv").write_text(f"player,remark\n{rows}")
    clew.build([tmp_path / "players.csv"], tmp_path / "players.kb")
    query = clew.open(tmp_path / "players.kb").ask("Which players withdrew due to a surgery?").query
    assert "contains" not in (query.get("text") or "")


def test_a_word_that_is_a_part_of_longer_words_is_no_condition():
    assert said_in(["kingfisher", "a fisher at sea"], "every fisher") == []


@given(st.lists(st.text("abc ", min_size=1, max_size=12), min_size=1, max_size=5), st.text("abc ", max_size=20))
def test_a_condition_selects_exactly_the_values_with_its_words(texts, question):
    for phrase in said_in(texts, question):
        by_words = [text for text in texts if f" {phrase} " in f" {' '.join(text.split())} "]
        assert by_words == [text for text in texts if phrase in text] != []
