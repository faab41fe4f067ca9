"""Evidence for the rows of a query: the edges of a solution, and the path up a hierarchy to the query's constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from clew.answering.queries.execution import QueryTooLargeError, satisfying, solutions
from clew.answering.queries.linking import OPPOSITE
from clew.core.query import Edge, Nodes, Pattern, Query, Var, alternatives, find
from clew.core.types import Direction, Fact, NodeRef, NodeSet, Path, Triple
from clew.store.graph.protocol import KnowledgeBase, Linked

CONSIDERED = 50
"""Maximum number of solutions to compare. Those with the shortest paths are shown."""


def witnesses(kb: KnowledgeBase, query: Query, rows: Sequence[Sequence[Any]], limit: int = 2) -> list[tuple[Path, ...]]:
    """Return up to `limit` paths that back each row, each with one edge per edge of the query, from the row outward."""
    expression, options = query.columns[0].expression, alternatives(query.pattern)
    if len(options) == 1 or not isinstance(expression, Var) or len(query.columns) > 1:
        return _witnesses(kb, query, rows, limit)
    found = dict[int, tuple[Path, ...]]()
    for pattern in options:
        left = NodeSet.of([row[0].id for row in rows if row[0].id not in found])
        backed = satisfying(kb, pattern, expression.name, left) if len(left) else left
        inside = set(backed.array.tolist())
        some = [row for row in rows if row[0].id in inside]
        paths = _witnesses(kb, find(expression.name, None, pattern), some, limit)
        found.update(zip((row[0].id for row in some), paths, strict=True))
    return [found.get(row[0].id, ()) for row in rows]


def _witnesses(kb: KnowledgeBase, query: Query, rows: Sequence[Sequence[Any]], limit: int) -> list[tuple[Path, ...]]:
    if not rows:
        return []
    try:
        backing = solutions(kb, query, rows, CONSIDERED)
    except QueryTooLargeError:
        if len(rows) == 1:
            raise
        half = len(rows) // 2
        return _witnesses(kb, query, rows[:half], limit) + _witnesses(kb, query, rows[half:], limit)
    expression = query.columns[0].expression
    edges = outward(query.pattern, expression.name if isinstance(expression, Var) else "")
    paths = []
    for solved in backing:
        found = [tuple(fact for edge in edges for fact in _facts(kb, edge, one)) for one in solved]
        different = {
            tuple((fact.head.id, fact.relation, fact.tail.id) for fact in facts): facts
            for facts in sorted(found, key=len)
            if facts
        }
        paths.append(tuple(map(Path, list(different.values())[:limit])))
    return paths


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
