"""Queries that a database executes as a whole: it joins, and returns only the resulting rows.

Clew executes a query edge by edge if the database's language cannot express it or the database refuses it. The same
applies to every query over a restricted part of a remote graph (`PartOfGraph`): the database must not execute it as a
whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.answering.queries import execution
from clew.answering.queries.columns import ValueArray as Cells
from clew.answering.queries.columns import from_values
from clew.answering.queries.cypher import GraphDatabaseNames, cypher
from clew.answering.queries.execution import QueryLimits, QueryTooLargeError, Result, Solutions, satisfying
from clew.answering.queries.kinds import Scope, leftmost
from clew.answering.queries.linking import keys_of
from clew.answering.queries.lowering import CannotPrintError
from clew.answering.queries.sparql import EndpointNames, sparql
from clew.core import query as ql
from clew.core.errors import QueryRefusedError
from clew.core.types import NodeSet
from clew.store.graph.protocol import KnowledgeBase, is_cypher, is_sparql
from clew.store.postgres import is_sql

if TYPE_CHECKING:
    from clew.store.postgres.knowledge_base import PostgresKnowledgeBase
    from clew.store.remote.cypher import CypherKnowledgeBase
    from clew.store.remote.sparql import SparqlKnowledgeBase

MOST_AHEAD = 2_000
"""Maximum number of edges to read ahead. For nodes with more edges, request the edges of each answer separately."""
SECONDS = 20
"""Maximum time of a whole query in PostgreSQL. A query that takes longer is carried out edge by edge."""
Rows = list[Sequence[Any]]
"""Rows of a query, its nodes by their ids."""


def execute(kb: KnowledgeBase, query: ql.AnyQuery) -> Result:
    """Return the rows of a query. If the base is in a database, request the rows, or the solutions, from it."""
    cells = _solved(kb, query)
    if cells is None:
        return execution.execute(kb, query, join=_joining(kb))
    return execution.shown(kb, leftmost(query), cells)


def found_nodes(kb: KnowledgeBase, query: ql.Query) -> NodeSet:
    """Return the nodes of the first column of a query, in one request if the base is in a database."""
    pattern = query.pattern
    if not pattern.edges and not pattern.where and not query.order and query.first is None:
        return kb.nodes(pattern.types.get(str(query.columns[0].expression)))
    cells = _solved(kb, query)
    if cells is None:
        found = execution.found_nodes(kb, query, _joining(kb))
    else:
        found = NodeSet.of(cells[0].values[cells[0].present])
    if is_sparql(kb):
        _read_ahead(kb, query, found)
    return found


def _joining(kb: KnowledgeBase) -> execution.Join:
    """Return a function that requests the solutions of a pattern from the database of a base."""

    def join(pattern: ql.Pattern, names: frozenset[str]) -> Solutions | None:
        variables = sorted(names)
        if not pattern.edges or not variables or kb.query_language not in ("sparql", "cypher"):
            return None
        cells = _solved(kb, ql.Query(tuple(ql.Column(ql.Var(name)) for name in variables), pattern, distinct=True))
        if cells is None:
            return None
        return Solutions(len(cells[0]), {name: cell.values for name, cell in zip(variables, cells, strict=True)})

    return join


def _solved(kb: KnowledgeBase, query: ql.AnyQuery) -> list[Cells] | None:
    """Return the columns of a query as the database of a base gives them, or None if it cannot carry it out."""
    if kb.query_language is None:
        return None
    shown = leftmost(query)
    scope = Scope(kb.schema).inside(shown.pattern)
    kinds = [scope.kind(column.expression) for column in shown.columns]
    try:
        if "edge" in kinds:
            return None
        if is_sql(kb):
            rows = _in_sql(kb, query)
        elif is_sparql(kb):
            rows = _in_sparql(kb, query)
        else:
            assert is_cypher(kb)
            rows = _in_cypher(kb, query)
    except (CannotPrintError, QueryRefusedError):
        return None
    columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
    return [_column(kind, values) for kind, values in zip(kinds, columns, strict=True)]


def _column(kind: str, values: Sequence[Any]) -> Cells:
    if kind == "node":
        ids = np.array([-1 if value is None else value for value in values], np.int32)
        return Cells("node", ids, ids >= 0)
    whole = int if kind == "integer" else float
    return from_values(kind, [whole(value) if isinstance(value, Decimal) else value for value in values])


def _in_sql(kb: PostgresKnowledgeBase, query: ql.AnyQuery) -> Rows:
    from clew.answering.queries.sql import PostgresNames, sql

    text, most = sql(query, kb.schema, PostgresNames(kb)), QueryLimits().rows
    if not isinstance(query, ql.Query) or query.first is None:
        text = f"{text} LIMIT {most + 1}"
    rows = kb.solve(text, SECONDS)
    if len(rows) > most:
        raise QueryTooLargeError(f"the query has too many rows (over {most:,}): add a condition, or `first` k")
    return list(rows)


def _in_sparql(kb: SparqlKnowledgeBase, query: ql.AnyQuery) -> Rows:
    names = [str(column.expression) for column in leftmost(query).columns if isinstance(column.expression, ql.Var)]
    if not isinstance(query, ql.Query) or not query.distinct or len(names) < len(query.columns):
        raise CannotPrintError("an endpoint can return only nodes")
    is_cut = query.is_grouped or query.order or query.first is not None or query.skip
    if is_cut or any(isinstance(part, ql.Edge) and part.name for part in ql.walk(query)):
        raise CannotPrintError("an endpoint has no groups, no first rows and no names of edges here")
    rows = kb.endpoint.rows(sparql(query, kb.schema, EndpointNames(kb)), ordered_by=" ".join(f"?{n}" for n in names))
    found = [[kb.intern([row[name]])[0] if name in row else None for name in names] for row in rows]
    most = None if kb.described is None else kb.described.count  # skip nodes that came later
    return [row for row in found if most is None or all(cell is None or cell < most for cell in row)]


def _in_cypher(kb: CypherKnowledgeBase, query: ql.AnyQuery) -> Rows:
    edges = {part.name for part in ql.walk(query) if isinstance(part, ql.Edge)}
    query = ql.rewrite(
        query, lambda part: _decided(kb, part, edges) if isinstance(part, ql.Compare | ql.Missing) else part
    )
    _refuse(kb, query)
    are_nodes = [isinstance(column.expression, ql.Var) for column in leftmost(query).columns]
    rows = kb.server.rows(cypher(query, kb.schema, GraphDatabaseNames(kb)))
    return [row for row in (_with_ids(kb.ids_by_handle, row, are_nodes) for row in rows) if row is not None]


def _with_ids(ids: Mapping[str, int], row: Sequence[Any], are_nodes: Sequence[bool]) -> Sequence[Any] | None:
    """Return a row with ids for nodes, or None if a node was added after the base read its nodes."""
    pairs = list(zip(row, are_nodes, strict=True))
    if any(is_node and cell is not None and cell not in ids for cell, is_node in pairs):
        return None
    return [ids[cell] if is_node and cell is not None else cell for cell, is_node in pairs]


def _decided(kb: CypherKnowledgeBase, formula: ql.Compare | ql.Missing, edges: Set[str | None]) -> ql.Formula:
    """Return a condition on attributes of one node as the nodes that meet it, since Clew knows kinds of attributes."""
    names, parts = ql.names_used(formula), list(ql.walk(formula))
    is_plain = any(isinstance(part, ql.Attribute) for part in parts)
    if (
        len(names) != 1
        or names & edges
        or not is_plain
        or any(isinstance(part, ql.Aggregate | ql.Subquery) for part in parts)
    ):
        return formula
    [name] = names
    meets = formula if isinstance(formula, ql.Compare) else ql.Not(formula)
    nodes = satisfying(kb, ql.Pattern((ql.Variable(name),), (), (meets,)), name)
    if len(nodes) > kb.batch:
        raise CannotPrintError(f"too many nodes meet {formula} to name them")
    chosen = ql.Compare(ql.Var(name), "=", keys_of(kb, nodes))
    return chosen if isinstance(formula, ql.Compare) else ql.Not(chosen)


def _refuse(kb: CypherKnowledgeBase, query: ql.AnyQuery) -> None:
    """Raise CannotPrintError if a graph database would understand a query otherwise.

    An edge occurs once in a walk and in a part that is joined at once. A node may have several labels, of which the
    first is its type. Ids of elements have another order than keys.
    """
    parts = list(ql.walk(query))
    whole = [part.pattern for part in parts if isinstance(part, ql.Query)]
    for part in parts:
        match part:
            case ql.Attribute() | ql.Subquery():
                raise CannotPrintError(f"{part} cannot be computed in a graph database")
            case ql.Edge() if not part.is_single:
                raise CannotPrintError(f"a walk by {part.relation} has another meaning in a graph database")
            case ql.Variable(_, str() as kind) if not kb.is_label(kind):
                raise CannotPrintError(f"{kind} is not the only label of its nodes")
            case ql.Pattern(edges=edges) if not any(part is one for one in whole):
                relations = [edge.relation for edge in edges]
                if len(edges) > 1 and (None in relations or len({*relations}) < len(edges)):
                    raise CannotPrintError("an edge may occur once in a part")
            case ql.Query() if kb.key_property is None and (part.order or part.first is not None):
                raise CannotPrintError("ids of elements have no order")


def _read_ahead(kb: SparqlKnowledgeBase, query: ql.Query, nodes: NodeSet) -> None:
    """Read the edges that the evidence of few answers will need, for all of them at once."""
    variable = query.columns[0].expression
    if not 0 < len(nodes) <= kb.reading.batch or not isinstance(variable, ql.Var):
        return
    if kb.degrees(nodes.array).sum() > MOST_AHEAD:
        return
    for edge in query.pattern.edges:
        if edge.relation is not None and variable.name in edge.variables:
            kb.edges(nodes, edge.relation, "out" if edge.head == variable.name else "in")
