"""A query that was understood by the wrong relation is corrected by the user."""

import pytest

from clew.core.errors import InputError
from clew.core.query import Constant, Triplet, TripletQuery, Variable
from clew.core.schema import NodeType, Relation, Schema
from clew.queries.corrections import with_relations

SCHEMA = Schema(
    (NodeType("film", 1), NodeType("person", 1), NodeType("book", 1)),
    (
        Relation("directed_by", "film", "person", 1),
        Relation("acted_in", "person", "film", 1),
        Relation("based_on", "film", "book", 1),
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
