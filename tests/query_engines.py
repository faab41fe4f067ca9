"""Queries carried out by other engines."""

import datetime
from collections import Counter

import duckdb
import pyarrow as pa
import pyoxigraph as ox

from clew.answering.queries.algebra import sparql, sql
from clew.answering.queries.algebra.columns import from_values, to_values
from clew.core.types import NodeRef
from clew.store.graph.iris import node_iri
from clew.store.graph.rdf_export import edge_statements, statements


def cell(value):
    """A value as every engine gives it."""
    if isinstance(value, NodeRef):
        return value.key
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, datetime.date):
        return f"{value.isoformat()}T00:00:00"
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return float(f"{value:.9g}") + 0.0
    return tuple(value) if isinstance(value, list) else value


def normal(query, rows):
    """Rows in order if the query has one, or else in any order."""
    rows = [tuple(map(cell, row)) for row in rows]
    if getattr(query, "order", ()) or getattr(query, "first", None) is not None:
        return rows
    return sorted(Counter(rows).items(), key=repr)


def stored(kb, attributes, values):
    """Attributes as databases hold them: dates are days, NaN is missing."""
    held = {}
    for name, kind in attributes.items():
        value = values.get(name)
        held[name] = value if kind == "list" else to_values(from_values(kind, [value]))[0]
    return held


def moments(kb):
    return [field.name for field in kb.columns().schema if pa.types.is_timestamp(field.type)]


def edges_of(kb):
    """Every edge: number, head key, relation, tail key, attributes."""
    refs = kb.refs(kb.nodes().array)
    triples = [triple for node in range(len(kb)) for triple in kb.triples(node) if triple.head == node]
    for number, one in enumerate(triples):
        values = stored(kb, kb.schema.edge_attributes, one.attributes)
        yield number, refs[one.head].key, one.relation, refs[one.tail].key, values


class DuckDB:
    """The base in DuckDB's tables."""

    def __init__(self, kb):
        self.kb, self.base = kb, duckdb.connect()
        for statement in sql.create(kb.schema, moments(kb)):
            self.base.execute(statement)
        for node in map(kb.node, map(int, kb.nodes())):
            values = stored(kb, kb.schema.attribute_types, node.attributes)
            row = [node.key, node.type, node.name, *values.values()]
            self.base.execute(f"INSERT INTO nodes VALUES ({', '.join('?' * len(row))})", row)
        for number, head, relation, tail, values in edges_of(kb):
            row = [number, head, relation, tail, *values.values()]
            self.base.execute(f"INSERT INTO edges VALUES ({', '.join('?' * len(row))})", row)

    def text(self, query):
        return sql.sql(query, self.kb.schema)

    def rows(self, text):
        return self.base.execute(text).fetchall()


class Oxigraph:
    """The base's RDF export in a store."""

    def __init__(self, kb):
        self.kb, self.base = kb, ox.Store()
        lines = "\n".join(f"{one} ." for one in (*statements(kb), *edge_statements(kb)))
        self.base.load(lines.encode(), format=ox.RdfFormat.N_TRIPLES)
        self.keys = {node_iri(ref.key): ref.key for ref in kb.refs(kb.nodes().array)}

    def text(self, query):
        return sparql.sparql(query, self.kb.schema)

    def rows(self, text):
        return [tuple(self.cell(value) for value in row) for row in self.base.query(text)]

    def cell(self, value):
        if isinstance(value, ox.NamedNode):
            return self.keys[value.value]
        kind = value.datatype.value.rpartition("#")[2] if value is not None else ""
        if kind in ("integer", "decimal", "double"):
            return float(value.value)
        return value.value == "true" if kind == "boolean" else value and value.value
