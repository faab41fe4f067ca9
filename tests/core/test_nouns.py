"""Nouns for one thing and for several."""

import pytest

from clew.core.nouns import plural, singular

COMMON = [
    *(
        "customer",
        "order",
        "category",
        "city",
        "country",
        "address",
        "class",
        "box",
        "church",
        "dish",
        "hero",
        "analysis",
    ),
    *("analysis", "movie", "shoe", "bus", "status", "species", "series", "person", "child", "woman", "disease", "gene"),
    *(
        "course",
        "phase",
        "area",
        "schema",
        "topic",
        "day",
        "key",
        "toy",
        "lens",
        "gas",
        "DVD",
        "employee",
        "OrderDetail",
    ),
]


@pytest.mark.parametrize("one", COMMON)
def test_one_thing_stays_and_several_become_one(one):
    assert singular(one) == one
    assert singular(plural(one)) == one


@pytest.mark.parametrize(
    ("many", "one"),
    [
        ("Categories", "Category"),
        ("order details", "order detail"),
        ("Sales People", "Sales Person"),
        ("heroes", "hero"),
    ],
)
def test_names_of_several_words_and_with_capitals(many, one):
    assert singular(many) == one


@pytest.mark.parametrize("name", ["DNS", "AWS", "Q42", "P84", "", "s", "Straße", "人", "order-42"])
def test_what_is_no_english_plural_stays(name):
    assert singular(name) == name


def test_several_things_stay_several():
    assert [plural(one) for one in ("people", "cities", "person", "city", "day", "news")] == [
        "people",
        "cities",
        "people",
        "cities",
        "days",
        "news",
    ]
