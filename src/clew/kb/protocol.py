"""The knowledge base as every layer above sees it: read-only, thread-safe, local or remote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from clew.core.schema import Schema
from clew.core.types import Direction, IntArray, Node, NodeRef, NodeSet, RelationUse, Triple


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Edges as parallel arrays in their stored direction; `relations` holds relation codes."""

    heads: IntArray
    relations: IntArray
    tails: IntArray

    def __len__(self) -> int:
        return len(self.heads)


class KnowledgeBase(Protocol):
    """A graph whose nodes carry text; node ids are dense integers, keys are the user's."""

    @property
    def schema(self) -> Schema:
        """Node types, relations, answer types."""
        ...

    def node(self, node: int) -> Node:
        """Everything stored about one node."""
        ...

    def refs(self, nodes: Sequence[int] | IntArray) -> list[NodeRef]:
        """Key, name and type of many nodes, in the given order."""
        ...

    def find(self, key: str) -> int:
        """The id of the node with this key; raises NotFoundError."""
        ...

    def nodes(self, type: str | None = None) -> NodeSet:
        """All nodes, or those of one type."""
        ...

    def values(self, nodes: NodeSet, attribute: str) -> Sequence[Any]:
        """An attribute of many nodes, None where a node has none."""
        ...

    def neighbors(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> NodeSet:
        """The nodes one edge away; relation None means any relation."""
        ...

    def relations(self, nodes: NodeSet) -> Sequence[RelationUse]:
        """Which relations leave and enter these nodes, with counts, in schema order."""
        ...

    def edges(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> Edges:
        """The edges that leave ("out"), enter ("in") or touch ("any", each once) these nodes, parallel edges kept."""
        ...

    def edge_attributes(self, head: int, relation: str, tail: int) -> Sequence[Mapping[str, Any]]:
        """The attributes of every parallel edge head —relation→ tail; empty where there is no such edge."""
        ...

    def triples(self, node: int) -> Sequence[Triple]:
        """Every edge of one node with its attributes, outgoing first."""
        ...

    def text(self, node: int, *, relations: bool = False) -> str:
        """The node's document, rendered by the schema, with or without its relations."""
        ...
