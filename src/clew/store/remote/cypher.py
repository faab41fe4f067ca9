"""A knowledge base in a graph database that speaks Bolt and openCypher: its nodes are read once, its edges stay there.

What is read of the nodes (`sources/bolt.py`) is kept in a small base, which also notes the relations with their counts.
Values travel as parameters; relationship types, which cannot, are quoted.
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
"""Graphs with more nodes are not read for being asked where they are."""
SAMPLED = 1_000
"""Edges of each relation whose properties are looked at."""
BATCH = 1_000
"""Nodes asked for at once."""
SIGNATURES = "MATCH (a)-[r]->(b) RETURN labels(a), type(r), labels(b), count(*)"


def count_nodes(server: BoltServer) -> int:
    """How many nodes there are now."""
    [[count]] = server.rows("MATCH (n) RETURN count(n)")
    return int(count)


def read_description(server: BoltServer, *, however_many: bool = False) -> Tables:
    """What describes the nodes of a graph, and as a note, what it is made of."""
    count = count_nodes(server)
    if count > MOST_READ and not however_many:
        raise InputError(
            f"{server.address} has {count:,} nodes, and up to {MOST_READ:,} are read to be asked where they are: "
            f"`clew build {server.address} -o BASE.kb` makes a base of it, with --nodes-only one of its texts"
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
    """The note of such a base."""
    [note] = described.notes
    noted: Mapping[str, Any] = parse_json(note)
    return noted


class CypherKnowledgeBase(RemoteKnowledgeBase):
    """The graph of a server; edges are those of this moment between the nodes that were read."""

    query_language = "cypher"

    def __init__(self, server: BoltServer, describe: Callable[[], StoredKnowledgeBase | None]) -> None:
        """`describe` gives what `read_description` has read; it is called when first needed."""
        super().__init__(str(server.address), BATCH, describe)
        self.server, self.place = server, server.address.url
        self._properties: dict[tuple[int, int, int], list[Mapping[str, Any]]] = {}

    @cached_property
    def schema(self) -> Schema:
        """Labels, relationship types and properties, as they were when the nodes were read."""
        own, noted = self._description.schema, made_of(self._description)
        relations = with_hierarchies(Relation(*row) for row in noted["relations"])
        return Schema(own.node_types, relations, own.attribute_types, dict(noted["edge_attributes"]))

    @property
    def key_property(self) -> str | None:
        """The property that holds the keys as they are; None where the ids of elements tell nodes apart."""
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
        """The ids of the elements that nodes are."""
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
                if code is None or other is None:  # it came after the nodes were read
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
        """An element is looked up by its id one by one: databases scan all nodes for those of a list."""
        if relation is not None:
            self.schema.relation_rows(relation)  # an unknown one is said to be
        kind = "" if relation is None else f":{quoted(relation)}"
        edge = f"(s)-[r{kind}]->(o)" if side == "out" else f"(s)<-[r{kind}]-(o)"
        query = f"UNWIND $nodes AS i MATCH (s) WHERE elementId(s) = i MATCH {edge}{rest}"
        for portion in pages_of(self.elements(nodes), self.batch):
            yield self.server.rows(query, nodes=portion, others=others)

    def _carried(self, head: int, code: int, tail: int) -> Sequence[Mapping[str, Any]]:
        known = self._properties.get((head, code, tail))
        if known is None:  # edges carry nothing here; the count of parallel ones is told by those that leave
            leaving = self._around(NodeSet.of([head]), self.schema.relation_names[code], "out")[head]
            return (NOTHING,) * leaving.count((code, tail))
        return known

    def _in_order(self, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Parallel edges by what they carry, as a base that is built has them."""
        names = self.schema.edge_attributes
        plain = [{name: plain_value(row[name]) for name in names if row.get(name) is not None} for row in rows]
        return sorted(
            plain, key=lambda row: [(name not in row, str(type(row.get(name))), row.get(name)) for name in names]
        )


def _edge_attributes(server: BoltServer, relations: Iterable[str]) -> dict[str, str]:
    """The properties of edges with their kinds, as some edges of every relation show them."""
    rows: list[Record] = []
    for relation in relations:
        query = f"MATCH ()-[r:{quoted(relation)}]->() RETURN properties(r) LIMIT {SAMPLED}"
        rows += [["", relation, "", held] for [held] in server.rows(query)]
    if not rows:
        return {}
    table = edge_piece(rows, {"": "-"}, str(server.address), SourceOptions()).table
    return {field.name: kind_of(field.type) for field in table.schema if field.name not in EDGE_COLUMNS}
