"""The knowledge base as every layer above sees it: read-only, thread-safe, local or remote.

One that Clew has built and keeps, as arrays on disk or in a database, also knows all its types, texts and degrees, so
that every method works.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.core.errors import NotFoundError
from clew.core.schema import Schema
from clew.core.types import Direction, IntArray, Node, NodeRef, NodeSet, RelationUse, Triple
from clew.store.graph import render
from clew.store.graph.manifest import read_facts
from clew.store.graph.tables import Tables, Visibility

Way = tuple[NodeSet, Sequence[tuple[str, Direction, str | None]]]
"""Where to start, and the steps from there: a relation, its direction, and the type that the step has to lead to."""


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Edges as parallel arrays in their stored direction; `relations` holds relation codes."""

    heads: IntArray
    relations: IntArray
    tails: IntArray
    rows: NDArray[np.int64] | None = None
    """Where the base has the attributes of each edge, if it knows without a search."""

    def __len__(self) -> int:
        return len(self.heads)


class Linked(Protocol):
    """Nodes that are joined by edges."""

    def neighbors(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> NodeSet:
        """The nodes one edge away; relation None means any relation."""
        ...

    def closure(self, nodes: NodeSet, relation: str, direction: Direction) -> NodeSet:
        """Everything that is reached by following a relation any number of times, the nodes themselves included."""
        reached = frontier = nodes
        while len(frontier):
            frontier = self.neighbors(frontier, relation, direction) - reached
            reached = reached | frontier
        return reached


class Explorable(Linked, Protocol):
    """The part of a knowledge base that reading a question needs; a table has it, too."""

    @property
    def schema(self) -> Schema:
        """Node types, relations, answer types."""
        ...

    @property
    def described(self) -> StoredKnowledgeBase | None:
        """What knows the types, texts and attributes of all nodes: itself, or what was read of a remote base."""
        ...

    def nodes(self, type: str | None = None) -> NodeSet:
        """All nodes, or those of one type."""
        ...

    def refs(self, nodes: Sequence[int] | IntArray) -> list[NodeRef]:
        """Key, name and type of many nodes, in the given order."""
        ...

    def values(self, nodes: NodeSet, attribute: str) -> Sequence[Any]:
        """An attribute of many nodes, None where a node has none."""
        ...

    def relations(self, nodes: NodeSet) -> Sequence[RelationUse]:
        """Which relations leave and enter these nodes, with counts, in schema order."""
        ...


class KnowledgeBase(Explorable, Protocol):
    """A graph whose nodes carry text; node ids are dense integers, keys are the user's."""

    query_language: ClassVar[Literal["sparql", "cypher", "sql"] | None] = None
    """Language of whole queries that its database carries out. None means that it is asked edge by edge."""

    def node(self, node: int) -> Node:
        """Everything stored about one node."""
        ...

    def find(self, key: str) -> int:
        """The id of the node with this key; raises NotFoundError."""
        ...

    def ids(self, keys: Sequence[str]) -> list[int]:
        """Return the ids of the keys that the base has."""
        found = []
        for key in keys:
            with suppress(NotFoundError):
                found.append(self.find(key))
        return found

    def edges(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> Edges:
        """The edges that leave ("out"), enter ("in") or touch ("any", each once) these nodes, parallel edges kept."""
        ...

    def edges_to(self, nodes: NodeSet, others: NodeSet, relation: str | None, direction: Direction) -> Edges:  # noqa: ARG002 - where reading all costs no more
        """The edges of nodes, those to others among them; a remote base is asked for no more than these."""
        return self.edges(nodes, relation, direction)

    def degrees(self, nodes: IntArray) -> NDArray[np.int64]:
        """The number of edges of each node, both directions together."""
        ...

    def edge_attributes(self, head: int, relation: str, tail: int) -> Sequence[Mapping[str, Any]]:
        """The attributes of every parallel edge head —relation→ tail; empty where there is no such edge."""
        ...

    def raw_values(self, nodes: NodeSet, attribute: str) -> Sequence[Any] | pa.Array:
        """An attribute of many nodes, or their `name`, `key` or `type`. Bases with columns give an Arrow array."""
        if attribute in ("name", "key", "type"):
            return [getattr(ref, attribute) for ref in self.refs(nodes.array)]
        return self.values(nodes, attribute)

    def edge_values(self, edges: Edges, numbers: NDArray[np.int64], attribute: str) -> Sequence[Any] | pa.Array:
        """An attribute of many edges, None where an edge has none; `numbers` tells parallel edges apart, from 0."""
        names = self.schema.relation_names
        rows = zip(edges.heads.tolist(), edges.relations.tolist(), edges.tails.tolist(), numbers.tolist(), strict=True)
        return [
            self.edge_attributes(head, names[code], tail)[number].get(attribute) for head, code, tail, number in rows
        ]

    def triples(self, node: int) -> Sequence[Triple]:
        """Every edge of one node with its attributes, outgoing first."""
        ...

    def text(self, node: int, *, relations: bool = False) -> str:
        """The node's document, rendered by the schema, with or without its relations."""
        ...


@runtime_checkable
class Joining(Protocol):
    """A base that is far away, where every step costs a reply, and joins by itself."""

    def meet(self, ways: Iterable[Way], avoided: Iterable[Way] = ()) -> bool:
        """Whether some node lies at the end of all these ways, and of none to be avoided."""
        ...


class StoredKnowledgeBase(KnowledgeBase):
    """What the embedded base and the one in PostgreSQL have in common; ids follow the order of the keys."""

    types: IntArray
    """The type code of every node."""

    def __init__(self, facts: Mapping[str, Any], place: object) -> None:
        """`facts` are what was noted when it was built; they are checked."""
        graph = read_facts(facts, place)
        self.facts, self._schema, self.count, self.edge_count = facts, graph.schema, graph.nodes, graph.edges

    @property
    def schema(self) -> Schema:
        """Node types, relations, answer types."""
        return self._schema

    @property
    @abstractmethod
    def identity(self) -> str:
        """What tells the content of this base from any other."""

    @property
    def groups(self) -> frozenset[str]:
        """Every group that some node or edge is for; empty where everybody may see everything."""
        return frozenset(self.facts.get("groups", ()))

    @property
    def restrictions(self) -> str:
        """Fingerprint of who may see what. A base of an earlier version has one for each of its states."""
        return str(self.facts.get("restrictions", self.identity))

    @property
    def visibility(self) -> Visibility:
        """How the base tells which groups a row is for."""
        return Visibility.from_facts(self.facts)

    @property
    def language(self) -> str:
        """What most of its texts are written in; bases of earlier versions are indexed as English."""
        return str(self.facts.get("language", "en"))

    @property
    def notes(self) -> tuple[str, ...]:
        """What its sources say about themselves."""
        return tuple(self.facts["notes"])

    @abstractmethod
    def distinct(self, attribute: str) -> Sequence[Any]:
        """Every value of an attribute once, in no order; a base in a database gives the first thousand alone."""

    @cached_property
    def has_texts(self) -> bool:
        """Whether anything is written about any node."""
        return self.written_share() > 0

    @abstractmethod
    def written_share(self, type: str | None = None) -> float:
        """The share of the nodes of a type, or of all, about which something is written."""

    @abstractmethod
    def named_like(self, pattern: str) -> NodeSet:
        """The nodes whose whole name matches a regular expression."""

    @abstractmethod
    def columns(self) -> pa.RecordBatch:
        """The stored columns of all nodes."""

    def column(self, name: str) -> Sequence[Any]:
        """One stored column of all nodes, such as their keys; None where a node has nothing there."""
        return self.values(self.nodes(), name)

    @abstractmethod
    def _edges(self, nodes: NodeSet, relation: str | None, side: Literal["out", "in"]) -> Edges:
        """The edges that leave, or enter, these nodes."""

    def edge_numbers(self, edges: Edges, attribute: str) -> NDArray[np.float64]:
        """A numeric attribute of many edges, nan where one has none; parallel edges share the first one's."""
        first = replace(edges, rows=None)
        values = self.edge_values(first, np.zeros(len(edges), np.int64), attribute)
        if isinstance(values, pa.Array):
            values = values.to_numpy(zero_copy_only=False)
        return np.array(values, np.float64)  # None becomes nan

    @abstractmethod
    def to_tables(self) -> Tables:
        """The sources this base could be built from again."""

    @property
    def described(self) -> StoredKnowledgeBase:
        """It knows all its nodes."""
        return self

    def nodes(self, type: str | None = None) -> NodeSet:
        """All nodes, or those of one type."""
        if type is None:
            return NodeSet.range(self.count)
        self.schema.node_type(type)
        code = self.schema.type_code[type]
        return NodeSet(self._by_type[self._type_starts[code] : self._type_starts[code + 1]])

    @cached_property
    def _by_type(self) -> IntArray:
        """All nodes, those of each type together."""
        return np.argsort(self.types, kind="stable").astype(np.int32)

    @cached_property
    def _type_starts(self) -> NDArray[np.int64]:
        return np.append(0, np.cumsum([node_type.count for node_type in self.schema.node_types]))

    def edges(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> Edges:
        """The edges that leave, enter or touch these nodes; "any" gives each edge once."""
        if direction != "any":
            return self._edges(nodes, relation, direction)
        leaving, entering = self._edges(nodes, relation, "out"), self._edges(nodes, relation, "in")
        outside = ~nodes.holds(entering.heads)  # edges between two of the nodes leave one of them already
        return Edges(
            np.concatenate((leaving.heads, entering.heads[outside])),
            np.concatenate((leaving.relations, entering.relations[outside])),
            np.concatenate((leaving.tails, entering.tails[outside])),
        )

    def __len__(self) -> int:
        return self.count

    def type_of(self, node: int) -> str:
        """The type of one node."""
        return self.schema.type_names[int(self.types[node])]

    def text(self, node: int, *, relations: bool = False) -> str:
        """The node's document, rendered by the schema."""
        content = self.node(node)
        text = render.document(content, self.schema.node_type(content.type))
        return render.SEPARATOR.join([text, *self._relation_lines(node)]) if relations else text

    def _relation_lines(self, node: int) -> list[str]:
        shown: dict[str, dict[str, list[str]]] = {}
        totals: dict[tuple[str, str], int] = {}
        one = NodeSet(np.array([node], dtype=np.int32))
        for use in self.relations(one):
            rows = self.schema.relation_rows(use.relation)
            label = rows[0].label if use.direction == "out" else rows[0].inverse or f"{rows[0].label} (of)"
            others = self.neighbors(one, use.relation, use.direction)
            for code in np.unique(self.types[others.array]).tolist():
                same = others.array[self.types[others.array] == code]
                kind = self.schema.node_types[code].label
                shown.setdefault(label, {})[kind] = [ref.name for ref in self.refs(same[: render.MOST_LISTED])]
                totals[label, kind] = len(same)
        return list(render.relation_lines(shown, totals))

    def _code(self, relation: str) -> int:
        code = self.schema.relation_code.get(relation)
        return self.schema.relation_code[self.schema.relation_rows(relation)[0].name] if code is None else code

    def _check(self, node: int) -> None:
        if not 0 <= node < self.count:
            raise NotFoundError(f"no node {node}: ids go from 0 to {self.count - 1}")
