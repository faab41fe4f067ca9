"""Queries in words, as a person would say them."""

import pytest

from clew.answering.queries.parsing import parse
from clew.answering.queries.words import words
from clew.core.schema import NodeType, Relation, Schema

SCHEMA = Schema(
    tuple(NodeType(name, 3) for name in ("hut", "river", "concert", "stadium", "city", "owner", "dog")),
    (
        Relation("held_at", "concert", "stadium", 3),
        Relation("flows_through", "river", "city", 2),
        Relation("owns", "owner", "dog", 3),
    ),
    {"opened": "date", "length": "number", "year": "integer", "age": "integer", "colour": "text"},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('find h where (h: hut) and h.opened < "1920"', "huts opened before 1920"),
        ("find r where (r: river) order by r.length desc first 5", "the five rivers with the highest length"),
        ('find r where (r: river) -[flows_through]-> "Paris": city', "rivers that flow through Paris"),
        (
            "find s, count(c) where (c: concert) -[held_at]-> (s: stadium) group by s",
            "the number of concerts for each stadium",
        ),
        (
            "find s.name where (s: stadium) and exists {(c: concert) -[held_at]-> (s) and c.year = 2014}",
            "the name of stadiums reached by “held at” from concerts whose year is 2014",
        ),
        (
            "find s where (s: stadium) and not exists {(c: concert) -[held_at]-> (s)}",
            "stadiums that no concerts are held at",
        ),
        (
            "find o where (o: owner) and count(d for (o) -[owns]-> (d: dog)) >= 3",
            "owners with at least 3 dogs",
        ),
        (
            "find s where (c: concert) -[held_at]-> (s: stadium) group by s order by count(c) desc first 1",
            "the stadium with the most concerts",
        ),
        (
            "find d.colour where (d: dog) group by d.colour order by count(*) desc first 1",
            "the most common colour of dogs",
        ),
        (
            "find d where (d: dog) and d.age > (find avg(e.age) where (e: dog))",
            "dogs whose age is more than the average age of dogs",
        ),
        (
            'find avg(d.age) where (o: owner) -[owns]-> (d: dog) and o is "Ann"',
            "the average age of dogs that Ann owns",
        ),
        (
            'find d where (d: dog) and d.age between 2 and 5 and d.colour in ["red", "blue"]',
            "dogs whose age is between 2 and 5 and whose colour is red or blue",
        ),
    ],
)
def test_a_query_is_said_in_plain_words(text, expected):
    assert words(parse(text), SCHEMA) == expected
