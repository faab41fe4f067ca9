"""A condition on an attribute as the simple comparisons it comes to, all of which every query language has."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Literal

from clew.core.query import Comparison, Condition
from clew.core.schema import Schema
from clew.queries.problem import as_days, as_number, as_text, as_truth


@dataclass(frozen=True)
class Check:
    """One comparison with a value, which is written as it stands unless it is a text or a day."""

    kind: Literal["text", "plain", "day"]
    comparison: Comparison
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


def checks(condition: Condition, schema: Schema) -> Checks:
    """What `clew.queries.problem.holds` decides about values of the attribute's kind."""
    kind = schema.attribute_types.get(condition.attribute, "text")
    comparison: Comparison = condition.comparison
    if kind in ("text", "list"):
        return Checks((Check("text", comparison, as_text(condition.value)),))
    comparison = "=" if comparison == "contains" else comparison
    if kind == "boolean":
        truth = as_truth(condition.value)
        if truth is None or comparison not in ("=", "!="):
            return NEVER
        return Checks((Check("plain", comparison, "true" if truth else "false"),))
    if kind == "date":
        days = as_days(condition.value)
        return NEVER if days is None else _days(comparison, *days)
    number = as_number(condition.value)
    if number is None:
        return NEVER
    if isinstance(number, float) and kind == "integer":
        return _whole(comparison, number)
    shown = repr(number).replace("e+", "e")
    return Checks((Check("plain", comparison, shown if isinstance(number, int) or "e" in shown else f"{shown}e0"),))


def _whole(comparison: Comparison, number: float) -> Checks:
    """Whole numbers beside a broken one: not every database compares the two as numbers."""
    if comparison in ("=", "!="):
        return NEVER if comparison == "=" else Checks()
    nearest = math.floor(number) if comparison in (">", "<=") else math.ceil(number)
    return Checks((Check("plain", comparison, str(nearest)),))


def _days(comparison: Comparison, first: datetime.date, last: datetime.date) -> Checks:
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
