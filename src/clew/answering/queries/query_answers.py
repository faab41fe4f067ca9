"""Answers to queries of the query language: rows, the nodes and values in them, and the edges that back each row."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clew.answering.queries.certificates import printed
from clew.answering.queries.execution import Result, values_of
from clew.answering.queries.kinds import check
from clew.answering.queries.linking import Groundings, ground, link, unknown_names
from clew.answering.queries.pushdown import execute
from clew.answering.queries.schema_words import value_in_words
from clew.answering.queries.witnesses import witnesses
from clew.answering.queries.words import counted_in_words, kind_in_words, words
from clew.core.query import Aggregate, AnyQuery, Attribute, Edge, Pattern, Query, Var, constants, walk
from clew.core.types import Answer, Candidate, Cell, Evidence, Judgement, NodeRef, Triple, UnknownName, Value
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.protocol import Names

SHOWN = 20
"""Number of rows whose evidence is computed."""


@dataclass(frozen=True)
class Executed:
    """A query before and after linking its constants to nodes, and its rows."""

    asked: AnyQuery
    query: AnyQuery
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


def run_query(kb: KnowledgeBase, names: Names, query: AnyQuery, *, kinds: bool = True) -> Executed:
    """Link the constants of a query and execute it. Raise InputError for a query that the schema does not allow.

    With `kinds`, a constant also includes the nodes below it in a hierarchy.
    """
    check(query, kb.schema)
    groundings = ground(constants(query), names)
    if unknown := unknown_names(groundings):
        return Executed(query, query, Result((), (), []), unknown)
    ready = link(query, groundings, kb, kinds=kinds)
    return Executed(query, ready, execute(kb, ready), notes=tuple(_spelled_otherwise(groundings)))


def _spelled_otherwise(groundings: Groundings) -> Iterator[str]:
    for constant, found in groundings.items():
        if found.links and not any(link.how == "exact" for link in found.links):
            names = dict.fromkeys(link.alias for link in found.links)
            yield f"“{constant.text}” stands for {' and '.join(names)}"


def relations_and_attributes(query: AnyQuery) -> tuple[frozenset[str | None], frozenset[str]]:
    """Return the relations and attributes of a query."""
    parts = list(walk(query))
    relations = frozenset(part.relation for part in parts if isinstance(part, Edge))
    return relations, frozenset(part.name for part in parts if isinstance(part, Attribute))


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
    if value is not None and isinstance(executed.query, Query):
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
    if not isinstance(executed.query, Query) or not rows:
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
    if isinstance(root, Var):
        selected = {part.expression for part in executed.query.columns}
        values = decisive_values(kb, executed.query, root.name, [row[0].id for row in rows])
        for said, more in zip(shown, values, strict=True):
            said += [piece for piece in more if Attribute(root.name, piece.by) not in selected]
    is_even = len({tuple(cell is None for cell in row) for row in rows}) == 1
    groups = [rows] if is_even else [[row] for row in rows]
    paths = [path for group in groups for path in witnesses(kb, executed.query, group)]
    return [(*backing, *said) for backing, said in zip(paths, shown, strict=True)]


def decisive_values(
    kb: KnowledgeBase, query: Query, variable: str, nodes: Sequence[int], requested: Sequence[str] = ()
) -> list[list[Judgement]]:
    """Return the attributes of each node that are requested, and the attributes and counts that a query compares."""
    compared = [key.expression for key in query.order]
    parts = (part for whole in (*compared, *query.pattern.where) for part in walk(whole, _is_pattern))
    names = [part.name for part in parts if isinstance(part, Attribute) and part.variable == variable]
    found = [list[Judgement]() for _ in nodes]
    for name in dict.fromkeys((*requested, *names)):
        for said, value in zip(found, values_of(kb, Attribute(variable, name), variable, nodes), strict=True):
            if value is not None:
                shown = value_in_words(value) if isinstance(value, float) else value_text(value)
                said.append(Judgement(name, reason=shown))
    for part in compared:
        if isinstance(part, Aggregate) and part.over is not None:
            for said, count in zip(found, values_of(kb, part, variable, nodes), strict=True):
                said.append(Judgement("count", reason=f"{count:,} {counted_in_words(kb.schema, part, count)}"))
    return found


def _is_pattern(part: Any) -> bool:
    return isinstance(part, Pattern | Aggregate)


def value_text(value: Any) -> str:
    """Return a value as text. Lists are joined by commas."""
    if isinstance(value, list | tuple):
        return ", ".join(map(value_text, value))
    return value.isoformat() if isinstance(value, datetime.date) else str(value)
