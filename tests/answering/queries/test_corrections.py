"""A query that was understood wrongly is corrected by the user: its relations, their direction, what it asks for."""

import pytest

from clew.answering.queries.corrections import Corrections, of_type, with_relations
from clew.core.errors import InputError
from clew.core.roles import Parse
from clew.core.schema import NodeType, Relation, Schema
from conftest import asked

SCHEMA = Schema(
    (NodeType("film", 1), NodeType("person", 1), NodeType("book", 1)),
    (
        Relation("directed_by", "film", "person", 1),
        Relation("acted_in", "person", "film", 1),
        Relation("based_on", "film", "book", 1),
        Relation("taught", "person", "person", 1),
    ),
)
DIRECTED = asked('find x where "Alien": film -[directed_by]-> (x: person)')
TAUGHT_BY = asked('find x where (x: person) -[taught]-> "Anna": person')


def is_same(found, text):
    return found.query == asked(text).query


def test_the_other_relation_is_turned_to_fit_what_the_question_names():
    corrected = with_relations(DIRECTED, {"directed_by": "acted_in"}, SCHEMA)
    assert is_same(corrected, 'find x where (x: person) -[acted_in]-> "Alien": film')


def test_the_answer_gets_the_type_that_the_relation_gives_it():
    corrected = with_relations(DIRECTED, {"directed_by": "based_on"}, SCHEMA)
    assert is_same(corrected, 'find x where "Alien": film -[based_on]-> (x: book)')


def test_what_is_not_corrected_stays():
    assert with_relations(DIRECTED, {"based_on": "acted_in"}, SCHEMA) == DIRECTED


def test_a_relation_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="directed_by, acted_in"):
        with_relations(DIRECTED, {"directed_by": "shot_by"}, SCHEMA)


def test_a_relation_is_turned_round_where_its_types_let_it():
    taught = asked('find x where "Anna": person -[taught]-> (x: person)')
    turned = with_relations(taught, {"taught": "^taught"}, SCHEMA)
    assert turned == TAUGHT_BY
    assert with_relations(turned, {"taught": "^taught"}, SCHEMA) == taught
    with pytest.raises(InputError, match="from film to person: here it cannot be meant the other way round"):
        with_relations(DIRECTED, {"directed_by": "^directed_by"}, SCHEMA)


def test_what_is_counted_is_corrected_like_an_edge():
    def most(kind, edge):
        return f"find x where (x: {kind}) order by count(distinct y for {edge}) desc first 1 with ties"

    counted = asked(most("person", "(x) -[taught]-> (y: person)"))
    turned = with_relations(counted, {"taught": "^taught"}, SCHEMA)
    assert is_same(turned, most("person", "(y: person) -[taught]-> (x: person)"))
    films = with_relations(counted, {"taught": "directed_by"}, SCHEMA)
    assert films.type in ("person", "film")


def test_another_type_is_reached_by_another_relation_or_from_what_was_asked_for():
    assert is_same(of_type(DIRECTED, "book", SCHEMA), 'find x where "Alien": film -[based_on]-> (x: book)')
    films = of_type(TAUGHT_BY, "film", SCHEMA)
    assert is_same(films, 'find x where (x: film) -[any]- "Anna": person')
    acted = with_relations(films, {"*": "acted_in"}, SCHEMA)
    assert is_same(acted, 'find x where "Anna": person -[acted_in]-> (x: film)')
    by_anna = asked('find x where (x: film) -[directed_by]-> "Anna": person')
    books = 'find x_book where (x: film) -[directed_by]-> "Anna": person and (x) -[based_on]-> (x_book: book)'
    assert is_same(of_type(by_anna, "book", SCHEMA), books)


def test_another_reading_of_the_type_that_is_meant_comes_before_a_rewritten_one():
    other = asked('find y where "Alien": film -[based_on]-> (y: book)')
    corrected = Corrections(type="book").corrected(Parse(DIRECTED, (other,), certainty=0.4), SCHEMA)
    assert (corrected.interpretation, corrected.alternatives, corrected.certainty) == (other, (), 1.0)


def test_a_type_that_cannot_be_asked_for_is_refused_with_the_reason():
    with pytest.raises(InputError, match="no node type 'ghost'; there are: film"):
        Corrections(type="ghost").corrected(Parse(DIRECTED), SCHEMA)
    old = asked('find x where "Alien": film -[directed_by]-> (x: person) and x.age > 50')
    with pytest.raises(InputError, match="cannot ask for book: it requires more than relations"):
        of_type(old, "book", SCHEMA)
    with pytest.raises(InputError, match="no relation connects book to person"):
        of_type(TAUGHT_BY, "book", SCHEMA)
