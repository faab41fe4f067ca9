"""Conditions on single nodes: numbers, dates and words among their attributes."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from clew.core.query import Comparison, Condition
from clew.core.types import NodeSet
from clew.kb.schema import Schema
from clew.steps.focus.constraints import Filter

ORDERS: dict[Comparison, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Attributes(Protocol):
    """The part of a knowledge base that conditions need."""

    @property
    def schema(self) -> Schema:
        """Says which type each attribute has."""
        ...

    def values(self, nodes: NodeSet, attribute: str) -> Sequence[Any]:
        """The value of an attribute for each node, None where it has none."""
        ...


def holds(value: Any, comparison: Comparison, wanted: Any) -> bool:
    """Whether a value meets a condition; a missing value, or one of another kind, meets none."""
    if value is None:
        return False
    if isinstance(value, list | tuple):
        return any(holds(part, comparison, wanted) for part in value)
    if comparison == "contains":
        return str(wanted).casefold() in str(value).casefold()
    if isinstance(value, datetime.datetime | datetime.date):
        return _date_holds(value, comparison, wanted)
    if isinstance(value, str):
        value, wanted = value.casefold(), str(wanted).casefold()
    elif isinstance(wanted, str):
        try:
            wanted = float(wanted)
        except ValueError:
            return False
    return ORDERS[comparison](value, wanted)


def _date_holds(value: datetime.date, comparison: Comparison, wanted: Any) -> bool:
    """Dates compare as far as the wanted date is given: a year alone compares years."""
    given = wanted.isoformat() if isinstance(wanted, datetime.date) else str(wanted)
    return ORDERS[comparison](value.isoformat()[: len(given)], given)


def condition_filter(kb: Attributes, condition: Condition) -> Filter:
    """Keeps the nodes that meet a condition."""

    def keep(nodes: NodeSet) -> NodeSet:
        values = kb.values(nodes, condition.attribute)
        right = [holds(value, condition.comparison, condition.value) for value in values]
        return NodeSet(nodes.array[np.array(right, dtype=np.bool_)])

    return keep
