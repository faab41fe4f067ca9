"""A knowledge base as an undirected graph for path search, on arrays or any other base."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.core.types import IntArray, NodeSet
from clew.store.graph.adjacency import Adjacency, LongArray, positions
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.protocol import Edges, KnowledgeBase, StoredKnowledgeBase

BoolArray = NDArray[np.bool_]
NOTHING: IntArray = np.empty(0, dtype=np.int32)
MOST_AT_ONCE = 1 << 18
"""Maximum number of edges in memory at once, independent of node degrees."""
HUB = 2048
"""Nodes with more edges are read as slices of the mapped file, other nodes by gathering."""

MOST_COUNTED = 1000
"""Maximum number of nodes of a remote base whose edges are counted."""


class UndirectedGraph:
    """Edges without direction of any base, such as a SPARQL endpoint, with few calls for many nodes each."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._kb = kb

    def degrees(self, nodes: NodeSet) -> LongArray:
        """Return the number of edges of each node. Return ones if a remote base would have to count too many."""
        if isinstance(self._kb, StoredKnowledgeBase) or len(nodes) <= MOST_COUNTED:
            return self._kb.degrees(nodes.array)
        return np.ones(len(nodes), dtype=np.int64)

    def neighbors(self, nodes: NodeSet) -> NodeSet:
        """Return all nodes one edge away."""
        return self._kb.neighbors(nodes)

    def links(self, left: NodeSet, right: NodeSet) -> tuple[IntArray, IntArray]:
        """Return every linked pair of a node of `left` and a node of `right` once, sorted."""
        near, far = (left, right) if len(left) <= len(right) else (right, left)
        edges = self._kb.edges_to(near, far, None, "any")
        ends = np.concatenate((edges.heads, edges.tails)), np.concatenate((edges.tails, edges.heads))
        hit = np.isin(ends[0], near.array) & np.isin(ends[1], far.array)
        lefts, rights = (ends[0][hit], ends[1][hit]) if near is left else (ends[1][hit], ends[0][hit])
        pairs = np.unique(np.stack((lefts, rights), axis=1), axis=0)
        return pairs[:, 0], pairs[:, 1]

    def induced(self, nodes: NodeSet) -> Edges:
        """Return the edges between these nodes in stored direction, including parallel edges, sorted."""
        edges = self._kb.edges_to(nodes, nodes, None, "out")
        hit = np.isin(edges.tails, nodes.array)
        return sorted_edges(edges.heads[hit], edges.relations[hit], edges.tails[hit])


class ArrayGraph(UndirectedGraph):
    """Reads the adjacency arrays in chunks of limited size, from the side with fewer edges."""

    def __init__(self, kb: ArrayKnowledgeBase) -> None:
        self._count = kb.count
        self._outward, self._inward = _Side.of(kb.outward), _Side.of(kb.inward)
        self._degrees = np.diff(self._outward.starts) + np.diff(self._inward.starts)

    def degrees(self, nodes: NodeSet) -> LongArray:
        """Return the number of edges in both directions."""
        return self._degrees[nodes.array]

    def neighbors(self, nodes: NodeSet) -> NodeSet:
        """Return all nodes one edge away."""
        reached = np.zeros(self._count, dtype=np.bool_)
        for side in (self._outward, self._inward):
            for _, lie in side.edges(nodes):
                reached[side.targets[lie]] = True
        return NodeSet(np.flatnonzero(reached).astype(np.int32))

    def links(self, left: NodeSet, right: NodeSet) -> tuple[IntArray, IntArray]:
        """Return every linked pair once."""
        if self.degrees(left).sum() <= self.degrees(right).sum():
            lefts, rights = self._pairs(left, right)
        else:
            rights, lefts = self._pairs(right, left)
        keys = np.unique(lefts.astype(np.int64) * self._count + rights)
        return (keys // self._count).astype(np.int32), (keys % self._count).astype(np.int32)

    def induced(self, nodes: NodeSet) -> Edges:
        """Return the edges between these nodes."""
        side, inside = self._outward, self._marks(nodes)
        heads, places = [NOTHING], [np.empty(0, dtype=np.int64)]
        for owners, lie in side.edges(nodes):
            hit = np.flatnonzero(inside[side.targets[lie]])
            heads.append(np.full(len(hit), owners[0]) if isinstance(lie, slice) else owners[hit])
            places.append(hit + lie.start if isinstance(lie, slice) else lie[hit])
        found = np.concatenate(places)
        return sorted_edges(np.concatenate(heads), side.relations_at(found), side.targets[found])

    def _pairs(self, near: NodeSet, far: NodeSet) -> tuple[IntArray, IntArray]:
        inside = self._marks(far)
        nears, fars = [NOTHING], [NOTHING]
        for side in (self._outward, self._inward):
            for owners, lie in side.edges(near):
                targets = side.targets[lie]
                hit = np.flatnonzero(inside[targets])
                nears.append(np.full(len(hit), owners[0]) if isinstance(lie, slice) else owners[hit])
                fars.append(targets[hit])
        return np.concatenate(nears), np.concatenate(fars)

    def _marks(self, nodes: NodeSet) -> BoolArray:
        marks = np.zeros(self._count, dtype=np.bool_)
        marks[nodes.array] = True
        return marks


@dataclass(frozen=True, eq=False)
class _Side:
    """One direction, with the index of each node's first edge."""

    starts: LongArray
    targets: IntArray
    relations_at: Callable[[LongArray], IntArray]

    @classmethod
    def of(cls, adjacency: Adjacency) -> _Side:
        return cls(adjacency.group_start[adjacency.node_groups], adjacency.targets, adjacency.relations_at)

    def edges(self, nodes: NodeSet) -> Iterator[tuple[IntArray, slice | LongArray]]:
        """Yield edge indexes and owners: a slice and one owner for a hub, one owner per edge for other nodes."""
        owners, starts, ends = nodes.array, self.starts[nodes.array], self.starts[nodes.array + 1]
        lengths = ends - starts
        hubs = np.flatnonzero(lengths > HUB)
        for hub in hubs.tolist():
            for first in range(int(starts[hub]), int(ends[hub]), MOST_AT_ONCE):
                yield owners[hub : hub + 1], slice(first, min(first + MOST_AT_ONCE, int(ends[hub])))
        if len(hubs):
            small = np.flatnonzero(lengths <= HUB)
            owners, starts, ends, lengths = owners[small], starts[small], ends[small], lengths[small]
        total = np.cumsum(lengths)
        cuts = total.searchsorted(np.arange(MOST_AT_ONCE, int(total[-1]) if len(total) else 0, MOST_AT_ONCE))
        for first, last in zip([0, *cuts], [*cuts, len(total)], strict=True):
            places, sizes = positions(starts[first:last], ends[first:last])
            yield np.repeat(owners[first:last], sizes), places


def undirected(kb: KnowledgeBase) -> UndirectedGraph:
    """Return the fastest undirected view of a knowledge base."""
    return ArrayGraph(kb) if isinstance(kb, ArrayKnowledgeBase) else UndirectedGraph(kb)


def sorted_edges(heads: IntArray, relations: IntArray, tails: IntArray) -> Edges:
    """Sort edges by head, relation and tail."""
    order = np.lexsort((tails, relations, heads))
    return Edges(heads[order], relations[order], tails[order])
