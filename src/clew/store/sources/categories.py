"""Tables alone as a graph: columns whose texts come again and again become nodes, and lead to them from the rows.

Who says `Origin: Japan` of many cars speaks of Japan, and others will ask for it. A column whose texts are the names or
keys of rows leads to those rows instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from clew.store.graph.tables import GROUPS, NODE_COLUMNS, Piece, Tables
from clew.store.graph.visibility import has_groups
from clew.store.sources.pieces import is_list, is_text

_TEXT = pa.large_string()
REPEATED = 0.9
"""The share of different texts up to which a column is a category; above, it describes each row for itself."""
LONGEST_NAME = 80
"""Characters; what is longer describes."""


def with_categories(tables: Tables) -> Tables:
    """The tables with nodes and edges for their categories, where they have no edges of their own.

    Rows that only some may see keep their texts: a node of its own would show these to all.
    """
    if tables.edges or tables.implicit or any(GROUPS in piece.table.column_names for piece in tables.nodes):
        return tables
    rows = [_rows(piece) for piece in tables.nodes]
    links = []
    for place, piece in enumerate(tables.nodes):
        for column in _text_columns(piece):
            _, texts = _pairs(piece, column)
            there = next((one for one in rows if len(texts) and pc.all(pc.is_in(texts, one.names)).as_py()), None)
            if there is not None or _is_category(texts):
                links.append(Link(place, column, there))
    return linked(tables, links)


def linked_as_in(old: Tables, changes: Tables) -> tuple[Tables, tuple[Piece, ...]]:
    """Changes to a base with those columns as edges whose texts are nodes there, and the edges that they replace.

    Where all other nodes of the base are of one type, so are new rows that do not say theirs. If some rows are for
    groups, texts stay attributes: a node of its own would show them to all.
    """
    made = {column for piece in old.nodes for column in _made_columns(piece)}
    if not made:
        return changes, ()
    others = {kind for piece in old.nodes for kind in pc.unique(piece.table["type"]).to_pylist()} - made
    nodes = [_of_type(piece, *others) if len(others) == 1 else piece for piece in changes.nodes]
    columns = [(place, column) for place, piece in enumerate(nodes) for column in _text_columns(piece)]
    changes = replace(changes, nodes=tuple(nodes))
    found = linked(changes, [Link(place, column) for place, column in columns if column in made])
    is_restricted = old.visibility.rules or any(map(has_groups, (*old.nodes, *changes.nodes)))
    return changes if is_restricted else found, found.edges[len(changes.edges) :]


def _of_type(piece: Piece, kind: str) -> Piece:
    if "type" in piece.table.column_names:
        return piece
    types = pa.repeat(pa.scalar(kind, _TEXT), piece.table.num_rows)
    return replace(piece, table=piece.table.append_column("type", types))


@dataclass(frozen=True, eq=False)
class Rows:
    """How the rows of a table are called, and their keys."""

    names: pa.Array
    keys: pa.Array


@dataclass(frozen=True, eq=False)
class Link:
    """A column of one of the node tables that leads to rows, or to nodes that are made of its texts."""

    place: int
    column: str
    rows: Rows | None = None


def linked(tables: Tables, links: Sequence[Link]) -> Tables:
    """The tables with some columns as edges, and the nodes that they need."""
    nodes, edges = list(tables.nodes), []
    values: dict[str, list[pa.Array]] = {}
    for link in links:
        piece = nodes[link.place]
        heads, texts = _pairs(piece, link.column)
        if link.rows is None:
            values.setdefault(link.column, []).append(texts)
            tails = value_keys(link.column, texts)
        else:
            tails = link.rows.keys.take(pc.index_in(texts, link.rows.names))
        relation = pa.repeat(pa.scalar(link.column), len(heads))
        edges.append(Piece(pa.table({"head": heads, "relation": relation, "tail": tails}), piece.file))
        nodes[link.place] = replace(piece, table=piece.table.drop_columns([link.column]))
    for column, parts in values.items():
        texts = pc.unique(pa.chunked_array(parts))
        made = {"key": value_keys(column, texts), "type": pa.repeat(pa.scalar(column), len(texts)), "name": texts}
        nodes.append(Piece(pa.table(made), f"the column {column}"))
    return replace(tables, nodes=tuple(nodes), edges=(*tables.edges, *edges))


def value_keys(column: str | pa.ChunkedArray, texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """`Origin/Japan`: texts of different columns may be the same."""
    before = pa.scalar(column, _TEXT) if isinstance(column, str) else column
    return pc.binary_join_element_wise(before, texts, pa.scalar("/", _TEXT))


def _made_columns(piece: Piece) -> list[str]:
    """The types of nodes whose keys are those of texts in a column."""
    if not {"type", "name"} <= set(piece.table.column_names):
        return []
    types, names = (piece.table[name].cast(_TEXT) for name in ("type", "name"))
    is_made = pc.equal(piece.table["key"].cast(_TEXT), value_keys(types, names))
    found: list[str] = pc.unique(types.filter(pc.fill_null(is_made, False))).to_pylist()
    return found


def _text_columns(piece: Piece) -> list[str]:
    kinds = {column.name: column.type for column in piece.table.schema if column.name not in NODE_COLUMNS}
    return [name for name, kind in kinds.items() if is_text(kind.value_type if is_list(kind) else kind)]


def _pairs(piece: Piece, column: str) -> tuple[pa.Array, pa.Array]:
    """The key of a row and a text that it has in a column, for each such text."""
    keys, texts = piece.table["key"].combine_chunks(), piece.table[column].combine_chunks()
    if is_list(texts.type):
        keys, texts = keys.take(pc.list_parent_indices(texts)), pc.list_flatten(texts)
    texts = pc.utf8_trim_whitespace(texts.cast(_TEXT))
    is_there = pc.fill_null(pc.not_equal(texts, ""), False)
    return keys.cast(_TEXT).filter(is_there), texts.filter(is_there)


def _is_category(texts: pa.Array) -> bool:
    """Whether texts are short, and some of them the same."""
    is_short = 0 < (pc.max(pc.utf8_length(texts)).as_py() or 0) <= LONGEST_NAME
    return is_short and pc.count_distinct(texts).as_py() <= REPEATED * len(texts)


def _rows(piece: Piece) -> Rows:
    keys = piece.table["key"].combine_chunks().cast(_TEXT)
    named = piece.table["name"].combine_chunks().cast(_TEXT) if "name" in piece.table.column_names else keys
    return Rows(pa.concat_arrays([keys, named]), pa.concat_arrays([keys, keys]))
