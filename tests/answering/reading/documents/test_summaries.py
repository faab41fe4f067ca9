"""The most central sentences, without repetition, in reading order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.answering.reading.documents.summaries import (
    central,
    diverse,
    is_sentence,
    lexrank,
    lines_of,
    own_to_each,
    sentences_of,
    vectors_of,
)
from clew.core.types import Node

TEXT = (
    "The harbour of Bergen is the largest harbour of the coast. Ships from the whole coast call at the harbour of "
    "Bergen. The harbour was dug in 1702 by prisoners. My aunt likes pancakes with blueberries a lot. "
    "Most ships in the harbour of Bergen carry dried fish."
)


def sentences(text, heading="Bergen"):
    return sentences_of([(Node(1, "a", "passage", heading, text=text), heading)])


def test_the_sentence_that_shares_least_is_left_out():
    chosen = [sentence.text for sentence in central(sentences(TEXT), None, 4)]
    assert len(chosen) == 4
    assert not any("aunt" in text for text in chosen)
    assert chosen == [text for text in (one.text for one in sentences(TEXT)) if text in chosen]


def test_openings_of_sections_are_weighed_before_all_other_sentences():
    passages = [(Node(n, str(n), "passage", str(n), text=TEXT), f"Section {n}") for n in range(50)]
    kept = sentences_of(passages, 100)
    assert len(kept) == 100
    assert {sentence.place for sentence in kept} == {0, 1}


def test_a_quotation_of_a_sentence_is_its_span():
    node = Node(1, "a", "passage", "x", text=TEXT, attributes={"file": "a.txt", "start": 10, "end": 10 + len(TEXT)})
    for sentence in sentences_of([(node, "x")]):
        quote = sentence.quote()
        assert quote.text == TEXT[quote.start - 10 : quote.end - 10]


@pytest.mark.parametrize("text", ["x = f(3) + g[4] * h{5} / 6 - 7;", "Chapter 4", "| a | b | c | d | e | f | g | h |"])
def test_code_headings_and_rows_are_no_sentences(text):
    assert not is_sentence(text)


def test_lines_of_a_listing_are_taken_one_by_one():
    node = Node(
        1,
        "a",
        "passage",
        "x",
        text="The following is a list of commands:\n\n  apt update   get lists\n  apt list     show",
    )
    assert [line.text for line in lines_of(node)][1:] == ["apt update get lists", "apt list show"]


def test_parts_are_told_apart_by_their_own_sentences():
    shared = "Both harbours are free of ice in every winter of the year."
    first = sentences(f"{shared} Bergen exports dried fish to the south in great amounts.")
    second = sentences(f"{shared} Narvik exports iron ore from the mines of Sweden.")
    [one], [other] = own_to_each([first, second], None, 1)
    assert "dried fish" in one.text
    assert "iron ore" in other.text


@given(st.integers(1, 12), st.integers(0, 15), st.integers(0, 2**32 - 1))
def test_choices_are_distinct_and_as_many_as_there_can_be(size, count, seed):
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(size, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chosen = diverse(random.random(size), vectors, count)
    assert len(set(chosen)) == len(chosen) == min(size, count)
    weights = lexrank(vectors)
    assert weights.shape == (size,)
    assert np.isclose(weights.max(), 1.0)


def test_lexrank_agrees_with_the_eigenvector_of_its_walk():
    vectors = vectors_of(["the red fox runs", "a red fox sleeps", "the blue sea", "red sea fox"], None)
    likeness = np.maximum(vectors @ vectors.T, 0).astype(float)
    np.fill_diagonal(likeness, 0)
    steps = 0.85 * likeness / likeness.sum(axis=1, keepdims=True) + 0.15 / len(likeness)
    values, found = np.linalg.eig(steps.T)
    expected = np.abs(found[:, values.real.argmax()].real)
    assert np.allclose(lexrank(vectors), expected / expected.max(), atol=1e-3)
