"""A knowledge base in a remote store, whose edges are requested on demand with bounded queries.

A store has its own handles for nodes: IRIs or element ids. They become node ids when first seen. If the nodes were
read, their description is local (`described`), and only edges are requested. Edges of few nodes are cached, so that
evidence needs no further queries. `sparql.py` and `cypher.py` implement the queries in the language of a store.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import NotFoundError
from clew.core.schema import NodeType, Relation, Schema, with_hierarchies
from clew.core.trace import recording
from clew.core.types import EMPTY, Direction, IntArray, Node, NodeRef, NodeSet, RelationUse, Triple
from clew.store.graph import render
from clew.store.graph.protocol import Edges, KnowledgeBase, StoredKnowledgeBase

MOST_KEPT = 1_000_000
"""Maximum number of cached edges."""
Ends = list[tuple[int, int]]
"""The edges of a node on one side: relation code and other end, sorted."""
NOTHING: Mapping[str, Any] = {}


@dataclass
class Interned:
    """Bidirectional map of texts and ids, such as the handles of nodes, that grows as they are seen."""

    terms: list[str] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def id(self, term: str) -> int:
        """Return the id of a handle. Assign a new id if needed."""
        found = self.ids.get(term)
        if found is None:
            with self.lock:
                found = self.ids.setdefault(term, len(self.terms))
                if found == len(self.terms):
                    self.terms.append(term)
        return found


class RemoteKnowledgeBase(KnowledgeBase):
    """Common part of bases in SPARQL endpoints and graph databases."""

    place: str
    """Address to open this base again. It may contain a password."""

    def __init__(self, address: str, batch: int, describe: Callable[[], StoredKnowledgeBase | None]) -> None:
        """Initialise.

        `address` may be shown, `batch` is the number of nodes per query, `describe` is called on demand.
        """
        self.address, self.batch, self._describe = address, batch, describe
        self._kept: dict[tuple[str | None, Direction, int], Ends] = {}
        self._kept_edges = 0
        self._degrees: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r})"

    @cached_property
    def described(self) -> StoredKnowledgeBase | None:
        """The nodes without edges, if they were read, with the same ids."""
        return self._describe()

    @cached_property
    def _nodes(self) -> Interned:
        nodes = Interned()
        for handle in () if self.described is None else self._handles(self.described):
            nodes.id(handle)
        return nodes

    # What a store is asked, in its language

    @abstractmethod
    def _handles(self, described: StoredKnowledgeBase) -> Iterable[str]:
        """Return the store's handle of each node that was read."""

    @abstractmethod
    def _ends(
        self, nodes: NodeSet, relation: str | None, side: Direction, others: NodeSet | None
    ) -> Iterable[tuple[int, int, int]]:
        """Return the edges of nodes on one side as node, relation code and other end, optionally only to `others`."""

    def _reached(self, nodes: NodeSet, relation: str | None, side: Direction) -> Iterable[int]:
        """Return only the other ends."""
        return (other for _, _, other in self._ends(nodes, relation, side, None))

    def _counted(self, nodes: NodeSet, side: Direction) -> Iterable[tuple[str, int]]:
        """Count the edges of all nodes on one side by relation. A relation may occur several times."""
        names = self.schema.relation_names
        return ((names[code], 1) for ends in self._around(nodes, None, side).values() for code, _ in ends)

    def _counted_each(self, nodes: NodeSet, side: Direction) -> Iterable[tuple[int, int]]:
        """Count the edges of each node on one side. A node may occur several times."""
        return ((node, len(ends)) for node, ends in self._around(nodes, None, side).items())

    def _carried(self, head: int, code: int, tail: int) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - RDF has none
        """Return the attributes of each parallel edge between two nodes, if these edges were read."""
        return (NOTHING,)

    # Nodes, from the description

    def node(self, node: int) -> Node:
        """Return name, type, description and attributes of a node."""
        return self._description.node(node)

    def refs(self, nodes: Sequence[int] | IntArray) -> list[NodeRef]:
        """Return key, name and type of nodes, in the given order."""
        return self._description.refs(nodes)

    def find(self, key: str) -> int:
        """Return the id of the node with this key."""
        return self._description.find(key)

    def nodes(self, type: str | None = None) -> NodeSet:
        """Return all nodes that were read, or the nodes of one type."""
        return self._description.nodes(type)

    def values(self, nodes: NodeSet, attribute: str) -> Sequence[Any]:
        """Return an attribute of nodes, with None for nodes without it."""
        return self._description.values(nodes, attribute)

    def text(self, node: int, *, relations: bool = False) -> str:
        """Return name, type and description, and optionally the relations."""
        if self._is_described(node):
            lines = self._description.text(node)
        else:
            shown = self.node(node)
            lines = render.document(shown, NodeType(shown.type, 0))
        if not relations:
            return lines
        groups: dict[str, dict[str, list[str]]] = {}
        totals: dict[tuple[str, str], int] = {}
        for triple in self.triples(node):
            other = self.refs([triple.tail if triple.head == node else triple.head])[0]
            label = triple.relation if triple.head == node else f"{triple.relation} (of)"
            groups.setdefault(label, {}).setdefault(other.type, []).append(other.name)
            totals[label, other.type] = totals.get((label, other.type), 0) + 1
        return render.SEPARATOR.join([lines, *render.relation_lines(groups, totals)])

    @property
    def _description(self) -> StoredKnowledgeBase:
        assert self.described is not None
        return self.described

    def _is_described(self, node: int) -> bool:
        return self.described is not None and 0 <= node < self.described.count

    def _term(self, node: int) -> str:
        if not 0 <= node < len(self._nodes.terms):
            raise NotFoundError(f"no node {node} has been seen at {self.address}")
        return self._nodes.terms[node]

    # Edges

    def neighbors(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> NodeSet:
        """Return the nodes one edge away."""
        found = EMPTY
        for side in sides(direction):
            if len(nodes) <= self.batch:
                around = self._around(nodes, relation, side)
                found = found | NodeSet.of([other for ends in around.values() for _, other in ends])
            else:
                found = found | NodeSet.of(list(self._reached(nodes, relation, side)))
        return found

    def relations(self, nodes: NodeSet) -> list[RelationUse]:
        """Count the outgoing and incoming relations of these nodes, in schema order."""
        counts: dict[tuple[str, Direction], int] = {}
        for side in sides("any"):
            for name, count in self._counted(nodes, side):
                counts[name, side] = counts.get((name, side), 0) + count
        order = self.schema.relation_code
        uses = [RelationUse(name, side, count) for (name, side), count in counts.items()]
        return sorted(uses, key=lambda use: (order[use.relation], use.direction != "out"))

    def degrees(self, nodes: IntArray) -> NDArray[np.int64]:
        """Return the number of edges of each node in both directions, counted by the store and cached."""
        wanted = [int(node) for node in nodes]
        unknown = NodeSet.of([node for node in wanted if node not in self._degrees])
        found = dict.fromkeys(unknown, 0)
        for side in sides("any"):
            for node, count in self._counted_each(unknown, side):
                found[node] += count
        self._degrees |= found
        return np.array([self._degrees[node] for node in wanted], dtype=np.int64)

    def edges(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> Edges:
        """Return the edges that leave, enter or touch these nodes. "any" returns each edge once."""
        return self._edges(nodes, relation, direction, None)

    def edges_to(self, nodes: NodeSet, others: NodeSet, relation: str | None, direction: Direction) -> Edges:
        """Return the edges of `nodes` to `others`. Only these are requested if `others` are few."""
        return self._edges(nodes, relation, direction, others if len(others) <= self.batch else None)

    def _edges(self, nodes: NodeSet, relation: str | None, direction: Direction, others: NodeSet | None) -> Edges:
        found: list[tuple[int, int, int]] = []
        for side in sides(direction):
            for near, ends in self._around(nodes, relation, side, others).items():
                for code, far in ends:
                    if direction == "any" and side == "in" and far in nodes:
                        continue  # it is an outgoing edge of another node
                    head, tail = (near, far) if side == "out" else (far, near)
                    found.append((head, code, tail))
        table = np.array(found, dtype=np.int32).reshape(-1, 3)
        return Edges(table[:, 0], table[:, 1], table[:, 2])

    def triples(self, node: int) -> list[Triple]:
        """Return every edge of a node with its attributes, outgoing edges first."""
        names = self.schema.relation_names
        repeats: dict[tuple[int, int, int], int] = {}
        found = []
        for edge in each(self.edges(NodeSet.of([node]), None, "any")):
            head, code, tail = edge
            nth = repeats[edge] = repeats.get(edge, -1) + 1
            found.append(Triple(head, names[code], tail, self._carried(*edge)[nth]))
        return found

    def edge_attributes(self, head: int, relation: str, tail: int) -> list[Mapping[str, Any]]:
        """Return the attributes of each parallel edge. Empty if there is no such edge."""
        code = self.schema.relation_code.get(relation, -1)
        known = self._kept.get((relation, "in", tail))
        if known is None:
            leaving = self._around(NodeSet.of([head]), relation, "out")[head]
            is_there = any(other == tail for _, other in leaving)
        else:
            is_there = any(other == head for _, other in known)
        return list(self._carried(head, code, tail)) if is_there else []

    def _around(
        self, nodes: NodeSet, relation: str | None, side: Direction, others: NodeSet | None = None
    ) -> dict[int, Ends]:
        """Return the edges of each node on one side, optionally only to `others`. Cached edges are not requested."""
        known = {node: ends for node in nodes if (ends := self._kept.get((relation, side, node))) is not None}
        unknown = NodeSet.of([node for node in nodes if node not in known])
        found: dict[int, Ends] = {node: [] for node in unknown}
        for near, code, far in self._ends(unknown, relation, side, others) if len(unknown) else ():
            found[near].append((code, far))
        fresh = {node: sorted(ends) for node, ends in found.items()}
        if others is None:
            self._keep(relation, side, fresh)
        return {node: known[node] if node in known else fresh[node] for node in nodes}

    def _keep(self, relation: str | None, side: Direction, fresh: Mapping[int, Ends]) -> None:
        self._kept_edges += sum(map(len, fresh.values())) + len(fresh)
        if self._kept_edges > MOST_KEPT:
            self._kept, self._kept_edges = {}, 0
            return
        self._kept |= {(relation, side, node): ends for node, ends in fresh.items()}


class PartOfGraph(RemoteKnowledgeBase):
    """The part of a graph that a user may see: the described nodes and the edges between them.

    All other nodes are invisible to edges, paths and counts. So the store must not join or count, and its queries are
    not traced, since numbers of rows would reveal hidden nodes.
    """

    def __init__(self, whole: RemoteKnowledgeBase) -> None:
        """Initialise from the whole graph, whose description contains the nodes of the part."""
        super().__init__(whole.address, whole.batch, lambda: whole.described)
        self.whole, self.place = whole, whole.place

    @cached_property
    def schema(self) -> Schema:
        """Relations with the edge counts of the part, for which all its edges are read once."""
        edges = self._within(self.nodes(), None, "out", None)
        names, types, kinds = self.whole.schema.relation_names, self._description.types, self._description.schema
        counts = Counter(
            (names[code], kinds.type_names[types[head]], kinds.type_names[types[tail]]) for head, code, tail in edges
        )
        marked = with_hierarchies(Relation(*row, count) for row, count in counts.items())
        relations = sorted(marked, key=lambda row: (row.name, row.head, row.tail))
        carried = {name for edge in edges for held in self.whole._carried(*edge) for name in held}
        told = {name: kind for name, kind in self.whole.schema.edge_attributes.items() if name in carried}
        return Schema(kinds.node_types, tuple(relations), kinds.attribute_types, told)

    def _handles(self, described: StoredKnowledgeBase) -> Iterable[str]:
        return self.whole._handles(described)

    def _ends(
        self, nodes: NodeSet, relation: str | None, side: Direction, others: NodeSet | None
    ) -> Iterator[tuple[int, int, int]]:
        if relation is not None:
            self.schema.relation_rows(relation)  # raises an error for an unknown relation
        names, codes = self.whole.schema.relation_names, self.schema.relation_code
        for near, code, far in self._within(nodes, relation, side, others):
            yield near, codes[names[code]], far

    def _within(
        self, nodes: NodeSet, relation: str | None, side: Direction, others: NodeSet | None
    ) -> list[tuple[int, int, int]]:
        count = self._description.count
        with recording():
            return [edge for edge in self.whole._ends(nodes, relation, side, others) if edge[2] < count]

    def _carried(self, head: int, code: int, tail: int) -> Sequence[Mapping[str, Any]]:
        with recording():
            return self.whole._carried(head, self.whole.schema.relation_code[self.schema.relation_names[code]], tail)


def sides(direction: Direction) -> tuple[Direction, ...]:
    """Return the sides of a direction."""
    return ("out", "in") if direction == "any" else (direction,)


def each(edges: Edges) -> Iterator[tuple[int, int, int]]:
    """Yield head, relation code and tail of every edge."""
    return zip(edges.heads.tolist(), edges.relations.tolist(), edges.tails.tolist(), strict=True)
