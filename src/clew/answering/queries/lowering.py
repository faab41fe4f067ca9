"""Shared steps of the printers: queries without ties, without lists, and groups as tables with named columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from clew.answering.queries.kinds import Scope
from clew.core import query as ql
from clew.core.errors import InputError

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class CannotPrintError(InputError):
    """A query language has no words for a part of a query."""


MAX_STEPS = 30
"""Maximum number of steps of a walk that other languages write one by one."""


def refuse_long_walk(edge: ql.Edge) -> None:
    """Raise CannotPrintError for a walk whose steps would fill pages."""
    if max(edge.least, edge.most or 0) > MAX_STEPS:
        raise CannotPrintError(f"a walk of more than {MAX_STEPS} steps is not written out")


@dataclass(frozen=True)
class Grouped:
    """A grouped query in two steps: keys and aggregates of groups, and the columns to show."""

    keys: tuple[tuple[str, ql.Expression], ...]
    """Keys that are expressions, by the name of their column."""
    variables: tuple[str, ...]
    """Keys that are variables or named edges."""
    aggregates: tuple[tuple[str, ql.Aggregate], ...]
    query: ql.Query
    """The query with fields for keys and aggregates."""


def without_ties(query: ql.Query) -> ql.Query:
    """Return an equal query without ties: its rows are compared with the last row that is surely selected."""
    if not query.ties or query.first is None:
        return query
    if len(query.order) != 1 or query.skip:
        raise CannotPrintError("ties need a single order key and no skip to be written in another language")
    [key] = query.order
    others = tuple(ql.Order(column.expression) for column in query.columns)
    last = replace(
        query,
        columns=(ql.Column(key.expression),),
        order=(key, *others),
        first=1,
        skip=query.first - 1,
        ties=False,
        **_required(query, ql.Not(ql.Missing(key.expression))),
    )
    goal = ql.Subquery(last)
    inside = ql.Either((ql.Missing(goal), ql.Compare(key.expression, ">=" if key.descending else "<=", goal)))
    plain = replace(query, first=None, ties=False)
    return replace(plain, **_required(query, ql.Not(ql.Missing(key.expression)), inside))


def _required(query: ql.Query, *formulas: ql.Formula) -> dict[str, Any]:
    if query.is_grouped:
        return {"having": (*query.having, *formulas)}
    return {"pattern": replace(query.pattern, where=(*query.pattern.where, *formulas))}


def grouped(query: ql.Query, scope: Scope) -> Grouped:
    """Split a grouped query into its two steps."""
    fields: dict[ql.Expression, ql.Field] = {}
    for number, key in enumerate(query.group):
        if not isinstance(key, ql.Var):
            fields.setdefault(key, ql.Field(f"key{number}", scope.kind(key)))

    def named(part: Any) -> Any:
        if part in fields:
            return fields[part]
        if isinstance(part, ql.Aggregate) and part.over is None:
            return fields.setdefault(part, ql.Field(f"value{len(fields)}", scope.kind(part)))
        return part if isinstance(part, ql.Aggregate | ql.Subquery | ql.Exists) else ql.mapped(part, named)

    shown = replace(
        query,
        columns=tuple(ql.mapped(column, named) for column in query.columns),
        order=tuple(ql.mapped(key, named) for key in query.order),
        having=tuple(map(named, query.having)),
    )
    return Grouped(
        tuple((field.name, part) for part, field in fields.items() if not isinstance(part, ql.Aggregate)),
        tuple(dict.fromkeys(key.name for key in query.group if isinstance(key, ql.Var))),
        tuple((field.name, part) for part, field in fields.items() if isinstance(part, ql.Aggregate)),
        shown,
    )


def without_lists(query: ql.Query) -> ql.Query:
    """Return an equal query in which `in` a plain sub-query is the existence of a solution with an equal value.

    Denied memberships stay: Kuzu loses rows without a value if the existence of an equal value is denied.
    """

    def change(part: ql.Formula) -> ql.Formula:
        if isinstance(part, ql.All | ql.Either):
            return replace(part, parts=tuple(map(change, part.parts)))
        if not isinstance(part, ql.Compare) or part.comparison != "in" or not isinstance(part.right, ql.Subquery):
            return part
        inner = part.right.query
        if not isinstance(inner, ql.Query) or inner.is_grouped or inner.first is not None or inner.skip:
            return part
        renamed = {name: f"{name}_in" for name in inner.pattern.bound}
        column, pattern = (_renamed(one, renamed) for one in (inner.columns[0].expression, inner.pattern))
        return ql.Exists(replace(pattern, where=(*pattern.where, ql.Compare(column, "=", part.left))))

    return replace(query, pattern=replace(query.pattern, where=tuple(map(change, query.pattern.where))))


def _renamed(value: Any, names: dict[str, str]) -> Any:
    def change(part: Any) -> Any:
        if isinstance(part, ql.Var | ql.Variable):
            return replace(part, name=names.get(part.name, part.name))
        if isinstance(part, ql.Attribute):
            return replace(part, variable=names.get(part.variable, part.variable))
        if isinstance(part, ql.Edge):
            head, tail = (names.get(end, end) if isinstance(end, str) else end for end in (part.head, part.tail))
            return replace(part, head=head, tail=tail, name=part.name and names.get(part.name, part.name))
        return part

    return ql.rewrite(value, change)


def turned(formula: ql.Compare) -> ql.Compare:
    """Return the comparison with a literal on its right side."""
    if isinstance(formula.left, ql.Value) and formula.comparison in ("=", "!=", *FLIPPED):
        sign: Any = FLIPPED.get(formula.comparison, formula.comparison)
        return ql.Compare(formula.right, sign, formula.left)
    return formula


def shared(part: ql.Exists | ql.Pattern | ql.Aggregate, scope: Scope) -> list[str]:
    """Return the names that a sub-pattern shares with its scope."""
    return sorted(ql.names_used(part) & {*scope.types, *scope.edges})
