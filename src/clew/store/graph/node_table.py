"""Merge the node tables of the sources into one table sorted by key, with the standard columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.core.errors import SourceError
from clew.store.graph.tables import EDGE_COLUMNS, GROUPS, NODE_COLUMNS, STRING, Piece, Problems, Tables, texts_of

STRINGS = pa.large_list(pa.large_string())


def node_table(tables: Tables, problems: Problems) -> pa.Table:
    """Return all nodes sorted by key: key, type, name, aliases, text, then the attributes in alphabetical order."""
    pieces = [piece for piece in tables.nodes if piece.table.num_rows]
    for piece in pieces:
        require(piece, ("key",))
    parts = [_normal(piece, tables.implicit_type) for piece in pieces]
    if tables.implicit or not tables.nodes:
        parts.append(with_edge_groups(_implicit_nodes(tables, parts), tables.edges))
    table = pa.concat_tables(parts, promote_options="permissive")
    del parts
    order = _unique(table["key"].combine_chunks(), pieces, problems)
    attributes = sorted(set(table.column_names) - set(NODE_COLUMNS))
    found = {}
    for name in (*NODE_COLUMNS, *attributes):  # one at a time, so that few columns are in memory twice
        found[name] = _empty_is_absent(name, table[name].combine_chunks().take(order))
        table = table.drop_columns([name])
    return pa.table(found)


def require(piece: Piece, columns: Sequence[str]) -> None:
    """Raise SourceError if a column is missing or lacks a value."""
    for column in columns:
        if column not in piece.table.column_names:
            there = ", ".join(piece.table.column_names) or "none"
            raise SourceError(f"no column {column!r}: the columns are {there}", file=piece.file)
        if piece.table[column].null_count:
            row = int(np.flatnonzero(piece.table[column].is_null().to_numpy())[0])
            raise SourceError(f"no value for {column!r}", file=piece.file, line=piece.line(row))


def _normal(piece: Piece, default_type: str) -> pa.Table:
    table, rows = piece.table, piece.table.num_rows
    key = table["key"].cast(STRING)
    names = set(table.column_names)
    columns = {
        "key": key,
        "type": _filled(table["type"], default_type)
        if "type" in names
        else pa.repeat(pa.scalar(default_type, STRING), rows),
        "name": _named(table["name"].cast(STRING), key) if "name" in names else key,
        "aliases": table["aliases"].cast(STRINGS) if "aliases" in names else pa.nulls(rows, STRINGS),
        "text": _filled(table["text"], "") if "text" in names else pa.repeat(pa.scalar("", STRING), rows),
    }
    columns |= {name: _storable(table[name]) for name in table.column_names if name not in NODE_COLUMNS}
    return pa.table(columns)


def _named(names: pa.ChunkedArray, keys: pa.ChunkedArray) -> pa.ChunkedArray:
    blank = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(names), ""), True)
    return pc.if_else(blank, keys, names) if pc.any(blank).as_py() else names


def _filled(column: pa.ChunkedArray, default: str) -> pa.ChunkedArray:
    text = column.cast(STRING)
    if default:
        text = pc.if_else(pc.fill_null(pc.equal(text, ""), True), pa.scalar(default, STRING), text)
    return pc.fill_null(text, default)


def _storable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert attributes to the stored types: integers, numbers, booleans, dates, texts and lists of texts."""
    kind = column.type
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.float64())
    if pa.types.is_boolean(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        return column
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return column.cast(STRINGS)
    if (
        pa.types.is_null(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_dictionary(kind)
    ):
        return column.cast(STRING)
    return pa.chunked_array([pa.array([None if v is None else str(v) for v in column.to_pylist()], STRING)])


def _empty_is_absent(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Store empty lists and empty attribute texts as null, so that equal bases are stored equally."""
    if pa.types.is_large_list(column.type):
        return pc.if_else(pc.equal(pc.list_value_length(column), 0), pa.scalar(None, column.type), column)
    if pa.types.is_large_string(column.type) and name not in NODE_COLUMNS:
        return pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)
    return column


def attribute_table(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the given columns in the stored types."""
    return pa.table({name: _storable(table[name]) for name in names})


def _implicit_nodes(tables: Tables, known: Sequence[pa.Table]) -> pa.Table:
    """Return the entities that only edges name.

    Heads get the type of the sources' subjects, tails are plain entities.
    """
    for piece in tables.edges:
        require(piece, EDGE_COLUMNS)
    seen = pa.chunked_array([chunk for table in known for chunk in table["key"].chunks], STRING)

    heads = pc.unique(texts_of(tables.edges, "head"))
    heads = heads.filter(pc.invert(pc.is_in(heads, value_set=seen))) if len(seen) else heads
    tails = pc.unique(texts_of(tables.edges, "tail"))
    tails = tails.filter(pc.invert(pc.is_in(tails, value_set=pa.chunked_array([*seen.chunks, heads], STRING))))
    keys = pa.chunked_array([heads, tails], STRING)
    types = pa.chunked_array(
        [
            pa.repeat(pa.scalar(tables.implicit_type, STRING), len(heads)),
            pa.repeat(pa.scalar("entity", STRING), len(tails)),
        ]
    )
    rows = len(keys)
    text = pa.repeat(pa.scalar("", STRING), rows)
    return pa.table({"key": keys, "type": types, "name": keys, "aliases": pa.nulls(rows, STRINGS), "text": text})


def with_edge_groups(nodes: pa.Table, edges: Sequence[Piece]) -> pa.Table:
    """Give nodes that only edges describe the groups of these edges. A node with a public edge is public."""
    if not any(GROUPS in piece.table.column_names for piece in edges):
        return nodes
    found: dict[str, set[str]] = {}
    public: set[str] = set()
    for piece in edges:
        rows = piece.table.num_rows
        groups = piece.table[GROUPS].to_pylist() if GROUPS in piece.table.column_names else [None] * rows
        for end in ("head", "tail"):
            for key, some in zip(piece.texts(end).to_pylist(), groups, strict=True):
                named = {group for group in some or () if group}
                found.setdefault(key, set()).update(named)
                public.update(() if named else (key,))
    visible = [None if key in public else sorted(found.get(key, ())) for key in nodes["key"].cast(STRING).to_pylist()]
    return nodes.append_column(GROUPS, pa.array(visible, STRINGS))


def _unique(keys: pa.Array, pieces: Sequence[Piece], problems: Problems) -> pa.Array:
    """Return the rows in the order of their keys. Report repeated keys as problems."""
    order = pc.sort_indices(keys)
    keys = keys.take(order)
    repeated = pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
    if not repeated.any():
        return order
    for number, row in enumerate(np.flatnonzero(repeated).tolist()):
        key = keys[row + 1].as_py()
        file, line = _second(key, pieces) if number < problems.most_listed else ("", 0)  # later ones are counted
        problems.add(f"the key {key!r} is already used by another node", file, line)
    return order.filter(pa.array(np.append(True, ~repeated)))


def _second(key: str, pieces: Sequence[Piece]) -> tuple[str, int]:
    """Return the position of the second occurrence of a key."""
    places = [
        (piece.file, piece.line(int(row)))
        for piece in pieces
        for row in np.flatnonzero(pc.equal(piece.texts("key"), key).to_numpy())[:2]
    ]
    return places[1]
