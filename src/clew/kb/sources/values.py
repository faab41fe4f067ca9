"""Columns of text typed by their content: integers, numbers, booleans, dates; anything else stays text."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
_NUMBER = r"^-?(((0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?)|(\.[0-9]+))$"
_TOO_LONG = r"^-?[0-9]{19,}$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?$"
_WRITTEN = ("%b %d %Y", "%b %d, %Y", "%d %b %Y", "%d. %b %Y", "%d.%m.%Y", "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y")
_WITH_YEAR = r"^([^0-9]*[0-9]{1,2}[^0-9]+)+[0-9]{4}$|^[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}$"
_DATES = {"date": _DATE, "time": _TIME}
_PATTERNS = {"integer": _INTEGER, "number": _NUMBER, "boolean": r"^(?i:true|false)$", **_DATES}
_SAMPLE = 256


def typed_by_content(column: pa.ChunkedArray, *, dates_only: bool = False) -> pa.ChunkedArray:
    """A text column with its narrowest type; empty becomes missing. Codes such as 007 stay text."""
    cleaned = missing_to_null(column, pa.array([""]))
    values = missing_to_null(cleaned, pa.array(_MISSING))
    if values.null_count == len(values):
        return cleaned
    sample = values.drop_null().slice(0, _SAMPLE)
    for name, pattern in (_DATES if dates_only else _PATTERNS).items():
        if _all_match(sample, pattern) and _all_match(values, pattern):
            if name == "number" and pc.any(pc.match_substring_regex(values, _TOO_LONG)).as_py():
                return cleaned  # a float would lose digits
            return _cast(values, name, cleaned)
    dates = _written_dates(values) if _all_match(sample, _WITH_YEAR) else None
    return cleaned if dates is None else dates


def _written_dates(values: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The column as dates, where one way of writing them fits all and no other does: 3/4/2021 may be March or April."""
    if not _all_match(values, _WITH_YEAR):
        return None
    read = [pc.strptime(values, format=way, unit="s", error_is_null=True) for way in _WRITTEN]
    fitting = [pc.cast(dates, pa.date32()) for dates in read if dates.null_count == values.null_count]
    if len(fitting) != 1:
        return None
    early = pc.fill_null(pc.less(pc.day(fitting[0]), 4), False)  # where the 31st of June comes out
    for text, date in zip(values.filter(early).to_pylist(), fitting[0].filter(early).to_pylist(), strict=True):
        if date.day not in map(int, re.findall("[0-9]+", text)):
            return None
    return fitting[0]


def integers_where_canonical(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text keys as integers where every one is written as an integer is, so that nothing is lost."""
    if not len(column) or not _all_match(column.slice(0, _SAMPLE), _INTEGER):
        return column
    try:
        numbers = pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        return column
    return numbers if pc.all(pc.equal(pc.cast(numbers, column.type), column)).as_py() else column


def missing_to_null(column: pa.ChunkedArray, missing: pa.Array) -> pa.ChunkedArray:
    """The column with every value of `missing` as null."""
    absent = pc.is_in(column, value_set=missing.cast(column.type))
    if not pc.any(absent).as_py():
        return column
    return pc.if_else(absent, pa.scalar(None, column.type), column)


def _all_match(column: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(column, pattern)).as_py())


def _cast(values: pa.ChunkedArray, name: str, otherwise: pa.ChunkedArray) -> pa.ChunkedArray:
    types = {
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "time": pa.timestamp("us"),
    }
    try:
        return pc.cast(pc.utf8_lower(values) if name == "boolean" else values, types[name])
    except pa.ArrowInvalid:  # a thirteenth month: written like a date, and none
        return otherwise
