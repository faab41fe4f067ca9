"""Hierarchies: what stands below and above a node along the relations that the schema marks as transitive."""

from __future__ import annotations

import re

from clew.core.schema import Relation, Schema
from clew.core.types import Direction, NodeSet
from clew.kb.protocol import Following, Linked
from clew.queries.problem import OPPOSITE

DOWNWARD = re.compile(
    r"^(parent[_ ]?of|has[_ ](?!parent|broader)|includes?|contains?|narrower|superclass[_ ]?of)", re.IGNORECASE
)
"""Names of relations whose head is the broader of the two, such as parent_of or has_part."""


def below(relation: Relation) -> Direction:
    """How edges are followed from a broader node to the narrower ones."""
    return "out" if DOWNWARD.match(relation.name) else "in"


def follows(relation: Relation, *, upward: bool) -> bool:
    """Whether edges lead from what a widened constant stands for, below it or `upward`, to what it names."""
    return (below(relation) == "in") != upward


def hierarchies(schema: Schema, type: str | None = None) -> tuple[Relation, ...]:
    """The transitive relations among the nodes of one type, or of every type."""
    return tuple(
        row for row in schema.relations if row.transitive and row.head == row.tail and type in (None, row.head)
    )


def descendants(graph: Linked, nodes: NodeSet, relation: Relation) -> NodeSet:
    """The nodes themselves and all below them."""
    return closure(graph, nodes, relation.name, below(relation))


def ancestors(graph: Linked, nodes: NodeSet, relation: Relation) -> NodeSet:
    """The nodes themselves and all above them."""
    return closure(graph, nodes, relation.name, OPPOSITE[below(relation)])


def closure(graph: Linked, nodes: NodeSet, relation: str, direction: Direction) -> NodeSet:
    """Everything that is reached by following a relation any number of times, the nodes themselves included."""
    if isinstance(graph, Following):
        return graph.closure(nodes, relation, direction)
    reached = frontier = nodes
    while len(frontier):
        frontier = graph.neighbors(frontier, relation, direction) - reached
        reached = reached | frontier
    return reached


def chain_up(graph: Linked, node: int, top: NodeSet, relation: Relation) -> list[int]:
    """A shortest way from a node up to one of the top nodes, both included; empty where there is none."""
    up = OPPOSITE[below(relation)]
    levels = [NodeSet.of([node])]
    seen = levels[0]
    while not len(levels[-1] & top):
        following = graph.neighbors(levels[-1], relation.name, up) - seen
        if not len(following):
            return []
        levels.append(following)
        seen = seen | following
    way = [int((levels[-1] & top).array[0])]
    for level in reversed(levels[:-1]):
        lower = graph.neighbors(NodeSet.of([way[-1]]), relation.name, below(relation)) & level
        way.append(int(lower.array[0]))
    return way[::-1]
