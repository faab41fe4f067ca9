"""One type per attribute across all pieces: what one file writes as numbers and another as words becomes text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from clew.kb.sources.pieces import as_lists, as_text, is_list, is_text
from clew.kb.tables import EDGE_COLUMNS, NODE_COLUMNS, Piece


def agreed(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces with every attribute that differs in type cast to a type that holds all of its values."""
    kinds: dict[str, set[pa.DataType]] = {}
    for piece in pieces:
        for column in piece.table.schema:
            if column.name not in NODE_COLUMNS + EDGE_COLUMNS and not pa.types.is_null(column.type):
                kinds.setdefault(column.name, set()).add(column.type)
    wanted = {name: common_type(types) for name, types in kinds.items() if len(types) > 1}
    if not wanted:
        return tuple(pieces)
    return tuple(replace(piece, table=_cast(piece.table, wanted)) for piece in pieces)


def concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all tables; a column that some lack is null there, and one that differs in type is cast."""
    kinds: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for column in table.schema:
            kinds.setdefault(column.name, set()).add(column.type)
    wanted = {name: common_type(types - {pa.null()}) for name, types in kinds.items() if len(types) > 1}
    return pa.concat_tables([_cast(table, wanted) for table in tables], promote_options="default")


def common_type(types: set[pa.DataType]) -> pa.DataType:
    """The narrowest type that holds the values of all."""
    if len(types) == 1:
        return next(iter(types))
    if any(map(is_list, types)):
        return pa.large_list(pa.large_string())
    for belongs, common in (
        (pa.types.is_integer, pa.int64()),
        (lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind), pa.float64()),
        (lambda kind: pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None), pa.timestamp("us")),
    ):
        if all(map(belongs, types)):
            return common
    return pa.large_string()


def cast_to(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The column in a type that `common_type` found for it and others."""
    if column.type == kind:
        return column
    if is_list(kind) and not is_list(column.type):
        column = as_lists(column, split=False)
    return pc.cast(as_text(column) if is_text(kind) else column, kind)


def _cast(table: pa.Table, wanted: dict[str, pa.DataType]) -> pa.Table:
    for name, kind in wanted.items():
        if name in table.column_names:
            place = table.column_names.index(name)
            table = table.set_column(place, name, cast_to(table[name], kind))
    return table
