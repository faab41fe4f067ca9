"""Every answer over a graph says itself in a sentence."""

import pytest

from clew.answering.queries.sentences import sentence
from clew.answering.queries.attributes import value_in_words
from clew.core.types import Answer, Candidate, Fact, Judgement, NodeRef, Path

A, B = (NodeRef(place, f"k{place}", name, "drug") for place, name in enumerate(("Aspirin", "Bosentan")))
SATISFIES = Judgement("query", reason="satisfies the query")


def answer(*nodes, **given):
    candidates = tuple(Candidate(node, 1.0, (SATISFIES,)) for node in nodes)
    given = {"answer_count": len(nodes), **given}
    query = {"kind": "drug", **given.pop("query", {})}
    return Answer("?", candidates, query=query, **given)


def test_matches_are_counted_and_the_first_are_named():
    many = [NodeRef(9 + n, f"D{n}", f"D{n}", "drug") for n in range(1998)]
    assert sentence(answer(A)) == "1 drug matches: Aspirin."
    assert sentence(answer(A, B)) == "2 drugs match: Aspirin and Bosentan."
    assert sentence(answer(A, B, *many)) == "2,000 drugs match: Aspirin, Bosentan, D0, D1, D2 and 1,995 more."
    twins = (A, A, A, B)
    assert sentence(answer(*twins)) == "4 drugs match: Aspirin (3 times) and Bosentan."


def test_what_was_not_found_is_said_with_what_was_understood():
    refused = answer(A, answer_count=0, query={"text": "drugs that treat gout"})
    assert sentence(refused) == "I did not find this. I understood: drugs that treat gout."
    assert refused.matches == ()
    assert refused.near == refused.candidates


def test_yes_shows_the_fact_and_no_says_that_there_is_none():
    fact = Path((Fact(A, "treats", B),))
    yes = Answer("?", (Candidate(A, 1.0, (fact,)),), value=True, answer_count=1)
    assert sentence(yes) == "Yes: Aspirin —treats→ Bosentan."
    no = Answer("?", value=False, answer_count=0)
    assert sentence(no) == "No: nothing in the base says so."


def test_a_count_names_what_is_counted_and_a_value_says_of_what_it_is():
    assert sentence(answer(A, B, value=2, query={"form": "count"})) == "2 drugs: Aspirin and Bosentan."
    assert sentence(answer(value=0, query={"form": "count"})) == "0 drugs."
    told = answer(A, value=20_000.0, query={"form": "value", "attribute": "dose"})
    assert sentence(told) == "The dose of Aspirin is 20,000."


def test_a_superlative_says_by_how_much():
    best = Answer(
        "?",
        (Candidate(A, 1.0, (Judgement("half_life", reason="90"), SATISFIES)),),
        query={"form": "superlative"},
        answer_count=1,
    )
    assert sentence(best) == "Aspirin (half life 90)."


def test_a_mere_ranking_claims_nothing():
    ranked = Answer("?", (Candidate(A, 0.4), Candidate(B, 0.3)), query={"text": "drugs"})
    assert sentence(ranked) == "Ranked by what is written about them, nothing was checked: Aspirin and Bosentan."


@pytest.mark.parametrize(("value", "shown"), [(True, "Yes"), (2.0, "2"), (0.25, "0.25"), (1999, "1999"), ("x", "x")])
def test_values_are_shown_plainly(value, shown):
    assert value_in_words(value) == shown
