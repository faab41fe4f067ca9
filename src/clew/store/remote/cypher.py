"""Knowledge base in a graph database with Bolt and openCypher. Its nodes are read once, its edges stay there.

The nodes (`sources/bolt.py`) are stored in a small base, which also notes the relations with their counts. Values are
passed as parameters. Relationship types cannot be parameters and are quoted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from clew.core.errors import InputError
from clew.core.schema import Relation, Schema, with_hierarchies
from clew.core.texts import parse_json
from clew.core.types import Direction, NodeSet
from clew.store.graph.build import kind_of
from clew.store.graph.protocol import StoredKnowledgeBase
from clew.store.graph.tables import EDGE_COLUMNS, ELEMENT, Tables
from clew.store.remote.bolt import BoltServer, Record, quoted
from clew.store.remote.remote import NOTHING, RemoteKnowledgeBase
from clew.store.remote.sparql_endpoint import pages_of
from clew.store.sources.bolt import LABELS, UNTYPED, edge_piece, plain_value, read_nodes
from clew.store.sources.files import SourceOptions

MOST_READ = 500_000
"""Maximum number of nodes to read from a graph that is queried in the database."""
SAMPLED = 1_000
"""Number of edges per relation to sample for properties."""
BATCH = 1_000
"""Number of nodes per query."""
SIGNATURES = "MATCH (a)-[r]->(b) RETURN labels(a), type(r), labels(b), count(*)"


def count_nodes(server: BoltServer) -> int:
    """Return the current number of nodes."""
    [[count]] = server.rows("MATCH (n) RETURN count(n)")
    return int(count)


def read_description(server: BoltServer, *, however_many: bool = False) -> Tables:
    """Read the description of the nodes of a graph, with its schema as a note."""
    count = count_nodes(server)
    if count > MOST_READ and not however_many:
        raise InputError(
            f"{server.address} has {count:,} nodes, more than the {MOST_READ:,} that can be read on demand: "
            f"import it with `clew build {server.address} -o BASE.kb`, or only its texts with --nodes-only"
        )
    nodes = read_nodes(server, SourceOptions(), with_elements=True)
    signatures: dict[tuple[str, str, str], int] = {}
    for heads, relation, tails, amount in server.rows(SIGNATURES, reads_all=True):
        place = (relation, heads[0] if heads else UNTYPED, tails[0] if tails else UNTYPED)
        signatures[place] = signatures.get(place, 0) + amount
    made_of = {
        "nodes": count,
        "key": nodes.key_property,
        "relations": [[*place, amount] for place, amount in sorted(signatures.items())],
        "edge_attributes": _edge_attributes(server, sorted({relation for relation, *_ in signatures})),
    }
    return Tables(nodes.pieces, (), notes=(json.dumps(made_of),))


def made_of(described: StoredKnowledgeBase) -> Mapping[str, Any]:
    """Return the note of a description."""
    [note] = described.notes
    noted: Mapping[str, Any] = parse_json(note)
    return noted


class CypherKnowledgeBase(RemoteKnowledgeBase):
    """The graph of a server: its current edges between the nodes that were read."""

    query_language = "cypher"

    def __init__(self, server: BoltServer, describe: Callable[[], StoredKnowledgeBase | None]) -> None:
        """Initialise. `describe` returns the result of `read_description` and is called on demand."""
        super().__init__(str(server.address), BATCH, describe)
        self.server, self.place = server, server.address.url
        self._properties: dict[tuple[int, int, int], list[Mapping[str, Any]]] = {}

    @cached_property
    def schema(self) -> Schema:
        """Labels, relationship types and properties at the time the nodes were read."""
        own, noted = self._description.schema, made_of(self._description)
        relations = with_hierarchies(Relation(*row) for row in noted["relations"])
        return Schema(own.node_types, relations, own.attribute_types, dict(noted["edge_attributes"]))

    @property
    def key_property(self) -> str | None:
        """The property with the keys. None if element ids identify nodes."""
        name: str | None = made_of(self._description)["key"]
        return name

    @cached_property
    def ids_by_handle(self) -> Mapping[str, int]:
        """Ids of nodes by their keys if a property holds these, else by the ids of their elements."""
        if self.key_property is None:
            return self._nodes.ids
        return {key: node for node, key in enumerate(self._description.column("key"))}

    def is_label(self, kind: str) -> bool:
        """Whether a type is the only label of its nodes."""
        return kind != UNTYPED and LABELS not in self._description.schema.attribute_types

    def elements(self, nodes: NodeSet) -> list[str]:
        """Return the element ids of nodes."""
        return [self._term(node) for node in nodes]

    def _handles(self, described: StoredKnowledgeBase) -> Iterable[str]:
        return described.column(ELEMENT)

    # Edges, in Cypher

    def _ends(
        self, nodes: NodeSet, relation: str | None, side: Direction, others: NodeSet | None
    ) -> Iterator[tuple[int, int, int]]:
        among = "" if others is None else " WHERE elementId(o) IN $others"
        held = ", properties(r)" if self.schema.edge_attributes else ""
        far = None if others is None else self.elements(others)
        ids, codes = self._nodes.ids, self.schema.relation_code
        carried: dict[tuple[int, int, int], list[Mapping[str, Any]]] = {}
        for rows in self._portions(nodes, side, relation, f"{among} RETURN i, type(r), elementId(o){held}", far):
            for start, kind, end, *properties in rows:
                code, other = codes.get(kind), ids.get(end)
                if code is None or other is None:  # added after the nodes were read
                    continue
                near = ids[start]
                yield near, code, other
                place = (near, code, other) if side == "out" else (other, code, near)
                carried.setdefault(place, []).extend(properties)
        if held:
            self._properties |= {place: self._in_order(rows) for place, rows in carried.items()}

    def _reached(self, nodes: NodeSet, relation: str | None, side: Direction) -> Iterator[int]:
        for rows in self._portions(nodes, side, relation, " RETURN DISTINCT elementId(o)"):
            yield from (self._nodes.ids[end] for [end] in rows if end in self._nodes.ids)

    def _counted(self, nodes: NodeSet, side: Direction) -> Iterator[tuple[str, int]]:
        for rows in self._portions(nodes, side, None, " RETURN type(r), count(r)"):
            yield from ((kind, count) for kind, count in rows if kind in self.schema.relation_code)

    def _counted_each(self, nodes: NodeSet, side: Direction) -> Iterator[tuple[int, int]]:
        for rows in self._portions(nodes, side, None, " RETURN i, count(r)"):
            yield from ((self._nodes.ids[start], count) for start, count in rows)

    def _portions(
        self, nodes: NodeSet, side: Direction, relation: str | None, rest: str, others: list[str] | None = None
    ) -> Iterator[list[Record]]:
        """Yield the results in portions. Elements are matched one by one, since databases scan all nodes for a list."""
        if relation is not None:
            self.schema.relation_rows(relation)  # raises an error for an unknown relation
        kind = "" if relation is None else f":{quoted(relation)}"
        edge = f"(s)-[r{kind}]->(o)" if side == "out" else f"(s)<-[r{kind}]-(o)"
        query = f"UNWIND $nodes AS i MATCH (s) WHERE elementId(s) = i MATCH {edge}{rest}"
        for portion in pages_of(self.elements(nodes), self.batch):
            yield self.server.rows(query, nodes=portion, others=others)

    def _carried(self, head: int, code: int, tail: int) -> Sequence[Mapping[str, Any]]:
        known = self._properties.get((head, code, tail))
        if known is None:  # no properties were read: count parallel edges by the outgoing edges
            leaving = self._around(NodeSet.of([head]), self.schema.relation_names[code], "out")[head]
            return (NOTHING,) * leaving.count((code, tail))
        return known

    def _in_order(self, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Sort parallel edges by their properties, as in a built base."""
        names = self.schema.edge_attributes
        plain = [{name: plain_value(row[name]) for name in names if row.get(name) is not None} for row in rows]
        return sorted(
            plain, key=lambda row: [(name not in row, str(type(row.get(name))), row.get(name)) for name in names]
        )


def _edge_attributes(server: BoltServer, relations: Iterable[str]) -> dict[str, str]:
    """Infer the properties of edges with their types from a sample of every relation."""
    rows: list[Record] = []
    for relation in relations:
        query = f"MATCH ()-[r:{quoted(relation)}]->() RETURN properties(r) LIMIT {SAMPLED}"
        rows += [["", relation, "", held] for [held] in server.rows(query)]
    if not rows:
        return {}
    table = edge_piece(rows, {"": "-"}, str(server.address), SourceOptions()).table
    return {field.name: kind_of(field.type) for field in table.schema if field.name not in EDGE_COLUMNS}
