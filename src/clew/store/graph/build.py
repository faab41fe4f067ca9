"""Write source tables as the files of a generation, in canonical order, so that equal sources give equal bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.core.errors import SourceError
from clew.core.schema import NodeType, Relation, Schema, leads_down, may_be_parent, with_hierarchies
from clew.core.types import IntArray
from clew.store.graph.adjacency import Adjacency, LongArray
from clew.store.graph.manifest import Facts
from clew.store.graph.node_table import attribute_table, node_table, require
from clew.store.graph.tables import EDGE_COLUMNS, GROUPS, HIDDEN, NODE_COLUMNS, STRING, Piece, Problems, Tables

BLOCK = 1_000_000
"""Number of edges counted at once, so that each temporary array takes about 8 MB."""


def write_graph(tables: Tables, folder: Path, problems: Problems) -> Facts:
    """Write nodes.arrow, edges.arrow, types.npy and graph/*.npy. Ids follow the order of the keys."""
    for skipped in tables.skipped:
        problems.add(skipped.message, skipped.file, skipped.line)
    nodes = node_table(tables, problems)
    if not nodes.num_rows:
        files = ", ".join(piece.file for piece in (*tables.nodes, *tables.edges)) or "no file"
        raise SourceError("the sources contain no node: give at least one row", file=files)
    type_names = tuple(sorted(pc.unique(nodes["type"]).to_pylist()))
    types = pc.index_in(nodes["type"], value_set=pa.array(type_names, pa.large_string())).to_numpy().astype(np.int32)
    edges = edge_columns(tables.edges, nodes["key"].combine_chunks(), problems)
    schema = infer_schema(nodes, types, type_names, edges)
    _write_table(nodes.drop_columns(["type"]), folder / "nodes.arrow")
    np.save(folder / "types.npy", types)
    np.save(folder / "by_type.npy", np.argsort(types, kind="stable").astype(np.int32))
    graph = folder / "graph"
    graph.mkdir()
    count, relations = nodes.num_rows, len(edges.relation_names)
    if edges.attributes.num_columns:
        edges = _canonical(edges)
        _write_table(edges.attributes, folder / "edges.arrow")
    outward = sorted_edges(edges.heads, edges.relations, edges.tails, count, relations)
    Adjacency.build(*outward, count, relations).save(graph, "out")
    del outward
    inward = sorted_edges(edges.tails, edges.relations, edges.heads, count, relations)
    Adjacency.build(*inward, count, relations).save(graph, "in")
    return Facts(count, len(edges.heads), schema, tables.notes)


def sorted_edges(
    sources: IntArray, relations: IntArray, targets: IntArray, nodes: int, kinds: int
) -> tuple[LongArray, IntArray]:
    """Sort edges by (source, relation, target). Return source * kinds + relation of each edge, and its target."""
    groups = sources.astype(np.int64)
    groups *= max(kinds, 1)
    groups += relations
    if nodes * max(kinds, 1) * nodes >= 2**63:  # too wide for one integer per row
        order = np.lexsort((targets, groups))
        return groups[order], targets[order]
    groups *= nodes
    groups += targets
    groups.sort()
    last = np.empty(len(groups), dtype=np.int32)
    np.remainder(groups, nodes, out=last, casting="unsafe")
    groups //= nodes
    return groups, last


def infer_schema(nodes: pa.Table, types: IntArray, type_names: tuple[str, ...], edges: EdgeColumns) -> Schema:
    """Infer node types with counts and attributes, and relations with head type, tail type and count."""
    counts = np.bincount(types, minlength=len(type_names))
    attributes = [name for name in nodes.column_names if name not in (*NODE_COLUMNS, *HIDDEN)]
    owners: dict[str, set[int]] = {}
    for name in attributes:
        owners[name] = set(np.unique(types[nodes[name].is_valid().to_numpy()]).tolist())
    node_types = tuple(
        NodeType(name, int(counts[code]), attributes=tuple(a for a in attributes if code in owners[a]))
        for code, name in enumerate(type_names)
    )
    wide = len(type_names)
    relations = []
    for row, amount in sorted(_signatures(edges, types, wide).items()):
        code, head, tail = row // wide // wide, row // wide % wide, row % wide
        name = edges.relation_names[code]
        relations.append(Relation(name, type_names[head], type_names[tail], amount))
    return Schema(
        node_types,
        with_hierarchies(relations, _trees(edges)),
        {name: "date" if _are_days(nodes[name]) else kind_of(nodes[name].type) for name in attributes},
        {field.name: kind_of(field.type) for field in edges.attributes.schema if field.name != GROUPS},
    )


def _trees(edges: EdgeColumns) -> frozenset[str]:
    """Return the relations by which no node has two parents, in either direction."""
    found = set()
    for code, name in enumerate(edges.relation_names):
        if may_be_parent(name):
            own = edges.relations == code
            children = (edges.tails if leads_down(name) else edges.heads)[own]
            if len(np.unique(children)) == len(children):
                found.add(name)
    return frozenset(found)


def _signatures(edges: EdgeColumns, types: IntArray, wide: int) -> Counter[int]:
    """Count the edges of each (relation, head type, tail type), block by block to save memory."""
    tally: Counter[int] = Counter()
    for start in range(0, len(edges.heads), BLOCK):
        block = slice(start, start + BLOCK)
        signature = edges.relations[block].astype(np.int64) * wide + types[edges.heads[block]]
        found, amounts = np.unique(signature * wide + types[edges.tails[block]], return_counts=True)
        tally.update(dict(zip(found.tolist(), amounts.tolist(), strict=True)))
    return tally


_MONTH = "[0-9]{4}-(0[1-9]|1[0-2])"
_DAY = f"^{_MONTH}-(0[1-9]|[12][0-9]|3[01])$"
_DAY_OR_LESS = f"{_DAY}|^{_MONTH}$|^[0-9]{{4}}$"


def _are_days(column: pa.ChunkedArray) -> bool:
    """Return whether texts are dates, some of them only a month or a year."""
    if not pa.types.is_large_string(column.type):
        return False
    are_dates, are_days = (pc.match_substring_regex(column, pattern) for pattern in (_DAY_OR_LESS, _DAY))
    return bool(pc.all(are_dates).as_py() and pc.any(are_days).as_py())


def kind_of(arrow_type: pa.DataType) -> str:
    """Return the schema's name for a type of attribute."""
    if pa.types.is_integer(arrow_type):
        return "integer"
    if pa.types.is_boolean(arrow_type):
        return "boolean"
    if pa.types.is_temporal(arrow_type):
        return "date"
    if pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type):
        return "number"
    is_list = pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type)
    return "list" if is_list or pa.types.is_fixed_size_list(arrow_type) else "text"


def _canonical(edges: EdgeColumns) -> EdgeColumns:
    """Sort edges with attributes canonically. Parallel edges are sorted by attributes."""
    keys = pa.table({"head": edges.heads, "relation": edges.relations, "tail": edges.tails})
    for name in edges.attributes.column_names:
        column = edges.attributes[name]
        if pa.types.is_large_list(column.type):
            column = pc.binary_join(column, pa.scalar("\x00", column.type.value_type))
        keys = keys.append_column(f"attribute {name}", column)
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])
    taken = order.to_numpy()
    return EdgeColumns(
        edges.heads[taken],
        edges.relations[taken],
        edges.tails[taken],
        edges.relation_names,
        edges.attributes.take(order),
    )


def _write_table(table: pa.Table, file: Path) -> None:
    """Write one uncompressed record batch, so that any row can be read from the mapped file."""
    whole = table.combine_chunks()
    columns = [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in whole.columns]
    batch = pa.record_batch(columns, names=whole.column_names)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


MOST_DENSE = 4
"""Maximum length of a lookup array for integer keys, as a multiple of the number of nodes."""


@dataclass(frozen=True, eq=False)
class EdgeColumns:
    """Every edge in source order. `attributes` has no columns if edges have no attributes."""

    heads: IntArray
    relations: IntArray
    tails: IntArray
    relation_names: tuple[str, ...]
    attributes: pa.Table


class KeyMap:
    """Maps user keys to node ids, for whole columns."""

    def __init__(self, sorted_keys: pa.Array) -> None:
        self._keys = sorted_keys
        self._last, self._last_ids = pa.chunked_array([[]]), np.empty(0, dtype=np.int32)

    def ids(self, column: pa.ChunkedArray) -> IntArray:
        """Return the id of each key, or -1 for unknown keys."""
        if pa.types.is_integer(column.type) and (dense := self._dense) is not None:
            return _joined([_looked_up(chunk.to_numpy(zero_copy_only=False), dense) for chunk in column.chunks])
        if pa.types.is_dictionary(column.type):
            return _places(column, self._keys)
        if not column.equals(self._last):  # edges from several columns of a table have the same heads
            self._last, self._last_ids = column, _places(column, self._keys)
        return self._last_ids

    @cached_property
    def _dense(self) -> IntArray | None:
        """Array from small non-negative integer keys to ids. None if the keys are not such integers."""
        if not pc.all(pc.match_substring_regex(self._keys, r"^(0|[1-9][0-9]{0,9})$")).as_py():
            return None
        keys = self._keys.cast(pa.int64()).to_numpy()
        if keys.max() >= MOST_DENSE * len(keys) + 1_000_000:
            return None
        dense = np.full(keys.max() + 1, -1, dtype=np.int32)
        dense[keys] = np.arange(len(keys), dtype=np.int32)
        return dense


def _looked_up(keys: NDArray[np.integer[Any]], dense: IntArray) -> IntArray:
    inside = (keys >= 0) & (keys < len(dense))
    if inside.all():
        return np.asarray(dense[keys])
    return np.where(inside, dense[np.where(inside, keys, 0)], np.int32(-1))


def edge_columns(pieces: tuple[Piece, ...], keys: pa.Array, problems: Problems) -> EdgeColumns:
    """Look up both ends of every edge. Report edges to unknown nodes as problems."""
    for piece in pieces:
        require(piece, EDGE_COLUMNS)
    names = relation_names(pieces)
    key_map = KeyMap(keys)
    parts = [_one_piece(piece, key_map, names, problems) for piece in pieces]
    kept_tables = [part.attributes for part in parts if part.attributes.num_columns]
    attributes = pa.table({})
    if kept_tables:
        padded = [
            part.attributes if part.attributes.num_columns else _blank(kept_tables[0], len(part.heads))
            for part in parts
        ]
        attributes = pa.concat_tables(padded, promote_options="permissive")
        attributes = attributes.select(sorted(attributes.column_names))
    heads, relations, tails = (
        _joined([getattr(part, side) for part in parts]) for side in ("heads", "relations", "tails")
    )
    used = np.bincount(relations, minlength=len(names)) > 0
    if not used.all():  # drop relations whose edges were all skipped
        relations = (np.cumsum(used) - 1)[relations].astype(np.int32)
        names = tuple(name for name, is_used in zip(names, used.tolist(), strict=True) if is_used)
    return EdgeColumns(heads, relations, tails, names, attributes)


def relation_names(pieces: tuple[Piece, ...]) -> tuple[str, ...]:
    """Return all relations in alphabetical order. The index of a relation is its code."""
    found: set[str] = set()
    for piece in pieces:
        found |= set(pc.unique(piece.table["relation"]).cast(STRING).to_pylist())
    return tuple(sorted(found))


def _one_piece(piece: Piece, key_map: KeyMap, names: tuple[str, ...], problems: Problems) -> EdgeColumns:
    table = piece.table
    heads, tails = key_map.ids(table["head"]), key_map.ids(table["tail"])
    relations = _places(table["relation"], pa.array(names, STRING))
    attributes = attribute_table(table, [name for name in table.column_names if name not in EDGE_COLUMNS])
    good: NDArray[np.bool_] = (heads >= 0) & (tails >= 0)
    if not good.all():
        for row in np.flatnonzero(~good).tolist():
            end = "head" if heads[row] < 0 else "tail"
            key = table[end][row].as_py()
            problems.add(f"no node has the key {key!r}, the {end} of this edge", piece.file, piece.line(row))
        heads, relations, tails = heads[good], relations[good], tails[good]
        attributes = attributes.filter(pa.array(good)) if attributes.num_columns else attributes
    return EdgeColumns(heads, relations, tails, names, attributes)


def _places(column: pa.ChunkedArray, values: pa.Array) -> IntArray:
    """Return the index of each text in `values`, or -1. Dictionaries are looked up once per chunk."""
    if not pa.types.is_dictionary(column.type):
        found = pc.index_in(column.cast(STRING), value_set=values)
        return np.asarray(pc.fill_null(found, -1).to_numpy(), dtype=np.int32)
    entries = (_places(pa.chunked_array([chunk.dictionary]), values) for chunk in column.chunks)
    return _joined([of[chunk.indices.to_numpy()] for of, chunk in zip(entries, column.chunks, strict=True)])


def _blank(like: pa.Table, rows: int) -> pa.Table:
    return pa.table({like.column_names[0]: pa.nulls(rows, like.schema[0].type)})


def _joined(arrays: list[IntArray]) -> IntArray:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int32)
