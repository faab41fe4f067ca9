"""Knowledge base protocols: read-only, thread-safe, local or remote.

A base stored by Clew on disk or in a database also knows all its types, texts and degrees, which all methods need.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeGuard

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.core.errors import NotFoundError
from clew.core.schema import Schema
from clew.core.types import Direction, IntArray, Node, NodeRef, NodeSet, RelationUse, Triple
from clew.store.graph import render
from clew.store.graph.manifest import read_facts
from clew.store.graph.tables import Tables, Visibility

if TYPE_CHECKING:  # all of them import this module
    from clew.store.graph.arrays import ArrayKnowledgeBase
    from clew.store.remote.cypher import CypherKnowledgeBase
    from clew.store.remote.sparql import SparqlKnowledgeBase

Way = tuple[NodeSet, Sequence[tuple[str, Direction, str | None]]]
"""Start nodes, and the steps from there: a relation, its direction, and the required type of the reached node."""


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Edges as parallel arrays in their stored direction. `relations` has relation codes."""

    heads: IntArray
    relations: IntArray
    tails: IntArray
    rows: NDArray[np.int64] | None = None
    """Where the base has the attributes of each edge, if it knows without a search."""

    def __len__(self) -> int:
        return len(self.heads)


class Linked(Protocol):
    """Nodes connected by edges."""

    def neighbors(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> NodeSet:
        """Return the nodes one edge away. None means any relation."""

    def closure(self, nodes: NodeSet, relation: str, direction: Direction) -> NodeSet:
        """Return all nodes reached by following a relation any number of times, including the start nodes."""
        reached = frontier = nodes
        while len(frontier):
            frontier = self.neighbors(frontier, relation, direction) - reached
            reached = reached | frontier
        return reached


class Explorable(Linked, Protocol):
    """The part of a knowledge base that parsing a question needs."""

    query_language: ClassVar[Literal["sparql", "cypher", "sql"] | None] = None
    """Language of whole queries that its database carries out. None means that it is asked edge by edge."""
    folder: Path | None = None
    """Folder with its files and with what it was taught. None if it is in a database or behind an endpoint."""

    @property
    def schema(self) -> Schema:
        """Node types, relations, answer types."""

    @property
    def described(self) -> StoredKnowledgeBase | None:
        """Base with the types, texts and attributes of all nodes: itself, or the cached nodes of a remote base.

        None if a remote base is too large to read.
        """

    def nodes(self, type: str | None = None) -> NodeSet:
        """Return all nodes, or the nodes of one type."""

    def refs(self, nodes: Sequence[int] | IntArray) -> list[NodeRef]:
        """Return key, name and type of nodes, in the given order."""

    def values(self, nodes: NodeSet, attribute: str) -> Sequence[Any]:
        """Return an attribute of nodes, with None for nodes without it."""

    def relations(self, nodes: NodeSet) -> Sequence[RelationUse]:
        """Count the outgoing and incoming relations of these nodes, in schema order."""


class KnowledgeBase(Explorable, Protocol):
    """A graph whose nodes have text. Node ids are dense integers, and keys come from the user."""

    @property
    def stored(self) -> StoredKnowledgeBase | None:
        """This base if Clew stores it, in a folder or a database. None if it is remote."""
        return None

    @property
    def arrays(self) -> ArrayKnowledgeBase | None:
        """This base if it is in a folder."""
        return None

    def node(self, node: int) -> Node:
        """Return everything stored about a node."""

    def find(self, key: str) -> int:
        """Return the id of the node with this key. Raise NotFoundError if there is none."""

    def ids(self, keys: Sequence[str]) -> list[int]:
        """Return the ids of the keys that the base has."""
        found = []
        for key in keys:
            with suppress(NotFoundError):
                found.append(self.find(key))
        return found

    def edges(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> Edges:
        """Return the edges that leave ("out"), enter ("in") or touch ("any") these nodes, with parallel edges."""

    def edges_to(self, nodes: NodeSet, others: NodeSet, relation: str | None, direction: Direction) -> Edges:  # noqa: ARG002 - where reading all costs no more
        """Return at least the edges of `nodes` to `others`. Remote bases request only these."""
        return self.edges(nodes, relation, direction)

    def degrees(self, nodes: IntArray) -> NDArray[np.int64]:
        """Return the number of edges of each node in both directions."""

    def edge_attributes(self, head: int, relation: str, tail: int) -> Sequence[Mapping[str, Any]]:
        """Return the attributes of every parallel edge head —relation→ tail. Empty if there is no such edge."""

    def raw_values(self, nodes: NodeSet, attribute: str) -> Sequence[Any] | pa.Array:
        """Return an attribute of nodes, or their name, key, type or text. Bases with columns return an Arrow array."""
        if attribute == "text":
            return [self.node(node).text for node in nodes]
        if attribute in ("name", "key", "type"):
            return [getattr(ref, attribute) for ref in self.refs(nodes.array)]
        return self.values(nodes, attribute)

    def edge_values(self, edges: Edges, numbers: NDArray[np.int64], attribute: str) -> Sequence[Any] | pa.Array:
        """Return an attribute of edges, with None for edges without it. `numbers` counts parallel edges from 0."""
        names = self.schema.relation_names
        rows = zip(edges.heads.tolist(), edges.relations.tolist(), edges.tails.tolist(), numbers.tolist(), strict=True)
        return [
            self.edge_attributes(head, names[code], tail)[number].get(attribute) for head, code, tail, number in rows
        ]

    def triples(self, node: int) -> Sequence[Triple]:
        """Return every edge of a node with its attributes, outgoing edges first."""

    def text(self, node: int, *, relations: bool = False) -> str:
        """Return the node's document, rendered by the schema, optionally with its relations."""


class StoredKnowledgeBase(KnowledgeBase):
    """Common part of the embedded base and the base in PostgreSQL. Ids follow the order of the keys."""

    types: IntArray
    """The type code of every node."""

    def __init__(self, facts: Mapping[str, Any], place: object) -> None:
        """Check and use the facts recorded by the build."""
        graph = read_facts(facts, place)
        self.facts, self._schema, self.count, self.edge_count = facts, graph.schema, graph.nodes, graph.edges

    @property
    def schema(self) -> Schema:
        """Node types, relations, answer types."""
        return self._schema

    @property
    @abstractmethod
    def identity(self) -> str:
        """Identifies the content of this base."""

    @property
    def groups(self) -> frozenset[str]:
        """All groups of nodes and edges. Empty if everything is public."""
        return frozenset(self.facts.get("groups", ()))

    @property
    def restrictions(self) -> str:
        """Fingerprint of the visibility of all content. Bases of earlier versions use their identity instead."""
        return str(self.facts.get("restrictions", self.identity))

    @property
    def visibility(self) -> Visibility:
        """How groups are assigned to rows."""
        return Visibility.from_facts(self.facts)

    @property
    def language(self) -> str:
        """Language of most texts. Bases of earlier versions are indexed as English."""
        return str(self.facts.get("language", "en"))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes from the sources."""
        return tuple(self.facts["notes"])

    @abstractmethod
    def distinct(self, attribute: str) -> Sequence[Any]:
        """Return every distinct value of an attribute, unordered. A database returns only the first thousand."""

    @cached_property
    def has_texts(self) -> bool:
        """Whether any node has a text."""
        return self.written_share() > 0

    @abstractmethod
    def written_share(self, type: str | None = None) -> float:
        """Return the share of nodes with text, of one type or of all nodes."""

    @abstractmethod
    def named_like(self, pattern: str) -> NodeSet:
        """Return the nodes whose whole name matches a regular expression."""

    @abstractmethod
    def columns(self) -> pa.RecordBatch:
        """Return the stored columns of all nodes."""

    def column(self, name: str) -> Sequence[Any]:
        """Return one stored column of all nodes, such as their keys, with None for missing values."""
        return self.values(self.nodes(), name)

    @abstractmethod
    def _edges(self, nodes: NodeSet, relation: str | None, side: Literal["out", "in"]) -> Edges:
        """Return the edges that leave or enter these nodes."""

    def edge_numbers(self, edges: Edges, attribute: str) -> NDArray[np.float64]:
        """Return a numeric attribute of edges, NaN if missing. Parallel edges share the value of the first edge."""
        first = replace(edges, rows=None)
        values = self.edge_values(first, np.zeros(len(edges), np.int64), attribute)
        if isinstance(values, pa.Array):
            values = values.to_numpy(zero_copy_only=False)
        return np.array(values, np.float64)  # None becomes nan

    @abstractmethod
    def to_tables(self) -> Tables:
        """Return sources from which this base could be built again."""

    @property
    def described(self) -> StoredKnowledgeBase:
        """This base, which knows all its nodes."""
        return self

    @property
    def stored(self) -> StoredKnowledgeBase:
        """This base."""
        return self

    def nodes(self, type: str | None = None) -> NodeSet:
        """Return all nodes, or the nodes of one type."""
        if type is None:
            return NodeSet.range(self.count)
        self.schema.node_type(type)
        code = self.schema.type_code[type]
        return NodeSet(self._by_type[self._type_starts[code] : self._type_starts[code + 1]])

    @cached_property
    def _by_type(self) -> IntArray:
        """All nodes, grouped by type."""
        return np.argsort(self.types, kind="stable").astype(np.int32)

    @cached_property
    def _type_starts(self) -> NDArray[np.int64]:
        return np.append(0, np.cumsum([node_type.count for node_type in self.schema.node_types]))

    def edges(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> Edges:
        """Return the edges that leave, enter or touch these nodes. "any" returns each edge once."""
        if direction != "any":
            return self._edges(nodes, relation, direction)
        leaving, entering = self._edges(nodes, relation, "out"), self._edges(nodes, relation, "in")
        outside = ~nodes.holds(entering.heads)  # edges between two of the nodes are in `leaving` already
        return Edges(
            np.concatenate((leaving.heads, entering.heads[outside])),
            np.concatenate((leaving.relations, entering.relations[outside])),
            np.concatenate((leaving.tails, entering.tails[outside])),
        )

    def __len__(self) -> int:
        return self.count

    def type_of(self, node: int) -> str:
        """Return the type of a node."""
        return self.schema.type_names[int(self.types[node])]

    def text(self, node: int, *, relations: bool = False) -> str:
        """Return the node's document, rendered by the schema."""
        content = self.node(node)
        text = render.document(content, self.schema.node_type(content.type))
        return render.SEPARATOR.join([text, *self._relation_lines(node)]) if relations else text

    def _relation_lines(self, node: int) -> list[str]:
        shown: dict[str, dict[str, list[str]]] = {}
        totals: dict[tuple[str, str], int] = {}
        single = NodeSet(np.array([node], dtype=np.int32))
        for use in self.relations(single):
            rows = self.schema.relation_rows(use.relation)
            label = rows[0].label if use.direction == "out" else rows[0].inverse or f"{rows[0].label} (of)"
            others = self.neighbors(single, use.relation, use.direction)
            for code in np.unique(self.types[others.array]).tolist():
                same = others.array[self.types[others.array] == code]
                kind = self.schema.node_types[code].label
                shown.setdefault(label, {})[kind] = [ref.name for ref in self.refs(same[: render.MOST_LISTED])]
                totals[label, kind] = len(same)
        return list(render.relation_lines(shown, totals))

    def _code(self, relation: str) -> int:
        self.schema.relation_rows(relation)  # raises an error for an unknown relation
        return self.schema.relation_code[relation]

    def _check(self, node: int) -> None:
        if not 0 <= node < self.count:
            raise NotFoundError(f"no node {node}: ids go from 0 to {self.count - 1}")


def is_sparql(kb: Explorable) -> TypeGuard[SparqlKnowledgeBase]:
    """Return whether a base is a SPARQL endpoint."""
    return kb.query_language == "sparql"


def is_cypher(kb: Explorable) -> TypeGuard[CypherKnowledgeBase]:
    """Return whether a base is a graph database with Cypher."""
    return kb.query_language == "cypher"
