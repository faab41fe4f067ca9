"""Queries carried out by other engines."""

import datetime
import re
from collections import Counter
from decimal import Decimal
from threading import Timer

import duckdb
import kuzu
import pyarrow as pa
import pyoxigraph as ox

from clew.answering.queries import cypher, execution, pushdown, sparql, sql
from clew.answering.queries.columns import from_values, to_values
from clew.answering.queries.kinds import leftmost
from clew.answering.queries.lowering import CannotPrintError
from clew.core.query import Aggregate, Edge, Exists, Pattern, names_used, walk
from clew.core.types import NodeRef
from clew.store.building import build, into
from clew.store.graph.iris import EDGE_HEAD, EDGE_RELATION, EDGE_TAIL, PREFIX, node_iri, relation_iri
from clew.store.graph.rdf_export import attribute_statements, statements
from clew.store.remote.sparql_endpoint import iri

DUCKDB_SECONDS = 5
"""Time for one query. A few nested ones over lists take minutes, even over 20 rows."""


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
    if isinstance(value, int | float | Decimal):
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
        self.kb, self.base = kb, duckdb.connect(config={"threads": 1})  # for small tables
        for name, rows in sql.tables(kb).items():
            self.base.register(name, rows)

    def text(self, query):
        return sql.sql(query, self.kb.schema)

    def rows(self, text):
        timer = Timer(DUCKDB_SECONDS, self.base.interrupt)
        timer.start()
        try:
            return self.base.execute(text).fetchall()
        except duckdb.InterruptException as error:
            raise CannotPrintError("DuckDB takes too long") from error
        finally:
            timer.cancel()


class Postgres:
    """The base in PostgreSQL, which is asked for whole queries."""

    url = None
    """The database, set by those who start a server."""

    def __init__(self, kb):
        from clew.store.postgres.knowledge_base import PostgresKnowledgeBase

        address = f"{self.url}#engine"
        into(address, lambda folder: build(kb.to_tables(), folder))
        self.kb = PostgresKnowledgeBase.open(address)

    def text(self, query):
        return query

    def rows(self, query):
        cells = pushdown._solved(self.kb, query)
        if cells is None:
            raise CannotPrintError("carried out edge by edge")
        return execution.shown(self.kb, leftmost(query), cells).rows


def edge_statements(kb):
    """Every edge as a separate node with its ends, its relation and its attributes."""
    names = [iri(node_iri(key)) for key in kb.columns()["key"].to_pylist()]
    triples = (triple for node in range(len(kb)) for triple in kb.triples(node) if triple.head == node)
    for number, triple in enumerate(triples):
        subject = iri(f"{PREFIX}edge:{number}")
        yield f"{subject} {iri(EDGE_HEAD)} {names[triple.head]}"
        yield f"{subject} {iri(EDGE_RELATION)} {iri(relation_iri(triple.relation))}"
        yield f"{subject} {iri(EDGE_TAIL)} {names[triple.tail]}"
        yield from attribute_statements(subject, triple.attributes)


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


COLUMNS = {"integer": "INT64", "number": "DOUBLE", "boolean": "BOOLEAN", "list": "STRING[]", "text": "STRING"}


def is_connected(pattern):
    """Whether edges connect all variables of a pattern."""
    links = [set(edge.variables) for edge in pattern.edges]
    reached = {pattern.variables[0].name} if pattern.variables else set()
    while more := {name for ends in links if ends & reached for name in ends} - reached:
        reached |= more
    return len(reached) == len(pattern.variables)


OWN_FAULTS = ("Cannot evaluate expression with type", "was expected", "contains nested aggregation")
"""Messages of Kuzu 0.11 about what is right: internal errors, dates beside timestamps, a function of a minimum."""


class Kuzu:
    """A table for each type with its attributes, and one for each relation."""

    def __init__(self, kb):
        self.kb = kb
        self.base = kuzu.Connection(kuzu.Database(":memory:", buffer_pool_size=512 << 20, max_num_threads=1))
        times, schema = moments(kb), kb.schema

        def columns(attributes, kinds):
            types = {name: "TIMESTAMP" if name in times else COLUMNS.get(kinds[name], "DATE") for name in attributes}
            return "".join(f", `{name}` {kind}" for name, kind in types.items())

        for kind in schema.node_types:
            named = columns(kind.attributes, schema.attribute_types)
            self.base.execute(f"CREATE NODE TABLE `{kind.name}`(key STRING PRIMARY KEY, name STRING{named})")
        pairs = ", ".join(f"FROM `{a}` TO `{b}`" for a in schema.type_names for b in schema.type_names)
        named = columns(schema.edge_attributes, schema.edge_attributes)
        for relation in schema.relation_names:
            self.base.execute(f"CREATE REL TABLE `{relation}`({pairs}{named})")
        kinds = {}
        for node in map(kb.node, map(int, kb.nodes())):
            kinds[node.key] = node.type
            values = stored(kb, schema.attribute_types, node.attributes)
            self.create(f"CREATE (:`{node.type}` {{}})", {"key": node.key, "name": node.name, **values})
        for _, head, relation, tail, values in edges_of(kb):
            ends = f"(a:`{kinds[head]}` {{key: $a}}), (b:`{kinds[tail]}` {{key: $b}})"
            self.create(f"MATCH {ends} CREATE (a)-[:`{relation}` {{}}]->(b)", values, a=head, b=tail)

    def create(self, text, values, **more):
        known = {name: value for name, value in values.items() if value is not None}
        given = ", ".join(f"`{name}`: $p{place}" for place, name in enumerate(known))
        parameters = {f"p{place}": value for place, value in enumerate(known.values())}
        self.base.execute(text.replace("{}", f"{{{given}}}" if given else ""), {**parameters, **more})

    def text(self, query):
        text = cypher.cypher(query, self.kb.schema)
        if any(
            isinstance(part, Edge) and part.most is None and (part.relation != "is_a" or not part.directed)
            for part in walk(query)
        ):
            raise CannotPrintError("Kuzu walks in circles for ever")
        if any(isinstance(part, Edge) and part.name and not part.directed for part in walk(query)):
            raise CannotPrintError("Kuzu 0.11 gives a loop twice")
        patterns = [part for part in walk(query) if isinstance(part, Pattern)]
        for outer in patterns:
            new = [(part, part.bound - {*outer.types, *outer.edge_names}) for part in outer.optional]
            if any(not names_used(formula) & names for part, names in new for formula in part.where):
                raise CannotPrintError("Kuzu 0.11 loses optional parts with a condition on the rest alone")
        if re.search(r"\bq[0-9]+_", text) and not all(map(is_connected, patterns)):
            raise CannotPrintError("Kuzu 0.11 loses rows of unconnected variables after a sub-query")
        if any(part.edge_names and len(part.edges) >= len(part.types) > 2 for part in patterns):
            raise CannotPrintError("Kuzu 0.11 loses parallel edges where edges form a circle")
        inner = [part.pattern for part in walk(query) if isinstance(part, Exists)]
        inner += [part.over for part in walk(query) if isinstance(part, Aggregate) and part.over]
        if any(not names_used(formula) & part.bound for part in inner for formula in part.where):
            raise CannotPrintError("Kuzu 0.11 mixes up sub-queries with a condition on the rest alone")
        if "DISTINCT label(" in text:
            raise CannotPrintError("Kuzu 0.11 repeats the label of nodes of one table")
        if re.search(r"\b(\w+)\.key = \1\.key", text):
            raise CannotPrintError("Kuzu 0.11 loses rows where something is compared with itself")
        every = [part for part in walk(query) if isinstance(part, Aggregate)]
        if any(part.distinct and (part.function != "count" or len(every) > 1) for part in every):
            raise CannotPrintError("Kuzu 0.11 mixes up distinct values with other aggregates")
        return text

    def rows(self, text):
        try:
            return [tuple(row) for row in self.base.execute(text)]
        except RuntimeError as error:
            if any(part in str(error) for part in OWN_FAULTS):
                raise CannotPrintError("Kuzu 0.11 cannot do this") from error
            raise
