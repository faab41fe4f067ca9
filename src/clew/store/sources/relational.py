"""The tables of a database, or files that are such tables → nodes and edges.

A table is a type and a row a node; a foreign key is a relation. A table that does nothing but link the rows of two
others is a relation between them, and its other columns are attributes of the edges.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import combinations
from operator import eq
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from clew.core.errors import SourceError
from clew.core.nouns import singular
from clew.store.graph.tables import Piece, Tables
from clew.store.sources.columns import plain
from clew.store.sources.databases import ForeignKey, SqlTable, open_database
from clew.store.sources.files import SourceOptions, stem_of
from clew.store.sources.jsonl import column_of
from clew.store.sources.pieces import RawTable, as_edges, as_nodes, is_text, typed_by_content
from clew.store.sources.row_keys import KEY_ENDINGS, could_name, names_of_rows

KEY, TYPE, _NAME = "\0key", "\0type", "\0name"
HEAD, RELATION, TAIL = "\0head", "\0relation", "\0tail"
"""Columns that no database has."""
_NODES = {"key": KEY, "type": TYPE, "name": _NAME}
EDGE_ROLES = {"head": HEAD, "relation": RELATION, "tail": TAIL}
_GENERAL_KEYS = frozenset({"id", "key", "code", "uid", "uuid", "name", "rowid", "pk", "number", "index"})
_SURE_ENDINGS = ("_id", "_key", "_fk", "_uuid")
"""Only keys end with these; a postal code need not lead anywhere."""
MOSTLY = 0.5
"""A column of a file that is called like the key of another one refers to it where so many of its values are there."""
MOST_NAMED = 12
"""Columns that a note names."""
NEARLY_ALL = 0.95
"""Where its name speaks of no table, this share of its values must be keys of just one."""

Columns = Mapping[str, list[Any]]
Values = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class _Loaded:
    """A table with its content, and the key of the node that each row becomes."""

    table: SqlTable
    columns: Columns
    keys: list[str | None]
    source: Piece
    """Says where each row stands."""
    left_out: tuple[str, ...] = ()

    @property
    def type(self) -> str:
        """What a row is: a `category` of `categories`."""
        return singular(self.table.name)

    @cached_property
    def own(self) -> frozenset[Any]:
        """The values of a key of one column."""
        return frozenset(self.columns[self.table.key[0]])

    def values(self, names: Sequence[str]) -> list[Values]:
        """The values of some columns, row by row."""
        return list(zip(*(self.columns[name] for name in names), strict=True))


def read_database(source: str | Path, options: SourceOptions) -> tuple[Tables, list[str]]:
    """A database by URL or file as a graph, and the names of all its columns."""
    shown = str(source).rpartition("@")[2]
    found = {}
    with open_database(source) as database:
        for table in database.tables():
            rows = list(database.rows(table))
            columns = {name: [row[place] for row in rows] for place, name in enumerate(table.columns)}
            where = Piece(pa.table({}), f"{shown}, table {table.name}")
            found[table.name] = _loaded(table, columns, where)
    if not any(loaded.keys for loaded in found.values()):
        raise SourceError("the database holds no rows", file=shown)
    found = _related(found)
    return _graph(found, options, (*_notes(found, shown), *_leading_nowhere(found))), list(_columns(found))


def read_related(files: Sequence[RawTable], options: SourceOptions) -> Tables | tuple[str, ...]:
    """Files as the tables of one database, where columns of some hold the keys of others; where none does, notes."""
    names = [stem_of(Path(raw.file)) for raw in files]
    tables = dict(zip(names, files, strict=True))
    if len(tables) < max(2, len(names)):
        return ()
    found = _related(_files_loaded(tables, _is_called_key), MOSTLY)
    if not any(one.table.foreign for one in found.values()):
        return _leading_nowhere(found)
    found = _related(_files_loaded(tables, lambda _: True), MOSTLY)
    shown = [f"{name}.{key.columns[0]} → {key.table}" for name in names for key in found[name].table.foreign]
    told = f"Tables that refer to each other: {', '.join(shown)}."
    return _graph(found, options, (told, *_leading_nowhere(found)))


def _files_loaded(files: Mapping[str, RawTable], is_wanted: Callable[[str], bool]) -> dict[str, _Loaded]:
    """The wanted columns of files, by the names of the files."""
    found = {}
    for name, raw in files.items():
        columns = {
            column: cells if raw.typed or not is_text(cells.type) else typed_by_content(cells)
            for column, cells in zip(raw.table.column_names, raw.table.columns, strict=True)
            if is_wanted(column)
        }
        others = {
            f"{one}{ending}" for other in files if other != name for one in _singular(other) for ending in KEY_ENDINGS
        }
        table = _file_table(name, columns, set(map(plain, raw.table.column_names[:1])) - others)
        found[name] = _loaded(table, {column: cells.to_pylist() for column, cells in columns.items()}, raw)
    return found


def _is_called_key(column: str) -> bool:
    return plain(column).endswith(KEY_ENDINGS) or plain(column) in _GENERAL_KEYS


def _file_table(name: str, columns: Mapping[str, pa.ChunkedArray], first: set[str]) -> SqlTable:
    """What a file says about itself.

    Its key is a column that is called so and tells the rows apart, or else its `first` one, if it is called like a key
    (`playerID`) and not after another file. Without one, two references that tell the rows apart are.
    """
    own = _GENERAL_KEYS - {"name", "number", "index"} | {f"{one}{e}" for one in _singular(name) for e in KEY_ENDINGS}
    telling = [column for column in columns if plain(column) in own and _tell_apart([columns[column]])]
    coded = [column for column in columns if plain(column) in first and plain(column).endswith(KEY_ENDINGS)]
    telling += [column for column in coded if _tell_apart([columns[column]])]
    key = tuple(telling[:1])
    references = [column for column in columns if not key and plain(column).endswith(KEY_ENDINGS)]
    pairs = [pair for pair in combinations(references, 2) if _tell_apart([columns[column] for column in pair])]
    return SqlTable(name, tuple(columns), key, unique=tuple(map(frozenset, pairs)))


def _tell_apart(columns: Sequence[pa.ChunkedArray]) -> bool:
    """Whether no two rows have the same values, and none lacks one."""
    if any(cells.null_count or pa.types.is_nested(cells.type) for cells in columns):
        return False
    table = pa.table(list(columns), names=[str(place) for place in range(len(columns))])
    return bool(table.group_by(table.column_names).aggregate([]).num_rows == table.num_rows)


def _related(found: Mapping[str, _Loaded], least: float = 1.0) -> dict[str, _Loaded]:
    """The tables with their foreign keys; `least` is the share of values that must be there where none is declared."""
    return {name: replace(loaded, table=_with_foreign_keys(loaded, found, least)) for name, loaded in found.items()}


def _graph(found: Mapping[str, _Loaded], options: SourceOptions, notes: tuple[str, ...]) -> Tables:
    referred = {key.table for loaded in found.values() for key in loaded.table.foreign}
    nodes: list[Piece] = []
    edges: list[Piece] = []
    for name, loaded in found.items():
        if not loaded.keys:
            continue
        if name not in referred and _is_link(loaded):
            edges.append(_link(loaded, found, options))
            continue
        nodes.append(_nodes(loaded, options))
        if name not in referred and _is_between(loaded):
            kept = {column for key in loaded.table.foreign for column in key.columns} | {options.columns.get("groups")}
            edges.append(_link(replace(loaded, left_out=tuple(loaded.columns.keys() - kept)), found, options))
        edges += [_references(loaded, key, found, options) for key in loaded.table.foreign]
    return Tables(tuple(nodes), tuple(piece for piece in edges if piece.table.num_rows), notes=notes)


def _columns(found: Mapping[str, _Loaded]) -> dict[str, None]:
    return dict.fromkeys(column for loaded in found.values() for column in loaded.columns)


def _leading_nowhere(found: Mapping[str, _Loaded]) -> tuple[str, ...]:
    """A note that names the columns called like keys for which no table was found."""
    columns = []
    for name, loaded in found.items():
        used = {*loaded.table.key, *(column for key in loaded.table.foreign for column in key.columns)}
        for column, values in loaded.columns.items():
            if column not in used and plain(column).endswith(_SURE_ENDINGS) and any(one is not None for one in values):
                columns.append(f"{name}.{column}")
    if not columns:
        return ()
    shown = columns if len(columns) <= MOST_NAMED else [*columns[:MOST_NAMED], f"{len(columns) - MOST_NAMED} more"]
    return (f"Called like keys, but not those of one table: {', '.join(shown)}. They are attributes.",)


def _loaded(table: SqlTable, held: Columns, source: Piece) -> _Loaded:
    columns = {name: [_value(value) for value in values] for name, values in held.items()}
    for name in table.truths:
        if all(value in (0, 1, None) for value in columns[name]):
            columns[name] = [None if value is None else bool(value) for value in columns[name]]
    binary = tuple(name for name, values in columns.items() if any(isinstance(value, bytes) for value in values))
    count = len(next(iter(columns.values()), ()))
    loaded = _Loaded(table, columns, [None] * count, source, binary)
    keys = loaded.values(table.key) if table.key else [(number,) for number in range(1, count + 1)]
    return replace(loaded, keys=[_key(table.name, values) for values in keys])


def _value(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _key(table: str, values: Values) -> str | None:
    """`Artist/1`: rows of different tables have the same numbers."""
    if None in values:
        return None
    parts = [str(value) if len(values) == 1 else quote(str(value), safe="") for value in values]
    return "/".join([table, *parts])


def _with_foreign_keys(loaded: _Loaded, found: Mapping[str, _Loaded], least: float) -> SqlTable:
    """The table with its foreign keys: those declared, and those that names and values show."""
    table = loaded.table
    declared = []
    for key in table.foreign:
        target = next((name for name in found if name.lower() == key.table.lower()), None)
        targets = key.targets or (found[target].table.key if target else ())
        if target and len(targets) == len(key.columns) and set(targets) <= set(found[target].table.columns):
            declared.append(ForeignKey(key.columns, target, targets))
    taken = {column for key in declared for column in key.columns}
    shown = [_shown_reference(loaded, column, found, least) for column in table.columns if column not in taken]
    keys = [*declared, *(key for key in shown if key is not None)]
    return replace(table, foreign=tuple(sorted(keys, key=lambda key: table.columns.index(key.columns[0]))))


def _shown_reference(loaded: _Loaded, column: str, found: Mapping[str, _Loaded], least: float) -> ForeignKey | None:
    """The one table that a column's name speaks of, or else any, whose key holds its values.

    Texts must be nearly all there where the name does not tell: numbers would fit every table that counts its rows.
    What most rows share with their own key is the key once more, and not another row.
    """
    name, table = plain(column), loaded.table
    values = {value for value in loaded.columns[column] if value is not None and not isinstance(value, list | dict)}
    if (column,) == table.key or not values:
        return None
    keyed = [other.table for other in found.values() if len(other.table.key) == 1]
    if table in keyed and 2 * sum(map(eq, loaded.columns[column], loaded.columns[table.key[0]])) > len(loaded.keys):
        keyed.remove(table)
    spoken = {other.name: _speaks_of(name, other, is_own=other.name == table.name) for other in keyed}
    if most := max(spoken.values(), default=0):
        candidates = [other for other in keyed if spoken[other.name] == most]
    elif name.endswith(KEY_ENDINGS) and all(isinstance(value, str) and _has_letter(value) for value in values):
        candidates, least = keyed, max(least, NEARLY_ALL)
    else:
        return None
    there = {other.name: len(values & found[other.name].own) for other in candidates}
    holding = [other for other in candidates if there[other.name] and there[other.name] >= least * len(values)]
    return ForeignKey((column,), holding[0].name, holding[0].key) if len(holding) == 1 else None


def _has_letter(text: str) -> bool:
    return any(map(str.isalpha, text))


def _speaks_of(column: str, table: SqlTable, *, is_own: bool) -> int:
    """How much of a column's name is that of a table's key, or the table's own: `birth_place_id` of places.

    In the table itself there has to be more before it: `parent_category_id` of categories.
    """
    names = {f"{one}_id" for one in _singular(table.name)} | ({plain(table.key[0])} - _GENERAL_KEYS)
    fitting = [one for one in names if column.endswith(f"_{one}") or (column == one and not is_own)]
    return max(map(len, fitting), default=0)


def _singular(name: str) -> set[str]:
    """What one row of a table may be called: `people_categories` → `people_category` among others."""
    whole = plain(name)
    return {whole, singular(whole), whole.removesuffix("es")}


def _is_link(loaded: _Loaded) -> bool:
    """Two foreign keys that together tell the rows apart, or that are all that the rows have beside numbers or codes.

    Rows with more than that stay nodes: who asks for the date of a marriage asks for an attribute of something.
    """
    table = loaded.table
    if len(table.foreign) != 2:
        return False
    ends = {column for key in table.foreign for column in key.columns}
    if set(table.key) == ends or ends in table.unique:
        return True
    return set(table.columns) <= ends | set(table.key) and not any(could_name(loaded.columns[one]) for one in table.key)


def _is_between(loaded: _Loaded) -> bool:
    """Rows of two others with attributes of their own: a table that is called after both, such as `hop_in_recipe`.

    They are nodes, for their attributes to be asked for, and a relation as well: who asks which recipes use a hop wants
    no row between the two. A table with a name of its own (`marriages`) is one of things.
    """
    ends = {key.table for key in loaded.table.foreign}
    names = [f"_{name}_" for name in _singular(loaded.table.name)]
    return len(loaded.table.foreign) == len(ends) == 2 and all(
        any(f"_{one}_" in name for one in _singular(end) for name in names) for end in ends
    )


def _nodes(loaded: _Loaded, options: SourceOptions) -> Piece:
    table = loaded.table
    references, groups = {column for key in table.foreign for column in key.columns}, options.columns.get("groups")
    left_out = {*references, *loaded.left_out} - {groups}
    held = {name: values for name, values in loaded.columns.items() if name not in left_out}
    telling = {name: values for name, values in held.items() if name != groups}
    names, name_column = names_of_rows(loaded.type, table.key, telling, options.columns.get("name"))
    numbered = len(table.key) == 1 and all(isinstance(value, int) for value in loaded.columns[table.key[0]])
    dropped = {name_column, *(table.key if numbered else ())}
    columns: dict[str, Any] = {KEY: loaded.keys, TYPE: [loaded.type] * len(loaded.keys), _NAME: names}
    columns |= {name: values for name, values in held.items() if name not in dropped}
    table_of = pa.table({name: column_of(values) for name, values in columns.items()})
    raw = RawTable(table_of, loaded.source.file, loaded.source.first_line, loaded.source.lines)
    return as_nodes(raw, replace(options, columns={**options.columns, **_NODES}))


def _references(loaded: _Loaded, key: ForeignKey, found: Mapping[str, _Loaded], options: SourceOptions) -> Piece:
    """An edge from each row to the row that it refers to."""
    tails = _targets(loaded, key, found)
    rows = [row for row, tail in enumerate(tails) if tail is not None]
    columns: dict[str, list[Any]] = {
        HEAD: [loaded.keys[row] for row in rows],
        RELATION: [_relation(loaded.table, key)] * len(rows),
        TAIL: [tails[row] for row in rows],
    }
    return _edge_piece(columns, rows, loaded.source, options)


def _link(loaded: _Loaded, found: Mapping[str, _Loaded], options: SourceOptions) -> Piece:
    first, second = loaded.table.foreign
    heads, tails = _targets(loaded, first, found), _targets(loaded, second, found)
    rows = [row for row in range(len(heads)) if heads[row] is not None and tails[row] is not None]
    ends = {*first.columns, *second.columns}
    hidden = (ends | set(loaded.table.key) | set(loaded.left_out)) - {options.columns.get("groups")}
    columns: dict[str, list[Any]] = {
        HEAD: [heads[row] for row in rows],
        RELATION: [_link_relation(loaded.table)] * len(rows),
        TAIL: [tails[row] for row in rows],
    }
    for name, values in loaded.columns.items():
        if name not in hidden:
            columns[name] = [values[row] for row in rows]
    return _edge_piece(columns, rows, loaded.source, options)


def _link_relation(table: SqlTable) -> str:
    """The table's name; `accepts_mount`, where a row has a `mount_id` and an `accepts_mount_id` of the same table."""
    first, second = table.foreign
    said, is_within = _relation(table, second), first.table == second.table
    return said if is_within and said.endswith(f"_{_relation(table, first)}") else plain(table.name)


def _edge_piece(columns: Mapping[str, list[Any]], rows: Sequence[int], source: Piece, options: SourceOptions) -> Piece:
    table = pa.table({name: column_of(values) for name, values in columns.items()})
    lines = pa.array([source.line(row) for row in rows], pa.int64())
    return as_edges(RawTable(table, source.file, lines=lines), edge_options(options))


def edge_options(options: SourceOptions) -> SourceOptions:
    """Return how to read edges that were made here: the user says no more than which column holds groups."""
    groups = {role: name for role, name in options.columns.items() if role == "groups"}
    return SourceOptions(columns={**EDGE_ROLES, **groups})


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
    for ending in KEY_ENDINGS:
        name = name.removesuffix(ending)
    return name.strip("_") or plain(key.table)


def _notes(found: Mapping[str, _Loaded], shown: str) -> tuple[str, ...]:
    notes = []
    if binary := [f"{name}.{column}" for name, loaded in found.items() for column in loaded.left_out]:
        notes.append(f"Not read from {shown}, as they hold binary data: {', '.join(binary)}.")
    if empty := [name for name, loaded in found.items() if not loaded.keys]:
        notes.append(f"Tables of {shown} without rows: {', '.join(empty)}.")
    return tuple(notes)
