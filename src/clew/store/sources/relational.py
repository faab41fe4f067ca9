"""Convert the tables of a database, or files like such tables, to nodes and edges.

A table is a type and a row a node. A column is an attribute, a list, or a reference to rows, which becomes a relation.
A table that only connects rows of two other tables becomes a relation between them. If it has attributes, its rows are
nodes too, unless only some groups may see a row they connect: then they are edges, which are hidden with their ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.core.errors import SourceError
from clew.store.graph.render import listed
from clew.store.graph.tables import GROUPS, ROW, STRING, Piece, Tables
from clew.store.graph.visibility import apply_rules
from clew.store.sources.columns import KEY_ENDINGS, NAMES, node_roles, plain, unique_names
from clew.store.sources.databases import ForeignKey, SqlTable, open_database
from clew.store.sources.files import SourceOptions, stem_of
from clew.store.sources.jsonl import column_of
from clew.store.sources.pieces import (
    RawTable,
    as_edges,
    as_nodes,
    as_text,
    constant,
    is_list,
    is_text,
    lists_of,
    short_names,
    typed_with_unit,
    with_dates,
)
from clew.store.sources.profile import TableProfile, nouns_of, profile_tables, split_lists, tell_apart
from clew.store.sources.totals import repeated_headers, total_rows

KEY, TYPE, _NAME, _ALIASES = "\0key", "\0type", "\0name", "\0aliases"
HEAD, RELATION, TAIL = "\0head", "\0relation", "\0tail"
"""Column names that no database has."""
EDGE_ROLES = {"head": HEAD, "relation": RELATION, "tail": TAIL}
_SURE_ENDINGS = ("_id", "_key", "_fk", "_uuid")
"""Suffixes that only keys have. A postal code, for example, may refer to nothing."""
_TRUTHS = ("is_", "has_", "can_", "was_")
"""Beginnings of headers of columns that contain 1 for yes and 0 for no."""
MAX_ORDERED = 10_000
"""Maximum number of rows of a table that people may read as a list in an order."""
_NAME_HEADERS = frozenset({*NAMES["full"], *NAMES["title"]})


@dataclass(frozen=True, eq=False)
class _Loaded:
    """A table with its content, and the key and name of the node of each row."""

    profile: TableProfile
    columns: Mapping[str, pa.ChunkedArray]
    source: Piece
    """Source position of each row."""
    keys: pa.Array
    names: pa.Array
    is_declared: bool = False
    """Whether a database declares its references."""
    is_hidden: pa.Array | None = None
    """Whether only some groups may see each row. None if everybody may see all rows."""

    @property
    def table(self) -> SqlTable:
        """Metadata of the table with its key and foreign keys."""
        return self.profile.table

    def texts(self, names: Sequence[str]) -> pa.Array:
        """Join the values of some columns per row. Null if a value is missing."""
        return _joined([self.columns[name] for name in names])


def read_database(source: str | Path, options: SourceOptions) -> tuple[Tables, list[str]]:
    """Read a database by URL or file as a graph, and the names of all its columns.

    If it declares no keys, they are inferred from names and values, as for files.
    """
    shown = str(source).rpartition("@")[2]
    declared, contents, notes = {}, {}, []
    binary = []
    with open_database(source) as database:
        for table in database.tables():
            rows = list(database.rows(table))
            values = {
                name: [float(row[index]) if isinstance(row[index], Decimal) else row[index] for row in rows]
                for index, name in enumerate(table.columns)
            }
            for name in table.truths:
                if all(value in (0, 1, None) for value in values[name]):
                    values[name] = [None if value is None else bool(value) for value in values[name]]
            skipped = [name for name, cells in values.items() if any(isinstance(cell, bytes) for cell in cells)]
            binary += [f"{table.name}.{name}" for name in skipped]
            declared[table.name] = table
            kept = {name: column_of(cells) for name, cells in values.items() if name not in skipped}
            contents[table.name] = {name: with_dates(pa.chunked_array([cells])) for name, cells in kept.items()}
    if binary:
        notes.append(f"Not read from {shown}, as they hold binary data: {', '.join(binary)}.")
    if empty := [name for name, content in contents.items() if not any(map(len, content.values()))]:
        notes.append(f"Tables of {shown} without rows: {', '.join(empty)}.")
    if len(empty) == len(contents):
        raise SourceError("the database contains no rows", file=shown)
    sources = {name: Piece(pa.table({}), f"{shown}, table {name}") for name in contents}
    has_keys = any(table.key or table.foreign for table in declared.values())
    found = _loaded(contents, sources, options, declared if has_keys else None)
    if moved := [name for name, loaded in found.items() if not len(loaded.keys) and name not in empty]:
        notes.append(f"Columns of the tables whose keys they have: the tables {', '.join(moved)}.")
    columns = list(dict.fromkeys(column for table in declared.values() for column in table.columns))
    return _graph(found, options, notes), columns


def read_tables(files: Sequence[RawTable], options: SourceOptions) -> Tables:
    """Read files as tables of one database: columns with keys or names of other rows become relations."""
    contents, sources, notes = {}, {}, list[str]()
    for raw in files:
        if not raw.table.num_rows:
            raise SourceError("the file contains no rows", file=raw.file)
        name = raw.name or stem_of(Path(raw.file)) or "row"
        while name in contents:
            name += "_"
        raw = _without(raw, repeated_headers(raw.table), "repeated headers", notes)
        typed = _typed(raw)
        if totals := total_rows(raw.table, [cells for cells, _ in typed.values()]):
            raw = _without(raw, totals, "totals", notes)
            typed = _typed(raw)
        notes += [f"{name}.{column} is in {unit}." for column, (_, unit) in typed.items() if unit]
        contents[name], sources[name] = split_lists({column: cells for column, (cells, _) in typed.items()}), raw
    tables = _graph(_loaded(contents, sources, options), options, notes)
    return _with_rows(tables) if len(files) == 1 and files[0].table.num_rows <= MAX_ORDERED else tables


def _with_rows(tables: Tables) -> Tables:
    """Add the row of each node in the only table, which may be a list in an order that people ask about."""
    pairs = [(one, pa.array(np.arange(1, one.table.num_rows + 1))) for one in tables.nodes]
    return replace(tables, nodes=tuple(replace(one, table=one.table.append_column(ROW, rows)) for one, rows in pairs))


def _without(raw: RawTable, rows: Sequence[int], called: str, notes: list[str]) -> RawTable:
    """Leave out some rows with a note, unless no others remain."""
    if not 0 < len(rows) < raw.table.num_rows:
        return raw
    notes.append(f"Left out as {called}: {raw.file}, line {listed([str(raw.line(row)) for row in rows])}.")
    return raw.filter(pa.array(~np.isin(np.arange(raw.table.num_rows), rows)))


def _typed(raw: RawTable) -> dict[str, tuple[pa.ChunkedArray, str]]:
    """Return the columns with their narrowest types and their units."""
    found = {}
    for column, cells in zip(raw.table.column_names, raw.table.columns, strict=True):
        typed, unit = (cells, "") if raw.typed or not is_text(cells.type) else typed_with_unit(cells)
        is_decimal = pa.types.is_floating(typed.type) and not pc.all(pc.equal(pc.floor(typed), typed)).as_py()
        is_code = is_decimal and f"_{plain(column)}".endswith(KEY_ENDINGS)  # 11.10 is not 11.1
        found[column] = (cells, "") if is_code or plain(column).endswith("_name") else (typed, unit)
    return found


def _loaded(
    contents: Mapping[str, Mapping[str, pa.ChunkedArray]],
    sources: Mapping[str, Piece],
    options: SourceOptions,
    declared: Mapping[str, SqlTable] | None = None,
) -> dict[str, _Loaded]:
    said = options.columns
    contents = {table: {name: _truths(name, cells) for name, cells in own.items()} for table, own in contents.items()}
    if declared is not None:
        contents = _with_details(contents, declared, said.get("groups"))
        declared = {name: replace(table, columns=tuple(contents[name])) for name, table in declared.items()}
    profiles = profile_tables(contents, declared, said.get("name"), said.get("groups"))
    found: dict[str, _Loaded] = {}
    for name, profile in sorted(profiles.items(), key=lambda item: item[1].is_between or item[1].is_panel):
        content, count = contents[name], profile.rows
        key = [content[column] for column in profile.table.key]
        own = _joined(key) if key else pa.array(np.arange(1, count + 1)).cast(STRING)
        called = _prefixed(f"{profile.type} ", own)
        names = (_between if profile.is_between else _joined_names)(profile, content, found)
        names = called if names is None else pc.if_else(pc.fill_null(pc.equal(names, ""), True), called, names)
        if not key and declared is None and not profile.is_between:
            is_told_apart = tell_apart([pa.chunked_array([names])])
            own = names if is_told_apart else pa.array(unique_names(names.to_pylist(), "{} ({})"), STRING)
        keys = own if len(contents) == 1 and declared is None else _prefixed(f"{name}/", own)
        hidden = _hidden(keys, content, options)
        found[name] = _Loaded(profile, content, sources[name], keys, names, declared is not None, hidden)
    return {name: found[name] for name in contents}


def _hidden(keys: pa.Array, content: Mapping[str, pa.ChunkedArray], options: SourceOptions) -> pa.Array | None:
    """Return whether only some groups may see each row, by the column of groups or by the rules for keys."""
    groups = options.columns.get("groups")
    cells = None if groups is None else content.get(groups)
    if cells is None and not options.visible:
        return None
    ruled, _ = apply_rules(Piece(pa.table({"key": keys}), ""), options.visible)
    is_hidden = pc.is_valid(ruled.table[GROUPS])
    if cells is not None:
        counts = pc.list_value_length(cells) if is_list(cells.type) else pc.utf8_length(_joined([cells]))
        is_hidden = pc.or_(is_hidden, pc.greater(pc.fill_null(counts, 0), 0))
    return is_hidden.combine_chunks()


def _truths(header: str, cells: pa.ChunkedArray) -> pa.ChunkedArray:
    is_called_so = pa.types.is_integer(cells.type) and plain(header).startswith(_TRUTHS)
    return cells.cast(pa.bool_()) if is_called_so and set(pc.unique(cells).to_pylist()) <= {0, 1, None} else cells


def _with_details(
    contents: Mapping[str, Mapping[str, pa.ChunkedArray]], declared: Mapping[str, SqlTable], groups: str | None
) -> dict[str, dict[str, pa.ChunkedArray]]:
    """Move the columns of a table that has the key of another table as its own key into that table.

    Its rows describe the same things. A table that others refer to, or with a column of groups or of the same name,
    stays as it is.
    """
    found = {name: dict(columns) for name, columns in contents.items()}
    referred = {key.table for table in declared.values() for key in table.foreign}
    for name, table in declared.items():
        for key in table.foreign if name not in referred and len(table.foreign) == 1 else ():
            own, rows = found[name], found.get(key.table, {})
            same = key.columns[0]
            if len(key.columns) > 1 or declared.get(key.table, table).key != key.columns or same not in rows:
                continue
            if rows.keys() & own.keys() != {same} or groups in own or not tell_apart([own[same]]):
                continue
            places = pc.index_in(_joined([rows[same]]), value_set=_joined([own[same]]))
            rows |= {column: cells.take(places) for column, cells in own.items() if column != same}
            found[name] = {column: cells.slice(0, 0) for column, cells in own.items()}
    return found


def _prefixed(before: str, texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(before, STRING), texts, pa.scalar("", STRING))


def _joined(columns: Sequence[pa.ChunkedArray]) -> pa.Array:
    """Join the values of a key as text: `a/b` for two columns."""
    texts = [pc.utf8_trim_whitespace(as_text(column).cast(STRING)).combine_chunks() for column in columns]
    if len(texts) == 1:
        return texts[0]
    encoded = [part.dictionary_encode() for part in texts]
    quoted = [pa.array([quote(text, safe="") for text in part.dictionary.to_pylist()], STRING) for part in encoded]
    parts = (entries.take(part.indices) for entries, part in zip(quoted, encoded, strict=True))
    return pc.binary_join_element_wise(*parts, pa.scalar("/", STRING))


def _joined_names(
    profile: TableProfile, content: Mapping[str, pa.ChunkedArray], found: Mapping[str, _Loaded]
) -> pa.Array | None:
    if not profile.named_by:
        return None
    keys = [key for key in profile.table.foreign if len(key.columns) == 1 and key.table in found]
    referred = {key.columns[0]: key for key in keys if profile.is_panel}
    texts = [
        _referred_names(referred[name], content, found) if name in referred else _joined([content[name]])
        for name in profile.named_by
    ]
    mark = pa.scalar(", " if profile.is_panel else " ", STRING)
    return pc.utf8_trim_whitespace(pc.binary_join_element_wise(*(pc.fill_null(text, "") for text in texts), mark))


def _referred_names(key: ForeignKey, content: Mapping[str, pa.ChunkedArray], found: Mapping[str, _Loaded]) -> pa.Array:
    """Return the name of the row that each row refers to, or else the referring value, if the row may be hidden."""
    other, values = found[key.table], _joined([content[name] for name in key.columns])
    names = other.names if other.is_hidden is None else pc.if_else(other.is_hidden, None, other.names)
    return pc.coalesce(names.take(pc.index_in(values, value_set=other.texts(key.targets))), values)


def _between(
    profile: TableProfile, content: Mapping[str, pa.ChunkedArray], found: Mapping[str, _Loaded]
) -> pa.Array | None:
    """Name rows that connect others: `Ada's exam: algebra, 2021-03-05`."""
    keys = [key for key in profile.table.foreign if key.table in found]
    parts = [
        _referred_names(key, content, found)
        for key in keys
        if not any(is_list(content[name].type) for name in key.columns)
    ]
    dates = [name for name, column in profile.columns.items() if column.kind == "date" or plain(name) == "year"]
    parts += [_joined([content[name]]) for name in dates[:1]]
    if len(parts) < 2:
        return None
    return _filled([parts[0], _filled(parts[1:], ", ")], f"'s {profile.type.replace('_', ' ')}: ")


def _filled(parts: Sequence[pa.Array], mark: str) -> pa.Array:
    """Join the texts that are not empty.

    `binary_join_element_wise` would skip nulls, but returns too few rows for some inputs (pyarrow 26).
    """

    def joined(first: pa.Array, second: pa.Array) -> pa.Array:
        both = pc.binary_join_element_wise(first, second, pa.scalar(mark, STRING))
        return pc.if_else(pc.equal(first, ""), second, pc.if_else(pc.equal(second, ""), first, both))

    return reduce(joined, [pc.fill_null(part, "") for part in parts])


def _graph(found: Mapping[str, _Loaded], options: SourceOptions, notes: list[str]) -> Tables:
    referred = {key.table for loaded in found.values() for key in loaded.table.foreign}
    nodes: list[Piece] = []
    edges: list[Piece] = []
    notes += [loaded.profile.to_text() for loaded in found.values() if len(loaded.keys)]
    notes += _leading_nowhere(found)
    for name, loaded in found.items():
        if not len(loaded.keys):
            continue
        if name not in referred and _is_link(loaded, found, options.columns.get("groups")):
            edges.append(_link(loaded, found, options, loaded.columns.keys()))
            continue
        lost: dict[str, pa.Array] = {}
        for key in loaded.table.foreign:
            edges.append(_references(loaded, key, found, options, lost))
        for column, cells in lost.items():
            row = pc.index(pc.is_valid(cells), True).as_py()
            where = f"{loaded.source.file}, line {loaded.source.line(row)}"
            count = len(cells) - cells.null_count
            notes.append(f"{where}: no row is {cells[row].as_py()!r}; {count:,} such values of {column} are attributes")
        nodes.append(_nodes(loaded, options, lost))
        if name not in referred and _is_between(loaded):
            edges.append(_link(loaded, found, options, ()))
    return Tables(tuple(nodes), tuple(piece for piece in edges if piece.table.num_rows), notes=tuple(notes))


def _leading_nowhere(found: Mapping[str, _Loaded]) -> list[str]:
    """Return a note about columns named like keys without a matching table."""
    columns = [
        f"{name}.{column}"
        for name, loaded in found.items()
        for column, profile in loaded.profile.columns.items()
        if plain(column).endswith(_SURE_ENDINGS)
        and profile.filled
        and column not in {*loaded.table.key, *loaded.profile.references}
    ]
    if not columns or len(found) == 1:
        return []
    return [f"Called like keys, but not those of one table: {listed(columns)}. They are attributes."]


def _is_link(loaded: _Loaded, found: Mapping[str, _Loaded], groups: str | None) -> bool:
    """Return whether two foreign keys are all columns except the groups and numbers or codes in the key.

    Other rows stay nodes, so that questions can ask for their attributes, such as the date of a marriage. If a row at
    an end is hidden, rows that connect each pair once are relations anyway: edges are hidden with their ends.
    """
    table, columns = loaded.table, loaded.profile.columns
    if len(table.foreign) != 2 or any(columns[name].kind == "list" for name in loaded.profile.references):
        return False
    if not loaded.is_declared and any(_targets(loaded, key, found)[1].null_count for key in table.foreign):
        return False
    ends, hidden = loaded.profile.references, [found[key.table].is_hidden for key in table.foreign]
    if _connects_once(loaded) and any(rows is not None and pc.any(rows).as_py() for rows in hidden):
        return True
    worded = [name for name in table.key if columns[name].could_name and not columns[name].is_code]
    return set(table.columns) - {groups} <= ends | set(table.key) and not worded


def _connects_once(loaded: _Loaded) -> bool:
    """Return whether the rows connect each pair of rows of two tables at most once."""
    table, pair = loaded.table, loaded.profile.references
    return len(table.foreign) == 2 and (set(table.key) == pair or pair in table.unique)


def _is_between(loaded: _Loaded) -> bool:
    """Return whether rows connect each pair of rows of two tables once, or are called after both: `hop_in_recipe`.

    They become nodes for their attributes, and also a relation, since a question about recipes with a hop skips the row
    between. Other tables (`marriages`) contain things.
    """
    if _connects_once(loaded):
        return True
    ends = {key.table for key in loaded.table.foreign}
    names = [f"_{name}_" for name in nouns_of(loaded.table.name)]
    return len(loaded.table.foreign) == len(ends) == 2 and all(
        any(f"_{one}_" in name for one in nouns_of(end) for name in names) for end in ends
    )


def _nodes(loaded: _Loaded, options: SourceOptions, lost: Mapping[str, pa.Array]) -> Piece:
    """Convert the rows to nodes. Reference values without a matching row become attributes."""
    profile, groups = loaded.profile, options.columns.get("groups")
    key, named = loaded.table.key, profile.named_by
    is_shown = len(named) == 1 and (
        plain(named[0]) in _NAME_HEADERS | nouns_of(loaded.table.name) | {plain(profile.type)}
        or plain(named[0]).endswith(("_name", "_title", "_label"))
    )
    single = {key.columns[0] for key in loaded.table.foreign if len(key.columns) == 1}
    dropped = single | {*(named if is_shown else ())}
    if len(key) == 1 and (
        profile.columns[key[0]].kind == "integer" or not loaded.keys[0].as_py().startswith(f"{loaded.table.name}/")
    ):
        dropped |= set(key)
    count = len(loaded.keys)
    columns: dict[str, Any] = {KEY: loaded.keys, _NAME: loaded.names}
    roles = {"key": KEY, "name": _NAME}
    if options.columns.get("type") not in loaded.columns:
        columns[TYPE], roles["type"] = constant(options.node_type or profile.type, count), TYPE
    others = [_joined([loaded.columns[name]]) for name in profile.other_names]
    others += [short for short in (short_names(loaded.names),) if short is not None]
    if others and "aliases" not in node_roles(list(loaded.columns), options.columns):
        columns[_ALIASES], roles["aliases"] = lists_of(others), _ALIASES
    columns |= {name: cells for name, cells in loaded.columns.items() if name not in dropped - {groups}}
    columns |= lost
    raw = RawTable(pa.table(columns), loaded.source.file, loaded.source.first_line, loaded.source.lines)
    return as_nodes(raw, replace(options, columns={**options.columns, **roles}))


def _references(
    loaded: _Loaded, key: ForeignKey, found: Mapping[str, _Loaded], options: SourceOptions, lost: dict[str, pa.Array]
) -> Piece:
    """Connect each row to the row it refers to. Add values without a matching row to `lost`."""
    rows, tails, values = _targets(loaded, key, found)
    if not loaded.is_declared and tails.null_count:
        is_lost = pc.is_null(tails)
        if len(key.columns) == 1:
            lost[key.columns[0]] = _by_row(rows.filter(is_lost), values.filter(is_lost), len(loaded.keys))
        rows, tails = rows.filter(pc.invert(is_lost)), tails.drop_null()
    relation = constant(_relation(loaded.table, key), len(rows))
    return _edge_piece({HEAD: loaded.keys.take(rows), RELATION: relation, TAIL: tails}, rows, loaded.source, options)


def _targets(loaded: _Loaded, key: ForeignKey, found: Mapping[str, _Loaded]) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the referring rows, the key of the node each refers to, and the referring value.

    The key is null if the row is missing. In a database, the build reports missing rows.
    """
    target, cells = found[key.table], loaded.columns[key.columns[0]].combine_chunks()
    if is_list(cells.type):
        rows, values = pc.list_parent_indices(cells).cast(pa.int64()), pc.list_flatten(cells).cast(STRING)
    else:
        rows, values = pa.array(np.arange(len(cells))), loaded.texts(key.columns)
    is_there = pc.fill_null(pc.not_equal(values, ""), False)
    rows, values = rows.filter(is_there), values.filter(is_there)
    tails = target.keys.take(pc.index_in(values, value_set=target.texts(key.targets)))
    return rows, pc.coalesce(tails, _prefixed(f"{key.table}/", values)) if loaded.is_declared else tails, values


def _link(loaded: _Loaded, found: Mapping[str, _Loaded], options: SourceOptions, kept: Any) -> Piece:
    """Connect the two rows that each row refers to, with the columns `kept` as attributes."""
    first, second = (_by_row(*_targets(loaded, key, found)[:2], len(loaded.keys)) for key in loaded.table.foreign)
    rows = pc.indices_nonzero(pc.and_(pc.is_valid(first), pc.is_valid(second))).cast(pa.int64())
    groups = options.columns.get("groups")
    hidden = (loaded.profile.references | set(loaded.table.key)) - {groups}
    columns: dict[str, Any] = {
        HEAD: first.take(rows),
        RELATION: constant(_link_relation(loaded.table), len(rows)),
        TAIL: second.take(rows),
    }
    columns |= {
        name: cells.take(rows)
        for name, cells in loaded.columns.items()
        if name == groups or (name in kept and name not in hidden)
    }
    return _edge_piece(columns, rows, loaded.source, options)


def _by_row(rows: pa.Array, values: pa.Array, count: int) -> pa.Array:
    """Return a column with the last value of each row, null for other rows."""
    places = np.full(count, -1)
    places[rows.to_numpy()] = np.arange(len(rows))
    return values.take(pa.array(places, mask=places < 0))


def _link_relation(table: SqlTable) -> str:
    """Return the table's name, or `accepts_mount` if a row has `mount_id` and `accepts_mount_id` of the same table."""
    first, second = table.foreign
    said, is_within = _relation(table, second), first.table == second.table
    return said if is_within and said.endswith(f"_{_relation(table, first)}") else plain(table.name)


def _edge_piece(columns: Mapping[str, Any], rows: pa.Array, source: Piece, options: SourceOptions) -> Piece:
    raw = RawTable(pa.table(dict(columns)), source.file, lines=source.lines_of(rows))
    return as_edges(raw, edge_options(options))


def edge_options(options: SourceOptions) -> SourceOptions:
    """Return options for edges created here, with only the user's column of groups."""
    groups = {role: name for role, name in options.columns.items() if role == "groups"}
    return SourceOptions(columns={**EDGE_ROLES, **groups})


def _relation(table: SqlTable, key: ForeignKey) -> str:
    """Name a reference: `AlbumId` → `album`, `ReportsTo` → `reports_to`.

    For composite or own keys, use the other table.
    """
    if len(key.columns) > 1 or key.columns == table.key:
        return plain(key.table)
    name = plain(key.columns[0])
    for ending in KEY_ENDINGS:
        name = name.removesuffix(ending)
    return name.strip("_") or plain(key.table)
