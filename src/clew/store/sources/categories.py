"""Turn columns of repeated texts into nodes, with edges from the rows, in tables without edges.

A column `Origin: Japan` of many cars refers to Japan, which users will ask about. Numbers and dates stay attributes, so
that they can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.core.amounts import kind_of_texts
from clew.core.nouns import singular
from clew.store.graph.tables import GROUPS, NODE_COLUMNS, STRING, Piece, Tables
from clew.store.graph.visibility import has_groups
from clew.store.sources.files import stem_of
from clew.store.sources.pieces import constant, is_list, is_text, lists_of, short_names
from clew.store.sources.profile import profile_column


def with_categories(tables: Tables) -> Tables:
    """Add nodes and edges for categories, if the tables have no edges.

    Rows restricted to groups keep their texts, since a separate node would make these public.
    """
    if tables.edges or tables.implicit or any(GROUPS in piece.table.column_names for piece in tables.nodes):
        return tables
    return linked(
        tables,
        [
            (index, column)
            for index, piece in enumerate(tables.nodes)
            for column in _text_columns(piece)
            if (profile := profile_column(column, piece.table[column])).is_category
            and kind_of_texts(profile.sample) == "text"
        ],
    )


def linked_as_in(old: Tables, changes: Tables) -> tuple[Tables, tuple[Piece, ...]]:
    """Convert columns of changes to edges if their texts are nodes in the base. Also return the replaced edges.

    Rows of a table in the base get its type and keys. If any rows are restricted to groups, texts stay attributes,
    since separate nodes would make them public.
    """
    made = {column for piece in old.nodes for column in _made_columns(piece)}
    typed = [piece.table["type"] for piece in old.nodes if "type" in piece.table.column_names]
    others = {kind for types in typed for kind in pc.unique(types).to_pylist()} - made
    nodes = [_of_table(piece, others, old.nodes) for piece in changes.nodes]
    columns = [(index, column) for index, piece in enumerate(nodes) for column in _text_columns(piece)]
    changes = replace(changes, nodes=tuple(nodes))
    found = linked(changes, [(index, column) for index, column in columns if column in made])
    is_restricted = old.visibility.rules or any(map(has_groups, (*old.nodes, *changes.nodes)))
    return changes if is_restricted else found, found.edges[len(changes.edges) :]


def _of_table(piece: Piece, types: set[str], old: Sequence[Piece]) -> Piece:
    """Give rows without a type the type named after their file, with its keys, or the only type."""
    if "type" in piece.table.column_names:
        return piece
    table = stem_of(Path(piece.file))
    kind = singular(table) if singular(table) in types else min(types) if len(types) == 1 else None
    if kind is None:
        return piece
    keys = piece.table["key"].cast(STRING)
    if any(pc.any(pc.starts_with(other.table["key"].cast(STRING), f"{table}/")).as_py() for other in old):
        keys = value_keys(table, keys)
    made = piece.table.set_column(piece.table.column_names.index("key"), "key", keys)
    return replace(piece, table=made.append_column("type", constant(kind, piece.table.num_rows)))


def linked(tables: Tables, columns: Sequence[tuple[int, str]]) -> Tables:
    """Convert columns to edges and nodes. Each column is given with the index of its piece."""
    nodes, edges = list(tables.nodes), []
    values: dict[str, list[pa.Array]] = {}
    for index, column in columns:
        piece = nodes[index]
        heads, texts = _pairs(piece, column)
        values.setdefault(column, []).append(texts.dictionary)
        tails = pa.DictionaryArray.from_arrays(texts.indices, value_keys(column, texts.dictionary))
        edges.append(
            Piece(pa.table({"head": heads, "relation": constant(column, len(heads)), "tail": tails}), piece.file)
        )
        nodes[index] = replace(piece, table=piece.table.drop_columns([column]))
    for column, parts in values.items():
        texts = pc.unique(pa.chunked_array(parts))
        made: dict[str, Any] = {"key": value_keys(column, texts), "type": constant(column, len(texts)), "name": texts}
        if (short := short_names(texts)) is not None:
            made["aliases"] = lists_of([short])
        nodes.append(Piece(pa.table(made), f"the column {column}"))
    return replace(tables, nodes=tuple(nodes), edges=(*tables.edges, *edges))


def value_keys(column: str | pa.ChunkedArray, texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return keys such as `Origin/Japan`, since texts of different columns may be equal."""
    before = pa.scalar(column, STRING) if isinstance(column, str) else column
    return pc.binary_join_element_wise(before, texts, pa.scalar("/", STRING))


def _made_columns(piece: Piece) -> list[str]:
    """Return the types of nodes that were created from texts in a column."""
    if not {"type", "name"} <= set(piece.table.column_names):
        return []
    types, names = (piece.table[name].cast(STRING) for name in ("type", "name"))
    is_made = pc.equal(piece.table["key"].cast(STRING), value_keys(types, names))
    found: list[str] = pc.unique(types.filter(pc.fill_null(is_made, False))).to_pylist()
    return found


def _text_columns(piece: Piece) -> list[str]:
    kinds = {column.name: column.type for column in piece.table.schema if column.name not in NODE_COLUMNS}
    return [name for name, kind in kinds.items() if is_text(kind.value_type if is_list(kind) else kind)]


def _pairs(piece: Piece, column: str) -> tuple[pa.Array, pa.DictionaryArray]:
    """Return the row key and the text for every text in a column."""
    keys, texts = piece.table["key"].combine_chunks(), piece.table[column].combine_chunks()
    if is_list(texts.type):
        keys, texts = keys.take(pc.list_parent_indices(texts)), pc.list_flatten(texts)
    texts = pc.utf8_trim_whitespace(texts.cast(STRING))
    is_there = pc.fill_null(pc.not_equal(texts, ""), False)
    keys = keys.cast(STRING)
    if not pc.all(is_there).as_py():  # otherwise the edges share the keys of the rows
        keys, texts = keys.filter(is_there), texts.filter(is_there)
    return keys, texts.dictionary_encode()
