"""Numbers and dates in questions."""

from itertools import pairwise

import pytest

from clew.answering.reading.quantities import in_units_of, joint, number_of, quantities


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("more than 3.5 million people", 3_500_000),
        ("over half a million", 500_000),
        ("at least a dozen", 12),
        ("1,200 seats", 1200),
        ("2k followers", 2000),
        ("twenty-five members", 25),
    ],
)
def test_a_number_is_read_as_people_write_it(text, value):
    (found,) = quantities(text)
    assert found.value == value
    assert text[found.start : found.end] == found.text


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("in 1990", "1990-01-01", "1990-12-31"),
        ("in the 1990s", "1990-01-01", "1999-12-31"),
        ("since May 2010", "2010-05-01", "2010-05-31"),
        ("on 3 May 2010", "2010-05-03", "2010-05-03"),
        ("on 2010-05-03", "2010-05-03", "2010-05-03"),
        ("in May", "0004-05-01", "0004-05-31"),
        ("on sept 8", "0004-09-08", "0004-09-08"),
        ("the 8th of September", "0004-09-08", "0004-09-08"),
    ],
)
def test_a_date_covers_as_much_time_as_it_says(text, low, high):
    (found,) = quantities(text)
    assert (found.low, found.high) == (low, high)


def test_a_verb_is_no_month():
    assert quantities("Who may march with marching bands?") == []


def test_no_number_lies_inside_another_and_all_are_in_reading_order():
    found = quantities("between 10 and 15 million people in 1998")
    assert [one.value for one in found] == [10_000_000, 15_000_000, 1998]
    assert all(first.end <= second.start for first, second in pairwise(found))


def test_grouping_and_decimal_signs_are_told_apart():
    assert [number_of(text) for text in ("1,200", "1.200", "1.2", "1,2", "1'000'000")] == [1200, 1200, 1.2, 1.2, 1e6]
    assert number_of("no number") is None


@pytest.mark.parametrize(
    ("text", "how"),
    [(" or ", "joined"), (", ", "joined"), (" nor ", "denied"), (" and not ", ""), (" ", ""), (" but ", "")],
)
def test_words_between_names_join_them_or_deny_them_all(text, how):
    assert joint(text) == how


def test_a_number_is_in_the_units_that_its_attribute_says():
    assert in_units_of(one("18 million people"), "population_millions") == [18]
    assert in_units_of(one("18 people"), "population_millions") == [18]
    assert in_units_of(one("18 million people"), "population") == [18_000_000]


def one(text):
    (quantity,) = quantities(text)
    return quantity


def test_a_unit_is_that_of_the_attribute_where_its_name_says_so():
    assert in_units_of(one("longer than three hours"), "running_time_min") == [180]
    assert in_units_of(one("over 2.5 km"), "lengthMetres") == [2500]
    assert in_units_of(one("taller than 83 inches"), "height_cm") == [pytest.approx(210.82)]


def test_a_unit_that_the_attribute_does_not_name_leaves_several_readings():
    assert in_units_of(one("more than 50 MB"), "installed_size")[:3] == [50, 50_000_000, 50_000]


def test_joined_numbers_have_one_unit():
    assert [found.unit for found in quantities("between 2 and 3 hours")] == ["hour", "hour"]
    assert [found.unit for found in quantities("5 films about 3 hours")] == ["", "hour"]


def test_decades_have_names():
    (nineties,) = quantities("films of the nineties")
    assert (nineties.low, nineties.high) == ("1990-01-01", "1999-12-31")
