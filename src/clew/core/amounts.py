"""Numbers and dates in texts: `1,090 feet (332 m)`, `W 97–79`, `2:11:51`, `7th`, `June 6, 1989 (age 19)`, `7 May`."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from functools import reduce
from typing import Any, Literal

MOSTLY = 0.8
"""Minimum share of texts that are numbers or dates."""
NO_YEAR = 4
"""Year of a date without a year. It has a February 29."""
_MONTHS = [name[:3].lower() for name in calendar.month_name[1:]]
_MONTH = rf"(?:{'|'.join(f'{name[:3]}(?:{name[3:]}|t)?' for name in calendar.month_name[1:])})\b\.?"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?\b"
_YEAR = re.compile(r"(?<!\d)([12]\d{3})(?!\d)")
_IN_DIGITS = re.compile(r"\b[12]\d{3}-(\d\d)-(\d\d)\b|\b(\d{1,2})/(\d{1,2})/[12]\d{3}\b")
_IN_WORDS = re.compile(rf"\b{_DAY} (?:of )?({_MONTH})|\b({_MONTH})(?: {_DAY})?", re.IGNORECASE)
_NUMBER = re.compile(r"(^\s*[-−])?(\d+(?:,\d{3})*(?:\.\d+)?)((?::\d\d)+(?:\.\d+)?)?")
_BRACKETS = re.compile(r"\([^)]*\)|\[[^\]]*\]")
_DATE_PART = re.compile(rf"{_MONTH}|{_YEAR.pattern}|{_DAY}|[\W_]", re.IGNORECASE)
_AMOUNT = re.compile(
    r"(?:[A-Z] )?[-−+~$€£¥]?\d[\d,.:]*(?:st|nd|rd|th|\s?[%°]|\s[^\W\d_]{1,12}[23²³]?)?"
    r"(?:\s*[-–−/×]\s*\d[\d,.:]*)*(?: [A-Z]{1,3})?"
)


def first_number(text: str) -> float | None:
    """Return the first number of a text, or None. Times are seconds: `2:11:51`."""
    found = _NUMBER.search(text)
    if found is None:
        return None
    sign, number, clock = found.groups()
    parts = [float(part) for part in f"{number.replace(',', '')}{clock or ''}".split(":")]
    value = reduce(lambda total, part: 60 * total + part, parts)
    return -value if sign else value


def first_date(text: str) -> date | None:
    """Return the first day, month or year of a text, or None. Without a year, the year is NO_YEAR."""
    year, in_digits, in_words = _YEAR.search(text), _IN_DIGITS.search(text), _IN_WORDS.search(text)
    month, day = 1, 1
    if in_digits:
        month, day = (int(part) for part in in_digits.groups() if part)
        month, day = (day, month) if month > len(_MONTHS) else (month, day)
    elif in_words:
        month = _MONTHS.index((in_words[2] or in_words[3]).lower()[:3]) + 1
        day = int(in_words[1] or in_words[4] or 1)
    elif year is None:
        return None
    with suppress(ValueError):
        return date(int(year[1]) if year else NO_YEAR, month, day)
    return None


def kind_of_texts(texts: Sequence[Any]) -> Literal["date", "number", "text"]:
    """Return whether most texts are dates or numbers, perhaps with a unit, more numbers or an addition in brackets."""
    plain = [_BRACKETS.sub("", text).strip() for text in texts if isinstance(text, str) and text]
    dates = sum(not _DATE_PART.sub("", text) and first_date(text) is not None for text in plain)
    numbers = sum(_AMOUNT.fullmatch(text) is not None for text in plain)
    if not plain or max(dates, numbers) < MOSTLY * len(plain):
        return "text"
    return "date" if dates >= MOSTLY * len(plain) else "number"
