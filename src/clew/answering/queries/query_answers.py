"""Answers to queries of the query language: rows, the nodes and values in them, and the edges that back each row."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from clew.answering.queries.algebra.execution import Result, execute, solutions
from clew.answering.queries.algebra.kinds import check
from clew.answering.queries.algebra.lowering import CannotPrintError
from clew.answering.queries.algebra.values import (
    AnyQuery,
    Attribute,
    Edge,
    Named,
    Nodes,
    Pattern,
    Query,
    constants,
    linked,
    rewrite,
    walk,
)
from clew.answering.queries.algebra.words import words
from clew.answering.queries.grounding import below, ground, hierarchies, unknown_names
from clew.answering.queries.wording import kind_in_words
from clew.core.query import Constant, TripletQuery, Variable
from clew.core.schema import Schema
from clew.core.types import (
    Answer,
    Candidate,
    Cell,
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
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.protocol import Names

SHOWN = 20
"""Number of rows whose evidence is computed."""


@dataclass(frozen=True)
class Executed:
    """A query as it was asked, with its constants linked to nodes, and its rows."""

    asked: AnyQuery
    query: AnyQuery
    result: Result
    unknown: tuple[UnknownName, ...] = ()
    """Names in the query that the base does not have. The query is not executed then."""

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


def run_query(kb: KnowledgeBase, names: Names, query: AnyQuery, *, kinds: bool = True) -> Executed:
    """Link the constants of a query and execute it. Raise InputError for a query that the schema does not allow.

    With `kinds`, a constant also stands for what lies below it in a hierarchy.
    """
    check(query, kb.schema)
    named = {one: Constant(one.text, one.type) for one in constants(query)}
    every = TripletQuery((), Variable("x"), among=tuple(named.values()))
    if unknown := unknown_names(every, names):
        return Executed(query, query, Result((), (), []), unknown)
    groundings = ground(every, names)
    nodes = {one: groundings[constant].nodes for one, constant in named.items()}
    wide = with_kinds(query, kb.schema) if kinds else query
    ready = linked(wide, lambda one: tuple(ref.key for ref in kb.refs(nodes[one].array)))
    return Executed(query, ready, execute(kb, ready))


def with_kinds(query: AnyQuery, schema: Schema) -> AnyQuery:
    """Let constants stand for what lies below them in a hierarchy, and follow the edges of hierarchies all the way."""
    rows = {row.name: row for row in hierarchies(schema)}
    numbers = count()

    def wider(end: str | Named | Nodes, edges: list[Edge]) -> str | Named | Nodes:
        """What stands for an end: a constant's variable for anything below it, each hierarchy after the other."""
        for row in hierarchies(schema, end.type) if isinstance(end, Named) else ():
            lower = f"kind {next(numbers)}"
            head, tail = (lower, end) if below(row) == "in" else (end, lower)
            edges.append(Edge(head, row.name, tail, least=0, most=None))
            end = lower
        return end

    def changed(part: Any) -> Any:
        if not isinstance(part, Pattern):
            return part
        edges: list[Edge] = []
        for edge in part.edges:
            if edge.relation in rows and edge.is_single and edge.name is None:
                edges.append(replace(edge, most=None))
                continue
            head, tail = wider(edge.head, edges), wider(edge.tail, edges)
            edges.append(replace(edge, head=head, tail=tail))
        return replace(part, edges=tuple(edges))

    return rewrite(query, changed) if rows else query


def relations_and_attributes(query: AnyQuery) -> tuple[frozenset[str | None], frozenset[str]]:
    """What a query goes by."""
    parts = list(walk(query))
    relations = frozenset(part.relation for part in parts if isinstance(part, Edge))
    return relations, frozenset(part.name for part in parts if isinstance(part, Attribute))


def answer_query(kb: KnowledgeBase, question: str, executed: Executed) -> Answer:
    """Rows and columns, the nodes of the first column as matches, or the only cell as the value."""
    if executed.unknown:
        text = " ".join(one.to_text() for one in executed.unknown)
        return Answer(question, text=text, answer_count=0, unknown=executed.unknown)
    result, refs, value = executed.result, executed.refs, executed.value
    rows = tuple(tuple(map(_cell, row)) for row in result.rows)
    places: dict[int, Sequence[Any]] = {}
    for row in result.rows:
        if isinstance(row[0], NodeRef):
            places.setdefault(row[0].id, row)
    candidates = tuple(
        Candidate(ref, 1.0, _evidence(kb, executed, places[ref.id]) if place < SHOWN else ())
        for place, ref in enumerate(refs)
    )
    is_table = bool(rows) and value is None and (len(result.names) > 1 or not refs)
    form = "table" if is_table else "list" if refs or not rows else "value"
    answer = Answer(
        question,
        candidates,
        value=value,
        answer_count=len(candidates),
        query={"form": form, "kind": _kind(executed, kb), **_printed(executed, kb)},
        columns=result.names if is_table else (),
        rows=rows if is_table else (),
    )
    if value is not None and isinstance(executed.query, Query):
        backing = solutions(kb, executed.query, result.rows[0], most=3)
        answer = replace(answer, evidence=tuple(_path(kb, executed.query.pattern, one) for one in backing))
    return answer


def _kind(executed: Executed, kb: KnowledgeBase) -> str:
    """What one match is called."""
    kinds = {ref.type for ref in executed.refs}
    return kind_in_words(kb.schema, kinds.pop() if len(kinds) == 1 else None)


def _printed(executed: Executed, kb: KnowledgeBase) -> dict[str, str]:
    """The query in words, as it was carried out, and in other languages as far as they can say it."""
    from clew.answering.queries.algebra.cypher import cypher
    from clew.answering.queries.algebra.sparql import sparql

    query = executed.query
    found = {"text": words(executed.asked, kb.schema), "query": str(query)}
    for language, write in (("sparql", sparql), ("cypher", cypher)):
        try:
            found[language] = write(query, kb.schema)
        except CannotPrintError:
            continue
    return found


def _cell(cell: Any) -> Cell:
    if isinstance(cell, NodeRef | str | int | float | bool) or cell is None:
        return cell
    if isinstance(cell, datetime.date):
        return cell.isoformat()
    return f"{cell.relation}" if isinstance(cell, Triple) else str(cell)


def _evidence(kb: KnowledgeBase, executed: Executed, row: Sequence[Any]) -> tuple[Evidence, ...]:
    """The edges that back a row, and its other cells."""
    if not isinstance(executed.query, Query):
        return ()
    shown: list[Evidence] = [
        Judgement(name, reason=cell.name if isinstance(cell, NodeRef) else str(_cell(cell)))
        for name, cell in zip(executed.result.names[1:], row[1:], strict=True)
        if cell is not None
    ]
    paths = [_path(kb, executed.query.pattern, one) for one in solutions(kb, executed.query, row, most=2)]
    return (*(path for path in paths if path.facts), *shown)


def _path(kb: KnowledgeBase, pattern: Pattern, solution: dict[str, NodeRef | Triple]) -> Path:
    """The single edges of a pattern, as a solution has them."""
    facts = []
    for edge in pattern.edges:
        heads, tails = (_nodes(kb, end, solution) for end in (edge.head, edge.tail))
        if not edge.is_single:
            continue
        found = kb.edges_to(heads, tails, edge.relation, "out" if edge.directed else "any")
        there = np.flatnonzero((heads | tails).holds(found.heads) & (heads | tails).holds(found.tails))
        for place in there[:1].tolist():
            head, tail = kb.refs([int(found.heads[place]), int(found.tails[place])])
            relation = kb.schema.relation_names[int(found.relations[place])]
            attributes = kb.edge_attributes(head.id, relation, tail.id)
            facts.append(Fact(head, relation, tail, attributes[0] if attributes else {}))
    return Path(tuple(facts))


def _nodes(kb: KnowledgeBase, end: Any, solution: dict[str, NodeRef | Triple]) -> NodeSet:
    if isinstance(end, Nodes):
        return NodeSet.of([kb.find(key) for key in end.keys])
    found = solution.get(end)
    return NodeSet.of([found.id] if isinstance(found, NodeRef) else [])
