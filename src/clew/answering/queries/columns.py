"""Columns of values: arrays of one kind, and operations on them."""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.answering.queries.kinds import comparable
from clew.answering.queries.literals import Check, as_days, literal_checks, match_whole
from clew.core.amounts import first_date, first_number
from clew.core.errors import InputError

Array = NDArray[Any]
Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]
Key = TypeVar("Key")
NUMBER = re.compile(r"[-+]?[0-9][0-9,]*([.][0-9]+)?")
"""A text that is a number in every query language."""
TYPES: dict[str, Any] = {"integer": np.int64, "number": np.float64, "boolean": np.bool_, "date": "datetime64[us]"}
WIDEST = 4
"""Codes are counted in an array while it is at most this many times as long as the rows. Otherwise they are sorted."""
ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
PARTS: dict[str, Callable[[str, str], bool]] = {
    "contains": operator.contains,
    "starts with": str.startswith,
    "ends with": str.endswith,
}


class NumberTooLargeError(InputError):
    """A query computes a number that does not fit into a column."""

    def __init__(self) -> None:
        super().__init__("a number of the query is beyond 9,223,372,036,854,775,807, or infinite: use smaller numbers")


@dataclass(frozen=True, eq=False)
class ValueArray:
    """Values of one kind. Values that are not `present` are missing, and their content has no meaning."""

    kind: str
    values: Array
    """Numbers, node ids, lists, or positions of texts in `texts`."""
    present: Mask
    texts: tuple[str, ...] = ()
    """The different texts: each is compared once, however many values there are."""

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Array) -> ValueArray:
        """Return the values at some rows."""
        return replace(self, values=self.values[rows], present=self.present[rows])

    def folded(self) -> ValueArray:
        """Return the values as they compare: texts in lower case."""
        return _recoded(self, [text.lower() for text in self.texts]) if self.kind == "text" else self


def from_values(kind: str, values: Sequence[Any] | pa.Array) -> ValueArray:
    """Make a column of stored values. Values of another kind are missing."""
    if isinstance(values, pa.Array):
        column = _from_arrow(kind, values)
        if column is not None:
            return column
        values = values.to_pylist()
    if kind == "text":
        texts = (value if value is None or type(value) is str else str(value) for value in values)
        places, seen = _numbered(texts)
        return ValueArray("text", places, places != seen.get(None, -1), tuple(text or "" for text in seen))
    if kind == "date":
        values = [_moment(value) for value in values]
    elif kind in ("integer", "number"):
        values = [
            value if type(value) is int or (type(value) is float and value == value) else None for value in values
        ]
    elif kind == "boolean":
        values = [value if isinstance(value, bool) else None for value in values]
    present = np.fromiter((value is not None for value in values), np.bool_, len(values))
    if kind not in TYPES:
        return ValueArray(kind, _objects(["" if value is None else value for value in values]), present)
    filler: Any = datetime.datetime.min if kind == "date" else 0
    try:
        return ValueArray(
            kind, np.array([filler if value is None else value for value in values], TYPES[kind]), present
        )
    except OverflowError:
        raise NumberTooLargeError from None


def _from_arrow(kind: str, values: pa.Array) -> ValueArray | None:
    """Make a column of an Arrow array without a Python object for each value, or return None if kinds differ."""
    present = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    if kind == "text" and (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        encoded = values.dictionary_encode()
        places = np.where(present, _buffer(encoded.indices, np.int32), 0).astype(np.int64)
        return ValueArray("text", places, present, tuple(encoded.dictionary.to_pylist()) or ("",))
    if kind == "date" and (pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)):
        days = _buffer(values.cast(pa.timestamp("us")), "datetime64[us]")
        return ValueArray("date", np.where(present, days, np.datetime64(0, "us")), present)
    if (kind, values.type) == ("integer", pa.int64()):
        return ValueArray("integer", np.where(present, _buffer(values, np.int64), 0), present)
    if (kind, values.type) == ("number", pa.float64()):
        numbers = _buffer(values, np.float64)
        present = present & ~np.isnan(numbers)
        return ValueArray("number", np.where(present, numbers, 0.0), present)
    return None


def _buffer(values: pa.Array, kind: Any) -> Array:
    """Return the content of an array of fixed width. The content of missing values is arbitrary."""
    buffer = values.buffers()[1]
    if buffer is None or not len(values):
        return np.zeros(len(values), kind)
    return np.frombuffer(buffer, kind)[values.offset : values.offset + len(values)]


def constant(kind: str, value: Any, size: int) -> ValueArray:
    """Make a column of one value."""
    return from_values(kind, [value]).take(np.zeros(size, np.int64))


def missing(kind: str, size: int) -> ValueArray:
    """Make a column of missing values."""
    if kind in ("node", "edge"):
        return ValueArray(kind, np.full(size, -1), np.zeros(size, np.bool_))
    return constant(kind, None, size)


def _recoded(column: ValueArray, texts: Sequence[str]) -> ValueArray:
    """Replace the texts of a column. Equal texts share one index."""
    places, seen = _numbered(texts)
    return replace(column, values=places[column.values], texts=tuple(seen))


def _numbered(values: Iterable[Key]) -> tuple[Ids, dict[Key, int]]:
    """Return the number of each value, and the different values with their numbers, by first occurrence."""
    seen: dict[Key, int] = {}
    return np.fromiter((seen.setdefault(value, len(seen)) for value in values), np.int64), seen


def _objects(values: Sequence[Any]) -> Array:
    made = np.empty(len(values), object)
    made[:] = values
    return made


def _moment(value: Any) -> datetime.datetime | datetime.date | None:
    if isinstance(value, str):
        days = as_days(value)
        return None if days is None else days[0]
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    return value if isinstance(value, datetime.date) else None


def to_values(column: ValueArray) -> list[Any]:
    """Return Python values, None if missing. A moment at midnight is a date."""
    values: list[Any] = column.values.tolist()
    if column.kind == "text":
        values = [column.texts[place] for place in values]
    if column.kind == "date":
        values = [value.date() if value.time() == datetime.time() else value for value in values]
    return [value if present else None for value, present in zip(values, column.present.tolist(), strict=True)]


def compare_literal(column: ValueArray, comparison: str, literal: Any) -> Mask:
    """Decide which values compare with a literal as required."""
    if column.kind == "list":
        [check] = literal_checks("list", comparison, literal).tests
        parts = [from_values("text", value or []) for value in column.values]
        return column.present & np.array([bool(_checked(part, check).any()) for part in parts], np.bool_)
    checks = literal_checks(column.kind, comparison, literal)
    masks = [_checked(column, check) for check in checks.tests]
    if not masks:
        return column.present if checks.all else np.zeros(len(column), np.bool_)
    whole = np.logical_and.reduce(masks) if checks.all else np.logical_or.reduce(masks)
    return np.asarray(column.present & whole, np.bool_)


def _checked(column: ValueArray, check: Check) -> Mask:
    if check.comparison == "matches":
        return np.array(match_whole(check.value, column.texts), np.bool_)[column.values]
    if check.kind == "text":
        test = PARTS.get(check.comparison) or ORDERS[check.comparison]
        return np.array([test(text.lower(), check.value) for text in column.texts], np.bool_)[column.values]
    goal: Any = check.value
    if check.kind == "day":
        goal = np.datetime64(goal)
    elif column.kind == "boolean":
        goal = goal == "true"
    else:
        goal = float(goal) if "e" in goal else int(goal)
    return np.asarray(ORDERS[check.comparison](column.values, goal), np.bool_)


def compare(left: ValueArray, comparison: str, right: ValueArray) -> Mask:
    """Compare two columns row by row. Return false for kinds that do not match."""
    if not comparable(left.kind, right.kind):
        return np.zeros(len(left), np.bool_)
    if left.kind == "text":
        result = _compared_texts(left.folded(), comparison, right.folded())
    else:
        result = ORDERS["=" if comparison in PARTS else comparison](left.values, right.values)
    return np.asarray(result & left.present & right.present, np.bool_)


def _compared_texts(left: ValueArray, comparison: str, right: ValueArray) -> Mask:
    if comparison in PARTS:
        pairs, places = np.unique(left.values * len(right.texts) + right.values, return_inverse=True)
        parts = (divmod(pair, len(right.texts)) for pair in pairs.tolist())
        found = [PARTS[comparison](left.texts[a], right.texts[b]) for a, b in parts]
        return np.array(found, np.bool_)[places]
    order = {text: rank for rank, text in enumerate(sorted({*left.texts, *right.texts}))}
    sides = [np.array([order[text] for text in side.texts], np.int64)[side.values] for side in (left, right)]
    return np.asarray(ORDERS[comparison](*sides), np.bool_)


def codes(column: ValueArray, *, exact: bool = True) -> Ids:
    """Assign numbers to the different values. Missing values are -1. Texts differ by case only if `exact`."""
    if column.kind in ("node", "edge"):
        return np.where(column.present, column.values, -1).astype(np.int64)
    if column.kind == "text":
        numbered = (column if exact else column.folded()).values
    elif column.kind == "list":
        numbered, _ = _numbered(map(tuple, column.values))
    else:
        numbered = np.unique(column.values, return_inverse=True)[1].astype(np.int64)
    return np.where(column.present, numbered, -1)


def ranks(column: ValueArray, key: Callable[[str], Any]) -> Ids:
    """Assign numbers to values by their order. Texts are sorted by `key`."""
    if column.kind == "text":
        keys = [key(text) for text in column.texts]
        place = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        return np.array([place[key] for key in keys], np.int64)[column.values]
    if column.kind in ("node", "edge"):
        return column.values.astype(np.int64)
    if column.kind == "list":
        return np.zeros(len(column), np.int64)
    return np.unique(column.values, return_inverse=True)[1].astype(np.int64)


def sort_keys(column: ValueArray, key: Callable[[str], Any], *, descending: bool = False) -> tuple[Ids, Mask]:
    """Return keys for `np.lexsort` by which missing values come last."""
    numbered = ranks(column, key)
    return np.where(column.present, -numbered if descending else numbered, 0), ~column.present


def row_ids(columns: Sequence[Ids], size: int) -> tuple[Ids, Ids]:
    """Assign numbers to the different rows of code columns, in order. Return each row's number and its first row."""
    ids, first = np.zeros(size, np.int64), np.arange(min(1, size))
    for column in columns:
        low, high = (int(column.min()), int(column.max())) if size else (0, 0)
        combined = ids * (high - low + 1) + (column - low)  # both are below 2 ** 31
        width = len(first) * (high - low + 1)
        if width > WIDEST * size:
            _, first, ids = np.unique(combined, return_index=True, return_inverse=True)
            continue
        places = np.full(width, -1)
        places[combined[::-1]] = np.arange(size)[::-1]  # the first of equal rows is written last
        first = places[places >= 0]
        ids = (np.cumsum(places >= 0) - 1)[combined]
    return ids, first


def concatenate(first: ValueArray, second: ValueArray) -> ValueArray:
    """Append a column to another."""
    kind = first.kind if first.kind == second.kind else "number"
    present = np.concatenate((first.present, second.present))
    if kind == "text":
        values = np.concatenate((first.values, second.values + len(first.texts)))
        return _recoded(ValueArray("text", values, present), (*first.texts, *second.texts))
    return ValueArray(kind, np.concatenate((first.values, second.values)), present)


def arithmetic(sign: str, left: ValueArray, right: ValueArray) -> ValueArray:
    """Add, subtract, multiply or divide. The difference of two dates is in days."""
    present = left.present & right.present
    if left.kind == "date":
        days = (left.values.astype("datetime64[D]") - right.values.astype("datetime64[D]")).astype(np.int64)
        return ValueArray("integer", days, present)
    if sign == "/":
        present = present & (right.values != 0)
        return ValueArray("number", left.values / np.where(right.values == 0, 1, right.values), present)
    operation = {"+": operator.add, "-": operator.sub, "*": operator.mul}[sign]
    is_whole = left.kind == right.kind == "integer"
    with np.errstate(over="ignore", invalid="ignore"):
        _refuse_too_large(operation(left.values.astype(np.float64), right.values)[present], is_whole=is_whole)
        return ValueArray("integer" if is_whole else "number", operation(left.values, right.values), present)


def _refuse_too_large(results: Array, *, is_whole: bool) -> None:
    """Raise NumberTooLargeError if floats are too large or not finite."""
    if not (np.abs(results) < 2.0**63 if is_whole else np.isfinite(results)).all():
        raise NumberTooLargeError


def function(name: str, column: ValueArray) -> ValueArray:
    """Apply a function of one argument."""
    values = column.values
    match name:
        case "year":
            return ValueArray("integer", values.astype("datetime64[Y]").astype(np.int64) + 1970, column.present)
        case "month":
            return ValueArray("integer", values.astype("datetime64[M]").astype(np.int64) % 12 + 1, column.present)
        case "day":
            days = values.astype("datetime64[D]") - values.astype("datetime64[M]").astype("datetime64[D]")
            return ValueArray("integer", days.astype(np.int64) + 1, column.present)
        case "length":
            return ValueArray(
                "integer", np.array([len(text) for text in column.texts], np.int64)[values], column.present
            )
        case "lower":
            return column.folded()
        case "abs":
            _refuse_too_large(values.astype(np.float64)[column.present], is_whole=column.kind == "integer")
            return ValueArray(column.kind, np.abs(values), column.present)
        case "round":
            whole = np.where(column.present, np.floor(values.astype(np.float64) + 0.5), 0)
            _refuse_too_large(whole, is_whole=True)
            return ValueArray("integer", whole.astype(np.int64), column.present)
        case "first_date":
            found = from_values("date", list(map(first_date, column.texts)))
        case "first_number":
            found = from_values("number", list(map(first_number, column.texts)))
        case _:
            numbers = [float(text.replace(",", "")) if NUMBER.fullmatch(text) else None for text in column.texts]
            found = from_values("number", numbers)
    read = found.take(values)
    return replace(read, present=read.present & column.present)


def count_column(name: str, counts: Ids) -> ValueArray:
    """Return numbers, or whether there are any."""
    every = np.ones(len(counts), np.bool_)
    return ValueArray("integer", counts, every) if name == "count" else ValueArray("boolean", counts > 0, every)


def aggregate(name: str, column: ValueArray, ids: Ids, size: int, *, distinct: bool) -> ValueArray:
    """Aggregate the present values of each group. `ids` are the groups of the rows."""
    rows = np.flatnonzero(column.present)
    if distinct and name in ("count", "sum", "avg"):
        _, first = row_ids((ids[rows], codes(column.take(rows))), len(rows))
        rows = rows[first]
    ids, values = ids[rows], column.values[rows]
    counts = np.bincount(ids, minlength=size).astype(np.int64)
    present = counts > 0
    if name in ("count", "exists"):
        return count_column(name, counts)
    if name in ("sum", "avg"):
        totals = np.bincount(ids, weights=values.astype(np.float64), minlength=size)
        if name == "avg":
            return ValueArray("number", totals / np.maximum(counts, 1), present)
        _refuse_too_large(totals, is_whole=column.kind == "integer")
        if column.kind == "integer":
            totals = np.zeros(size, np.int64)
            np.add.at(totals, ids, values)  # exact, as floats are not
        return ValueArray(column.kind, totals, present)
    order = np.lexsort((ranks(column.take(rows), lambda text: (text.lower(), text)), ids))
    ends = np.cumsum(counts)
    chosen = np.where(present, (ends - counts) if name == "min" else ends - 1, 0)
    result = np.zeros(size, values.dtype)
    result[present] = values[order[chosen[present]]]
    return ValueArray(column.kind, result, present, column.texts)
