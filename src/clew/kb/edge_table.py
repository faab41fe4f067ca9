"""From the edge pieces of the sources to integer arrays: heads, relation codes and tails, attributes beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.core.types import IntArray
from clew.kb.node_table import STRING, attribute_table, require
from clew.kb.tables import EDGE_COLUMNS, Piece, Problems

MOST_DENSE = 4
"""Integer keys are looked up in a plain array while it is at most this many times as long as the nodes are many."""


@dataclass(frozen=True, eq=False)
class EdgeColumns:
    """Every edge of the sources in their order; `attributes` has no columns where edges carry nothing."""

    heads: IntArray
    relations: IntArray
    tails: IntArray
    relation_names: tuple[str, ...]
    attributes: pa.Table


class KeyMap:
    """User keys → node ids, for a whole column at a time."""

    def __init__(self, sorted_keys: pa.Array) -> None:
        self._keys = sorted_keys
        self._dense: IntArray | None = None
        self._tried_dense = False

    def ids(self, column: pa.ChunkedArray) -> IntArray:
        """The id of each key, -1 where no node has it."""
        if pa.types.is_integer(column.type) and (dense := self._dense_table()) is not None:
            return _joined([_looked_up(chunk.to_numpy(zero_copy_only=False), dense) for chunk in column.chunks])
        found = pc.index_in(column.cast(STRING), value_set=self._keys)
        return np.asarray(pc.fill_null(found, -1).to_numpy(), dtype=np.int32)

    def _dense_table(self) -> IntArray | None:
        """Small non-negative integer keys as an array from key to id; None where the keys are not of that kind."""
        if not self._tried_dense:
            self._tried_dense = True
            plain = pc.all(pc.match_substring_regex(self._keys, r"^(0|[1-9][0-9]{0,9})$")).as_py()
            if plain:
                keys = self._keys.cast(pa.int64()).to_numpy()
                if keys.max() < MOST_DENSE * len(keys) + 1_000_000:
                    self._dense = np.full(keys.max() + 1, -1, dtype=np.int32)
                    self._dense[keys] = np.arange(len(keys), dtype=np.int32)
        return self._dense


def _looked_up(keys: NDArray[np.integer[Any]], dense: IntArray) -> IntArray:
    inside = (keys >= 0) & (keys < len(dense))
    if inside.all():
        return np.asarray(dense[keys])
    return np.where(inside, dense[np.where(inside, keys, 0)], np.int32(-1))


def edge_columns(pieces: tuple[Piece, ...], keys: pa.Array, problems: Problems) -> EdgeColumns:
    """Look up both ends of every edge; an edge to an unknown node is a problem."""
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
    if not used.all():  # a relation whose every edge was skipped has no code
        relations = (np.cumsum(used) - 1)[relations].astype(np.int32)
        names = tuple(name for name, is_used in zip(names, used.tolist(), strict=True) if is_used)
    return EdgeColumns(heads, relations, tails, names, attributes)


def relation_names(pieces: tuple[Piece, ...]) -> tuple[str, ...]:
    """Every relation in alphabetical order; the position is its code."""
    found: set[str] = set()
    for piece in pieces:
        found |= set(pc.unique(piece.table["relation"]).cast(STRING).to_pylist())
    return tuple(sorted(found))


def _one_piece(piece: Piece, key_map: KeyMap, names: tuple[str, ...], problems: Problems) -> EdgeColumns:
    table = piece.table
    heads, tails = key_map.ids(table["head"]), key_map.ids(table["tail"])
    relations = _relation_codes(table["relation"], pa.array(names, STRING))
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


def _relation_codes(column: pa.ChunkedArray, names: pa.Array) -> IntArray:
    """The position of each relation among the names; a dictionary is looked up once a chunk, not once a row."""
    if not pa.types.is_dictionary(column.type):
        return np.asarray(pc.index_in(column.cast(STRING), value_set=names).to_numpy(), dtype=np.int32)
    parts = []
    for chunk in column.chunks:
        places = pc.index_in(chunk.dictionary.cast(STRING), value_set=names).to_numpy(zero_copy_only=False)
        parts.append(places.astype(np.int32)[chunk.indices.to_numpy()])
    return _joined(parts)


def _blank(like: pa.Table, rows: int) -> pa.Table:
    return pa.table({like.column_names[0]: pa.nulls(rows, like.schema[0].type)})


def _joined(arrays: list[IntArray]) -> IntArray:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int32)
