"""Combine tables: find common column types, and split wide tables with both nodes and edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.store.graph.tables import EDGE_COLUMNS, NODE_COLUMNS, Piece
from clew.store.sources.columns import edge_roles, node_roles, plain
from clew.store.sources.pieces import RawTable, as_lists, as_text, is_list, is_number, is_text


def agreed(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Cast attributes with different types to a common type."""
    kinds: dict[str, set[pa.DataType]] = {}
    for piece in pieces:
        own = EDGE_COLUMNS if {*EDGE_COLUMNS} <= {*piece.table.column_names} else NODE_COLUMNS
        for column in piece.table.schema:
            if column.name not in own and not pa.types.is_null(column.type):
                kinds.setdefault(column.name, set()).add(column.type)
    wanted = {name: common_type(types) for name, types in kinds.items() if len(types) > 1}
    if not wanted:
        return tuple(pieces)
    return tuple(replace(piece, table=_cast_column(piece.table, wanted)) for piece in pieces)


def concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables. Missing columns are null, and columns with different types are cast."""
    kinds: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for column in table.schema:
            kinds.setdefault(column.name, set()).add(column.type)
    wanted = {name: common_type(types - {pa.null()}) for name, types in kinds.items() if len(types) > 1}
    return pa.concat_tables([_cast_column(table, wanted) for table in tables], promote_options="default")


def common_type(types: set[pa.DataType]) -> pa.DataType:
    """Return the narrowest type for the values of all types."""
    if len(types) == 1:
        return next(iter(types))
    if any(map(is_list, types)):
        return pa.large_list(pa.large_string())
    for belongs, common in (
        (pa.types.is_integer, pa.int64()),
        (is_number, pa.float64()),
        (lambda kind: pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None), pa.timestamp("us")),
    ):
        if all(map(belongs, types)):
            return common
    return pa.large_string()


def cast_to(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Cast a column to the result of `common_type`."""
    if column.type == kind:
        return column
    if is_list(kind) and not is_list(column.type):
        column = as_lists(column, split=False)
    return pc.cast(as_text(column) if is_text(kind) else column, kind)


def _cast_column(table: pa.Table, wanted: dict[str, pa.DataType]) -> pa.Table:
    for name, kind in wanted.items():
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, cast_to(table[name], kind))
    return table


_KEY = "\0key"


def split_wide(tables: Sequence[RawTable], columns: Mapping[str, str]) -> tuple[list[RawTable], list[RawTable]]:
    """Return the edge tables without columns about their ends, and tables of the ends, each end once."""
    narrow: list[RawTable] = []
    seen: set[object] = set()
    ends: list[RawTable] = []
    for raw in tables:
        roles = edge_roles(raw.table.column_names, columns)
        described = _described(raw.table.column_names, roles)
        if not described:
            narrow.append(raw)
            continue
        sides = []
        for index, role in enumerate(("head", "tail")):
            side = {_KEY: raw.table[roles[role]]}
            side |= {name: raw.table[pair[index]] for name, pair in described.items()}
            sides.append(Piece(pa.table(side), raw.file))
        head, tail = (piece.table for piece in agreed(sides))
        keys = pa.chunked_array([*as_text(head[_KEY]).chunks, *as_text(tail[_KEY]).chunks])
        rows = _first_rows(keys, seen)
        both = pa.concat_tables([head, tail], promote_options="permissive").take(rows)
        lines = pa.array([raw.line(row % raw.table.num_rows) for row in rows.to_pylist()], pa.int64())
        ends.append(RawTable(both, raw.file, lines=lines, typed=raw.typed))
        used = [name for pair in described.values() for name in pair]
        narrow.append(replace(raw, table=raw.table.drop_columns(used)))
    return narrow, ends


def end_columns(columns: Mapping[str, str]) -> dict[str, str]:
    """Return the column mapping for a table of ends."""
    return {**columns, "key": _KEY}


def _described(names: Sequence[str], roles: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return node columns as (head column, tail column). Empty unless names or types are among them."""
    by_plain = {plain(name): name for name in names}
    head, tail = (plain(roles[role]) for role in ("head", "tail"))
    found: dict[str, tuple[str, str]] = {}
    for first, second in ((head, tail), (head.rpartition("_")[0], tail.rpartition("_")[0])):
        for name in by_plain if first and second else ():
            rest = name.removeprefix(first + "_")
            if rest != name and f"{second}_{rest}" in by_plain and by_plain[name] not in roles.values():
                found[rest] = (by_plain[name], by_plain[f"{second}_{rest}"])
    return found if {"name", "type"} & node_roles(list(found), {}).keys() else {}


def _first_rows(keys: pa.ChunkedArray, seen: set[object]) -> pa.Array:
    """Return the first row of each new key, and add the keys to `seen`."""
    rows = pa.table({"key": keys, "row": pa.array(np.arange(len(keys)))})
    first = rows.group_by("key").aggregate([("row", "min")]).sort_by("row_min").to_pydict()
    fresh = [row for row, key in zip(first["row_min"], first["key"], strict=True) if key not in seen]
    seen.update(first["key"])
    return pa.array(fresh, pa.int64())
