"""A query that was understood wrongly is corrected by the user: its relations, their direction, what it asks for."""

import pytest

from clew.answering.queries.corrections import Corrections, of_type, with_relations
from clew.core.errors import InputError
from clew.core.query import Best, Condition, Constant, Triplet, TripletQuery, Variable
from clew.core.roles import Parse
from clew.core.schema import NodeType, Relation, Schema

SCHEMA = Schema(
    (NodeType("film", 1), NodeType("person", 1), NodeType("book", 1)),
    (
        Relation("directed_by", "film", "person", 1),
        Relation("acted_in", "person", "film", 1),
        Relation("based_on", "film", "book", 1),
        Relation("taught", "person", "person", 1),
    ),
)
ALIEN, X = Constant("Alien", "film"), Variable("x", "person")
DIRECTED = TripletQuery((Triplet(ALIEN, "directed_by", X),), X)


def test_the_other_relation_is_turned_to_fit_what_the_question_names():
    corrected = with_relations(DIRECTED, {"directed_by": "acted_in"}, SCHEMA)
    assert corrected.triplets == (Triplet(X, "acted_in", ALIEN),)


def test_the_answer_gets_the_type_that_the_relation_gives_it():
    corrected = with_relations(DIRECTED, {"directed_by": "based_on"}, SCHEMA)
    assert corrected.target == Variable("x", "book")
    assert corrected.triplets == (Triplet(ALIEN, "based_on", Variable("x", "book")),)


def test_what_is_not_corrected_stays():
    assert with_relations(DIRECTED, {"based_on": "acted_in"}, SCHEMA) == DIRECTED


def test_a_relation_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="directed_by, acted_in"):
        with_relations(DIRECTED, {"directed_by": "shot_by"}, SCHEMA)


def test_a_relation_is_turned_round_where_its_types_let_it():
    anna = Constant("Anna", "person")
    taught = TripletQuery((Triplet(anna, "taught", X),), X)
    turned = with_relations(taught, {"taught": "^taught"}, SCHEMA)
    assert turned.triplets == (Triplet(X, "taught", anna),)
    assert with_relations(turned, {"taught": "^taught"}, SCHEMA) == taught
    with pytest.raises(InputError, match="from film to person: here it cannot be meant the other way round"):
        with_relations(DIRECTED, {"directed_by": "^directed_by"}, SCHEMA)


def test_what_is_counted_is_corrected_like_an_edge():
    most = TripletQuery((), X, best=Best(most=True, relation="taught"))
    assert with_relations(most, {"taught": "^taught"}, SCHEMA).best == Best(True, None, "taught", False, "person")
    films = with_relations(most, {"taught": "directed_by"}, SCHEMA)
    assert (films.target.type, films.best) == ("person", Best(True, None, "directed_by", False, "film"))


def test_another_type_is_reached_by_another_relation_or_from_what_was_asked_for():
    book = Variable("x", "book")
    assert of_type(DIRECTED, "book", SCHEMA).triplets == (Triplet(ALIEN, "based_on", book),)
    by_anna = TripletQuery((Triplet(X, "taught", Constant("Anna", "person")),), X)
    films = of_type(by_anna, "film", SCHEMA)
    assert films.triplets == (Triplet(Variable("x", "film"), None, Constant("Anna", "person")),)
    assert with_relations(films, {"*": "acted_in"}, SCHEMA).triplets[0].tail == Variable("x", "film")
    books_of = TripletQuery((Triplet(Variable("x", "film"), "directed_by", Constant("Anna", "person")),), films.target)
    joined = Triplet(Variable("x", "film"), "based_on", Variable("x_book", "book"))
    assert of_type(books_of, "book", SCHEMA).triplets == (*books_of.triplets, joined)


def test_another_reading_of_the_type_that_is_meant_comes_before_a_rewritten_one():
    other = TripletQuery((Triplet(ALIEN, "based_on", Variable("y", "book")),), Variable("y", "book"))
    corrected = Corrections(type="book").corrected(Parse(DIRECTED, (other,), certainty=0.4), SCHEMA)
    assert (corrected.query, corrected.alternatives, corrected.certainty) == (other, (), 1.0)


def test_a_type_that_cannot_be_asked_for_is_refused_with_the_reason():
    with pytest.raises(InputError, match="no node type 'ghost'; there are: film"):
        Corrections(type="ghost").corrected(Parse(DIRECTED), SCHEMA)
    old = TripletQuery(DIRECTED.triplets, X, conditions=(Condition("x", "age", ">", 50),))
    with pytest.raises(InputError, match="cannot ask for book: it requires more than relations"):
        of_type(old, "book", SCHEMA)
    by_anna = TripletQuery((Triplet(X, "taught", Constant("Anna", "person")),), X)
    with pytest.raises(InputError, match="nothing joins book to person"):
        of_type(by_anna, "book", SCHEMA)
