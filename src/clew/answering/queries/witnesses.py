"""Evidence for the rows of a query: the edges of a solution, and the path up a hierarchy to the query's constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from clew.answering.queries.execution import satisfying, solutions
from clew.answering.queries.linking import OPPOSITE
from clew.core.query import Edge, Nodes, Pattern, Query, Var, alternatives, find
from clew.core.types import Direction, Fact, NodeRef, NodeSet, Path, Triple
from clew.store.graph.protocol import KnowledgeBase, Linked

CONSIDERED = 50
"""Maximum number of solutions to compare. Those with the shortest paths are shown."""


def witnesses(kb: KnowledgeBase, query: Query, row: Sequence[Any], limit: int = 2) -> tuple[Path, ...]:
    """Return up to `limit` paths that back a row, each with one edge per edge of the query, from the row outward."""
    expression = query.columns[0].expression
    if isinstance(expression, Var) and isinstance(row[0], NodeRef) and len(row) == 1:
        here = NodeSet.of([row[0].id])
        for pattern in alternatives(query.pattern):
            if len(satisfying(kb, pattern, expression.name, here)):
                query = find(expression.name, None, pattern)
                break
    backing = solutions(kb, query, row, CONSIDERED)
    edges = outward(query.pattern, expression.name if isinstance(expression, Var) else "")
    found = [tuple(fact for edge in edges for fact in _facts(kb, edge, one)) for one in backing]
    different = {
        tuple((fact.head.id, fact.relation, fact.tail.id) for fact in facts): facts
        for facts in sorted(found, key=len)
        if facts
    }
    return tuple(map(Path, list(different.values())[:limit]))


def outward(pattern: Pattern, start: str) -> list[Edge]:
    """Return the edges by distance from a variable. At equal distance, edges between variables come first."""
    left, reached, ordered = list(pattern.edges), {start}, list[Edge]()
    while left:
        near = [edge for edge in left if not reached.isdisjoint(edge.variables)] or left[:1]
        near.sort(key=lambda edge: len(edge.variables) == 1)
        ordered += near
        left = [edge for edge in left if not any(edge is one for one in near)]
        reached.update(name for edge in near for name in edge.variables)
    return ordered


def _facts(kb: KnowledgeBase, edge: Edge, solution: Mapping[str, NodeRef | Triple]) -> Iterator[Fact]:
    """Yield the edge that a solution has, or the edges of a shortest walk."""
    heads, tails = (_nodes(kb, end, solution) for end in (edge.head, edge.tail))
    if not edge.is_single:
        yield from _walk(kb, edge, heads, tails)
        return
    forward = not isinstance(edge.head, Nodes)  # a constant may have very many edges
    direction: Direction = "any" if not edge.directed else "out" if forward else "in"
    near, far = (heads, tails) if forward else (tails, heads)
    found = kb.edges_to(near, far, edge.relation, direction)
    there = heads.holds(found.heads) & tails.holds(found.tails)
    if not edge.directed:
        there |= tails.holds(found.heads) & heads.holds(found.tails)
    for place in np.flatnonzero(there)[:1].tolist():
        relation = kb.schema.relation_names[int(found.relations[place])]
        yield _fact(kb, int(found.heads[place]), relation, int(found.tails[place]))


def _walk(kb: KnowledgeBase, edge: Edge, heads: NodeSet, tails: NodeSet) -> Iterator[Fact]:
    if edge.least == 0 and len(heads & tails):
        return
    direction: Direction = "out" if edge.directed else "any"
    for here, there in pairwise(shortest_walk(kb, heads, tails, edge.relation, direction)):
        found = kb.edges_to(NodeSet.of([here]), NodeSet.of([there]), edge.relation, direction)
        ends = {here, there}
        for head, code, tail in zip(found.heads, found.relations, found.tails, strict=True):
            if {int(head), int(tail)} == ends:
                yield _fact(kb, int(head), kb.schema.relation_names[int(code)], int(tail))
                break


def shortest_walk(
    graph: Linked, starts: NodeSet, goals: NodeSet, relation: str | None, direction: Direction
) -> list[int]:
    """Return a shortest walk of at least one edge from a start node to a goal, or an empty list."""
    levels = [starts]
    seen = NodeSet.of([])
    while True:
        following = graph.neighbors(levels[-1], relation, direction) - seen
        if not len(following):
            return []
        levels.append(following)
        seen = seen | following
        if len(following & goals):
            break
    way = [int((levels[-1] & goals).array[0])]
    for level in reversed(levels[:-1]):
        before = graph.neighbors(NodeSet.of([way[-1]]), relation, OPPOSITE[direction]) & level
        way.append(int(before.array[0]))
    return way[::-1]


def _fact(kb: KnowledgeBase, head: int, relation: str, tail: int) -> Fact:
    first, second = kb.refs([head, tail])
    attributes = kb.edge_attributes(head, relation, tail)
    return Fact(first, relation, second, attributes[0] if attributes else {})


def _nodes(kb: KnowledgeBase, end: Any, solution: Mapping[str, NodeRef | Triple]) -> NodeSet:
    if isinstance(end, Nodes):
        return NodeSet.of([kb.find(key) for key in end.keys])
    found = solution.get(end)
    return NodeSet.of([found.id] if isinstance(found, NodeRef) else [])
