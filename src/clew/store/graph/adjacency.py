"""Edges of a graph in one direction as arrays, grouped by node and relation.

    node_groups[n] .. node_groups[n+1]       the groups of node n, one per relation
    group_relation[g], group_start[g] ..     the relation of group g and the start of its targets
    targets                                  the other ends, sorted inside each group
    relation_start[r], relation_rows, relation_group    the same groups by relation: sorted nodes and their groups

All edges of a node are one slice, and so are its edges of one relation. The groups of a relation are sorted by node.
So the same arrays serve single nodes, sets of nodes, one relation and any relation.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core import array_files
from clew.core.errors import CorruptError, FormatError
from clew.core.types import IntArray, NodeSet, places_in
from clew.store.graph.manifest import check_sealed

LongArray = NDArray[np.int64]
MOST_GATHERED = 8
"""Ranges with more than one in this many of all edges are selected with a mask."""


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The edges of every node in one direction. Arrays may be memory-mapped."""

    node_groups: LongArray
    group_relation: IntArray
    group_start: LongArray
    targets: IntArray
    relation_start: LongArray
    relation_rows: IntArray
    relation_group: IntArray

    @classmethod
    def build(cls, groups: LongArray, targets: IntArray, nodes: int, relations: int) -> Adjacency:
        """Build from edges sorted by (node, relation, target).

        `groups` has node * relations + relation of each edge.
        """
        edge_begins_group = np.empty(len(groups), dtype=np.bool_)
        edge_begins_group[:1] = True
        np.not_equal(groups[1:], groups[:-1], out=edge_begins_group[1:])
        begins = np.flatnonzero(edge_begins_group)
        group_node, group_relation = np.divmod(groups[begins], relations) if relations else (begins, begins)
        by_relation = np.argsort(group_relation, kind="stable")
        return cls(
            node_groups=_starts(group_node, nodes),
            group_relation=group_relation.astype(np.int32),
            group_start=np.append(begins, len(groups)),
            targets=targets,
            relation_start=_starts(group_relation[by_relation], relations),
            relation_rows=group_node[by_relation].astype(np.int32),
            relation_group=by_relation.astype(np.int32),
        )

    def save(self, folder: Path, prefix: str) -> None:
        """Save each array as an .npy file."""
        for part in fields(self):
            np.save(folder / f"{prefix}_{part.name}.npy", getattr(self, part.name))

    @classmethod
    def open(cls, folder: Path, prefix: str) -> Adjacency:
        """Map the arrays without reading them."""
        return cls(**{part.name: map_array(folder / f"{prefix}_{part.name}.npy") for part in fields(cls)})

    def of(self, node: int, relation: int | None = None) -> IntArray:
        """Return the targets of a node, sorted inside each relation. Parallel edges repeat."""
        first, last = self.slice_of(node, relation)
        return self.targets[first:last]

    def slice_of(self, node: int, relation: int | None = None) -> tuple[int, int]:
        """Return the range of a node's edges in `targets`."""
        groups, relations, starts = self._views
        first, last = groups[node], groups[node + 1]
        if relation is not None:
            first = bisect_left(relations, relation, first, last)
            if first == last or relations[first] != relation:
                return 0, 0
            last = first + 1
        return starts[first], starts[last]

    @cached_property
    def _views(self) -> tuple[memoryview, memoryview, memoryview]:
        """Memory views for single nodes. Indexing them returns Python integers without numpy overhead."""
        return self.node_groups.data, self.group_relation.data, self.group_start.data

    def ranges(self, nodes: NodeSet, relation: int | None = None) -> tuple[IntArray, LongArray, LongArray]:
        """Return the nodes with edges, and the start and end of each node's edges in `targets`."""
        array = nodes.array
        if relation is None:
            starts = self.group_start[self.node_groups[array]]
            ends = self.group_start[self.node_groups[array + 1]]
            return array, starts, ends
        first, last = self.relation_start[relation], self.relation_start[relation + 1]
        rows = self.relation_rows[first:last]
        groups = self.relation_group[first:last]
        if len(array) < len(rows):
            places, are_there = places_in(rows, array)
            found = places[are_there]
        else:
            found = np.flatnonzero(places_in(array, rows)[1])
        chosen = groups[found]
        return rows[found], self.group_start[chosen], self.group_start[chosen + 1]

    def gather(self, starts: LongArray, ends: LongArray) -> IntArray:
        """Return the targets in the given ranges, concatenated."""
        if (ends - starts).sum() * MOST_GATHERED < len(self.targets) or not len(starts):
            return self.targets[positions(starts, ends)[0]]
        order = np.argsort(starts, kind="stable")  # for many edges, a mask is faster than indexes
        borders = np.stack((starts[order], ends[order]), axis=1).ravel()
        inside = np.resize(np.array([False, True]), len(borders) + 1)
        lengths = np.diff(borders, prepend=0, append=len(self.targets))
        return np.asarray(self.targets[np.repeat(inside, lengths)])

    def relation_counts(self, nodes: NodeSet) -> LongArray:
        """Count the edges of these nodes by relation."""
        groups, _ = positions(self.node_groups[nodes.array], self.node_groups[nodes.array + 1])
        sizes = self.group_start[groups + 1] - self.group_start[groups]
        relations = len(self.relation_start) - 1
        return np.bincount(self.group_relation[groups], weights=sizes, minlength=relations).astype(np.int64)

    def places(self, nodes: IntArray, relations: IntArray, targets: IntArray) -> LongArray:
        """Return the indexes of existing edges in `targets`, or of the first of parallel edges, by binary search."""
        groups = _search(self.group_relation, relations, self.node_groups[nodes], self.node_groups[nodes + 1])
        return _search(self.targets, targets, self.group_start[groups], self.group_start[groups + 1])

    def relations_at(self, edges: LongArray) -> IntArray:
        """Return the relation code of each edge, given its index in `targets`."""
        return self.group_relation[self.group_start.searchsorted(edges, side="right") - 1]


def _search(array: IntArray, wanted: IntArray, low: LongArray, high: LongArray) -> LongArray:
    """Return the first index in each sorted range of the array whose value is not below the wanted value."""
    low, high = low.astype(np.int64), high.astype(np.int64)
    while len(low) and np.any(low < high):
        middle = (low + high) // 2
        below = (low < high) & (array[np.minimum(middle, len(array) - 1)] < wanted)
        low, high = np.where(below, middle + 1, low), np.where(below, high, np.minimum(middle, high))
    return low


def positions(starts: LongArray, ends: LongArray) -> tuple[LongArray, LongArray]:
    """Return every index in the given ranges, concatenated, and the length of each range."""
    lengths = ends - starts
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum(), dtype=np.int64), lengths


def map_array(file: Path) -> NDArray[Any]:
    """Memory-map an array without numpy's memmap subclass, after checking its digest."""
    check_sealed(file)
    try:
        return array_files.map_array(file)
    except FileNotFoundError:
        raise FormatError(f"{file} is missing, the base may come from another version: build it again") from None
    except (ValueError, OSError) as error:
        raise CorruptError(f"{file} is not an array of Clew ({error}): build the knowledge base again") from error


def _starts(sorted_values: LongArray, count: int) -> LongArray:
    """Return the start of each value 0..count-1 in the sorted values, and the end of all."""
    return np.searchsorted(sorted_values, np.arange(count + 1)).astype(np.int64)
