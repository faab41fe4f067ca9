"""A whole query put to an endpoint at once: it joins, and only the nodes that are found travel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.answering.queries.execution import found_nodes as found_here
from clew.answering.queries.lowering import CannotPrintError
from clew.answering.queries.sparql import EndpointNames, sparql
from clew.core.query import Query, Var
from clew.core.types import NodeSet
from clew.store.graph.protocol import KnowledgeBase
from clew.store.remote.remote import is_sparql

if TYPE_CHECKING:
    from clew.store.remote.sparql import SparqlKnowledgeBase

MOST_AHEAD = 2_000
"""Edges that are read ahead. Of nodes with more, those of each answer are asked for alone."""


def found_nodes(kb: KnowledgeBase, query: Query) -> NodeSet:
    """Return the nodes that a query finds: in one request at an endpoint, edge by edge in a base that Clew keeps."""
    pattern = query.pattern
    if not pattern.edges and not pattern.where and not query.order and query.first is None:
        return kb.nodes(pattern.types.get(str(query.columns[0].expression)))
    if not is_sparql(kb):
        return found_here(kb, query)
    try:
        written = sparql(query, kb.schema, EndpointNames(kb))
    except CannotPrintError:
        return found_here(kb, query)
    name = "_c0" if query.order else str(query.columns[0].expression)
    rows = kb.endpoint.rows(written, ordered_by=f"?{name}")
    found = NodeSet.of(kb.intern(row[name] for row in rows if name in row))
    if kb.described is not None:
        found = found & kb.described.nodes()  # not what came after they were read
    _read_ahead(kb, query, found)
    return found


def _read_ahead(kb: SparqlKnowledgeBase, query: Query, nodes: NodeSet) -> None:
    """Read the edges that the evidence of few answers will need, for all of them at once."""
    variable = query.columns[0].expression
    if not 0 < len(nodes) <= kb.reading.batch or not isinstance(variable, Var):
        return
    if kb.degrees(nodes.array).sum() > MOST_AHEAD:
        return
    for edge in query.pattern.edges:
        if edge.relation is not None and variable.name in edge.variables:
            kb.edges(nodes, edge.relation, "out" if edge.head == variable.name else "in")
