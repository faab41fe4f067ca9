"""Neo4j's CSV files, from `neo4j-admin import` (`:ID`, `:LABEL`, `name:string[]`) and `apoc.export.csv`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from clew.store.sources.pieces import RawTable

_MARKED = re.compile(r"(?P<name>.*?):(?P<role>ID|LABEL|START_ID|END_ID|TYPE|IGNORE)(\((?P<space>[^){]*)\))?(\{.*\})?")
_TYPED = re.compile(r"(?P<name>.+):(?P<type>[a-z]+)(\{.*\})?(?P<many>\[\])?", re.IGNORECASE)
_NUMBERS = ("int", "integer", "long", "float", "double", "byte", "short", "boolean", "bool")
_TIMES = ("date", "time", "localtime", "datetime", "localdatetime", "duration")
_TYPES = frozenset({*_NUMBERS, *_TIMES, "char", "string", "point", "vector"})
_ROLES = {"ID": "key", "LABEL": "type", "START_ID": "head", "END_ID": "tail", "TYPE": "relation"}
_APOC_NODES = {"_id": "key", "_labels": "type"}
_APOC_EDGES = {"_start": "head", "_end": "tail", "_type": "relation"}


def plain_tables(raw: RawTable) -> list[RawTable]:
    """Rename columns to their roles, and split a file with nodes and edges into two tables.

    Tables of other programs stay unchanged.
    """
    names = raw.table.column_names
    if not is_neo4j(names):
        return [raw]
    return _from_apoc(raw) if _is_apoc(names) else [_from_admin(raw)]


def is_neo4j(names: Sequence[str]) -> bool:
    """Return whether columns have Neo4j names."""
    return _is_apoc(names) or any(_MARKED.fullmatch(name) for name in names)


def _is_apoc(names: Sequence[str]) -> bool:
    return _APOC_NODES.keys() | _APOC_EDGES.keys() <= set(names)


def _from_admin(raw: RawTable) -> RawTable:
    columns: dict[str, pa.ChunkedArray] = {}
    for name in raw.table.column_names:
        column, marked, typed = raw.table[name], _MARKED.fullmatch(name), _TYPED.fullmatch(name)
        if marked is None:
            is_typed = typed is not None and typed["type"].lower() in _TYPES
            columns[typed["name"] if typed and is_typed else name] = _many(column) if name.endswith("[]") else column
            continue
        if marked["role"] == "IGNORE":
            continue
        role = _ROLES[marked["role"]]
        if role == "type":
            columns |= _labels(column, ";")
        elif marked["space"] and role != "relation":  # ids are unique only in their space
            columns[role] = pc.binary_join_element_wise(marked["space"], column, "/")
        else:
            columns[role] = column
        if role == "key" and marked["name"] and marked["space"]:
            columns[marked["name"]] = column
    return replace(raw, table=pa.table(columns))


def _from_apoc(raw: RawTable) -> list[RawTable]:
    """Split rows: nodes have an `_id` and edges a `_start`. Both have all columns, most of them empty."""
    is_edge = pc.not_equal(raw.table["_start"], "")
    tables = []
    for mask, roles, others in ((pc.invert(is_edge), _APOC_NODES, _APOC_EDGES), (is_edge, _APOC_EDGES, _APOC_NODES)):
        rows = raw.filter(mask)
        table = rows.table.drop_columns(list(others))
        if not table.num_rows:
            continue
        used = [name for name in table.column_names if name in roles or pc.any(pc.not_equal(table[name], "")).as_py()]
        columns = {roles.get(name, name): table[name] for name in used}
        if "type" in columns:
            columns |= _labels(pc.utf8_ltrim(columns.pop("type"), ":"), ":")
        tables.append(replace(rows, table=pa.table(columns)))
    return tables


def _labels(column: pa.ChunkedArray, separator: str) -> dict[str, pa.ChunkedArray]:
    """Use the first label as type. If any node has several labels, add all labels as a list."""
    parts = pc.split_pattern(column, separator)
    found = {"type": pc.list_element(parts, 0)}
    if pc.any(pc.greater(pc.list_value_length(parts), 1)).as_py():
        found["all_labels"] = parts
    return found


def _many(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Split arrays at `;`. An empty cell has no items."""
    parts = pc.split_pattern(column, ";")
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, parts.type), parts)
