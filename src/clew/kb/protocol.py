"""The knowledge base as every layer above sees it: read-only, thread-safe, local or remote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from clew.core.schema import Schema
from clew.core.types import Direction, IntArray, Node, NodeRef, NodeSet, RelationUse, Triple

if TYPE_CHECKING:
    from clew.kb.stored import StoredKnowledgeBase

Way = tuple[NodeSet, Sequence[tuple[str, Direction, str | None]]]
"""Where to start, and the steps from there: a relation, its direction, and the type that the step has to lead to."""


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Edges as parallel arrays in their stored direction; `relations` holds relation codes."""

    heads: IntArray
    relations: IntArray
    tails: IntArray

    def __len__(self) -> int:
        return len(self.heads)


class Linked(Protocol):
    """Nodes that are joined by edges."""

    def neighbors(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> NodeSet:
        """The nodes one edge away; relation None means any relation."""
        ...


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

    def node(self, node: int) -> Node:
        """Everything stored about one node."""
        ...

    def find(self, key: str) -> int:
        """The id of the node with this key; raises NotFoundError."""
        ...

    def edges(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> Edges:
        """The edges that leave ("out"), enter ("in") or touch ("any", each once) these nodes, parallel edges kept."""
        ...

    def edges_to(self, nodes: NodeSet, others: NodeSet, relation: str | None, direction: Direction) -> Edges:
        """The edges of nodes, those to others among them; a remote base is asked for no more than these."""
        ...

    def degrees(self, nodes: IntArray) -> NDArray[np.int64]:
        """The number of edges of each node, both directions together."""
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


@runtime_checkable
class Following(Protocol):
    """A base that follows a relation any number of times by itself."""

    def closure(self, nodes: NodeSet, relation: str, direction: Direction) -> NodeSet:
        """Everything that is reached, the nodes themselves included."""
        ...


@runtime_checkable
class Joining(Protocol):
    """A base that is far away, where every step costs a reply, and joins by itself."""

    def meet(self, ways: Iterable[Way], avoided: Iterable[Way] = ()) -> bool:
        """Whether some node lies at the end of all these ways, and of none to be avoided."""
        ...
