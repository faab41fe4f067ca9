"""Answers to queries of the query language: rows, their nodes and values, and the edges that support each row."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from clew.answering.queries.certificates import printed
from clew.answering.queries.execution import QueryTooLargeError, Result, satisfying, solutions, values_of
from clew.answering.queries.kinds import check
from clew.answering.queries.linking import OPPOSITE, Groundings, ground, link, unknown_names
from clew.answering.queries.pushdown import execute
from clew.answering.queries.schema_words import value_in_words
from clew.answering.queries.words import counted_in_words, kind_in_words, words
from clew.core import query as ql
from clew.core.types import (
    Answer,
    Candidate,
    Cell,
    Direction,
    Evidence,
    Fact,
    Judgement,
    NodeRef,
    NodeSet,
    Path,
    Triple,
    UnknownName,
    Value,
)
from clew.store.graph.protocol import KnowledgeBase, Linked
from clew.store.index.protocol import Names

SHOWN = 20
"""Number of rows whose evidence is computed."""


@dataclass(frozen=True)
class Executed:
    """A query before and after linking its constants to nodes, and its rows."""

    asked: ql.AnyQuery
    query: ql.AnyQuery
    result: Result
    unknown: tuple[UnknownName, ...] = ()
    """Names in the query that the base does not have. The query is not executed then."""
    notes: tuple[str, ...] = ()
    """Notes about names that the base spells differently."""

    @property
    def refs(self) -> tuple[NodeRef, ...]:
        """Nodes of the first column, each once, in the order of the rows."""
        first = (row[0] for row in self.result.rows)
        return tuple({cell.id: cell for cell in first if isinstance(cell, NodeRef)}.values())

    @property
    def value(self) -> Value | None:
        """The only cell, if it is a value."""
        if len(self.result.rows) != 1 or len(self.result.names) != 1:
            return None
        cell = _cell(self.result.rows[0][0])
        return None if isinstance(cell, NodeRef) else cell

    @property
    def is_empty(self) -> bool:
        """Whether there is no row with a value in it."""
        return all(cell is None for row in self.result.rows for cell in row)


def run_query(kb: KnowledgeBase, names: Names, query: ql.AnyQuery, *, kinds: bool = True) -> Executed:
    """Link the constants of a query and execute it. Raise InputError for a query that the schema does not allow.

    With `kinds`, a constant also includes the nodes below it in a hierarchy.
    """
    check(query, kb.schema)
    groundings = ground(ql.constants(query), names)
    if unknown := unknown_names(groundings):
        return Executed(query, query, Result((), (), []), unknown)
    ready = link(query, groundings, kb, kinds=kinds)
    return Executed(query, ready, execute(kb, ready), notes=tuple(_spelled_otherwise(groundings)))


def _spelled_otherwise(groundings: Groundings) -> Iterator[str]:
    for constant, found in groundings.items():
        if found.links and not any(link.how == "exact" for link in found.links):
            names = dict.fromkeys(link.alias for link in found.links)
            yield f"“{constant.text}” stands for {' and '.join(names)}"


def relations_and_attributes(query: ql.AnyQuery) -> tuple[frozenset[str | None], frozenset[str]]:
    """Return the relations and attributes of a query."""
    parts = list(ql.walk(query))
    relations = frozenset(part.relation for part in parts if isinstance(part, ql.Edge))
    return relations, frozenset(part.name for part in parts if isinstance(part, ql.Attribute))


def answer_query(kb: KnowledgeBase, question: str, executed: Executed, first: Sequence[int] = ()) -> Answer:
    """Return an answer: rows and columns, the first column's nodes as matches, or the only cell as the value.

    Matches among the nodes `first` come first, in that order. Only the first matches get evidence.
    """
    if executed.unknown:
        return unknown_answer(question, executed.unknown)
    result, refs, value = executed.result, executed.refs, executed.value
    ranks = {node: rank for rank, node in enumerate(first)}
    places: dict[int, Sequence[Any]] = {}
    for row in result.rows:
        if isinstance(row[0], NodeRef):
            places.setdefault(row[0].id, row)
    refs = tuple(sorted(refs, key=lambda ref: ranks.get(ref.id, len(ranks))))
    evidence = _evidence(kb, executed, [places[ref.id] for ref in refs[:SHOWN]])
    candidates = tuple(Candidate(ref, 1.0, evidence[place] if place < SHOWN else ()) for place, ref in enumerate(refs))
    is_table = bool(result.rows) and value is None and (len(result.names) > 1 or not refs)
    form = "table" if is_table else "list" if refs or not result.rows else "value"
    answer = Answer(
        question,
        candidates,
        value=value,
        answer_count=len(candidates),
        query={
            "form": form,
            "kind": _kind(executed, kb),
            "text": words(executed.asked, kb.schema, lambda key: _name_of(kb, key)),
            **printed(executed.query, kb),
        },
        notes=executed.notes,
    )
    if is_table:
        return with_table(answer, result)
    if value is not None and isinstance(executed.query, ql.Query):
        answer = replace(answer, evidence=witnesses(kb, executed.query, result.rows[:1], limit=3)[0])
    return answer


def unknown_answer(question: str, unknown: tuple[UnknownName, ...], certainty: float | None = None) -> Answer:
    """Return an answer without candidates whose text lists the unknown names."""
    text = " ".join(one.to_text() for one in unknown)
    return Answer(question, text=text, answer_count=0, certainty=certainty, unknown=unknown)


def with_table(answer: Answer, result: Result) -> Answer:
    """Return the answer with the rows of a result."""
    return replace(answer, columns=result.names, rows=tuple(tuple(map(_cell, row)) for row in result.rows))


def _kind(executed: Executed, kb: KnowledgeBase) -> str:
    """Return the word for one match."""
    kinds = {ref.type for ref in executed.refs}
    return kind_in_words(kb.schema, kinds.pop() if len(kinds) == 1 else None)


def _name_of(kb: KnowledgeBase, key: str) -> str:
    """Return the name of a node, or the key if the base does not have it."""
    return next((ref.name for ref in kb.refs(kb.ids([key]))), key)


def _cell(cell: Any) -> Cell:
    if isinstance(cell, NodeRef | str | int | float | bool) or cell is None:
        return cell
    return cell.relation if isinstance(cell, Triple) else value_text(cell)


def _evidence(kb: KnowledgeBase, executed: Executed, rows: Sequence[Sequence[Any]]) -> list[tuple[Evidence, ...]]:
    """Return the edges that support each row, and its other cells."""
    if not isinstance(executed.query, ql.Query) or not rows:
        return [() for _ in rows]
    shown: list[list[Judgement]] = [
        [
            Judgement(name, reason=cell.name if isinstance(cell, NodeRef) else str(_cell(cell)))
            for name, cell in zip(executed.result.names[1:], row[1:], strict=True)
            if cell is not None
        ]
        for row in rows
    ]
    root = executed.query.columns[0].expression
    if isinstance(root, ql.Var):
        selected = {part.expression for part in executed.query.columns}
        values = decisive_values(kb, executed.query, root.name, [row[0].id for row in rows])
        for said, more in zip(shown, values, strict=True):
            said += [piece for piece in more if ql.Attribute(root.name, piece.by) not in selected]
    is_even = len({tuple(cell is None for cell in row) for row in rows}) == 1
    groups = [rows] if is_even else [[row] for row in rows]
    paths = [path for group in groups for path in witnesses(kb, executed.query, group)]
    return [(*backing, *said) for backing, said in zip(paths, shown, strict=True)]


def decisive_values(
    kb: KnowledgeBase, query: ql.Query, variable: str, nodes: Sequence[int], requested: Sequence[str] = ()
) -> list[list[Judgement]]:
    """Return the attributes of each node that are requested, and the attributes and counts that a query compares.

    The constants of the query are linked to nodes.
    """
    compared = [key.expression for key in query.order]
    parts = (part for whole in (*compared, *query.pattern.where) for part in ql.walk(whole, _is_pattern))
    names = [part.name for part in parts if isinstance(part, ql.Attribute) and part.variable == variable]
    found = [list[Judgement]() for _ in nodes]
    for name in dict.fromkeys((*requested, *names)):
        for said, value in zip(found, values_of(kb, ql.Attribute(variable, name), variable, nodes), strict=True):
            if value is not None:
                said.append(Judgement(name, reason=_shown(value)))
    for part in compared:
        if isinstance(part, ql.Aggregate) and part.over is not None:
            for said, count in zip(found, values_of(kb, part, variable, nodes), strict=True):
                if part.function == "count":
                    said.append(Judgement("count", reason=f"{count:,} {counted_in_words(kb.schema, part, count)}"))
                elif count is not None:
                    said.append(Judgement(_aggregate_in_words(part), reason=_shown(count)))
    return found


def _shown(value: Any) -> str:
    return value_in_words(value) if isinstance(value, float) else value_text(value)


def _aggregate_in_words(part: ql.Aggregate) -> str:
    """Return "total amount", for example."""
    said = {"sum": "total", "avg": "average", "max": "highest", "min": "lowest"}
    names = [one.name for one in ql.walk(part.argument, _is_pattern) if isinstance(one, ql.Attribute)]
    return " ".join([said.get(part.function, part.function), *names])


def values_on_the_way(kb: KnowledgeBase, query: ql.Query, paths: Sequence[Sequence[Path]]) -> list[list[Judgement]]:
    """Return the attributes that a query compares of nodes on the paths to each answer: "cases of report 12"."""
    compared: dict[str | None, dict[str, None]] = {}
    root = query.columns[0].expression
    for part in query.pattern.where:
        name = ""
        inside: Sequence[Any] = [part]
        match part:
            case ql.Compare(ql.Var(name), "in" | "=", ql.Subquery(ql.Query() as inner)):
                inside = [*inner.pattern.where, *(key.expression for key in inner.order)]
        for one in (one for whole in inside for one in ql.walk(whole, _is_pattern)):
            if isinstance(one, ql.Attribute) and (variable := name or one.variable) != getattr(root, "name", None):
                compared.setdefault(query.pattern.types.get(variable), {})[one.name] = None
    if not compared:
        return [[] for _ in paths]
    nodes = [{end.id: end for path in some for fact in path.facts for end in (fact.head, fact.tail)} for some in paths]
    by_type: dict[str, list[int]] = {}
    for node in {number: node for some in nodes for number, node in some.items()}.values():
        by_type.setdefault(node.type, []).append(node.id)
    values = {
        (node, name): value
        for kind, some in by_type.items()
        for name in compared.get(kind, ())
        for node, value in zip(some, values_of(kb, ql.Attribute("", name), "", some), strict=True)
        if value is not None
    }
    return [
        [
            Judgement(f"{name} of {node.name}", reason=value_in_words(values[node.id, name]))
            for node in some.values()
            for name in compared.get(node.type, ())
            if (node.id, name) in values
        ]
        for some in nodes
    ]


def _is_pattern(part: Any) -> bool:
    return isinstance(part, ql.Pattern | ql.Aggregate)


def value_text(value: Any) -> str:
    """Return a value as text. Lists are joined by commas."""
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value))
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


CONSIDERED = 50
"""Maximum number of solutions to compare. Those with the shortest paths are shown."""


def witnesses(
    kb: KnowledgeBase, query: ql.Query, rows: Sequence[Sequence[Any]], limit: int = 2
) -> list[tuple[Path, ...]]:
    """Return up to `limit` paths that back each row, each with one edge per edge of the query, from the row outward."""
    expression, options = query.columns[0].expression, ql.alternatives(query.pattern)
    if len(options) == 1 or not isinstance(expression, ql.Var) or len(query.columns) > 1:
        return _witnesses(kb, query, rows, limit)
    found = dict[int, tuple[Path, ...]]()
    for pattern in options:
        left = NodeSet.of([row[0].id for row in rows if row[0].id not in found])
        backed = satisfying(kb, pattern, expression.name, left) if len(left) else left
        inside = set(backed.array.tolist())
        some = [row for row in rows if row[0].id in inside]
        paths = _witnesses(kb, ql.find(expression.name, None, pattern), some, limit)
        found.update(zip((row[0].id for row in some), paths, strict=True))
    return [found.get(row[0].id, ()) for row in rows]


def _witnesses(kb: KnowledgeBase, query: ql.Query, rows: Sequence[Sequence[Any]], limit: int) -> list[tuple[Path, ...]]:
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
    edges = outward(query.pattern, expression.name if isinstance(expression, ql.Var) else "")
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


def outward(pattern: ql.Pattern, start: str) -> list[ql.Edge]:
    """Return the edges by distance from a variable. At equal distance, edges between variables come first."""
    left, reached, ordered = list(pattern.edges), {start}, list[ql.Edge]()
    while left:
        near = [edge for edge in left if not reached.isdisjoint(edge.variables)] or left[:1]
        near.sort(key=lambda edge: len(edge.variables) == 1)
        ordered += near
        left = [edge for edge in left if not any(edge is one for one in near)]
        reached.update(name for edge in near for name in edge.variables)
    return ordered


def _facts(kb: KnowledgeBase, edge: ql.Edge, solution: Mapping[str, NodeRef | Triple]) -> Iterator[Fact]:
    """Yield the edge that a solution has, or the edges of a shortest walk."""
    heads, tails = (_nodes(kb, end, solution) for end in (edge.head, edge.tail))
    if edge.is_single:
        forward = not isinstance(edge.head, ql.Nodes)  # a constant may have very many edges
        yield from _first_fact(kb, edge, heads, tails, forward=forward)
    elif edge.least or not len(heads & tails):
        direction: Direction = "out" if edge.directed else "any"
        for here, there in pairwise(shortest_walk(kb, heads, tails, edge.relation, direction)):
            yield from _first_fact(kb, edge, NodeSet.of([here]), NodeSet.of([there]), forward=True)


def _first_fact(kb: KnowledgeBase, edge: ql.Edge, heads: NodeSet, tails: NodeSet, *, forward: bool) -> Iterator[Fact]:
    """Yield the first edge of some heads to some tails, read at the heads if `forward`."""
    direction: Direction = "any" if not edge.directed else "out" if forward else "in"
    near, far = (heads, tails) if forward else (tails, heads)
    found = kb.edges_to(near, far, edge.relation, direction)
    there = heads.holds(found.heads) & tails.holds(found.tails)
    if not edge.directed:
        there |= tails.holds(found.heads) & heads.holds(found.tails)
    for place in np.flatnonzero(there)[:1].tolist():
        relation = kb.schema.relation_names[int(found.relations[place])]
        yield _fact(kb, int(found.heads[place]), relation, int(found.tails[place]))


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
    if isinstance(end, ql.Nodes):
        return NodeSet.of([kb.find(key) for key in end.keys])
    found = solution.get(end)
    return NodeSet.of([found.id] if isinstance(found, NodeRef) else [])
