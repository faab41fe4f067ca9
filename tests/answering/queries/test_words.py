"""Queries in words, as a person would say them."""

import random
from dataclasses import replace

import pytest

from clew.answering.queries.parsing import parse
from clew.answering.queries.words import words
from clew.core.query import Query
from clew.core.schema import NodeType, Relation, Schema
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.build import write_graph
from clew.store.graph.tables import Problems
from random_queries import FORMS, Maker, random_query, random_tables

SCHEMA = Schema(
    tuple(NodeType(name, 3) for name in ("hut", "river", "concert", "stadium", "city", "owner", "dog")),
    (
        Relation("held_at", "concert", "stadium", 3),
        Relation("flows_through", "river", "city", 2),
        Relation("owns", "owner", "dog", 3),
        Relation("dog_in_hut", "dog", "hut", 3),
    ),
    {"opened": "date", "length": "number", "year": "integer", "age": "integer", "colour": "text"},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('find h where (h: hut) and h.opened < "1920"', "huts opened before 1920"),
        ("find r where (r: river) order by r.length desc first 5", "the five rivers with the highest length"),
        ('find r where (r: river) -[flows_through]-> "Paris": city', "rivers that flow through Paris"),
        ('find d where (d: dog) -[dog_in_hut]-> "Forno": hut', "dogs in Forno"),
        ('find h where "Rex": dog -[dog_in_hut]-> (h: hut)', "huts that have the dog Rex"),
        (
            "find h where (d: dog) -[dog_in_hut]-> (h: hut) and d.age > 3",
            "huts that have dogs whose age is more than 3",
        ),
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


def shorter(query):
    """The query without one edge, one condition, one order or its offset."""
    pattern = query.pattern
    for part in pattern.edges:
        yield replace(query, pattern=replace(pattern, edges=tuple(one for one in pattern.edges if one is not part)))
    for part in pattern.where:
        yield replace(query, pattern=replace(pattern, where=tuple(one for one in pattern.where if one is not part)))
    for name in ("having", "order"):
        for part in getattr(query, name):
            yield replace(query, **{name: tuple(one for one in getattr(query, name) if one is not part)})
    if query.skip:
        yield replace(query, skip=0)


@pytest.mark.parametrize("seed", range(3))
def test_words_leave_no_part_of_a_query_out(seed, tmp_path):
    chance = random.Random(seed)
    kb = ArrayKnowledgeBase.staged(tmp_path, write_graph(random_tables(chance), tmp_path, Problems(False)).to_json())
    maker = Maker(kb, chance)
    for query in (random_query(maker, form) for form in FORMS * 8):
        for other in shorter(query) if isinstance(query, Query) else ():
            assert words(query, kb.schema) != words(other, kb.schema), f"{query} and {other}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'find d where (d: dog) and (e: dog) and e is "Rex" and d.age < e.age order by d.age desc first 1',
            "the dog with the highest age among dogs where the age of the dog is less than the age of Rex",
        ),
        (
            "find d where (d: dog) and (e: dog) and d.colour = e.colour",
            "dogs, combined with other dogs where the colour of the dog is the colour of the other dog",
        ),
        ("find d where (d: dog) first 1", "one dog"),
        (
            "find o where (o: owner) and avg(d.age for (o) -[owns]-> (d: dog)) > 3",
            "owners where the average age of the dog over dogs that the same owner owns is more than 3",
        ),
    ],
)
def test_what_no_edge_leads_to_is_said_too(text, expected):
    assert words(parse(text), SCHEMA) == expected


def test_the_steps_of_a_hierarchy_are_said_with_its_name_alone():
    schema = Schema(
        (NodeType("gene", 3), NodeType("sign", 3)),
        (Relation("is_a", "sign", "sign", 2), Relation("shows", "gene", "sign", 3)),
        {},
    )
    query = parse('find g where (kind: sign) -[is_a*]-> "Polydactyly" and (g: gene) -[shows]-> (kind)')
    assert words(query, schema) == "genes that show Polydactyly or a kind of it"
