"""Embedded knowledge base: memory-mapped arrays on disk, shared by all processes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.core.errors import CorruptError, NotFoundError
from clew.core.types import EMPTY, Direction, IntArray, Node, NodeRef, NodeSet, RelationUse, Triple, distinct
from clew.store.graph.adjacency import Adjacency, map_array, positions
from clew.store.graph.manifest import Manifest, check_sealed
from clew.store.graph.protocol import Edges, StoredKnowledgeBase
from clew.store.graph.render import SEPARATOR
from clew.store.graph.storage import Held, open_generation
from clew.store.graph.tables import GROUPS, HIDDEN, Piece, Tables

FEW = 20
"""Maximum number of nodes to read one by one."""
BITMAP_FRACTION = 32
"""Minimum share of nodes, as 1 / n, from which a bitmap is faster than sorting."""


class ArrayKnowledgeBase(StoredKnowledgeBase):
    """A knowledge base opened from its folder."""

    folder: Path

    def __init__(self, folder: Path, manifest: Manifest, generation: Path, held: Held | None = None) -> None:
        """Initialise from an opened generation. Use `ArrayKnowledgeBase.open` instead."""
        self._held = held
        self.folder = folder
        self.manifest = manifest
        self.generation = generation
        super().__init__(manifest.facts, folder)
        self.types: IntArray = map_array(generation / "types.npy")
        self._nodes = _open_batch(generation / "nodes.arrow")
        if self._nodes.num_rows != self.count or len(self.types) != self.count:
            raise CorruptError(f"{generation} does not contain the {self.count} nodes of its manifest: build it again")
        self._keys, self._names = self._nodes.column("key"), self._nodes.column("name")

    @classmethod
    def open(cls, folder: str | Path, *, whole: bool = True) -> ArrayKnowledgeBase:
        """Map the current generation. Without `whole`, truncated files are detected when they are used."""
        manifest, generation, held = open_generation(Path(folder), whole=whole)
        return cls(Path(folder), manifest, generation, held)

    def release(self) -> None:
        """Let a writer remove this generation. Open files stay usable."""
        if self._held is not None:
            self._held.close()

    @classmethod
    def staged(cls, stage: Path, facts: Mapping[str, Any], folder: Path | None = None) -> ArrayKnowledgeBase:
        """Open a graph that is not committed yet, to build indexes, or vectors in the base's `folder`."""
        return cls(folder or stage, Manifest("staged", "", {}, dict(facts)), stage)

    def __repr__(self) -> str:
        return f"ArrayKnowledgeBase({self.folder.name!r}: {self.count} nodes, {self.edge_count} edges)"

    @property
    def arrays(self) -> ArrayKnowledgeBase:
        """This base."""
        return self

    @property
    def identity(self) -> str:
        """The name of its generation, which is derived from its content."""
        return self.generation.name

    @cached_property
    def outward(self) -> Adjacency:
        """The edges of every node from head to tail."""
        return self._adjacency("out")

    @cached_property
    def inward(self) -> Adjacency:
        """The edges of every node from tail to head."""
        return self._adjacency("in")

    # Nodes

    def node(self, node: int) -> Node:
        """Return everything stored about a node."""
        self._check(node)
        row = {name: self._nodes.column(name)[node].as_py() for name in self._nodes.schema.names}
        key, name, aliases, text = (row.pop(part) for part in ("key", "name", "aliases", "text"))
        attributes = {name: content for name, content in row.items() if content is not None and name not in HIDDEN}
        return Node(node, key, self.type_of(node), name, tuple(aliases or ()), text, attributes)

    def refs(self, nodes: Sequence[int] | IntArray) -> list[NodeRef]:
        """Return key, name and type of nodes, in the given order."""
        if len(nodes) > FEW:  # one pass over a column is faster than single values
            rows, kinds = _positions(nodes), self.schema.type_names
            keys, names = self._keys.take(rows).to_pylist(), self._names.take(rows).to_pylist()
            codes = self.types[np.asarray(nodes)].tolist()
            return [
                NodeRef(node, key, name, kinds[code])
                for node, key, name, code in zip(rows.to_pylist(), keys, names, codes, strict=True)
            ]
        return [
            NodeRef(node, self._keys[node].as_py(), self._names[node].as_py(), self.type_of(node))
            for node in map(int, nodes)
        ]

    def find(self, key: str) -> int:
        """Return the id of the node with this key by binary search, since ids follow the order of the keys."""
        wanted = key.encode("utf-8", "surrogatepass")
        node = bisect_left(range(self.count), wanted, key=lambda node: self._keys[node].as_buffer().to_pybytes())
        if node == self.count or self._keys[node].as_py() != key:
            raise NotFoundError(f"no node has the key {key!r}: search for names with `clew find`")
        return node

    def values(self, nodes: NodeSet, attribute: str) -> list[Any]:
        """Return an attribute of nodes, with None for nodes without it."""
        if attribute not in self._nodes.schema.names:
            return [None] * len(nodes)
        return list(self._nodes.column(attribute).take(_positions(nodes)).to_pylist())

    def raw_values(self, nodes: NodeSet, attribute: str) -> Sequence[Any] | pa.Array:
        """Return an attribute of nodes, or their name, key, type or text. Columns are returned as Arrow arrays."""
        if attribute == "type" or attribute not in self._nodes.schema.names:
            return super().raw_values(nodes, attribute)
        return self._nodes.column(attribute).take(_positions(nodes))

    def distinct(self, attribute: str) -> Sequence[Any]:
        """Return every distinct value of an attribute, unordered. Lists are flattened."""
        column = self._nodes.column(attribute)
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            column = pc.list_flatten(column)
        return list(pc.unique(column).to_pylist())

    def written_share(self, type: str | None = None) -> float:
        """Return the share of nodes with text, of one type or of all nodes."""
        lengths = pc.binary_length(self._nodes.column("text")).take(_positions(self.nodes(type)))
        is_written = pc.cast(lengths, pa.bool_())  # comparing with 0 would import pandas
        return float(pc.mean(is_written).as_py() or 0.0)

    def named_like(self, pattern: str) -> NodeSet:
        """Return the nodes whose whole name matches a regular expression."""
        matches = pc.match_substring_regex(self._names, f"^(?:{pattern})$")
        return NodeSet.of(np.flatnonzero(matches.to_numpy(zero_copy_only=False)))

    def neighbour_names(self, first: int, last: int, most: int) -> pa.Array:
        """Return the neighbours' names of each node in a range as lines, up to `most` per relation and direction."""
        line = pa.scalar(SEPARATOR, pa.large_string())
        parts = []
        for side in (self.outward, self.inward):
            groups = np.arange(side.node_groups[first], side.node_groups[last])
            starts = side.group_start[groups]
            places, lengths = positions(starts, np.minimum(side.group_start[groups + 1], starts + most))
            borders = np.append(0, np.cumsum(lengths))[side.node_groups[first : last + 1] - side.node_groups[first]]
            names = self._names.take(_positions(side.targets[places])).cast(pa.large_string())
            parts.append(pc.binary_join(pa.LargeListArray.from_arrays(_int64(borders), names), line))
        return pc.binary_join_element_wise(*parts, line)

    def columns(self) -> pa.RecordBatch:
        """Return the mapped columns of all nodes."""
        return self._nodes

    def degrees(self, nodes: IntArray) -> NDArray[np.int64]:
        """Return the number of edges of each node in both directions."""
        total = np.zeros(len(nodes), dtype=np.int64)
        for side in (self.outward, self.inward):
            total += side.group_start[side.node_groups[nodes + 1]] - side.group_start[side.node_groups[nodes]]
        return total

    # Edges

    def neighbors(self, nodes: NodeSet, relation: str | None = None, direction: Direction = "any") -> NodeSet:
        """Return the nodes one edge away."""
        code = None if relation is None else self._code(relation)
        sides = [self.outward] if direction != "in" else []
        sides += [self.inward] if direction != "out" else []
        if len(nodes) == 1 and code is not None and len(sides) == 1:
            return NodeSet(distinct(sides[0].of(int(nodes.array[0]), code)))  # already sorted
        reached = [self._targets(side, nodes, code) for side in sides]
        return self._as_set(reached[0] if len(reached) == 1 else np.concatenate(reached))

    def relations(self, nodes: NodeSet) -> list[RelationUse]:
        """Count the outgoing and incoming relations of these nodes, in schema order."""
        out, into = self.outward.relation_counts(nodes), self.inward.relation_counts(nodes)
        names = self.schema.relation_names
        uses = []
        for code in np.flatnonzero(out + into).tolist():  # few of the many relations of a schema
            if out[code]:
                uses.append(RelationUse(names[code], "out", int(out[code])))
            if into[code]:
                uses.append(RelationUse(names[code], "in", int(into[code])))
        return uses

    def _edges(self, nodes: NodeSet, relation: str | None, side: Literal["out", "in"]) -> Edges:
        adjacency = self.outward if side == "out" else self.inward
        code = None if relation is None else self._code(relation)
        owners, starts, ends = adjacency.ranges(nodes, code)
        places, lengths = positions(starts, ends)
        codes = adjacency.relations_at(places) if code is None else np.full(len(places), code, dtype=np.int32)
        near, far = np.repeat(owners, lengths), adjacency.targets[places]
        return Edges(near, codes, far, places) if side == "out" else Edges(far, codes, near)

    def triples(self, node: int) -> list[Triple]:
        """Return every edge of a node with its attributes, outgoing edges first."""
        self._check(node)
        names = self.schema.relation_names
        found = []
        first, last = self.outward.slice_of(node)
        codes = self.outward.relations_at(np.arange(first, last))
        for place, code, tail in zip(range(first, last), codes, self.outward.targets[first:last].tolist(), strict=True):
            found.append(Triple(node, names[code], tail, self._attributes(place)))
        first, last = self.inward.slice_of(node)
        codes = self.inward.relations_at(np.arange(first, last))
        repeats: dict[tuple[int, int], int] = {}
        for code, head in zip(codes.tolist(), self.inward.targets[first:last].tolist(), strict=True):
            nth = repeats.get((code, head), 0)
            repeats[code, head] = nth + 1
            if head != node:
                found.append(Triple(head, names[code], node, self._attributes(self._place(head, code, node) + nth)))
        return found

    def edge_attributes(self, head: int, relation: str, tail: int) -> list[Mapping[str, Any]]:
        """Return the attributes of every parallel edge head —relation→ tail. Empty if there is no such edge."""
        first, last = self.outward.slice_of(head, self._code(relation))
        targets = self.outward.targets[first:last]
        left, right = (int(targets.searchsorted(np.int32(tail), side=side)) for side in ("left", "right"))
        return [self._attributes(first + index) for index in range(left, right)]

    def edge_values(self, edges: Edges, numbers: NDArray[np.int64], attribute: str) -> Sequence[Any] | pa.Array:
        """Return an attribute of edges, with None for edges without it. `numbers` counts parallel edges from 0."""
        columns = self.edge_columns
        if columns is None or attribute not in columns.schema.names:
            return [None] * len(edges)
        rows = edges.rows
        if rows is None:
            rows = self.outward.places(edges.heads, edges.relations, edges.tails) + numbers
        return columns.column(attribute).take(_int64(rows))

    def to_tables(self) -> Tables:
        """Return sources from which this base could be built again."""
        types = pa.array(self.schema.type_names, pa.large_string())
        nodes = pa.Table.from_batches([self._nodes]).append_column("type", types.take(_positions(self.types)))
        edges = self.edges(self.nodes(), direction="out")
        relations = pa.array(self.schema.relation_names, pa.large_string())
        table = pa.table(
            {
                "head": self._keys.take(_positions(edges.heads)),
                "relation": relations.take(_positions(edges.relations)),
                "tail": self._keys.take(_positions(edges.tails)),
            }
        )
        if self.edge_columns is not None:
            for name in self.edge_columns.schema.names:
                table = table.append_column(name, self.edge_columns.column(name))
        source = str(self.folder)
        return Tables((Piece(nodes, source),), (Piece(table, source),), notes=self.notes, visibility=self.visibility)

    def inconsistencies(self) -> list[str]:
        """Return inconsistencies despite valid checksums: wrong lengths, ids out of range, unsorted edges."""
        problems = []
        if not 0 <= int(self.types.min(initial=0)) <= int(self.types.max(initial=0)) < len(self.schema.node_types):
            problems.append("types.npy: a node has a type that does not exist")
        for name, side in (("out", self.outward), ("in", self.inward)):
            if self.edge_count and not 0 <= int(side.targets.min()) <= int(side.targets.max()) < self.count:
                problems.append(f"graph/{name}: an edge leads to a node that does not exist")
            elif np.any(np.diff(side.group_start) < 0) or np.any(np.diff(side.node_groups) < 0):
                problems.append(f"graph/{name}: the edges of a node are not contiguous")
        if self.edge_columns is not None and self.edge_columns.num_rows != self.edge_count:
            problems.append(f"edges.arrow: {self.edge_columns.num_rows} rows for {self.edge_count} edges")
        return problems

    # Inside

    def _adjacency(self, side: str) -> Adjacency:
        opened = Adjacency.open(self.generation / "graph", side)
        if len(opened.node_groups) != self.count + 1 or len(opened.targets) != self.edge_count:
            raise CorruptError(f"{self.generation}/graph/{side}_* do not match their manifest: build the base again")
        return opened

    @cached_property
    def _by_type(self) -> IntArray:
        return map_array(self.generation / "by_type.npy")

    @cached_property
    def edge_columns(self) -> pa.RecordBatch | None:
        """Attributes of all edges in outward order. None if edges have no attributes."""
        file = self.generation / "edges.arrow"
        return _open_batch(file) if file.exists() else None

    def _attributes(self, place: int) -> dict[str, Any]:
        columns = self.edge_columns
        if columns is None:
            return {}
        row = {name: columns.column(name)[place].as_py() for name in columns.schema.names if name != GROUPS}
        return {name: content for name, content in row.items() if content is not None}

    def _place(self, head: int, code: int, tail: int) -> int:
        first, last = self.outward.slice_of(head, code)
        return first + int(self.outward.targets[first:last].searchsorted(np.int32(tail)))

    def _targets(self, side: Adjacency, nodes: NodeSet, code: int | None) -> IntArray:
        if len(nodes) == 1:
            return side.of(int(nodes.array[0]), code)
        _, starts, ends = side.ranges(nodes, code)
        return side.gather(starts, ends)

    def _as_set(self, values: IntArray) -> NodeSet:
        if not len(values):
            return EMPTY
        if len(values) * BITMAP_FRACTION > self.count:
            marks = np.zeros(self.count, dtype=np.bool_)
            marks[values.astype(np.intp)] = True  # numpy scatters three times as fast by its own index type
            return NodeSet(np.flatnonzero(marks).astype(np.int32))
        return NodeSet(distinct(np.sort(values)))


def _int64(numbers: Sequence[int] | NDArray[np.int64]) -> pa.Array:
    """Convert numbers to an Arrow array. `pa.array` would import pandas."""
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(np.array(numbers, dtype=np.int64))])


def _positions(nodes: NodeSet | Sequence[int] | IntArray) -> pa.Array:
    """Convert nodes or codes to an Arrow array of indexes. `pa.array` would import pandas."""
    ids = np.ascontiguousarray(nodes.array if isinstance(nodes, NodeSet) else nodes, dtype=np.int32)
    return pa.Array.from_buffers(pa.int32(), len(ids), [None, pa.py_buffer(ids)])


def _open_batch(file: Path) -> pa.RecordBatch:
    check_sealed(file)
    try:
        batch = pa.ipc.open_file(pa.memory_map(str(file))).get_batch(0)
        batch.validate(full=True)  # invalid offsets would crash the process
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptError(f"{file} is damaged ({error}): build the knowledge base again") from error
    return batch
