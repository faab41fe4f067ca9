"""Graph of a base in PostgreSQL, with one query for many nodes."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import cached_property
from threading import Lock
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.core.errors import NotFoundError, QueryRefusedError, StorageError
from clew.core.texts import whole_text
from clew.core.types import EMPTY, Direction, IntArray, Node, NodeRef, NodeSet, RelationUse, Triple
from clew.store.graph.protocol import Edges, StoredKnowledgeBase
from clew.store.graph.tables import GROUPS, HIDDEN, NODE_COLUMNS, Piece, Tables
from clew.store.postgres.catalog import Generation, current, open_database
from clew.store.postgres.connection import Address, Connection

MOST_KEPT = 20_000
"""Maximum number of cached node rows. A generation does not change."""
MANY = 2_000
"""Number of nodes above which edges are joined with the nodes instead of looked up by node."""
WHOLE_COLUMN = 2_000
"""Number of nodes above which an attribute is read once for all nodes."""
NODE = "SELECT id, key, type, name, aliases, text, attributes FROM nodes"


class PostgresKnowledgeBase(StoredKnowledgeBase):
    """One generation of a base in PostgreSQL, safe for threads."""

    query_language = "sql"

    def __init__(self, address: Address, generation: Generation) -> None:
        """Open a generation. Use `PostgresKnowledgeBase.open` instead."""
        super().__init__(generation.facts, address)
        self.address, self.generation = address, generation
        self.database = open_database(address, generation)
        self.types: IntArray = self.array("types", "<i4")
        self._kept: dict[int, Node] = {}
        self._columns_read: dict[str, NDArray[Any]] = {}
        self._lock = Lock()
        self._decoders = decoders(self.facts["columns"], NODE_COLUMNS)
        self._edge_decoders = decoders(self.facts["edge_columns"])

    @classmethod
    def open(cls, address: str | Address) -> PostgresKnowledgeBase:
        """Open the current generation of the base at an address."""
        where = address if isinstance(address, Address) else Address.parse(address)
        return cls(where, current(where))

    def __repr__(self) -> str:
        return f"PostgresKnowledgeBase({self.address}: {self.count} nodes, {self.edge_count} edges)"

    @property
    def identity(self) -> str:
        """Identifies the content of this base, equal to the identity of the same base in a folder."""
        return self.generation.identity

    def release(self) -> None:
        """Let a writer remove this generation."""
        self.database.close()

    def array(self, name: str, kind: str) -> NDArray[Any]:
        """Read one of the arrays that each process reads once."""
        return np.frombuffer(self.database.value("SELECT content FROM arrays WHERE name = %s", name), dtype=kind)

    # Nodes

    def node(self, node: int) -> Node:
        """Return everything stored about a node."""
        self._check(node)
        return self._read([int(node)])[int(node)]

    def refs(self, nodes: Sequence[int] | IntArray) -> list[NodeRef]:
        """Return key, name and type of nodes, in the given order."""
        if len(nodes) > MOST_KEPT // 4:
            query = "SELECT id, key, name, type FROM nodes WHERE id = ANY(%s)"
            rows = {row[0]: row for row in self.database.rows(query, _ids(nodes))}
            kinds = self.schema.type_names
            return [NodeRef(node, rows[node][1], rows[node][2], kinds[rows[node][3]]) for node in map(int, nodes)]
        found = self._read([int(node) for node in nodes])
        return [NodeRef(node.id, node.key, node.name, node.type) for node in (found[int(one)] for one in nodes)]

    def find(self, key: str) -> int:
        """Return the id of the node with this key."""
        query = "SELECT id FROM nodes WHERE left(key, 500) = left(%s::text, 500) AND key = %s"
        row = None if "\0" in key or whole_text(key) != key else self.database.one(query, key, key)
        if row is None:
            raise NotFoundError(f"no node has the key {key!r}: search for names with `clew find`")
        return int(row[0])

    def ids(self, keys: Sequence[str]) -> list[int]:
        """Return the ids of the keys that the base has, in one query."""
        known = [key for key in keys if "\0" not in key and whole_text(key) == key]
        query = "SELECT id FROM nodes WHERE left(key, 500) = ANY(%s) AND key = ANY(%s)"
        return [row[0] for row in self.database.rows(query, [key[:500] for key in known], known)] if known else []

    def values(self, nodes: NodeSet, attribute: str) -> list[Any]:
        """Return an attribute of nodes, with None for nodes without it."""
        if attribute not in self._decoders:
            return [None] * len(nodes)
        if len(nodes) < WHOLE_COLUMN:
            found = self._read(nodes.array.tolist())
            return [found[node].attributes.get(attribute) for node in nodes.array.tolist()]
        return list(self._column(attribute)[nodes.array].tolist())

    def distinct(self, attribute: str) -> Sequence[Any]:
        """Return the distinct values of an attribute, at most the first thousand."""
        decode = self._decoders[attribute]
        return [decode(value) for value in self.facts["distinct"][attribute] if value is not None]

    def written_share(self, type: str | None = None) -> float:
        """Return the share of nodes with text, of one type or of all nodes."""
        written = self.facts["written"]
        own = sum(written) if type is None else written[self.schema.type_code[self.schema.node_type(type).name]]
        return float(own / max(len(self.nodes(type)), 1))

    def named_like(self, pattern: str) -> NodeSet:
        """Return the nodes whose whole name matches a regular expression."""
        return NodeSet.of(self.database.ints("SELECT array_agg(id) FROM nodes WHERE name ~ %s", f"^(?:{pattern})$"))

    def columns(self) -> pa.RecordBatch:
        """Return the columns of all nodes, read once, for methods on bases of documents that need all nodes."""
        return self._all_columns

    def column(self, name: str) -> list[Any]:
        """Return one stored column of all nodes without reading other columns."""
        if name in NODE_COLUMNS:
            return [value for (value,) in self.database.rows(f"SELECT {name} FROM nodes ORDER BY id")]
        return list(self._column(name).tolist()) if name in self._decoders else [None] * self.count

    def degrees(self, nodes: IntArray) -> NDArray[np.int64]:
        """Return the number of edges of each node in both directions."""
        return np.asarray(self._degrees[nodes], dtype=np.int64)

    def prefetch(self, nodes: Iterable[int]) -> None:
        """Read the rows of many nodes at once, before they are used one by one."""
        self._read(list(nodes))

    # Edges

    def neighbors(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> NodeSet:
        """Return the nodes one edge away."""
        if not len(nodes):
            return EMPTY
        sides = [(far, side) for far, side in [("tail", "out"), ("head", "in")] if direction in (side, "any")]
        given = [part for _ in sides for part in self._given(nodes, relation)]
        parts = " UNION ".join(f"SELECT {far} AS far FROM {_edges_of(side, nodes, relation)}" for far, side in sides)
        query = f"SELECT array_agg(far) FROM ({parts}) AS found"
        return NodeSet.of(self.database.ints(query, *given, planned=len(nodes) > MANY))

    def relations(self, nodes: NodeSet) -> list[RelationUse]:
        """Count the outgoing and incoming relations of these nodes, in schema order."""
        counts: dict[tuple[int, Direction], int] = {}
        sides: tuple[Direction, ...] = ("out", "in") if len(nodes) else ()
        for side in sides:
            query = f"SELECT relation, count(*) FROM {_edges_of(side, nodes, None)} GROUP BY relation"
            rows = self.database.rows(query, *self._given(nodes, None), planned=len(nodes) > MANY)
            counts |= {(code, side): count for code, count in rows}
        names = self.schema.relation_names
        order = sorted(counts, key=lambda use: (use[0], use[1] == "in"))
        return [RelationUse(names[code], side, counts[code, side]) for code, side in order]

    def edge_attributes(self, head: int, relation: str, tail: int) -> list[Mapping[str, Any]]:
        """Return the attributes of every parallel edge head —relation→ tail. Empty if there is no such edge."""
        query = "SELECT attributes FROM edges WHERE head = %s AND relation = %s AND tail = %s ORDER BY nth"
        rows = self.database.rows(query, int(head), self._code(relation), int(tail))
        return [self._edge_row(attributes) for (attributes,) in rows]

    def edge_values(self, edges: Edges, numbers: NDArray[np.int64], attribute: str) -> list[Any]:
        """Return an attribute of edges, None if missing. `numbers` distinguishes parallel edges, from 0."""
        values: list[Any] = [None] * len(edges)
        decode = self._edge_decoders.get(attribute)
        if decode is None or not len(edges):
            return values
        query = (
            "SELECT g.place::int, e.attributes->%s FROM unnest(%s::int[], %s::int[], %s::int[], %s::int[]) "
            "WITH ORDINALITY AS g (head, relation, tail, nth, place) JOIN edges e USING (head, relation, tail, nth) "
            "WHERE jsonb_exists(e.attributes, %s)"
        )
        parts = [_ids(part) for part in (edges.heads, edges.relations, edges.tails, numbers.astype(np.int32))]
        for place, value in self.database.rows(query, attribute, *parts, attribute, planned=True):
            values[place - 1] = decode(value)
        return values

    def triples(self, node: int) -> list[Triple]:
        """Return every edge of a node with its attributes, outgoing edges first."""
        self._check(node)
        names = self.schema.relation_names
        found = []
        for own, far in (("head", "tail"), ("tail", "head")):
            query = f"SELECT head, relation, tail, attributes FROM edges WHERE {own} = %s ORDER BY relation, {far}, nth"
            for head, code, tail, attributes in self.database.rows(query, int(node)):
                if own == "head" or head != node:
                    found.append(Triple(head, names[code], tail, self._edge_row(attributes)))
        return found

    def to_tables(self) -> Tables:
        """Return sources from which this base could be built again."""
        kinds, names = self.schema.type_names, self.schema.relation_names
        nodes = pa.Table.from_batches([self.columns()])
        nodes = nodes.append_column("type", pa.array([kinds[code] for code in self.types.tolist()], pa.large_string()))
        query = (
            "SELECT h.key, e.relation, t.key, e.attributes FROM edges e "
            "JOIN nodes h ON h.id = e.head JOIN nodes t ON t.id = e.tail ORDER BY e.head, e.relation, e.tail, e.nth"
        )
        rows = self.database.rows(query)
        ends = {"head": [row[0] for row in rows], "relation": [names[row[1]] for row in rows]}
        ends["tail"] = [row[2] for row in rows]
        columns = {name: pa.array(values, pa.large_string()) for name, values in ends.items()}
        for field in stored_schema(self.facts["edge_columns"]):
            decode = self._edge_decoders[field.name]
            packed = (row[3] or {} for row in rows)
            values = [decode(some[field.name]) if field.name in some else None for some in packed]
            columns[field.name] = pa.array(values, field.type)
        source = str(self.address)
        return Tables(
            (Piece(nodes, source),), (Piece(pa.table(columns), source),), notes=self.notes, visibility=self.visibility
        )

    def describe(self) -> dict[str, Any]:
        """Return counts, schema, degrees, size in the database and source notes."""
        tables = "FROM pg_class WHERE relkind = 'r' AND relnamespace = %s::regnamespace"
        size = f"SELECT sum(pg_total_relation_size(oid))::int8 {tables}"
        return {**self.facts["description"], "bytes": self.database.value(size, self.generation.schema)}

    def inconsistencies(self) -> list[str]:
        """Return inconsistencies: wrong counts, edges to missing nodes."""
        expected = {"nodes": self.count, "edges": self.edge_count}
        problems = []
        for table, count in expected.items():
            found = self.database.value(f"SELECT count(*) FROM {table}")
            if found != count:
                problems.append(f"{self.address}: {found} {table} instead of {count}: build it again")
        outside = "SELECT count(*) FROM edges WHERE least(head, tail) < 0 OR greatest(head, tail) >= %s"
        if lost := self.database.value(outside, self.count):
            problems.append(f"{self.address}: {lost} edges lead to nodes that do not exist: build it again")
        return problems

    # Whole queries

    def solve(self, query: str, seconds: int) -> list[tuple[Any, ...]]:
        """Return the rows of a query in SQL. Raise QueryRefusedError if it fails or takes too long."""

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            connection.execute(f"SET LOCAL statement_timeout = {1000 * seconds}")
            return connection.execute(query, prepare=False, binary=True).fetchall()

        try:
            return self.database.do(work)
        except (StorageError, ValueError) as error:  # a text that PostgreSQL cannot hold
            raise QueryRefusedError(f"{self.address} does not carry out a query: {error}") from error

    @cached_property
    def written_dates(self) -> frozenset[str]:
        """Attributes of nodes that are dates written as texts, some without a day or a month."""
        columns = stored_schema(self.facts["columns"])
        dates = (name for name, kind in self.schema.attribute_types.items() if kind == "date")
        return frozenset(name for name in dates if not pa.types.is_temporal(columns.field(name).type))

    @cached_property
    def other_letters(self) -> str | None:
        """Letters whose lower case differs from Python's, or None if this PostgreSQL knows that of ASCII alone."""
        letters = [letter for letter in map(chr, range(128, 1 << 17)) if letter.lower() != letter]
        lowered = self.database.value('SELECT lower(%s::text COLLATE "default")', " ".join(letters))
        pairs = zip(letters, lowered.split(" "), strict=True)
        other = [letter for letter, lower in pairs if lower != letter.lower()]
        return "".join(other) + "Σ" if len(other) < len(letters) // 2 else None  # a sigma depends on its place

    # Inside

    @cached_property
    def _degrees(self) -> IntArray:
        return self.array("degrees", "<i4")

    @cached_property
    def _all_columns(self) -> pa.RecordBatch:
        query = "SELECT key, name, aliases, text, attributes FROM nodes ORDER BY id"
        keys, names, aliases, texts, packed = zip(*self.database.rows(query), strict=True)
        columns: dict[str, Sequence[Any]] = {"key": keys, "name": names, "text": texts}
        columns["aliases"] = [some or None for some in aliases]
        for name, decode in self._decoders.items():
            columns[name] = [decode(row[name]) if name in row else None for row in packed]
        schema = stored_schema(self.facts["columns"])
        return pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema=schema)

    def _read(self, nodes: list[int]) -> dict[int, Node]:
        """Return the rows of nodes. Read rows that are not cached at once."""
        kept = self._kept
        missing = [node for node in nodes if node not in kept]
        if not missing:
            return kept
        found = {row[0]: self._node(row) for row in self._rows(missing)}
        if len(found) < len(set(missing)):
            raise NotFoundError(f"no node {(set(missing) - found.keys()).pop()}: ids go from 0 to {self.count - 1}")
        told = {node: kept[node] if node in kept else found[node] for node in nodes}
        with self._lock:
            if len(self._kept) + len(found) > MOST_KEPT:
                self._kept = {}
            self._kept.update(found)
        return told

    def _rows(self, nodes: Sequence[int]) -> list[tuple[Any, ...]]:
        if len(nodes) == 1:
            return self.database.rows(f"{NODE} WHERE id = %s", nodes[0])
        return self.database.rows(f"{NODE} WHERE id = ANY(%s)", _ids(nodes))

    def _node(self, row: tuple[Any, ...]) -> Node:
        node, key, kind, name, aliases, text, told = row
        shown = {name: decode for name, decode in self._decoders.items() if name in told and name not in HIDDEN}
        attributes = {name: decode(told[name]) for name, decode in shown.items()}
        return Node(node, key, self.schema.type_names[kind], name, tuple(aliases), text, attributes)

    def _column(self, attribute: str) -> NDArray[Any]:
        """Return an attribute of all nodes, read once per process."""
        known = self._columns_read.get(attribute)
        if known is None:
            decode, known = self._decoders[attribute], np.full(self.count, None, dtype=object)
            query = "SELECT id, attributes->%s FROM nodes WHERE jsonb_exists(attributes, %s)"
            for node, value in self.database.rows(query, attribute, attribute):
                known[node] = decode(value)
            self._columns_read[attribute] = known
        return known

    def _edge_row(self, told: Mapping[str, Any] | None) -> dict[str, Any]:
        held = {name: value for name, value in (told or {}).items() if name != GROUPS}
        return {name: decode(held[name]) for name, decode in self._edge_decoders.items() if name in held}

    def _given(self, nodes: NodeSet, relation: str | None) -> list[object]:
        """Return the parameters of a query about nodes and an optional relation."""
        return [_ids(nodes.array), *([] if relation is None else [self._code(relation)])]

    def _edges(self, nodes: NodeSet, relation: str | None, side: Literal["out", "in"]) -> Edges:
        if not len(nodes):
            return _NO_EDGES
        source = _edges_of(side, nodes, relation)
        query = f"SELECT array_agg(head), array_agg(relation), array_agg(tail) FROM {source}"
        heads, codes, tails = self.database.rows(query, *self._given(nodes, relation), planned=len(nodes) > MANY)[0]
        if heads is None:
            return _NO_EDGES
        own, far = (heads, tails) if side == "out" else (tails, heads)
        order = np.lexsort((far, codes, own))
        return Edges(heads[order], codes[order], tails[order])


_NOTHING = np.empty(0, dtype=np.int32)
_NO_EDGES = Edges(_NOTHING, _NOTHING, _NOTHING)


def _edges_of(side: str, nodes: NodeSet, relation: str | None) -> str:
    """Return the FROM clause for edges that leave or enter given nodes, optionally of one relation."""
    own, by_relation = {"out": "head", "in": "tail"}[side], relation is not None
    if len(nodes) > MANY:  # the planner chooses an index or a full scan
        joined = f"unnest(%s::int[]) AS given (id) JOIN edges ON edges.{own} = given.id"
        return f"{joined} WHERE relation = %s" if by_relation else joined
    return f"edges WHERE {own} = ANY(%s){' AND relation = %s' if by_relation else ''}"


def _ids(nodes: Sequence[int] | IntArray) -> IntArray:
    return np.ascontiguousarray(nodes, dtype=np.int32)


def stored_schema(told: str) -> pa.Schema:
    """Parse the stored Arrow schema of nodes or edges."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(told)))


def decoders(told: str, but: Collection[str] = ()) -> dict[str, Callable[[Any], Any]]:
    """Return functions that convert each attribute from JSON."""
    return {field.name: _decoder(field.type) for field in stored_schema(told) if field.name not in but}


def _decoder(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_floating(kind):
        return float
    if pa.types.is_date32(kind):
        return date.fromisoformat
    return datetime.fromisoformat if pa.types.is_timestamp(kind) else lambda value: value
