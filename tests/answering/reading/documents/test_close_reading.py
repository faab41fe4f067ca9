"""The best passages are read closely: ranked anew, marked, and judged."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.answering.methods.knowledge_graph_prompting.method import with_walked
from clew.answering.reading.documents.close_reading import (
    MOST_MARKED,
    CloseReading,
    certainty_of,
    fitting_row,
    is_table,
    read_closely,
    table_lines,
    telling_sentences,
    told,
)
from clew.core.proper_names import sentence_spans
from clew.core.types import Node, Ranking
from clew.models.passages import PassageNetwork, Seen

ODDS = st.floats(-30, 30, width=32)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from(["It rains.", "The pump stops!", "Why?", "e.g. this", "\n", "A. B. Cee ran."])).map(
        " ".join
    ),
)


def seen_of(relevance=0.0, telling=(), spans=None):
    telling = np.array(telling, dtype=np.float32)
    spans = [(place, place + 1) for place in range(len(telling))] if spans is None else spans
    return Seen(relevance, np.array(spans, dtype=np.int32).reshape(-1, 2), telling, telling, telling)


@st.composite
def readings(draw, texts=TEXTS):
    """A text and what a network might have seen in it: tokens from left to right, any odds."""
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=40)))
    spans = [(start, end) for start, end in pairwise(cuts) if start < end]
    telling = draw(st.lists(ODDS, min_size=len(spans), max_size=len(spans)))
    return text, seen_of(draw(ODDS), telling, spans)


def node_of(text, kind="passage", number=0):
    return Node(number, f"n{number}", kind, f"title {number}", text=text)


@given(readings())
def test_the_mark_is_of_whole_sentences_inside_the_text(reading):
    text, seen = reading
    start, end = telling_sentences(node_of(text), seen)
    assert 0 <= start <= end <= len(text)
    spans = sentence_spans(text) if not is_table(node_of(text)) else table_lines(text)
    if spans:
        assert start in {first for first, _ in spans}
        assert end in {last for _, last in spans}
        assert 1 <= sum(start <= first and last <= end for first, last in spans) <= MOST_MARKED


@given(readings(st.lists(st.text("ab |-", min_size=1, max_size=9), min_size=1, max_size=6).map("\n".join)))
def test_the_mark_of_a_table_is_of_whole_lines(reading):
    text, seen = reading
    start, end = telling_sentences(node_of(text, "table"), seen)
    spans = table_lines(text)
    assert start in {first for first, _ in spans}
    assert end in {last for _, last in spans}


def test_the_most_telling_sentence_is_marked_with_neighbours_that_tell_too():
    text = "It rains. The pump stops at ten. It starts at six. Birds sing."
    spans = sentence_spans(text)
    one = telling_sentences(node_of(text), seen_of(0, [-9, 9, -9, -9], spans))
    two = telling_sentences(node_of(text), seen_of(0, [-9, 9, 3, -9], spans))
    assert text[slice(*one)] == "The pump stops at ten."
    assert text[slice(*two)] == "The pump stops at ten. It starts at six."


def test_the_rule_of_a_table_is_no_line_of_it():
    text = "| a | b |\n|---|:-:|\n| 1 | 2 |"
    assert [text[slice(*span)] for span in table_lines(text)] == ["| a | b |", "| 1 | 2 |"]


@given(ODDS, ODDS, st.floats(0, 5), st.floats(0.01, 5))
def test_certainty_is_a_share_that_grows_with_relevance(first, second, gap, more):
    low = certainty_of([seen_of(first), seen_of(second)])
    high = certainty_of([seen_of(first + more), seen_of(second)])
    assert 0 < low < 1
    assert low < high
    assert certainty_of([seen_of(first), seen_of(second + gap)]) <= low
    assert certainty_of([seen_of(first)]) < certainty_of([seen_of(first + more)])


@dataclass
class MadeUpNetwork:
    """Says what it was told to say, and remembers what it was asked."""

    relevance: dict[str, float]
    asked: list = field(default_factory=list)

    def read(self, question, passages):
        self.asked.append((question, list(passages)))
        return [seen_of(self.relevance.get(title, 0.0), [0.0]) for title, _ in passages]


class MadeUpBase:
    def node(self, number):
        return node_of(f"Text {number}.", number=number)


@given(
    st.dictionaries(st.integers(0, 200), st.integers(0, 128).map(lambda part: part / 64), max_size=60),
    st.lists(ODDS, min_size=60, max_size=60),
    st.integers(1, 40),
)
def test_all_are_kept_and_being_read_puts_none_before_one_that_fits_better(scores, relevance, closely):
    ranking = Ranking.of(list(scores), list(scores.values()))
    network = MadeUpNetwork({f"title {node}": relevance[at] for at, node in enumerate(scores)})
    read = ranking.nodes[::2][:closely].tolist()
    reading = read_closely(MadeUpBase(), network, "why?", ranking, read)
    ordered = reading.ranking.nodes.tolist()
    assert sorted(ordered) == sorted(scores)
    assert set(reading.seen) == set(read)
    unread = [node for node in ranking.nodes.tolist() if node not in read]
    assert [node for node in ordered if node in unread] == unread
    assert 0 <= reading.certainty < 1
    assert len(network.asked) == bool(scores)
    if scores:
        least = min(read, key=lambda node: reading.seen[node].relevance)
        better = [node for node in unread if scores[node] > scores[least]]
        assert all(ordered.index(node) < ordered.index(least) for node in better)


def test_a_much_more_relevant_passage_moves_to_the_front():
    ranking = Ranking.of([1, 2, 3], [1.0, 0.9, 0.2])
    reading = read_closely(
        MadeUpBase(), MadeUpNetwork({"title 2": 8.0, "title 1": -8.0}), "why?", ranking, ranking.nodes[:8].tolist()
    )
    assert reading.ranking.nodes.tolist()[0] == 2
    assert reading.mark(node_of("Text 2.", number=2)) == (0, 7)
    assert reading.mark(node_of("Text 9.", number=9)) is None


@given(st.lists(st.integers(0, 9), unique=True), st.lists(st.integers(0, 9), unique=True))
def test_the_best_of_the_walk_is_read_with_what_search_found(first, second):
    read = with_walked(first, second, 4)
    assert read[:3] == [*first[:3], *[node for node in second if node not in first[:3]]][:3]
    assert len(set(read)) == len(read) <= 4
    others = [node for node in second if node not in first[:3]]
    if len(first) >= 3 and others:
        assert read[3] == others[0]


def test_nothing_is_found_where_nothing_is_read():
    reading = read_closely(MadeUpBase(), MadeUpNetwork({}), "why?", Ranking.of([], []), [])
    assert (len(reading.ranking), reading.certainty, reading.found) == (0, 0.0, False)


@pytest.mark.parametrize(("certainty", "found"), [(0.9, True), (0.05, False)])
def test_what_is_too_uncertain_is_not_put_forward(certainty, found):
    assert CloseReading(Ranking.of([], []), {}, certainty).found is found


def test_the_network_that_ships_marks_the_sentence_that_says_it():
    text = "The pump is blue. Its filter is cleaned once a month. Bolts are sold apart. The shop is closed on Mondays."

    class Base:
        def node(self, number):
            return node_of(text if number == 1 else "Lamps are made of glass.", number=number)

    asked = "How often do I clean the filter?"
    reading = read_closely(Base(), PassageNetwork(), asked, Ranking.of([0, 1], [1.0, 0.9]), [0, 1])
    assert reading.ranking.nodes.tolist() == [1, 0]
    assert "once a month" in text[slice(*reading.mark(node_of(text, number=1)))]


TABLE = "Table 1. Codes\n\n| Code | Meaning |\n| --- | --- |\n| 5 | lost |\n| 6 | refused by the peer |"


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("What does 6 stand for?", "| 6 | refused by the peer |"),
        ("Which code means lost?", "| 5 | lost |"),
        ("why", None),
    ],
)
def test_the_row_that_fits_is_told_under_its_header(question, row):
    table = node_of(TABLE, "table")
    span = fitting_row(table, question)
    assert (span and told(table, span)) == (row and f"| Code | Meaning |\n{row}")


def test_what_is_told_of_a_text_is_one_line():
    assert told(node_of("A pump.\nIt is\nblue."), (8, 19)) == "It is blue."
