"""Union of several knowledge bases, in which the same thing in two bases becomes one node.

Two nodes are the same if they have the same type, and either the same key and name, or a name that is unique for the
type in both bases. The union is built once and cached until one of the bases changes. 4StepFocus names this as future
work: "combining multiple knowledge bases" (Boer, Koch and Kramer 2024, section 5).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from clew.core.errors import InputError, NotFoundError, StorageError
from clew.models.settings import Settings
from clew.store.building import build
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.schema_file import SchemaEdits
from clew.store.graph.tables import GROUPS, NODE_COLUMNS, Piece, Tables
from clew.store.graph.visibility import audience
from clew.store.group_views import view_for
from clew.store.index.tokens import normalise
from clew.store.sources.jsonl import table_of_records
from clew.store.sources.wide import agreed

Row = dict[str, Any]
Identity = tuple[str, str, frozenset[str]]
BASES = "bases"
"""Attribute with the names of the bases that contain a node."""
VERSION = 3
"""Version of the union. Increase it when the same bases yield a different union."""


def joined_base(folders: Sequence[Path], groups: Iterable[str] | None = None) -> Path:
    """Return the folder of the union of some bases. Build it if it is not cached.

    With `groups`, return the union of the content visible to these groups. Hidden nodes affect neither keys nor merges.
    """
    names = [folder.name.removesuffix(".kb") for folder in folders]
    if len(folders) < 2 or len(set(names)) < len(names):
        raise InputError(f"a union needs two or more bases with different names, not {', '.join(names) or 'none'}")
    bases = [ArrayKnowledgeBase.open(folder) for folder in folders]
    if groups is not None:
        bases = [ArrayKnowledgeBase.open(view_for(base, groups) or base.folder) for base in bases]
    content = repr((VERSION, names, [base.generation.name for base in bases]))
    cached = Settings.load().cache_folder / "joined" / f"{hashlib.sha256(content.encode()).hexdigest()[:16]}.kb"
    try:
        ArrayKnowledgeBase.open(cached).release()
    except (StorageError, NotFoundError):
        build(joined_tables(dict(zip(names, bases, strict=True))), cached, edits=_edits(bases))
    for base in bases:
        base.release()
    return cached


def joined_tables(bases: dict[str, ArrayKnowledgeBase]) -> Tables:
    """Return the sources of the union. Prefix a key with the name of its base if it has two meanings."""
    union: dict[str, Row] = {}
    edges = []
    notes: list[str] = []
    for name, base in bases.items():
        tables = base.to_tables()
        keys = _add(union, name, tables.nodes[0].table.to_pylist())
        table = tables.edges[0].table
        for end in ("head", "tail"):
            renamed = pa.array([keys[key] for key in table[end].to_pylist()], pa.large_string())
            table = table.set_column(table.column_names.index(end), end, renamed)
        edges.append(Piece(table, name))
        notes += [note for note in tables.notes if note not in notes]
    shared = sum(len(row[BASES]) > 1 for row in union.values())
    notes.append(f"joined from {' and '.join(bases)}: {shared:,} nodes are known to more than one")
    by_type = {kind: table_of_records(rows) for kind, rows in _by_type(union.values()).items()}
    return Tables(agreed([Piece(table, kind) for kind, table in by_type.items()]), agreed(edges), notes=tuple(notes))


def _add(union: dict[str, Row], base: str, rows: list[Row]) -> dict[str, str]:
    """Add the nodes of a base to the union by their keys. Return the key in the union of each of its keys."""
    here, there = _singular(rows), _singular(list(union.values()))
    keys: dict[str, str] = {}
    for row in map(_renamed, rows):
        key, identity = str(row["key"]), _identity(row)
        same = union.get(key)
        if same is None or _identity(same) != identity:
            same = union[there[identity]] if here.get(identity) == key and identity in there else None
        if same is not None:
            keys[key] = str(same["key"])
            _merge(same, row, base)
            continue
        keys[key] = key
        while keys[key] in union:  # a base may have keys of this form itself
            keys[key] = f"{base}:{keys[key]}"
        union[keys[key]] = {**row, "key": keys[key], BASES: [base]}
    return keys


def _renamed(row: Row) -> Row:
    """Rename a source attribute that has the name of the attribute `bases`."""
    return {(f"own_{BASES}" if name == BASES else name): value for name, value in row.items()}


def _identity(row: Row) -> Identity:
    """Return type, name and groups. Nodes for different groups are never merged."""
    return normalise(str(row["type"])), normalise(str(row["name"])), audience(row.get(GROUPS))


def _singular(rows: Sequence[Row]) -> dict[Identity, str]:
    """Return keys by type and name, for names that only one node of the type has."""
    times = Counter(map(_identity, rows))
    return {_identity(row): str(row["key"]) for row in rows if times[_identity(row)] == 1}


def _merge(known: Row, row: Row, base: str) -> None:
    """Merge `row` into `known`: add aliases and text, and fill missing attributes."""
    known[BASES] = [*known[BASES], base]
    names = [*(known["aliases"] or ()), *(row["aliases"] or ())]
    known["aliases"] = list(dict.fromkeys(names if row["name"] == known["name"] else [*names, row["name"]]))
    if row["text"] and row["text"] != known["text"]:
        known["text"] = "\n".join(filter(None, (known["text"], row["text"])))
    for name, value in row.items():
        if name not in NODE_COLUMNS and known.get(name) is None:
            known[name] = value


def _by_type(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row["type"]), []).append({name: value for name, value in row.items() if value is not None})
    return found


def _edits(bases: Sequence[ArrayKnowledgeBase]) -> SchemaEdits:
    """Merge the schema edits of the bases. The first base takes precedence."""
    edits = [SchemaEdits.from_json(base.manifest.facts.get("edits")) for base in reversed(bases)]
    types = {name: edit.model_copy(update={"show": None}) for one in edits for name, edit in one.types.items()}
    return SchemaEdits(types=types, relations={name: edit for one in edits for name, edit in one.relations.items()})
