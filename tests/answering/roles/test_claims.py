"""What a written answer claims, checked against its sources."""

import json
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.answering.roles.claims import check_claims, compare
from clew.core.roles import CitedClaim, Source
from clew.models.embedding.opening import HashEmbedder

PAIRS = [json.loads(line) for line in (Path(__file__).parents[2] / "data" / "claims.jsonl").read_text().splitlines()]
SOURCES = [
    Source("The cache holds 64 MB. It is emptied every night.", "Manual"),
    Source("The server listens on port 8080. Port 443 is never used.", "Manual"),
]
WORDS = ["server", "cache", "port", "empties", "uses", "night", "not", "never", "Debian", "--force", "with", "the"]
sentence = st.lists(st.sampled_from(WORDS), min_size=3, max_size=9).map(lambda words: " ".join(["The", *words]))
number = st.integers(min_value=2, max_value=9999)


def support(claim: str, *citations: int, sources=SOURCES, embedder=None) -> float:
    [checked], _ = check_claims([CitedClaim(claim, citations)], sources, embedder)
    return checked.support


@pytest.mark.parametrize(
    "claim",
    ["The cache is 64 MB.", "The cache's size is 64 megabytes (64 MB).", "Every night the cache is emptied."],
)
def test_a_paraphrase_is_supported(claim):
    assert support(claim, 0) >= 0.5


@pytest.mark.parametrize(
    "claim",
    [
        "The cache holds 128 MB.",
        "The cache does not hold 64 MB.",
        "The server listens on port 443.",
        "Port 443 is used.",
        "The server listens on port 8080, and passwords travel without encryption.",
        "The server listens for Bluetooth devices.",
    ],
)
def test_what_the_sources_do_not_say_is_not_supported(claim):
    assert support(claim, 0, 1) < 0.5


@given(st.lists(st.tuples(sentence, number), min_size=1, max_size=5), st.data())
def test_a_copied_sentence_is_always_supported(made, data):
    texts = [f"{words} {value} times." for words, value in made]
    copied = data.draw(st.sampled_from(texts))
    assert support(copied, 0, sources=[Source(" ".join(texts))]) >= 0.5
    assert support(copied, 0, sources=[Source(" ".join(texts))], embedder=HashEmbedder()) >= 0.5


@given(st.lists(st.tuples(sentence, number), min_size=1, max_size=5), number, st.data())
def test_a_copied_sentence_with_a_changed_number_never_is(made, other, data):
    assume(other not in {value for _, value in made})
    words, _ = data.draw(st.sampled_from(made))
    source = Source(" ".join(f"{words} {value} times." for words, value in made))
    assert support(f"{words} {other} times.", 0, sources=[source]) == 0


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(PAIRS), st.randoms(use_true_random=False))
def test_the_order_of_the_sources_changes_no_verdict(pair, chance):
    sources = [Source(other["passage"], other["file"]) for other in PAIRS[:20:2]] + [Source(pair["passage"])]
    order = list(range(len(sources)))
    chance.shuffle(order)
    cited = len(sources) - 1
    shuffled = [sources[place] for place in order]
    same = support(pair["claim"], order.index(cited), sources=shuffled)
    assert same == pytest.approx(support(pair["claim"], cited, sources=sources))


def test_a_wrong_citation_is_replaced_where_another_source_says_it():
    [claim], [note] = check_claims([CitedClaim("The server listens on port 8080.", (0,))], SOURCES)
    assert (claim.citations, claim.is_supported) == ((1,), True)
    assert note == "sentence 1 cited 1; source 2 says it"
    [(start, end)] = claim.spans
    assert SOURCES[1].text[start:end] == "The server listens on port 8080."


def test_a_sentence_without_a_citation_gets_one():
    [claim], notes = check_claims([CitedClaim("The cache is emptied every night.")], SOURCES)
    assert claim.citations == (0,)
    assert "cited nothing" in notes[0]


def test_a_claim_may_rest_on_two_sources():
    text = "The cache holds 64 MB and the server listens on port 8080."
    [claim], notes = check_claims([CitedClaim(text, (0, 1))], SOURCES)
    assert claim.is_supported
    assert [
        SOURCES[place].text[start:end] for place, (start, end) in zip(claim.citations, claim.spans, strict=True)
    ] == [
        "The cache holds 64 MB.",
        "The server listens on port 8080.",
    ]
    assert notes == []


PRIZES = [(prize, "Low Tide") for prize in ("Amber Leaf", "Silver Oar", "Tall Mast", "White Gull")]
PRIZES += [("Iron Bell", "Cold Harbour")]


def test_facts_and_paths_support_what_they_say():
    sources = [Source("Marfan syndrome —caused by→ FBN1"), Source("FBN1 —located on→ chromosome 15")]
    assert support("Marfan syndrome is caused by FBN1.", 0, sources=sources) >= 0.5
    assert (
        support("Marfan syndrome is caused by FBN1, which is located on chromosome 15.", 0, 1, sources=sources) >= 0.5
    )
    assert support("Marfan syndrome is caused by COL1A1.", 0, 1, sources=sources) < 0.5


def test_a_claim_that_joins_many_facts_is_supported_and_a_name_of_other_facts_is_not():
    won = [Source(f"{prize} (prize): {film} —won→ {prize}; {film} —directed by→ Ida Berg") for prize, film in PRIZES]
    joined = "Low Tide, directed by Ida Berg, won Amber Leaf, Silver Oar, Tall Mast and White Gull."
    assert support(joined, 0, 1, 2, 3, sources=won) >= 0.5
    assert support(joined.replace("Tall Mast", "Iron Bell"), 0, 1, 2, 3, sources=won) < 0.5
    assert support(joined.replace("Low Tide", "Cold Harbour"), 0, 1, 2, 3, sources=won) < 0.5


def test_a_sentence_may_begin_with_a_word_that_only_other_sources_write_with_a_capital():
    sources = [Source("A list of users may be forced to attach read-only."), Source("Since May. The name. For all.")]
    for opening in ("Since then, users", "For a list, users", "The users of a list"):
        assert support(f"{opening} may be forced to attach read-only.", 0, sources=sources) >= 0.5


def test_numbers_agree_by_value_and_dates_by_year():
    assert compare("It has 1,024 lines and three parts.", ["It has 1024 lines in 3 parts."]).numbers == 0
    assert compare("It appeared in May 2007.", ["It appeared in May 2006."]).numbers == 1


def test_empty_texts_are_compared_without_an_error():
    assert support("", 0) >= 0
    assert support("A claim.", 0, sources=[Source("")]) < 0.5
    assert check_claims([], SOURCES) == ([], [])


def test_the_verdicts_on_written_pairs_stay_as_good_as_reported():
    """By words alone, of forty each: 31 of the half that the weights were fitted to, 29 of the other."""
    for half, least in (("tune", 31), ("report", 29)):
        pairs = [pair for pair in PAIRS if pair["half"] == half]
        right = sum(
            (support(pair["claim"], 0, sources=[Source(pair["passage"], pair["file"])]) >= 0.5) == pair["supported"]
            for pair in pairs
        )
        assert len(pairs) == 40
        assert right >= least
