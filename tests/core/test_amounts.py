"""Numbers and dates in texts."""

from datetime import date

import pytest

from clew.core.amounts import NO_YEAR, first_date, first_number, kind_of_texts


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,090 feet (332 m)", 1090),
        ("W 97–79", 97),
        ("3:40", 220),
        ("2:11:51", 7911),
        ("1:00.59", 60.59),
        ("−5 °C", -5),
        ("12–6", 12),
        ("7th", 7),
        ("$1,200.50", 1200.5),
        ("none", None),
    ],
)
def test_the_first_number_of_a_text_is_read(text, number):
    assert first_number(text) == number


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("June 6, 1989 (age 19)", date(1989, 6, 6)),
        ("17th of May 1979", date(1979, 5, 17)),
        ("Sept. 1999", date(1999, 9, 1)),
        ("July 6–8, 1984", date(1984, 7, 6)),
        ("12/17/2011", date(2011, 12, 17)),
        ("17/12/2011", date(2011, 12, 17)),
        ("1984-07-06", date(1984, 7, 6)),
        ("1900–16", date(1900, 1, 1)),
        ("29 February", date(NO_YEAR, 2, 29)),
        ("31 June 1999", None),
        ("the mayor", None),
    ],
)
def test_the_first_date_of_a_text_is_read(text, day):
    assert first_date(text) == day


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["January 1, 1978", "1936", "7 May", "June 30–July 2", "1992"], "date"),
        (["464 feet", "619 feet (188.6 m)", "1,090 feet", "12 feet", "9 feet"], "number"),
        (["69,909", "70,601", "70,540", "66,107", "Bye"], "number"),
        (["L 27 – 23", "W 10 – 3", "7th", "61-49"], "number"),
        (["Bye", "1936", "open"], "text"),
        (["ISO 9001", "A-1234", "12A", "3R", "R16"], "text"),
        (["1984 Summer Olympics", "Blade Runner 2049", "7 Up Series of 1964"], "text"),
        ([], "text"),
    ],
)
def test_texts_are_numbers_or_dates_if_most_are(texts, kind):
    assert kind_of_texts(texts) == kind
