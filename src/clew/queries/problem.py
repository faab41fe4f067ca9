"""A query as constraints between variables, and conditions on the attributes of nodes."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from clew.core.query import Comparison, Condition, Count
from clew.core.schema import Schema
from clew.core.types import Direction, NodeSet
from clew.kb.protocol import Edges

OPPOSITE: dict[Direction, Direction] = {"out": "in", "in": "out", "any": "any"}
Domains = Mapping[str, NodeSet | None]
"""Variable → the nodes it may stand for; None means every node of its type."""
Filter = Callable[[NodeSet], NodeSet]
"""Keeps the nodes of a set that meet a requirement on each node alone."""


class Graph(Protocol):
    """The part of a knowledge base that substitution needs."""

    @property
    def schema(self) -> Schema:
        """Types and relations."""
        ...

    def nodes(self, type: str | None = None) -> NodeSet:
        """All nodes, or those of one type."""
        ...

    def neighbors(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> NodeSet:
        """The nodes one edge away."""
        ...

    def edges(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> Edges:
        """The edges that leave, enter or touch these nodes."""
        ...


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
