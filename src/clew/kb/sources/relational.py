"""The tables of a database → nodes and edges.

A table is a type and a row a node; a foreign key is a relation. A table that does nothing but link the rows of two
others is a relation between them, and its other columns are attributes of the edges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from clew.core.errors import SourceError
from clew.kb.sources.columns import plain
from clew.kb.sources.databases import ForeignKey, SqlTable, open_database
from clew.kb.sources.files import SourceOptions
from clew.kb.sources.jsonl import column_of
from clew.kb.sources.pieces import RawTable, as_edges, as_nodes
from clew.kb.sources.row_keys import names_of_rows
from clew.kb.tables import Piece, Tables

KEY, TYPE, _NAME = "\0key", "\0type", "\0name"
HEAD, RELATION, TAIL = "\0head", "\0relation", "\0tail"
"""Columns that no database has."""
_NODES = {"key": KEY, "type": TYPE, "name": _NAME}
EDGE_ROLES = {"head": HEAD, "relation": RELATION, "tail": TAIL}
_REFERENCE_ENDINGS = ("_id", "_key", "_code", "_fk", "_no", "_uuid")
_GENERAL_KEYS = frozenset({"id", "key", "code", "uid", "uuid", "name", "rowid", "pk", "number", "index"})

Columns = Mapping[str, list[Any]]
Values = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class _Loaded:
    """A table with its content, and the key of the node that each row becomes."""

    table: SqlTable
    columns: Columns
    keys: list[str | None]
    left_out: tuple[str, ...] = ()

    def values(self, names: Sequence[str]) -> list[Values]:
        """The values of some columns, row by row."""
        return list(zip(*(self.columns[name] for name in names), strict=True))


def read_database(source: str | Path, options: SourceOptions) -> tuple[Tables, list[str]]:
    """A database by URL or file as a graph, and the names of all its columns."""
    shown = str(source).rpartition("@")[2]
    with open_database(source) as database:
        found = {table.name: _loaded(table, list(database.rows(table))) for table in database.tables()}
    if not any(loaded.keys for loaded in found.values()):
        raise SourceError("the database holds no rows", file=shown)
    found = {name: replace(loaded, table=_with_foreign_keys(loaded, found)) for name, loaded in found.items()}
    referred = {key.table for loaded in found.values() for key in loaded.table.foreign}
    nodes: list[Piece] = []
    edges: list[Piece] = []
    for name, loaded in found.items():
        file = f"{shown}, table {name}"
        if not loaded.keys:
            continue
        if name not in referred and _is_link(loaded.table):
            edges.append(_link(loaded, found, file))
            continue
        nodes.append(_nodes(loaded, file, options))
        edges += [_references(loaded, key, found, file) for key in loaded.table.foreign]
    edges = [piece for piece in edges if piece.table.num_rows]
    columns = dict.fromkeys(column for loaded in found.values() for column in loaded.columns)
    return Tables(tuple(nodes), tuple(edges), notes=_notes(found, shown)), list(columns)


def _loaded(table: SqlTable, rows: list[Values]) -> _Loaded:
    columns = {name: [_value(row[place]) for row in rows] for place, name in enumerate(table.columns)}
    for name in table.truths:
        if all(value in (0, 1, None) for value in columns[name]):
            columns[name] = [None if value is None else bool(value) for value in columns[name]]
    binary = tuple(name for name, values in columns.items() if any(isinstance(value, bytes) for value in values))
    loaded = _Loaded(table, columns, [None] * len(rows), binary)
    keys = loaded.values(table.key) if table.key else [(number,) for number in range(1, len(rows) + 1)]
    return replace(loaded, keys=[_key(table.name, values) for values in keys])


def _value(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _key(table: str, values: Values) -> str | None:
    """`Artist/1`: rows of different tables have the same numbers."""
    if None in values:
        return None
    parts = [str(value) if len(values) == 1 else quote(str(value), safe="") for value in values]
    return "/".join([table, *parts])


def _with_foreign_keys(loaded: _Loaded, found: Mapping[str, _Loaded]) -> SqlTable:
    """The table with its foreign keys: those declared, and those that names and values show."""
    table = loaded.table
    declared = []
    for key in table.foreign:
        target = next((name for name in found if name.lower() == key.table.lower()), None)
        targets = key.targets or (found[target].table.key if target else ())
        if target and len(targets) == len(key.columns) and set(targets) <= set(found[target].table.columns):
            declared.append(ForeignKey(key.columns, target, targets))
    taken = {column for key in declared for column in key.columns}
    shown = [_shown_reference(loaded, column, found) for column in table.columns if column not in taken]
    keys = [*declared, *(key for key in shown if key is not None)]
    return replace(table, foreign=tuple(sorted(keys, key=lambda key: table.columns.index(key.columns[0]))))


def _shown_reference(loaded: _Loaded, column: str, found: Mapping[str, _Loaded]) -> ForeignKey | None:
    """The one table that a column's name speaks of and whose key holds all of its values."""
    name, table = plain(column), loaded.table
    if (column,) == table.key:
        return None
    candidates = []
    for other in found.values():
        if len(other.table.key) != 1 or other.table.name == table.name:
            continue
        key = plain(other.table.key[0])
        if (name == key and key not in _GENERAL_KEYS) or name in {f"{one}_id" for one in _singular(other.table.name)}:
            candidates.append(other.table)
    if len(candidates) != 1:
        return None
    (target,) = candidates
    values = {value for value in loaded.columns[column] if value is not None}
    if not values or not values <= set(found[target.name].columns[target.key[0]]):
        return None
    return ForeignKey((column,), target.name, target.key)


def _singular(name: str) -> set[str]:
    """What one row of a table may be called: `people_categories` → `people_category` among others."""
    whole = plain(name)
    return {whole, whole.removesuffix("s"), whole.removesuffix("es"), whole.removesuffix("ies") + "y"}


def _is_link(table: SqlTable) -> bool:
    """Two foreign keys that together tell the rows apart, by the key or by a second unique set of columns."""
    if len(table.foreign) != 2:
        return False
    ends = {column for key in table.foreign for column in key.columns}
    own = set(table.columns) - ends - set(table.key)
    return set(table.key) == ends or ends in table.unique or (not table.key and not own)


def _nodes(loaded: _Loaded, file: str, options: SourceOptions) -> Piece:
    table = loaded.table
    references = {column for key in table.foreign for column in key.columns}
    held = {name: values for name, values in loaded.columns.items() if name not in references | set(loaded.left_out)}
    names, name_column = names_of_rows(table.name, table.key, held, options.columns.get("name"))
    numbered = len(table.key) == 1 and all(isinstance(value, int) for value in loaded.columns[table.key[0]])
    dropped = {name_column, *(table.key if numbered else ())}
    columns: dict[str, Any] = {KEY: loaded.keys, TYPE: [table.name] * len(loaded.keys), _NAME: names}
    columns |= {name: values for name, values in held.items() if name not in dropped}
    raw = RawTable(pa.table({name: column_of(values) for name, values in columns.items()}), file)
    return as_nodes(raw, replace(options, columns={**options.columns, **_NODES}))


def _references(loaded: _Loaded, key: ForeignKey, found: Mapping[str, _Loaded], file: str) -> Piece:
    """An edge from each row to the row that it refers to."""
    tails = _targets(loaded, key, found)
    rows = [row for row, tail in enumerate(tails) if tail is not None]
    columns: dict[str, list[Any]] = {
        HEAD: [loaded.keys[row] for row in rows],
        RELATION: [_relation(loaded.table, key)] * len(rows),
        TAIL: [tails[row] for row in rows],
    }
    return _edge_piece(columns, rows, file)


def _link(loaded: _Loaded, found: Mapping[str, _Loaded], file: str) -> Piece:
    first, second = loaded.table.foreign
    heads, tails = _targets(loaded, first, found), _targets(loaded, second, found)
    rows = [row for row in range(len(heads)) if heads[row] is not None and tails[row] is not None]
    ends = {*first.columns, *second.columns}
    hidden = ends | set(loaded.table.key) | set(loaded.left_out)
    columns: dict[str, list[Any]] = {
        HEAD: [heads[row] for row in rows],
        RELATION: [plain(loaded.table.name)] * len(rows),
        TAIL: [tails[row] for row in rows],
    }
    for name, values in loaded.columns.items():
        if name not in hidden:
            columns[name] = [values[row] for row in rows]
    return _edge_piece(columns, rows, file)


def _edge_piece(columns: Mapping[str, list[Any]], rows: Sequence[int], file: str) -> Piece:
    table = pa.table({name: column_of(values) for name, values in columns.items()})
    lines = pa.array([row + 1 for row in rows], pa.int64())
    return as_edges(RawTable(table, file, lines=lines), SourceOptions(columns=EDGE_ROLES))


def _targets(loaded: _Loaded, key: ForeignKey, found: Mapping[str, _Loaded]) -> list[str | None]:
    """The key of the node that each row refers to; one that is not there is left for the build to complain about."""
    target = found[key.table]
    known = dict(zip(target.values(key.targets), target.keys, strict=True))
    return [
        None if None in values else known.get(values) or _key(key.table, values)
        for values in loaded.values(key.columns)
    ]


def _relation(table: SqlTable, key: ForeignKey) -> str:
    """`AlbumId` → `album`, `ReportsTo` → `reports_to`; several columns, or the table's own key: the other table."""
    if len(key.columns) > 1 or key.columns == table.key:
        return plain(key.table)
    name = plain(key.columns[0])
    for ending in _REFERENCE_ENDINGS:
        name = name.removesuffix(ending)
    return name.strip("_") or plain(key.table)


def _notes(found: Mapping[str, _Loaded], shown: str) -> tuple[str, ...]:
    notes = []
    if binary := [f"{name}.{column}" for name, loaded in found.items() for column in loaded.left_out]:
        notes.append(f"Not read from {shown}, as they hold binary data: {', '.join(binary)}.")
    if empty := [name for name, loaded in found.items() if not loaded.keys]:
        notes.append(f"Tables of {shown} without rows: {', '.join(empty)}.")
    return tuple(notes)
