"""Columns of values: arrays of one kind, and what queries do with them."""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.answering.queries.problem import Check, as_days, literal_checks

Array = NDArray[Any]
Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]
NUMBER = re.compile(r"[-+]?[0-9][0-9,]*([.][0-9]+)?")
"""A text that is a number in every query language."""
TYPES: dict[str, Any] = {"integer": np.int64, "number": np.float64, "boolean": np.bool_, "date": "datetime64[us]"}
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


@dataclass(frozen=True, eq=False)
class Column:
    """Values of one kind. Those that are not `present` are missing, and their content has no meaning."""

    kind: str
    values: Array
    present: Mask

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Array) -> Column:
        """Return the values at some rows."""
        return Column(self.kind, self.values[rows], self.present[rows])

    @property
    def lowered(self) -> Array:
        """Values as they compare: texts in lower case."""
        return _objects([text.lower() for text in self.values]) if self.kind == "text" else self.values


def from_values(kind: str, values: Sequence[Any]) -> Column:
    """Make a column of stored values. Values of another kind are missing."""
    if kind == "date":
        values = [_moment(value) for value in values]
    elif kind in ("integer", "number"):
        values = [
            value if type(value) is int or (type(value) is float and value == value) else None for value in values
        ]
    elif kind == "boolean":
        values = [value if isinstance(value, bool) else None for value in values]
    elif kind == "text":
        values = [value if value is None or isinstance(value, str) else str(value) for value in values]
    present = np.fromiter((value is not None for value in values), np.bool_, len(values))
    if kind not in TYPES:
        return Column(kind, _objects(["" if value is None else value for value in values]), present)
    filler: Any = datetime.datetime.min if kind == "date" else 0
    return Column(kind, np.array([filler if value is None else value for value in values], TYPES[kind]), present)


def constant(kind: str, value: Any, size: int) -> Column:
    """Make a column of one value."""
    return from_values(kind, [value]).take(np.zeros(size, np.int64))


def missing(kind: str, size: int) -> Column:
    """Make a column of missing values."""
    if kind in ("node", "edge"):
        return Column(kind, np.full(size, -1), np.zeros(size, np.bool_))
    return constant(kind, None, size)


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


def to_values(column: Column) -> list[Any]:
    """Return Python values, None if missing. A moment at midnight is a date."""
    values: list[Any] = column.values.tolist()
    if column.kind == "date":
        values = [value.date() if value.time() == datetime.time() else value for value in values]
    return [value if present else None for value, present in zip(values, column.present.tolist(), strict=True)]


def compare_literal(column: Column, comparison: str, literal: Any) -> Mask:
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


def _checked(column: Column, check: Check) -> Mask:
    if check.kind == "text":
        return _compared_texts(column.lowered, check.comparison, [check.value] * len(column))
    goal: Any = check.value
    if check.kind == "day":
        goal = np.datetime64(goal)
    elif column.kind == "boolean":
        goal = goal == "true"
    else:
        goal = float(goal) if "e" in goal else int(goal)
    return np.asarray(ORDERS[check.comparison](column.values, goal), np.bool_)


def _compared_texts(left: Array, comparison: str, right: Sequence[str] | Array) -> Mask:
    test = PARTS.get(comparison) or ORDERS[comparison]
    return np.fromiter((test(a, b) for a, b in zip(left, right, strict=True)), np.bool_, len(left))


def compare(left: Column, comparison: str, right: Column) -> Mask:
    """Compare two columns row by row. Kinds that do not match never compare."""
    numeric = {left.kind, right.kind} <= {"integer", "number"}
    if left.kind != right.kind and not numeric:
        return np.zeros(len(left), np.bool_)
    if left.kind == "text":
        result = _compared_texts(left.lowered, comparison, right.lowered)
    else:
        result = ORDERS["=" if comparison in PARTS else comparison](left.values, right.values)
    return np.asarray(result & left.present & right.present, np.bool_)


def codes(column: Column, *, exact: bool = True) -> Ids:
    """Number the different values. Missing values are -1. Texts differ by case only if `exact`."""
    if column.kind in ("node", "edge"):
        return np.where(column.present, column.values, -1).astype(np.int64)
    if column.values.dtype == object:
        content = column.values if exact else column.lowered
        seen: dict[Any, int] = {}
        keys = (tuple(value) if isinstance(value, list) else value for value in content)
        numbered = np.fromiter((seen.setdefault(key, len(seen)) for key in keys), np.int64, len(content))
    else:
        numbered = np.unique(column.values, return_inverse=True)[1].astype(np.int64)
    return np.where(column.present, numbered, -1)


def ranks(column: Column, key: Callable[[str], Any]) -> Ids:
    """Number values by their order. Texts are sorted by `key`."""
    if column.kind == "text":
        keys = [key(text) for text in column.values]
        place = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        return np.fromiter((place[key] for key in keys), np.int64, len(keys))
    if column.kind in ("node", "edge"):
        return column.values.astype(np.int64)
    if column.kind == "list":
        return np.zeros(len(column), np.int64)
    return np.unique(column.values, return_inverse=True)[1].astype(np.int64)


def sort_keys(column: Column, key: Callable[[str], Any], *, descending: bool = False) -> tuple[Ids, Mask]:
    """Return keys for `np.lexsort` by which missing values come last."""
    numbered = ranks(column, key)
    return np.where(column.present, -numbered if descending else numbered, 0), ~column.present


def row_ids(columns: Sequence[Ids], size: int) -> tuple[Ids, Ids]:
    """Number the different rows of some code columns. Return each row's number, and each number's first row."""
    ids = np.zeros(size, np.int64)
    for column in columns:
        _, dense = np.unique(column, return_inverse=True)
        ids = np.unique(ids * (int(dense.max(initial=0)) + 1) + dense, return_inverse=True)[1].astype(np.int64)
    _, first = np.unique(ids, return_index=True)
    return ids, first.astype(np.int64)


def concatenate(first: Column, second: Column) -> Column:
    """Append a column to another."""
    kind = first.kind if first.kind == second.kind else "number"
    return Column(kind, np.concatenate((first.values, second.values)), np.concatenate((first.present, second.present)))


def arithmetic(sign: str, left: Column, right: Column) -> Column:
    """Add, subtract, multiply or divide. The difference of two dates is in days."""
    present = left.present & right.present
    if left.kind == "date":
        days = (left.values.astype("datetime64[D]") - right.values.astype("datetime64[D]")).astype(np.int64)
        return Column("integer", days, present)
    if sign == "/":
        present = present & (right.values != 0)
        return Column("number", left.values / np.where(right.values == 0, 1, right.values), present)
    operation = {"+": operator.add, "-": operator.sub, "*": operator.mul}[sign]
    is_whole = left.kind == right.kind == "integer"
    return Column("integer" if is_whole else "number", operation(left.values, right.values), present)


def function(name: str, column: Column) -> Column:
    """Apply a function of one argument."""
    values = column.values
    match name:
        case "year":
            return Column("integer", values.astype("datetime64[Y]").astype(np.int64) + 1970, column.present)
        case "month":
            return Column("integer", values.astype("datetime64[M]").astype(np.int64) % 12 + 1, column.present)
        case "day":
            days = values.astype("datetime64[D]") - values.astype("datetime64[M]").astype("datetime64[D]")
            return Column("integer", days.astype(np.int64) + 1, column.present)
        case "length":
            return Column("integer", np.fromiter(map(len, values), np.int64, len(values)), column.present)
        case "lower":
            return Column("text", column.lowered, column.present)
        case "abs":
            return Column(column.kind, np.abs(values), column.present)
        case "round":
            whole = np.floor(values.astype(np.float64) + 0.5).astype(np.int64)
            return Column("integer", whole, column.present)
        case _:
            found = [float(text.replace(",", "")) if NUMBER.fullmatch(text) else None for text in values]
            numbers = from_values("number", found)
            return Column("number", numbers.values, numbers.present & column.present)


def aggregate(name: str, column: Column, ids: Ids, size: int, *, distinct: bool) -> Column:
    """Aggregate the present values of each group. `ids` are the groups of the rows."""
    rows = np.flatnonzero(column.present)
    if distinct and name in ("count", "sum", "avg"):
        _, first = row_ids((ids[rows], codes(column.take(rows))), len(rows))
        rows = rows[first]
    ids, values = ids[rows], column.values[rows]
    counts = np.bincount(ids, minlength=size).astype(np.int64)
    present = counts > 0
    if name == "count":
        return Column("integer", counts, np.ones(size, np.bool_))
    if name in ("sum", "avg"):
        totals = np.bincount(ids, weights=values.astype(np.float64), minlength=size)
        if name == "avg":
            return Column("number", totals / np.maximum(counts, 1), present)
        return Column(column.kind, totals.astype(TYPES[column.kind]), present)
    order = np.lexsort((ranks(column.take(rows), lambda text: (text.lower(), text)), ids))
    ends = np.cumsum(counts)
    chosen = np.where(present, (ends - counts) if name == "min" else ends - 1, 0)
    result = _objects([""] * size) if values.dtype == object else np.zeros(size, values.dtype)
    result[present] = values[order[chosen[present]]]
    return Column(column.kind, result, present)
