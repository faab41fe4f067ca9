"""Find all shortest paths between two nodes by bidirectional search on the undirected graph, within limits.

Two balls grow around the ends, the cheaper ball first, until they touch. From there, the nodes on shortest paths are
collected in layers: layer k has the nodes k edges from the source. There may be thousands of shortest paths. Paths
through weakly connected nodes are the most specific, so the `most_paths` with the lowest sum of log-degrees of inner
nodes are returned, together with the total count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.core.types import IntArray, NodeSet
from clew.store.graph.adjacency import Adjacency, LongArray, positions
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.protocol import Edges, KnowledgeBase

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
        if self._kb.stored is not None or len(nodes) <= MOST_COUNTED:
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
            heads.append(owners[hit])
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
                nears.append(owners[hit])
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
        """Yield the owner and the index of each edge. The indexes of a hub's edges are a slice."""
        owners, starts, ends = nodes.array, self.starts[nodes.array], self.starts[nodes.array + 1]
        lengths = ends - starts
        hubs = np.flatnonzero(lengths > HUB)
        for hub in hubs.tolist():
            for first in range(int(starts[hub]), int(ends[hub]), MOST_AT_ONCE):
                last = min(first + MOST_AT_ONCE, int(ends[hub]))
                yield np.broadcast_to(owners[hub], last - first), slice(first, last)
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
    return UndirectedGraph(kb) if kb.arrays is None else ArrayGraph(kb.arrays)


def sorted_edges(heads: IntArray, relations: IntArray, tails: IntArray) -> Edges:
    """Sort edges by head, relation and tail."""
    order = np.lexsort((tails, relations, heads))
    return Edges(heads[order], relations[order], tails[order])


NEVER = np.int64(1 << 60)
"""Weight of a missing path."""


@dataclass(frozen=True, slots=True)
class PathLimits:
    """Limits of the search and of the result."""

    most_hops: int = 4
    most_paths: int = 50
    widest_layer: int = 4096
    """Maximum number of nodes per distance while paths are collected, least connected first."""
    most_edges: int = 20_000_000
    """Maximum number of edges to read, which limits the time for graphs of any size."""


@dataclass(frozen=True, slots=True)
class ShortestPaths:
    """Shortest paths as node ids from source to target, most specific first."""

    source: int
    target: int
    distance: int | None
    """Length in edges. None if there is no path of at most `most_hops` edges."""
    paths: tuple[tuple[int, ...], ...] = ()
    count: int = 0
    """Number of shortest paths as sequences of nodes. A lower bound if a layer was cut."""
    gave_up: bool = False
    """Whether the search ended at `most_edges`, so that a longer path may exist."""

    @property
    def complete(self) -> bool:
        """Whether all shortest paths are included."""
        return self.count == len(self.paths) and not self.gave_up

    def nodes(self) -> NodeSet:
        """Return the ends and every node on a path."""
        return NodeSet.of([self.source, self.target, *(node for path in self.paths for node in path)])


class Ball:
    """The nodes around a node by distance, computed on demand and reused by later searches."""

    def __init__(self, graph: UndirectedGraph, center: int) -> None:
        self.graph = graph
        self.center = center
        self.levels: list[NodeSet] = [NodeSet.of([center])]
        self._next_costs: dict[int, int] = {}

    def level(self, distance: int) -> NodeSet:
        """Return the nodes at this distance. Empty beyond the component."""
        while len(self.levels) <= distance:
            last = self.levels[-1]
            before = self.levels[-2] if len(self.levels) > 1 else last
            # a neighbour of level i is at i - 1, i or i + 1
            self.levels.append(self.graph.neighbors(last) - last - before)
        return self.levels[distance]

    def cost(self, distance: int) -> int:
        """Return the number of edges to read for the next level. 0 if it is already computed."""
        if len(self.levels) > distance + 1:
            return 0
        if distance not in self._next_costs:
            self._next_costs[distance] = int(self.graph.degrees(self.level(distance)).sum())
        return self._next_costs[distance]


def shortest_paths(source: Ball, target: Ball, limits: PathLimits = PathLimits()) -> ShortestPaths:
    """Find all shortest paths between the centres of two balls over the same graph, within the limits."""
    ends = source.center, target.center
    if source.center == target.center:
        return ShortestPaths(*ends, 0, ((source.center,),), 1)
    near, far, read = 0, 0, 0
    while near + far < limits.most_hops:
        left, right = source.level(near), target.level(far)
        if not len(left) or not len(right):
            break
        read += min(source.cost(near), target.cost(far))
        if read > limits.most_edges:
            return ShortestPaths(*ends, None, gave_up=True)
        if len(source.levels) > near + 1:  # computed by an earlier search
            right = right & source.levels[near + 1]
        if len(target.levels) > far + 1:
            left = left & target.levels[far + 1]
        touching = source.graph.links(left, right)
        if len(touching[0]):
            return _read_off(source.graph, source.levels[:near], touching, target.levels[:far][::-1], limits)
        near, far = (near + 1, far) if source.cost(near) <= target.cost(far) else (near, far + 1)
    return ShortestPaths(*ends, None)


Links = tuple[IntArray, IntArray]
"""Linked pairs of nodes of two adjacent layers, sorted."""


def _read_off(
    graph: UndirectedGraph, before: list[NodeSet], touching: Links, after: list[NodeSet], limits: PathLimits
) -> ShortestPaths:
    """Build layers from the touching links to both ends, then collect paths."""
    left, cut_left = _narrow(graph, NodeSet.of(touching[0]), limits.widest_layer)
    right, cut_right = _narrow(graph, NodeSet.of(touching[1]), limits.widest_layer)
    cut = cut_left or cut_right
    if cut:
        kept = np.isin(touching[0], left.array) & np.isin(touching[1], right.array)
        touching = touching[0][kept], touching[1][kept]
    layers, links = [left, right], [touching]
    for level in before[::-1]:
        links.insert(0, graph.links(level, layers[0]))
        layers.insert(0, NodeSet.of(links[0][0]))
    for level in after:
        links.append(graph.links(layers[-1], level))
        layers.append(NodeSet.of(links[-1][1]))
    steps = [
        (left.array.searchsorted(lefts), right.array.searchsorted(rights))
        for left, right, (lefts, rights) in zip(layers, layers[1:], links, strict=False)
    ]
    weights = [_weight(graph, layer) for layer in layers]
    count = _count([len(layer) for layer in layers], steps)
    paths = _first_paths([layer.array for layer in layers], steps, weights, limits.most_paths)
    ends = int(layers[0].array[0]), int(layers[-1].array[0])
    return ShortestPaths(*ends, len(layers) - 1, tuple(paths), max(count, len(paths) + 1) if cut else count)


def _narrow(graph: UndirectedGraph, layer: NodeSet, most: int) -> tuple[NodeSet, bool]:
    """Return the least connected nodes of a layer, ties by smaller id, and whether nodes were cut."""
    if len(layer) <= most:
        return layer, False
    order = np.lexsort((layer.array, graph.degrees(layer)))[:most]
    return NodeSet.of(layer.array[order]), True


def _weight(graph: UndirectedGraph, layer: NodeSet) -> LongArray:
    """Return log-degrees as integers, so that sums and ties are exact."""
    weights: LongArray = np.rint(np.log1p(graph.degrees(layer)) * (1 << 20)).astype(np.int64)
    return weights


Step = tuple[LongArray, LongArray]
"""The links from one layer to the next as indexes in both."""


def _count(sizes: Sequence[int], steps: Sequence[Step]) -> int:
    """Count the paths from the first layer to the last."""
    ways: NDArray[np.float64] = np.ones(sizes[0])
    for size, (lefts, rights) in zip(sizes[1:], steps, strict=True):
        ways = np.bincount(rights, weights=ways[lefts], minlength=size).astype(np.float64)
    return int(ways.sum())


def _cheapest_rest(weights: Sequence[LongArray], steps: Sequence[Step]) -> list[LongArray]:
    """Return the minimum weight after each node of each layer. `NEVER` if no path follows."""
    rest = [np.zeros(len(weights[-1]), dtype=np.int64)]
    for weight, later, (lefts, rights) in zip(weights[-2::-1], weights[:0:-1], steps[::-1], strict=True):
        best = np.full(len(weight), NEVER)
        np.minimum.at(best, lefts, later[rights] + rest[0][rights])
        rest.insert(0, best)
    return rest


def _first_paths(
    layers: Sequence[IntArray], steps: Sequence[Step], weights: Sequence[LongArray], most: int
) -> list[tuple[int, ...]]:
    """Return the lightest paths in order, ties by smaller ids.

    Extend prefixes layer by layer, each with the exact weight of its best completion, and select the best `most`. Every
    other prefix has at least `most` better complete paths.
    """
    rest = _cheapest_rest(weights, steps)
    paths = np.zeros((1, 1), dtype=np.int64)  # positions in the layers
    spent = np.zeros(1, dtype=np.int64)
    for depth, (lefts, rights) in enumerate(steps, start=1):
        last = paths[:, -1]
        places, sizes = positions(lefts.searchsorted(last), lefts.searchsorted(last, side="right"))
        following = rights[places]
        paths = np.column_stack((np.repeat(paths, sizes, axis=0), following))
        spent = np.repeat(spent, sizes) + weights[depth][following]
        whole = spent + rest[depth][following]
        order = np.lexsort((*paths.T[::-1], whole))[:most]
        order = order[whole[order] < NEVER]
        paths, spent = paths[order], spent[order]
    ids = [layer[column] for layer, column in zip(layers, paths.T, strict=True)]
    return list(zip(*(column.tolist() for column in ids), strict=True))
