"""A query as constraints between variables, and conditions on the attributes of nodes.

`holds` decides a condition on a value, `checks` says the same as the simple comparisons that every query language has.
"""

from __future__ import annotations

import datetime
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from clew.core.query import Comparison, Condition, Count
from clew.core.schema import Schema
from clew.core.types import Direction, NodeSet
from clew.store.graph.protocol import KnowledgeBase

OPPOSITE: dict[Direction, Direction] = {"out": "in", "in": "out", "any": "any"}
Domains = Mapping[str, NodeSet | None]
"""Variable → the nodes it may stand for; None means every node of its type."""
Filter = Callable[[NodeSet], NodeSet]
"""Keeps the nodes of a set that meet a requirement on each node alone."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A triplet ready to execute: each end is a variable's name or the set of nodes a constant stands for."""

    head: str | NodeSet
    relation: str | None
    tail: str | NodeSet
    any_direction: bool = False
    negated: bool = False
    triplet: int = 0
    """The position of the triplet it stands for."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables among its ends."""
        return tuple(end for end in (self.head, self.tail) if isinstance(end, str))

    def other(self, variable: str) -> str | NodeSet:
        """The end that is not this variable."""
        return self.tail if isinstance(self.head, str) and self.head == variable else self.head

    def away(self, variable: str) -> Direction:
        """How edges are followed from this variable to the other end."""
        if self.any_direction:
            return "any"
        return "out" if isinstance(self.head, str) and self.head == variable else "in"

    def toward(self, variable: str) -> Direction:
        """How edges are followed from the other end to this variable."""
        return OPPOSITE[self.away(variable)]


@dataclass(frozen=True)
class Problem:
    """Constraints over typed variables, requirements on single nodes, and requirements on numbers of nodes."""

    target: str
    types: Mapping[str, str | None]
    constraints: tuple[Constraint, ...]
    filters: Mapping[str, tuple[Filter, ...]] = field(default_factory=dict)
    counts: tuple[Count, ...] = ()

    def bundles(self, variables: frozenset[str]) -> dict[tuple[str, str], tuple[Constraint, ...]]:
        """The constraints between each two of these variables."""
        found: dict[tuple[str, str], tuple[Constraint, ...]] = {}
        for constraint in self.constraints:
            ends = constraint.variables
            if len(ends) == 2 and variables.issuperset(ends):
                first, second = sorted(ends)
                found[first, second] = (*found.get((first, second), ()), constraint)
        return found


DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[t ].*)?)?)?")
"""A year, a month or a day; a time after it is left out."""
WHOLE = 1 << 53
"""Below this a floating-point number without a fraction is one whole number and no other."""
ORDERS: dict[Comparison, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(value: Any, comparison: Comparison, wanted: Any) -> bool:
    """Whether a value meets a condition; a missing value, or one of another kind, meets none.

    Words compare in lower case, dates as far as the wanted one is given, and of anything but words `contains` asks
    for the same: a formal query has to be able to say it.
    """
    if value is None or value != value:
        return False
    if isinstance(value, list | tuple):
        return any(holds(part, comparison, wanted) for part in value)
    if isinstance(value, str):
        text, sought = value.lower(), as_text(wanted)
        return sought in text if comparison == "contains" else ORDERS[comparison](text, sought)
    comparison = "=" if comparison == "contains" else comparison
    if isinstance(value, bool):
        truth = as_truth(wanted)
        return truth is not None and comparison in ("=", "!=") and (value == truth) == (comparison == "=")
    if isinstance(value, datetime.date):
        days = as_days(wanted)
        return days is not None and _day_holds(value, comparison, *days)
    number = as_number(wanted)
    return number is not None and isinstance(value, int | float) and ORDERS[comparison](value, number)


def _day_holds(value: datetime.date, comparison: Comparison, first: datetime.date, last: datetime.date) -> bool:
    day = value.date() if isinstance(value, datetime.datetime) else value
    inside = first <= day <= last
    if comparison in ("=", "!="):
        return inside == (comparison == "=")
    return ORDERS[comparison](day, last if comparison in ("<=", ">") else first)


def as_text(wanted: Any) -> str:
    """What is wanted of words, in lower case."""
    whole = isinstance(wanted, float) and wanted.is_integer() and abs(wanted) < WHOLE
    return str(int(wanted) if whole else wanted).lower()


def as_truth(wanted: Any) -> bool | None:
    """What is wanted of a truth value; None where it says neither."""
    return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(as_text(wanted))


def as_number(wanted: Any) -> int | float | None:
    """What is wanted of a number, whole where it is; None where it is none."""
    try:
        number = float(str(wanted))
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return wanted if isinstance(wanted, int) else int(number) if number.is_integer() and abs(number) < WHOLE else number


def as_days(wanted: Any) -> tuple[datetime.date, datetime.date] | None:
    """The first and the last day of a wanted date: of a year or a month all its days; None where it is no date."""
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


def compared_values(kb: KnowledgeBase, nodes: NodeSet, attribute: str) -> Sequence[Any]:
    """The values of nodes as they are compared: a date of which only the year is written counts as its first day."""
    values = kb.values(nodes, attribute)
    if kb.schema.attribute_types.get(attribute) != "date":
        return values
    written = [as_days(value) if isinstance(value, str) else None for value in values]
    return [value if days is None else days[0] for value, days in zip(values, written, strict=True)]


def condition_filter(kb: KnowledgeBase, condition: Condition) -> Filter:
    """Keeps the nodes that meet a condition."""

    def keep(nodes: NodeSet) -> NodeSet:
        values = compared_values(kb, nodes, condition.attribute)
        right = [holds(value, condition.comparison, condition.value) for value in values]
        return NodeSet(nodes.array[np.array(right, dtype=np.bool_)])

    return keep


@dataclass(frozen=True)
class Check:
    """One comparison with a value, which is written as it stands unless it is a text or a day."""

    kind: Literal["text", "plain", "day"]
    comparison: str
    value: str


@dataclass(frozen=True)
class Checks:
    """Comparisons of which all must hold, or any; without any, a value is enough where `all`, and nothing where not."""

    tests: tuple[Check, ...] = ()
    all: bool = True

    def joiner(self, both: str, either: str) -> str:
        """The word between the comparisons."""
        return f" {both} " if self.all else f" {either} "


NEVER = Checks((), all=False)
PARTIAL = ("contains", "starts with", "ends with")
"""Comparisons with a part of a text."""


def checks(condition: Condition, schema: Schema) -> Checks:
    """What `holds` decides about values of the attribute's kind."""
    kind = schema.attribute_types.get(condition.attribute, "text")
    return literal_checks(kind, condition.comparison, condition.value)


def literal_checks(kind: str, comparison: str, value: Any) -> Checks:
    """Simple comparisons that decide whether a value of a kind compares with a literal as required."""
    if kind == "text" and comparison in PARTIAL and not as_text(value):
        return Checks()  # every text has an empty part, which not every database knows
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
    """Whole numbers beside a broken one: not every database compares the two as numbers."""
    if comparison in ("=", "!="):
        return NEVER if comparison == "=" else Checks()
    nearest = math.floor(number) if comparison in (">", "<=") else math.ceil(number)
    return Checks((Check("plain", comparison, str(nearest)),))


def _days(comparison: str, first: datetime.date, last: datetime.date) -> Checks:
    begin, after = first.isoformat(), (last + datetime.timedelta(days=1)).isoformat()
    match comparison:
        case "=":
            return Checks((Check("day", ">=", begin), Check("day", "<", after)))
        case "!=":
            return Checks((Check("day", "<", begin), Check("day", ">=", after)), all=False)
        case "<":
            return Checks((Check("day", "<", begin),))
        case "<=":
            return Checks((Check("day", "<", after),))
        case ">":
            return Checks((Check("day", ">=", after),))
        case _:
            return Checks((Check("day", ">=", begin),))
