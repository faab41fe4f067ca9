"""The network that ships with Clew reads passages beside a question."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.core.errors import ModelError
from clew.models.passages import LONGEST, SHIPPED, PassageNetwork

QUESTION = "How often must the filter of the pump be cleaned?"
ANSWERS = ("Pump › Care", "The filter of the pump is cleaned once a month. Use warm water and no soap.")
NEAR = ("Pump › Parts", "The filter of the pump is made of steel and sits behind the motor.")
FAR = ("Lamp", "The lamp is switched on by a sensor at dusk.")


@pytest.fixture(scope="module")
def network():
    return PassageNetwork()


def same(one, other):
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("relevance", "spans", "telling", "starts", "ends")
    )


@pytest.mark.parametrize(
    ("question", "answers", "other"),
    [
        (QUESTION, ANSWERS, NEAR),
        (QUESTION, ANSWERS, FAR),
        (
            "who wrote the manual",
            ("Credits", "This manual was written by Ada Holm in 1998."),
            ("Use", "See the manual."),
        ),
        (
            "Largest file that can be stored?",
            ("Limits", "No file may have more than 4 GB."),
            ("Files", "Files are kept."),
        ),
        (
            "what is the default port",
            ("Server", "It listens on port 8080 unless told otherwise."),
            ("Server", "Start it."),
        ),
    ],
)
def test_a_passage_that_answers_is_above_one_that_does_not(network, question, answers, other):
    first, second = network.read(question, [answers, other])
    assert first.relevance > second.relevance


def test_the_words_that_say_it_are_more_telling_than_the_others(network):
    (seen,) = network.read(QUESTION, [ANSWERS])
    end = ANSWERS[1].index(".") + 1
    inside = seen.spans[:, 1] <= end
    assert seen.telling[inside].mean() > seen.telling[~inside].mean()


def test_the_short_answer_starts_and_ends_where_it_is_said(network):
    (seen,) = network.read(QUESTION, [ANSWERS])
    said = ANSWERS[1].index("once a month")
    for scores in (seen.starts, seen.ends):
        assert said <= seen.spans[scores.argmax()][0] < said + len("once a month")


def test_each_passage_is_read_by_itself(network):
    passages = [ANSWERS, NEAR, FAR, ("", "x"), ANSWERS]
    together = network.read(QUESTION, passages)
    backwards = network.read(QUESTION, passages[::-1])[::-1]
    alone = [network.read(QUESTION, [passage])[0] for passage in passages]
    single = PassageNetwork(threads=1).read(QUESTION, passages)
    for readings in (backwards, alone, single):
        assert all(map(same, together, readings))
    assert same(together[0], together[4])


def test_nothing_is_read_where_there_is_nothing(network):
    assert network.read(QUESTION, []) == []
    (seen,) = network.read(QUESTION, [("", "")])
    assert np.isfinite(seen.relevance)
    assert seen.spans.shape == (0, 2)
    assert len(seen.telling) == len(seen.starts) == len(seen.ends) == 0
    (seen,) = network.read("", [ANSWERS])
    assert np.isfinite(seen.relevance)


def test_what_is_too_long_is_cut(network):
    long = "word " * 5000
    (seen,) = network.read(long, [(long, long)])
    assert 0 < len(seen.spans) < LONGEST
    (plain,) = network.read("q", [("t", long)])
    (longer,) = network.read("q", [("t", long + "and more")])
    assert same(plain, longer)


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=60), st.text(max_size=30), st.text(max_size=200))
def test_any_characters_can_be_read(network, question, title, text):
    (seen,) = network.read(question, [(title, text)])
    assert np.isfinite(seen.relevance)
    assert np.isfinite(seen.telling).all()
    assert len(seen.spans) == len(seen.telling) == len(seen.starts) == len(seen.ends)
    assert ((seen.spans >= 0) & (seen.spans <= len(text))).all()
    assert (seen.spans[:, 0] <= seen.spans[:, 1]).all()
    assert (np.diff(seen.spans[:, 0]) >= 0).all()


@pytest.mark.parametrize(
    "text", ["\x00\x07\ufffd", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 👩‍👩‍👧", "\u202eabc\u202c", "日本語のテキスト。", "a\u0301" * 40]
)
def test_odd_characters_are_read(network, text):
    (seen,) = network.read(text, [(text, text)])
    assert np.isfinite(seen.relevance)


def test_the_weights_say_what_they_are(tmp_path):
    card = json.loads((SHIPPED / "card.json").read_text("utf-8"))
    assert {"digest", "words", "start", "trained_on", "seed"} <= set(card)
    assert (SHIPPED / "ORIGIN.md").is_file()
    with pytest.raises(ModelError, match="reinstall"):
        PassageNetwork(tmp_path).read("Who?", [("A title", "A text.")])
