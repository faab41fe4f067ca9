"""A triplet query ready to execute: constraints between variables and constants that stand for sets of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from clew.core.query import Count
from clew.core.types import Direction, NodeSet
from clew.kb.protocol import Edges
from clew.kb.schema import Schema

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
