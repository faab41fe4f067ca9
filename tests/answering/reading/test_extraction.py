"""Reading without a model."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.answering.reading.documents.close_reading import writes
from clew.answering.reading.extraction.asked import Asked
from clew.answering.reading.extraction.clues import CluedSpan, Evidence
from clew.answering.reading.extraction.comparing import compared, day, life
from clew.answering.reading.extraction.spans import spans
from clew.answering.roles.read import BestSpan, best_candidate
from clew.core.roles import Reading, Source
from clew.models.passages import Seen

KING = Source(
    "The Prairie King is a 1927 silent film directed by Reeves Eason and starring Hoot Gibson.", "The Prairie King"
)
EATER = Source("Opium Eater is a 1962 American crime film directed by Albert Zugsmith.", "Opium Eater (film)")
EASON = Source("William Reeves Eason (October 2, 1886 – June 9, 1956) was an American film director.", "Reeves Eason")
ZUGSMITH = Source(
    "Albert Zugsmith (born April 24, 1910 in Atlantic City, died October 26, 1993) was an American film producer. "
    "He grew up in New Jersey.",
    "Albert Zugsmith",
)
MANN = Source("Michael Mann (born 5 February 1943) is a German director. Mann was born in Chicago.", "Michael Mann")
SOURCES = (KING, EATER, EASON, ZUGSMITH, MANN)


def answer(question: str, sources: tuple[Source, ...] = SOURCES) -> str | None:
    return BestSpan().read([Reading(question, sources)])[0].text


@pytest.mark.parametrize(
    ("question", "kind", "noun"),
    [
        ("Who directed Heat?", "person", None),
        ("In which city was the man who wrote Heat born?", "place", "city"),
        ("The team that won in 1999 was founded in what year?", "year", "year"),
        ("He is based where?", "place", None),
        ("Are both films American?", "yes or no", None),
        ("How many people live in the town where he was born?", "number", None),
        ("What nationality is the director of Heat?", "origin", "nationality"),
        ("Who is the mother of the director of Heat?", "person", "mother"),
    ],
)
def test_a_question_says_what_kind_of_answer_it_wants(question, kind, noun):
    assert (Asked(question).kind, Asked(question).noun) == (kind, noun)


def test_dates_of_a_life_are_read_from_brackets_and_from_words():
    assert life(EASON.text).born == (1886, 10, 2)
    assert life(EASON.text).died == (1956, 6, 9)
    assert life(ZUGSMITH.text).born == (1910, 4, 24)
    assert life(MANN.text).died is None
    assert day("founded in May 1901") == (1901, 5, 0)
    assert day("nothing") is None


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which film has the director who died first, The Prairie King or Opium Eater (Film)?", "The Prairie King"),
        ("Which film came out later, The Prairie King or Opium Eater?", "Opium Eater"),
        ("Who is younger, Reeves Eason or Albert Zugsmith?", "Albert Zugsmith"),
        ("Who was born first out of Albert Zugsmith and Reeves Eason?", "Reeves Eason"),
        ("Are Reeves Eason and Albert Zugsmith from the same country?", "yes"),
        ("Do Reeves Eason and Michael Mann have the same nationality?", "no"),
        ("Do both films The Prairie King and Opium Eater have directors that share the same nationality?", "yes"),
        ("Are both Reeves Eason and Michael Mann directors?", "yes"),
        ("Are both Reeves Eason and Michael Mann composers?", "no"),
    ],
)
def test_two_things_are_compared_by_what_their_sources_tell(question, expected):
    assert answer(question) == expected


def test_a_comparison_cites_what_it_compared_and_whose_dates():
    read = compared(Asked("Which film has the director born first, The Prairie King or Opium Eater?"), SOURCES)
    assert read is not None
    assert set(read.citations) == {0, 1, 2, 3}
    assert compared(Asked("Who is older, Reeves Eason or Ridley Scott?"), SOURCES) is None


def test_the_answer_to_two_hops_stands_in_the_passage_reached_last():
    assert answer("When was the director of The Prairie King born?", (KING, EASON, MANN)) == "October 2, 1886"
    assert answer("When did the director of The Prairie King die?", (KING, EASON, MANN)) == "June 9, 1956"
    assert answer("Who directed The Prairie King?", (KING, MANN)) == "Reeves Eason"
    assert answer("Where was Michael Mann born?", (KING, MANN)) == "Chicago"


def test_a_yes_or_no_question_about_one_thing_stays_open():
    [read] = BestSpan().read([Reading("Is Michael Mann a director?", SOURCES)])
    assert read.text is None
    assert read.citations[0] == 4


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=80)


class Blind:
    """A network that sees nothing: the real one takes too long for hundreds of texts."""

    def read(self, question, passages):
        nothing = np.empty(0, dtype=np.float32)
        return [Seen(0.0, np.empty((0, 2), dtype=np.int32), nothing, nothing, nothing) for _ in passages]


@given(words, st.lists(st.tuples(words, words), max_size=4))
def test_any_span_answer_is_written_in_the_source_it_cites(question, texts):
    sources = tuple(Source(text, title) for text, title in texts)
    for candidate in Evidence(Asked(question), sources).candidates():
        assert candidate.text in sources[candidate.source].text
    [read] = BestSpan(network=Blind()).read([Reading(question, sources)])
    assert all(0 <= place < len(sources) for place in read.citations)


@given(words)
def test_spans_lie_inside_their_sentence(text):
    assert all(0 <= span.start < span.end <= len(text) for span in spans(text))


def test_the_same_words_in_several_places_speak_for_each_other():
    once = CluedSpan("A", "a", 0, {"clue": 1.2})
    twice = [CluedSpan("B", "b", 1, {"clue": 1.0}), CluedSpan("b", "b", 2, {"clue": 0.9})]
    chosen = best_candidate([once, *twice], {"clue": 1.0})
    assert chosen is twice[0]
    assert best_candidate([], {}) is None


def test_a_quoted_span_is_found_again_by_the_citation():
    [read] = BestSpan().read([Reading("Where was Michael Mann born?", SOURCES)])
    assert writes(SOURCES[read.citations[0]].text, read.text)


@pytest.mark.parametrize("right", ["Aberdeen", "Basel"])
def test_the_network_speaks_for_a_span(right):
    text = "The fair moved from Aberdeen to Basel."

    class Network:
        def read(self, question, passages):
            spans = np.array([(found.start(), found.end()) for found in re.finditer(r"\w+", text)], dtype=np.int32)
            odds = np.array([9.0 if text[start:end] == right else -9.0 for start, end in spans], dtype=np.float32)
            return [Seen(0.0, spans, odds, odds, odds) for _ in passages]

    [read] = BestSpan(network=Network()).read([Reading("Which city has the fair?", (Source(text, "Fair"),))])
    assert read.text == right
