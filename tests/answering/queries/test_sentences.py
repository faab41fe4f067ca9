"""Every answer over a graph says itself in a sentence."""

from dataclasses import replace

import pytest

from clew.answering.queries.schema_words import value_in_words
from clew.answering.queries.sentences import sentence
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
    company = NodeRef(5, "k5", "Acme Inc.", "drug")
    assert sentence(answer(company)) == "1 drug matches: Acme Inc."
    twins = (A, A, A, B)
    assert sentence(answer(*twins)) == "4 drugs match: Aspirin (3 times) and Bosentan."
    races = [NodeRef(n, f"r{n}", f"2008, {name}", "drug") for n, name in enumerate(("Monza", "Spa"))]
    assert sentence(answer(*races)) == "2 drugs match: 2008, Monza; and 2008, Spa."
    assert sentence(answer(races[0])) == "1 drug matches: 2008, Monza."


def test_what_was_not_found_is_said_with_what_was_understood():
    refused = answer(A, answer_count=0, query={"text": "drugs that treat gout"})
    assert sentence(refused) == "I did not find this. I understood: drugs that treat gout."
    assert refused.matches == ()
    assert refused.near == refused.candidates


def test_yes_and_no_say_what_the_base_says():
    fact = Path((Fact(A, "treats", B),))
    yes = Answer("?", (Candidate(A, 1.0, (fact,)),), value=True, answer_count=1)
    assert sentence(yes) == "Yes. Aspirin —treats→ Bosentan."
    told = replace(yes, query={"told": "Aspirin treats gout"})
    assert sentence(told) == "Yes. Aspirin treats gout."
    no = Answer("?", value=False, answer_count=0)
    assert sentence(no) == "No. Nothing in the base says so."
    assert "Aspirin treats gout" in sentence(replace(no, query=told.query))
    instead = {**told.query, "instead": "Aspirin treats pain, not gout"}
    assert sentence(replace(no, query=instead)) == "No. Aspirin treats pain, not gout."
    assert sentence(replace(no, query={"text": "whether there are drugs"})) == "No. The base has no drugs."


def test_a_count_names_what_is_counted_and_a_value_says_of_what_it_is():
    assert sentence(answer(A, B, value=2, query={"form": "count"})) == "2 drugs: Aspirin and Bosentan."
    assert sentence(answer(value=0, query={"form": "count", "many": "drugs treat gout"})) == "0 drugs treat gout."
    one = answer(A, query={"one": "drug treats gout", "many": "drugs treat gout"})
    assert sentence(one) == "1 drug treats gout: Aspirin."
    kinds = answer(A, B, query={"many": "drugs treat gout or a kind of it", "direct": 1})
    assert sentence(kinds) == "2 drugs treat gout or a kind of it (1 directly): Aspirin and Bosentan."


@pytest.mark.parametrize(
    ("attribute", "unit", "value", "said"),
    [
        ("dose", "", 20_000.0, "The dose of Aspirin is 20,000."),
        ("height", "m", 2850, "The height of Aspirin is 2,850 m."),
        ("beds", "", 146, "Aspirin has 146 beds."),
        ("beds", "", 1, "Aspirin has 1 bed."),
        ("opened", "", "1877-07-01", "Aspirin was opened on 1877-07-01."),
        ("built", "", 1931, "Aspirin was built in 1931."),
        ("invested", "", 1931, "The invested of Aspirin is 1931."),
        ("languages", "", "German, French", "The languages of Aspirin are German, French."),
        ("share", "percent", 12, "The share of Aspirin is 12%."),
    ],
)
def test_a_value_is_said_with_its_unit_and_by_what_it_tells(attribute, unit, value, said):
    query = {"form": "value", "attribute": attribute, "unit": unit}
    assert sentence(answer(A, value=value, query=query)) == said


def test_a_superlative_says_by_how_much():
    best = Answer(
        "?",
        (Candidate(A, 1.0, (Judgement("half_life", reason="1090"), SATISFIES)),),
        query={
            "form": "superlative",
            "best": "has the highest half life",
            "unit": "min",
            "of": "drugs",
            "kind": "drug",
        },
        answer_count=1,
    )
    assert sentence(best) == "Aspirin has the highest half life (1,090 min)."
    among = replace(best, query={**best.query, "of": "drugs that treat gout"})
    assert sentence(among).startswith("Of the drugs that treat gout, Aspirin has ")
    truth = {**best.query, "form": "yes/no", "asked": "Bosentan"}
    assert sentence(replace(best, value=False, query=truth)).startswith("No. Aspirin has the highest half life")
    assert sentence(replace(best, value=False, query=truth)).endswith("not Bosentan.")


def test_a_mere_ranking_claims_nothing():
    ranked = Answer("?", (Candidate(A, 0.4), Candidate(B, 0.3)), query={"text": "drugs"})
    assert sentence(ranked) == "Ranked by what is written about them, nothing was checked: Aspirin and Bosentan."


@pytest.mark.parametrize(("value", "shown"), [(True, "Yes"), (2.0, "2"), (0.25, "0.25"), (1999, "1999"), ("x", "x")])
def test_values_are_shown_plainly(value, shown):
    assert value_in_words(value) == shown
