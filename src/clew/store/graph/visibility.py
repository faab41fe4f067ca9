"""Visibility of rows: nodes and edges may have groups, and a caller sees rows of the caller's groups.

A row without groups is public. An edge is visible to callers who see the edge and both ends.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase, translate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.core.errors import InputError, NotFoundError, SourceError
from clew.core.texts import parse_toml
from clew.store.graph.node_table import STRINGS
from clew.store.graph.tables import EDGE_COLUMNS, GROUPS, NODE_COLUMNS, ROW, STRING, Piece, Tables, Visibility, texts_of

MAX_LISTED = 20
"""Maximum number of nodes and edges that an error lists."""
Row = MutableMapping[str, Any]
Rules = Mapping[str, Sequence[str]]
"""A pattern of files or keys, such as `hr/*` → the groups that may see matching rows."""


def read_rules(file: Path) -> dict[str, list[str]]:
    """Read rules from a TOML file with lines such as `"hr/*" = ["hr", "board"]`. The last matching pattern wins."""
    try:
        rules = parse_toml(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as failure:
        raise SourceError(f"cannot be read as TOML: {failure}", file=file) from None
    for pattern, groups in rules.items():
        if not isinstance(groups, list) or not all(isinstance(group, str) and group.strip() for group in groups):
            raise SourceError(f'{pattern!r}: expected a list of groups, such as "hr/*" = ["hr"]', file=file)
    return rules


def restricted(tables: Tables, rules: Rules, *, strict: bool = True) -> Tables:
    """Add the groups of the rules to the nodes, by file if the node has one, otherwise by key.

    Raise NotFoundError if a rule matches nothing and `strict` is set: a misspelt pattern would expose hidden rows.
    """
    if not rules:
        return tables
    found = [apply_rules(piece, rules) for piece in tables.nodes]
    unused = set(rules).difference(*(used for _, used in found))
    if unused and strict:
        raise NotFoundError(f"the rule {min(unused)!r} matches no file and no key: correct or remove it")
    visibility = replace(tables.visibility, rules=rules)
    return replace(tables, nodes=tuple(piece for piece, _ in found), visibility=visibility)


def apply_rules(piece: Piece, rules: Rules, rows: pa.ChunkedArray | None = None) -> tuple[Piece, set[str]]:
    """Give nodes the groups of the matching rules. Also return the rules that were used.

    `rows` marks the nodes to apply the rules to, by default all.
    """
    table = piece.table
    names = piece.texts("key")
    if "file" in table.column_names:
        names = pc.coalesce(piece.texts("file"), names)
    known = GROUPS in table.column_names
    groups = table[GROUPS].cast(STRINGS) if known else pa.chunked_array([pa.nulls(len(names), STRINGS)])
    used = set()
    for pattern, allowed in rules.items():
        expression = translate(pattern).removeprefix("(?s:").removesuffix(")\\Z")
        fits = pc.match_substring_regex(names, f"^(?:{expression})$")
        fits = fits if rows is None else pc.and_(fits, rows)
        if pc.any(fits, min_count=0).as_py():
            used.add(pattern)
            groups = pc.if_else(fits, pa.scalar(list(allowed), STRINGS), groups)
    table = table.drop_columns([GROUPS]) if known else table
    return replace(piece, table=table.append_column(GROUPS, groups)), used


def rule_audience(name: str, rules: Rules) -> frozenset[str]:
    """Return the groups that the rules give a file. The last matching pattern wins."""
    fitting = [groups for pattern, groups in rules.items() if fnmatchcase(name, pattern)]
    return audience(fitting[-1]) if fitting else frozenset()


def fingerprint(tables: Tables) -> str:
    """Return a digest of the visibility of all rows."""
    nodes = [_rows_with_groups(piece.table) for piece in tables.nodes if has_groups(piece)]
    edges = [_rows_with_groups(piece.table) for piece in tables.edges if has_groups(piece)]
    told = [table.select(["key", GROUPS]).to_pylist() for table in nodes]
    told += [table.select([*EDGE_COLUMNS, GROUPS]).to_pylist() for table in edges]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def groups_in(*batches: pa.RecordBatch | None) -> list[str]:
    """Return all groups of nodes and edges."""
    columns = [batch[GROUPS] for batch in batches if batch is not None and GROUPS in batch.schema.names]
    named = (pc.unique(pc.list_flatten(column)).to_pylist() for column in columns)
    return sorted({group for some in named for group in some if group})


def audience(groups: Sequence[str | None] | None) -> frozenset[str]:
    """Return the groups of a row. An empty set means everybody."""
    return frozenset(group for group in groups or () if group)


def audience_text(groups: Collection[str]) -> str:
    """Return the groups as text, or "everybody" if there are none."""
    return ", ".join(sorted(groups)) or "everybody"


def has_groups(piece: Piece) -> bool:
    """Return whether any row has groups."""
    return bool(_rows_with_groups(piece.table).num_rows)


def refuse_widening(old: Tables, new: Tables, place: object) -> None:
    """Raise InputError with a list if nodes or edges of a base would become visible to more people."""
    if found := widened(old, new):
        listed = "; ".join(found[:MAX_LISTED]) + (
            f"; and {len(found) - MAX_LISTED:,} more" if found[MAX_LISTED:] else ""
        )
        raise InputError(
            f"{place}: {len(found):,} nodes or edges would be visible to more people: {listed}. Keep their groups "
            "(--map groups=COLUMN, --visible FILE), or add --widen to show them"
        )


def widened(old: Tables, new: Tables) -> list[str]:
    """Return nodes and edges that would become visible to more people, with old and new groups.

    Parallel edges count together, and also each by its attributes, since its content must not move to other readers.
    """
    nodes = _widened(old.nodes, new.nodes, "key", lambda row: [f"node {row['key']!r}"], ("key", GROUPS))
    return nodes + _widened(old.edges, new.edges, "head", _edge_names)


def _widened(
    old: Sequence[Piece],
    new: Sequence[Piece],
    first: str,
    names: Callable[[Row], list[str]],
    columns: Collection[str] | None = None,
) -> list[str]:
    among = texts_of([replace(piece, table=_rows_with_groups(piece.table)) for piece in old], first)
    before, after = (_audiences(pieces, first, names, columns, among) for pieces in (old, new))
    return [
        f"{name} ({audience_text(groups)} → {audience_text(after[name])})"
        for name, groups in before.items()
        if groups and name in after and not (after[name] and after[name] <= groups)
    ]


def _audiences(
    pieces: Sequence[Piece],
    first: str,
    names: Callable[[Row], list[str]],
    columns: Collection[str] | None,
    among: pa.ChunkedArray,
) -> dict[str, frozenset[str]]:
    """Return the groups of the rows of each name, for names listed in `among`."""
    found: dict[str, frozenset[str]] = {}
    for piece in pieces:
        table = piece.table.select([name for name in piece.table.column_names if columns is None or name in columns])
        for row in table.filter(pc.is_in(piece.texts(first), value_set=among)).to_pylist():
            groups = audience(row.pop(GROUPS, None))
            for name in names(row):
                earlier = found.get(name, groups)
                found[name] = earlier | groups if earlier and groups else frozenset()
    return found


def edge_content(row: Row) -> str:
    """Return the attributes of an edge as text, to distinguish parallel edges."""
    held = {name: value for name, value in row.items() if name not in (*EDGE_COLUMNS, GROUPS) and value is not None}
    return repr(sorted(held.items())) if held else ""


def _edge_names(row: Row) -> list[str]:
    name = f"edge {row['head']!r} —{row['relation']}→ {row['tail']!r}"
    return [name, f"{name} {content}"] if (content := edge_content(row)) else [name]


def _rows_with_groups(table: pa.Table) -> pa.Table:
    if GROUPS not in table.column_names:
        return table.slice(0, 0)
    return table.filter(pc.fill_null(pc.greater(pc.list_value_length(table[GROUPS]), 0), False))


def visible(tables: Tables, groups: Collection[str]) -> Tables:
    """Return the rows visible to a caller of these groups, without any trace of other rows."""
    nodes = [_seen(piece, groups) for piece in tables.nodes]
    edges = [_seen(piece, groups) for piece in tables.edges]
    keys = texts_of(nodes)
    if len(keys) < sum(piece.table.num_rows for piece in tables.nodes):
        ends = [[pc.is_in(piece.texts(end), value_set=keys) for end in ("head", "tail")] for piece in edges]
        edges = [piece.filter(pc.and_(*pair)) for piece, pair in zip(edges, ends, strict=True)]
    return replace(
        tables,
        nodes=_without_empty(nodes, NODE_COLUMNS),
        edges=_without_empty(edges, EDGE_COLUMNS),
        implicit=False,
        visibility=Visibility(),
    )


def _seen(piece: Piece, groups: Collection[str]) -> Piece:
    if GROUPS not in piece.table.column_names:
        return piece
    column = piece.table[GROUPS].cast(STRINGS).combine_chunks()
    column = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
    flat = pc.list_flatten(column)
    owners = pc.list_parent_indices(column).to_numpy()
    named = pc.fill_null(pc.not_equal(flat, ""), False).to_numpy(zero_copy_only=False)
    allowed = pc.is_in(flat, value_set=pa.array(sorted(groups), STRING)).to_numpy(zero_copy_only=False)
    is_open = np.bincount(owners[named], minlength=len(column)) == 0
    is_allowed = np.bincount(owners[named & allowed], minlength=len(column)) > 0
    kept = piece.filter(pa.array(is_open | is_allowed))
    table = kept.table.drop_columns([GROUPS])
    if ROW in table.column_names:  # gaps would reveal hidden rows
        known = pc.is_valid(table[ROW])
        ranks = pc.rank(table[ROW].combine_chunks(), tiebreaker="first").cast(pa.int64())
        table = table.set_column(table.column_names.index(ROW), ROW, pc.if_else(known, ranks, None))
    return replace(kept, table=table)


def _without_empty(pieces: list[Piece], fixed: Sequence[str]) -> tuple[Piece, ...]:
    """Remove the columns without any values."""
    silent = {
        name
        for piece in pieces
        for name in piece.table.column_names
        if name not in fixed
        and all(
            other.table[name].null_count == other.table.num_rows for other in pieces if name in other.table.column_names
        )
    }
    return tuple(
        replace(piece, table=piece.table.drop_columns([name for name in piece.table.column_names if name in silent]))
        for piece in pieces
    )
