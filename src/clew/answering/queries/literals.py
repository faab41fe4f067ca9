"""Literals of queries as comparisons that every database has."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[t ].*)?)?)?")
"""A year, a month or a day. A time after the day is ignored."""
WHOLE = 1 << 53
"""Floats below this limit represent whole numbers exactly."""


def as_text(wanted: Any) -> str:
    """Return a literal as lower-case text."""
    whole = isinstance(wanted, float) and wanted.is_integer() and abs(wanted) < WHOLE
    return str(int(wanted) if whole else wanted).lower()


def as_truth(wanted: Any) -> bool | None:
    """Return a literal as a boolean, or None if it is not one."""
    return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(as_text(wanted))


def as_number(wanted: Any) -> int | float | None:
    """Return a literal as a number, an int if possible, or None if it is not a number."""
    try:
        number = float(str(wanted))
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return wanted if isinstance(wanted, int) else int(number) if number.is_integer() and abs(number) < WHOLE else number


def as_days(wanted: Any) -> tuple[datetime.date, datetime.date] | None:
    """Return the first and the last day of a year, a month or a day, or None if the literal is not a date."""
    given = DATE.fullmatch(wanted.isoformat() if isinstance(wanted, datetime.date) else as_text(wanted))
    if given is None:
        return None
    year, month, day = (None if part is None else int(part) for part in given.groups())
    try:
        first = datetime.date(year or 0, month or 1, day or 1)
        after = datetime.date(first.year + 1, 1, 1) if month is None else first + datetime.timedelta(days=1)
        if month is not None and day is None:
            after = (first + datetime.timedelta(days=31)).replace(day=1)
    except (ValueError, OverflowError):
        return None
    return first, after - datetime.timedelta(days=1)


@dataclass(frozen=True)
class Check:
    """One comparison with a value. Printers quote texts and days and copy other values."""

    kind: Literal["text", "plain", "day"]
    comparison: str
    value: str


@dataclass(frozen=True)
class Checks:
    """Comparisons that must all be true, or at least one.

    Without tests, `all` accepts every value, otherwise no value.
    """

    tests: tuple[Check, ...] = ()
    all: bool = True

    def joiner(self, both: str, either: str) -> str:
        """Return the word that joins the comparisons."""
        return f" {both} " if self.all else f" {either} "


NEVER = Checks((), all=False)
PARTIAL = ("contains", "starts with", "ends with")
"""Comparisons with a part of a text."""


def literal_checks(kind: str, comparison: str, value: Any) -> Checks:
    """Return the comparisons that test a value of the given kind against a literal."""
    if kind == "text" and comparison in PARTIAL and not as_text(value):
        return Checks()  # every text has an empty part, which not every database knows
    if comparison == "matches":
        return Checks((Check("text", comparison, str(value)),)) if kind == "text" else NEVER
    if kind in ("text", "list"):
        return Checks((Check("text", comparison, as_text(value)),))
    comparison = "=" if comparison in PARTIAL else comparison
    if kind == "boolean":
        truth = as_truth(value)
        if truth is None or comparison not in ("=", "!="):
            return NEVER
        return Checks((Check("plain", comparison, "true" if truth else "false"),))
    if kind == "date":
        days = as_days(value)
        return NEVER if days is None else _days(comparison, *days)
    number = as_number(value) if kind in ("integer", "number") else None
    if number is None:
        return NEVER
    if isinstance(number, float) and kind == "integer":
        return _whole(comparison, number)
    shown = repr(number).replace("e+", "e")
    return Checks((Check("plain", comparison, shown if isinstance(number, int) or "e" in shown else f"{shown}e0"),))


def _whole(comparison: str, number: float) -> Checks:
    """Compare integers with a fraction. Not every database compares the two as numbers."""
    if comparison in ("=", "!="):
        return NEVER if comparison == "=" else Checks()
    nearest = math.floor(number) if comparison in (">", "<=") else math.ceil(number)
    return Checks((Check("plain", comparison, str(nearest)),))


def _days(comparison: str, first: datetime.date, last: datetime.date) -> Checks:
    begin, after = first.isoformat(), (last + datetime.timedelta(days=1)).isoformat()
    tests = {
        "=": (Check("day", ">=", begin), Check("day", "<", after)),
        "!=": (Check("day", "<", begin), Check("day", ">=", after)),
        "<": (Check("day", "<", begin),),
        "<=": (Check("day", "<", after),),
        ">": (Check("day", ">=", after),),
        ">=": (Check("day", ">=", begin),),
    }
    return Checks(tests[comparison], all=comparison != "!=")


def match_whole(pattern: str, texts: Sequence[str]) -> list[bool]:
    """Match whole texts in time that grows with their length (RE2). Raise ValueError for an invalid expression."""
    pc.match_substring_regex(pa.array([""]), pattern)  # checked separately, so that its brackets are balanced
    matches = pc.match_substring_regex(pa.array(texts, pa.large_string()), rf"\A(?:{pattern})\z")
    return [bool(match) for match in matches.to_pylist()]
