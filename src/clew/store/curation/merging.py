"""Merge several nodes of a base into one, with undo.

The first node keeps its key, name and values. The other nodes add their names as aliases, their texts, missing values
and their edges. Their keys are stored in the attribute `merged_keys`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from clew.core.errors import InputError
from clew.core.types import NodeRef
from clew.store.building import BuildReport, Say, write_base
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import read_manifest
from clew.store.graph.schema_file import SchemaEdits
from clew.store.graph.storage import locked, revert
from clew.store.graph.tables import GROUPS, Piece, Tables
from clew.store.graph.visibility import audience
from clew.store.index.build import forget_old_rows

MERGED = "merged_keys"

Row = dict[str, Any]


def merge(folder: Path, groups: Sequence[Sequence[NodeRef]], *, say: Say = lambda _: None) -> BuildReport:
    """Merge each group into its first node. `clew dedup KB --undo` restores the base.

    Raise InputError if the nodes of a group have different visibility.
    """
    with locked(folder):
        old = ArrayKnowledgeBase.open(folder)
        for node in (node for group in groups for node in group):
            old.find(node.key)  # another process may have changed the base
        edits = SchemaEdits.from_json(old.manifest.facts["edits"])
        tables = merged(old.to_tables(), [[node.key for node in group] for group in groups])
        gone = sum(len(group) - 1 for group in groups)
        old.release()
        what = f"merged {gone:,} nodes into {len(groups):,}"
        return write_base(tables, folder, edits, skip_bad=False, say=say, lenient=True, renew=True, merged=what)


def merged(tables: Tables, groups: Sequence[Sequence[str]]) -> Tables:
    """Return tables in which the keys of each group are replaced by the first key."""
    leaders = {key: group[0] for group in groups for key in group}
    (nodes,), (edges,) = tables.nodes, tables.edges
    return replace(tables, nodes=(_merged_nodes(nodes, leaders),), edges=(_merged_edges(edges, leaders),))


def _merged_nodes(piece: Piece, leaders: Mapping[str, str]) -> Piece:
    table = piece.table
    touched = pc.is_in(table["key"], value_set=pa.array(list(leaders), table["key"].type))
    rows = {row["key"]: row for row in table.filter(touched).to_pylist()}
    members: dict[str, list[Row]] = {}
    for key, leader in leaders.items():
        members.setdefault(leader, []).append(rows[key])
    united = [_united(group) for group in members.values()]
    kinds = {column.name: column.type for column in table.schema}
    kinds.setdefault(MERGED, pa.large_list(pa.large_string()))
    changed = pa.table({name: pa.array([row.get(name) for row in united], kind) for name, kind in kinds.items()})
    untouched = table.filter(pc.invert(touched))
    return Piece(pa.concat_tables([untouched, changed], promote_options="default"), piece.file)


def _united(group: Sequence[Row]) -> Row:
    """Return the first row with missing data from the other rows."""
    first, *others = group
    for other in others:
        if audience(first.get(GROUPS)) != audience(other.get(GROUPS)):
            raise InputError(f"{first['key']!r} and {other['key']!r} are for different groups and cannot be merged")
    row = {name: next((member[name] for member in group if member[name] not in (None, "", [])), None) for name in first}
    names = dict.fromkeys(name for member in group for name in (member["name"], *(member["aliases"] or ())))
    row["aliases"] = [name for name in names if name != first["name"]]
    row["text"] = "\n\n".join(dict.fromkeys(member["text"] for member in group if member["text"]))
    row |= {name: first[name] for name in ("key", "type", "name")}
    earlier = [key for member in group for key in member.get(MERGED) or ()]
    return row | {MERGED: [*earlier, *(other["key"] for other in others)]}


def _merged_edges(piece: Piece, leaders: Mapping[str, str]) -> Piece:
    """Replace the merged keys, and remove loops and duplicates that result."""
    table = piece.table
    marks = []
    for end in ("head", "tail"):
        keys = table[end]
        places = pc.index_in(keys, value_set=pa.array(list(leaders), keys.type))
        instead = pa.array(list(leaders.values()), keys.type).take(places)
        table = table.set_column(table.column_names.index(end), end, pc.coalesce(instead, keys))
        marks.append(pc.is_valid(places))
    moved = pc.or_(*marks)
    rows = table.filter(pc.and_(moved, pc.not_equal(table["head"], table["tail"]))).to_pylist()
    distinct = {repr(sorted(row.items())): row for row in rows}
    united = pa.Table.from_pylist(list(distinct.values()), table.schema)
    return Piece(pa.concat_tables([table.filter(pc.invert(moved)), united]), piece.file)


def undo(folder: Path) -> str:
    """Restore the base before the last merge. Return a description of that merge."""
    read_manifest(folder)
    with locked(folder):
        try:
            return revert(folder)
        finally:
            forget_old_rows(folder)
