"""Corrections by the user: other relations, the opposite direction, or another type of answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clew.core.errors import InputError
from clew.core.query import Constant, Edge, Named, Pattern, Variable, find, rewrite
from clew.core.roles import Interpretation, Parse
from clew.core.schema import Relation, Schema

ANY = "*"
"""Name of a requirement that any relation satisfies."""
TURNED = "^"
"""Prefix of a relation in the opposite direction."""
Types = Mapping[str, str | None]
"""Types of variables."""


@dataclass(frozen=True)
class Corrections:
    """Corrections by the user."""

    relations: Mapping[str, str] = field(default_factory=dict)
    """Old relation → new relation. `^` reverses the new relation, `*` is a requirement of any relation."""
    type: str | None = None
    """Type of the answers."""

    def __bool__(self) -> bool:
        return bool(self.relations) or self.type is not None

    def corrected(self, parse: Parse, schema: Schema) -> Parse:
        """Return the first interpretation of the corrected type, with the corrected relations.

        Drop all alternatives.
        """
        asked, kind = parse.interpretation, self.type
        if kind is not None:
            schema.node_type(kind)  # raises for an unknown type
            every = (asked, *parse.alternatives)
            asked = next((one for one in every if one.type == kind), None) or of_type(asked, kind, schema)
        asked = with_relations(asked, self.relations, schema)
        return replace(parse, interpretation=asked, alternatives=(), certainty=1.0)


def with_relations(asked: Interpretation, relations: Mapping[str, str], schema: Schema) -> Interpretation:
    """Replace every edge of a corrected relation, in the direction that fits its constants."""
    for name in relations.values():
        schema.relation_rows(_plain(name, schema))  # raises for an unknown relation
    changed: dict[str, str] = {}

    def corrected(part: Any) -> Any:
        if not isinstance(part, Pattern):
            return part
        edges, types = [], dict(part.types)
        for edge in part.edges:
            meant = relations.get(edge.relation or ANY)
            if meant is not None:
                edge, row = _meant(edge, meant, schema, types)
                for end, kind in ((edge.head, row.head), (edge.tail, row.tail)):
                    if isinstance(end, str):
                        changed[end] = types[end] = kind
            edges.append(edge)
        variables = tuple(Variable(name, changed.get(name, kind)) for name, kind in types.items())
        return replace(part, variables=variables, edges=tuple(edges))

    def typed(part: Any) -> Any:
        """Give a variable one type in all patterns."""
        return replace(part, type=changed.get(part.name, part.type)) if isinstance(part, Variable) else part

    return replace(asked, query=rewrite(rewrite(asked.query, corrected), typed))


def of_type(asked: Interpretation, kind: str, schema: Schema) -> Interpretation:
    """Ask for another type: by relations of the schema, or for nodes connected to the answers."""
    query, variable = asked.query, asked.variable
    if query.order or query.pattern.where or asked.attribute:
        raise InputError(f"this question cannot ask for {kind}: it requires more than relations ({query})")
    types = {**query.pattern.types, variable: kind}
    retyped = [_retyped(edge, variable, types, schema) for edge in query.pattern.edges]
    whole = tuple(edge for edge in retyped if edge is not None)
    if len(whole) == len(retyped):
        variables = tuple(Variable(*one) for one in types.items())
        return replace(asked, query=replace(query, pattern=Pattern(variables, whole)))
    new = f"{variable}_{kind}"
    joined = _joined(Edge(new, None, variable, directed=False), {**query.pattern.types, new: kind}, schema)
    if joined is None:
        raise InputError(f"this question cannot ask for {kind}: no relation connects {kind} to {asked.type or 'nodes'}")
    pattern = replace(query.pattern, edges=(*query.pattern.edges, joined))
    return replace(asked, query=find(new, kind, pattern))


def _retyped(edge: Edge, variable: str, types: Types, schema: Schema) -> Edge | None:
    """Return the edge for a variable of another type, or None if no relation connects that type to its other end."""
    rows = () if edge.relation is None else schema.relation_rows(edge.relation)
    is_kept = variable not in edge.variables or _row(edge, rows, types) is not None
    return edge if is_kept else _joined(edge, types, schema)


def _joined(edge: Edge, types: Types, schema: Schema) -> Edge | None:
    """Return the edge by the only relation that joins the types of its ends, or by any of several, or None."""
    ways = (edge, _round(edge))
    names = {row.name for row in schema.relations if any(_row(one, (row,), types) for one in ways)}
    if not names:
        return None
    if len(names) > 1:
        return replace(edge, relation=None, directed=False)
    name = names.pop()
    return _fitting(replace(edge, relation=name, directed=True), schema.relation_rows(name), types)[0]


def _plain(name: str, schema: Schema) -> str:
    return name if name in schema.relation_names else name.removeprefix(TURNED)


def _meant(edge: Edge, meant: str, schema: Schema, types: Types) -> tuple[Edge, Relation]:
    """Return the edge with the corrected relation, and the matching row of the schema."""
    rows = schema.relation_rows(_plain(meant, schema))
    name = rows[0].name
    found, row = _fitting(replace(edge, relation=name, directed=True), rows, types)
    if meant == name:
        return found, row
    turned = _round(found)
    fits = _row(turned, rows, types) or _row(turned, rows, {})
    if fits is None:
        told = " or ".join(f"from {one.head} to {one.tail}" for one in rows)
        raise InputError(f"{name} leads {told}: here it cannot be meant the other way round")
    return turned, fits


def _fitting(edge: Edge, rows: Sequence[Relation], types: Types) -> tuple[Edge, Relation]:
    """Return the edge, reversed if only that fits: both its ends, or else its constants."""
    tried = ((one, _row(one, rows, known)) for known in (types, {}) for one in (edge, _round(edge)))
    return next(((one, row) for one, row in tried if row is not None), (edge, rows[0]))


def _round(edge: Edge) -> Edge:
    return replace(edge, head=edge.tail, tail=edge.head)


def _row(edge: Edge, rows: Sequence[Relation], types: Types) -> Relation | None:
    """Return the first row whose types match the known types of the edge's ends."""

    def kind(end: str | Constant) -> str | None:
        return types.get(end) if isinstance(end, str) else end.type if isinstance(end, Named) else None

    head, tail = kind(edge.head), kind(edge.tail)
    return next((row for row in rows if head in (None, row.head) and tail in (None, row.tail)), None)
