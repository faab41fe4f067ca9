"""Plans in words and as queries."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.answering.queries.certificates import formal_query
from clew.answering.reading.mentions import NamedSpan, Sense
from clew.answering.reading.plan import FORMS, Branch, Plan, Requirement, Translator, Wording
from clew.answering.reading.proposals import Proposer
from clew.answering.reading.quantities import quantities
from clew.answering.reading.scoring import MentionScores, Scores, length_scores
from clew.answering.reading.vocabulary import Vocabulary
from clew.core.query import alternatives
from clew.core.schema import NodeType, Relation, Schema, label_of, words_of
from clew.lab.training.reader.examples import normal
from clew.lab.training.reader.queries import plan_of
from clew.store.index.protocol import Link
from conftest import asked

SCHEMA = Schema(
    (
        NodeType("Film", 9, attributes=("year", "length")),
        NodeType("Person", 9, attributes=("born",)),
        NodeType("Genre", 3),
    ),
    (
        Relation("directedBy", "Film", "Person", 9),
        Relation("has_genre", "Film", "Genre", 9),
        Relation("KNOWS", "Person", "Person", 9, description="has met"),
    ),
    {"year": "number", "length": "number", "born": "date"},
)
VOCABULARY = Vocabulary(SCHEMA)
OUT, IN = {"directedBy": 0, "has_genre": 2, "KNOWS": 4}, {"directedBy": 1, "has_genre": 3, "KNOWS": 5}


def named(text, kind, how="exact", alias=None):
    return NamedSpan(0, len(text), text, (Sense(kind, (Link(0, alias or text, how, 1.0),)),))


def translated(plan, *mentions, question=""):
    translator = Translator(VOCABULARY, mentions, [one.senses[0] for one in mentions], quantities(question))
    return translator.interpretation(plan)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("film.film.directed_by", "film directed by"),
        ("doctoralAdvisor", "doctoral advisor"),
        ("WORKS_AT", "works at"),
        ("wdt:P84", "wdt p 84"),
        ("HTTPServer", "http server"),
    ],
)
def test_names_of_a_schema_are_split_into_words(name, words):
    assert words_of(name) == words


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("electricity_from_nuclear_TWh", "electricity from nuclear TWh"),
        ("CO2 emissions", "CO2 emissions"),
        ("GDP per capita\n(US$)", "GDP per capita (US$)"),
        ("Birth Date", "birth date"),
        ("film.film.directed_by", "film directed by"),
        ("doctoralAdvisor", "doctoral advisor"),
        ("isA", "is a"),
        ("WORKS_AT", "works at"),
        ("HTTPServer", "HTTP server"),
        ("GDP", "GDP"),
        ("pH", "pH"),
        ("#", "#"),
    ],
)
def test_names_are_shown_with_the_abbreviations_that_they_contain(name, label):
    assert label_of(name) == label


def test_a_relation_is_walked_from_both_sides_and_twice_between_nodes_of_one_type():
    assert VOCABULARY.hop_texts[4:] == ("person → knows → person : has met", "person ← knows ← person : has met")


def test_branches_that_end_in_the_same_hop_share_what_lies_before_it():
    people = Plan(
        "list", 2, (Branch(0, (IN["directedBy"], OUT["has_genre"])), Branch(1, (IN["directedBy"], OUT["has_genre"])))
    )
    query = translated(people, named("Ann", "Person"), named("Bo", "Person"))
    shared = '(y1: Film) -[directedBy]-> "Ann": Person and (y1) -[has_genre]-> (x: Genre)'
    assert query == asked(f'find x where {shared} and (y1) -[directedBy]-> "Bo": Person')


def test_a_near_name_is_looked_up_by_the_name_it_was_taken_for():
    query = translated(Plan("describe", mentions=(0,)), named("anne", "Person", "fuzzy", "Ann"))
    assert query == asked('find x where (x: Person) and x is "Ann": Person')


def test_a_decade_is_two_conditions_and_belongs_to_what_has_the_attribute():
    plan = Plan("list", 2, (Branch(0, (IN["directedBy"], OUT["has_genre"])),), (Requirement(0, "=", 0),))
    query = translated(plan, named("Ann", "Person"), question="in the 1990s")
    shared = '(y1: Film) -[directedBy]-> "Ann": Person and (y1) -[has_genre]-> (x: Genre)'
    assert query == asked(f"find x where {shared} and y1.year >= 1990 and y1.year <= 1999")


def test_either_of_two_branches_becomes_a_choice():
    plan = Plan("list", 0, (Branch(0, (IN["directedBy"],)), Branch(1, (IN["has_genre"],))), either=True)
    query = translated(plan, named("Ann", "Person"), named("War", "Genre"))
    assert len(alternatives(query.query.pattern)) == 2
    assert " or " in str(query.query)


def test_every_form_is_put_into_words_and_into_a_query():
    for form in FORMS:
        plan = Plan(form, 0, (Branch(0, (IN["directedBy"],)),), attribute=0, hop=0, mentions=(0,))
        assert Wording(VOCABULARY).of(plan)
        assert translated(plan, named("Ann", "Person")).type == "Film"


def test_paths_are_counted_as_walking_them_would():
    hops = VOCABULARY.hops
    for kind, name in enumerate(VOCABULARY.schema.type_names):
        ends = [name]
        for counted in VOCABULARY.path_counts[kind]:
            ends = [hop.end for end in ends for hop in hops if hop.start == end]
            assert counted == len(ends)


def test_paths_that_training_saw_few_of_are_each_less_likely():
    few = {"lengths": np.array([0.5, 0.5, 0.5], dtype=np.float32), "seen_paths": np.array([np.inf, 2, 1])}
    for kind, counts in enumerate(VOCABULARY.path_counts):
        added = length_scores(VOCABULARY, few, kind)
        for score, count, seen in zip(added, counts, few["seen_paths"], strict=True):
            assert np.exp(score - 0.5) == pytest.approx(min(1.0, seen / count) if count else 1.0)
        plain = length_scores(VOCABULARY, {"lengths": few["lengths"]}, kind)
        assert plain.tolist() == few["lengths"].tolist()


FILM, YEAR, LENGTH = 0, 0, 1
OLD = (Requirement(YEAR, "<", 0),)
FORMS_AND_QUERIES = [
    (Plan("average", FILM, (), OLD, LENGTH), "find avg(x.length) where (x: Film) and x.year < 3"),
    (Plan("highest", FILM, (), (), LENGTH), "find max(x.length) where (x: Film)"),
    (Plan("different", FILM, (), (), YEAR), "find count(distinct x.year) where (x: Film)"),
    (
        Plan("each", FILM, (), (), hop=OUT["has_genre"]),
        (
            "find distinct x, count(distinct other for (x) -[has_genre]-> (other: Genre)) as number where (x: Film) "
            "order by count(distinct other for (x) -[has_genre]-> (other: Genre)) desc"
        ),
    ),
    (
        Plan("max", FILM, (), (Requirement(None, "<=", 0),), LENGTH),
        "find distinct x where (x: Film) order by x.length desc first 3",
    ),
    (Plan("ascending", FILM, (), (), LENGTH), "find distinct x where (x: Film) order by x.length"),
    (
        Plan("list", FILM, (), (Requirement(None, ">=", 0, hop=OUT["has_genre"]),)),
        "find distinct x where (x: Film) and count(distinct other for (x) -[has_genre]-> (other: Genre)) >= 3",
    ),
    (
        Plan("list", 1, (Branch(None, (OUT["directedBy"],)),), OLD),
        "find distinct x where (any0: Film) -[directedBy]-> (x: Person) and any0.year < 3",
    ),
]


@pytest.mark.parametrize(("plan", "text"), FORMS_AND_QUERIES)
def test_every_form_of_plan_is_a_query_and_the_query_that_plan(plan, text):
    found = formal_query(translated(plan, question="3"))
    assert str(found) == text
    assert normal(plan_of(found, VOCABULARY, (), quantities("3"))) == normal(plan)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (
            "common",
            (
                "find x.year where (x: Film) and not x.year is missing group by x.year "
                "order by count(distinct x) desc first 1 with ties"
            ),
        ),
        (
            "each value",
            (
                "find x.year, count(distinct x) as number where (x: Film) and not x.year is missing group by x.year "
                "order by count(distinct x) desc"
            ),
        ),
    ],
)
def test_values_are_counted_in_groups(form, text):
    assert str(formal_query(translated(Plan(form, FILM, (), (), YEAR)))) == text


def test_the_value_of_what_is_the_most_is_asked_for():
    plan = Plan("max", FILM, (), (), LENGTH, asked=YEAR)
    asked = translated(plan)
    assert (asked.asks, asked.attribute, asked.query.first) == ("value", "year", 1)
    assert Wording(VOCABULARY).of(plan) == "year of max length : film"


@given(
    st.lists(st.floats(-5, 5, width=32), min_size=36, max_size=36),
    st.lists(st.floats(-2, 2, width=32), min_size=3, max_size=3),
)
def test_the_best_paths_are_those_that_trying_all_finds(values, lengths):
    table = np.array(values, dtype=np.float32).reshape(6, 6)
    none = np.zeros(6, dtype=np.float32)
    added = np.array(lengths, dtype=np.float32)
    mention = MentionScores(1, table, 0.0, none, np.zeros(3, dtype=np.float32), added)
    scores = Scores(
        np.zeros(len(FORMS), dtype=np.float32),
        np.zeros(3, dtype=np.float32),
        0.0,
        none,
        0.0,
        none,
        0.0,
        0.0,
        none,
        np.zeros(3, dtype=np.float32),
        np.zeros(3, dtype=np.float32),
        np.zeros(1, dtype=np.float32),
        0.0,
        (mention,),
    )
    found = Proposer(VOCABULARY).paths(scores, 0, lambda *_: True)
    hops = VOCABULARY.hops
    naive = {}
    for size, rows in ((1, (0,)), (2, (1, 2)), (3, (3, 4, 5))):
        for path in itertools.product(range(6), repeat=size):
            fits = hops[path[0]].start == "Person" and all(
                hops[a].end == hops[b].start for a, b in itertools.pairwise(path)
            )
            if fits:
                naive[path] = (
                    sum(float(table[row, hop]) for row, hop in zip(rows, path, strict=True)) + lengths[size - 1]
                )
    best = sorted(naive.values(), reverse=True)[: len(found)]
    assert np.allclose([naive[path] for path, _ in found], best, atol=1e-4)
    assert np.isclose(sum(np.exp(score) for _, score in found), 1.0, atol=1e-4)
