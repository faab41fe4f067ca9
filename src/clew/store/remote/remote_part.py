"""The part of a remote graph that a user may see: some nodes and the edges between them.

All other nodes are invisible to edges, paths and counts. So the store must not join or count, and its queries are not
traced, since numbers of rows would reveal hidden nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from clew.core.schema import Relation, Schema, with_hierarchies
from clew.core.trace import recording
from clew.core.types import Direction, NodeSet
from clew.store.graph.protocol import StoredKnowledgeBase
from clew.store.remote.remote import RemoteKnowledgeBase


class PartOfGraph(RemoteKnowledgeBase):
    """The described nodes of a graph, without any other nodes."""

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
