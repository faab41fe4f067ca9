"""Several knowledge bases asked as one: their union, in which a thing that two of them know is one node.

Two nodes are the same where they have the same type and either the same key and name, or a name that no other node of
the type has in either base. The union is built once and kept in the cache, until one of the bases changes. 4StepFocus
names this as future work: "combining multiple knowledge bases" (Boer, Koch and Kramer 2024, section 5).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
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

Identity = tuple[str, str, frozenset[str]]
BASES = "bases"
"""The attribute that says which bases know a node."""
VERSION = 3
"""Raised when the same bases are joined in another way."""


def joined_base(folders: Sequence[Path], groups: Iterable[str] | None = None) -> Path:
    """The folder of the union of some bases, built where it is not kept yet.

    With `groups` it is the union of what these may see: hidden nodes change neither keys nor what is one node.
    """
    names = [folder.name.removesuffix(".kb") for folder in folders]
    if len(folders) < 2 or len(set(names)) < len(names):
        raise InputError(
            f"name two or more bases of different names to ask them as one, not {', '.join(names) or 'none'}"
        )
    bases = [ArrayKnowledgeBase.open(folder) for folder in folders]
    if groups is not None:
        bases = [ArrayKnowledgeBase.open(view_for(base, groups) or base.folder) for base in bases]
    told = repr((VERSION, names, [base.generation.name for base in bases]))
    kept = Settings.load().cache_folder / "joined" / f"{hashlib.sha256(told.encode()).hexdigest()[:16]}.kb"
    try:
        ArrayKnowledgeBase.open(kept).release()
    except (StorageError, NotFoundError):
        edits = _edits(bases)
        build(joined_tables(dict(zip(names, bases, strict=True))), kept, edits=edits)
    for base in bases:
        base.release()
    return kept


def joined_tables(bases: dict[str, ArrayKnowledgeBase]) -> Tables:
    """The sources of the union; a key that means two different things gets the name of its base before it."""
    union = _Union()
    edges = []
    notes: list[str] = []
    for name, base in bases.items():
        tables = base.to_tables()
        keys = union.add(name, tables.nodes[0].table.to_pylist())
        table = tables.edges[0].table
        for end in ("head", "tail"):
            renamed = pa.array([keys[key] for key in table[end].to_pylist()], pa.large_string())
            table = table.set_column(table.column_names.index(end), end, renamed)
        edges.append(Piece(table, name))
        notes += [note for note in tables.notes if note not in notes]
    shared = sum(len(row[BASES]) > 1 for row in union.rows.values())
    notes.append(f"joined from {' and '.join(bases)}: {shared:,} nodes are known to more than one")
    kept = {kind: table_of_records(rows) for kind, rows in _by_type(union.rows.values()).items()}
    return Tables(agreed([Piece(table, kind) for kind, table in kept.items()]), agreed(edges), notes=tuple(notes))


@dataclass
class _Union:
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, base: str, rows: list[dict[str, Any]]) -> dict[str, str]:
        """Take in the nodes of a base; returns the key that each of its keys has in the union."""
        here, there = _singular(rows), _singular(list(self.rows.values()))
        keys: dict[str, str] = {}
        for row in map(_renamed, rows):
            own = str(row["key"])
            known = self.rows.get(own)
            if known is None or _identity(known) != _identity(row):
                name = _identity(row)
                known = self.rows[there[name]] if here.get(name) == own and name in there else None
            if known is not None:
                keys[own] = str(known["key"])
                _merge(known, row, base)
                continue
            keys[own] = own
            while keys[own] in self.rows:  # also where a base has keys of this form itself
                keys[own] = f"{base}:{keys[own]}"
            self.rows[keys[own]] = {**row, "key": keys[own], BASES: [base]}
        return keys


def _renamed(row: dict[str, Any]) -> dict[str, Any]:
    """An attribute that has the name of ours keeps its values under another."""
    return {(f"own_{BASES}" if name == BASES else name): value for name, value in row.items()}


def _identity(row: dict[str, Any]) -> Identity:
    """Return what tells things apart; nodes for different groups are never one."""
    return normalise(str(row["type"])), normalise(str(row["name"])), audience(row.get(GROUPS))


def _singular(rows: Sequence[dict[str, Any]]) -> dict[Identity, str]:
    """Type and name → key, of names that one node of the type alone has."""
    times = Counter(map(_identity, rows))
    return {_identity(row): str(row["key"]) for row in rows if times[_identity(row)] == 1}


def _merge(known: dict[str, Any], row: dict[str, Any], base: str) -> None:
    """What another base says is added; where the two differ, the first one stands, but for texts."""
    known[BASES] = [*known[BASES], base]
    names = [*(known["aliases"] or ()), *(row["aliases"] or ())]
    known["aliases"] = list(dict.fromkeys(names if row["name"] == known["name"] else [*names, row["name"]]))
    if row["text"] and row["text"] != known["text"]:
        known["text"] = "\n".join(filter(None, (known["text"], row["text"])))
    for name, value in row.items():
        if name not in NODE_COLUMNS and known.get(name) is None:
            known[name] = value


def _by_type(rows: Any) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(str(row["type"]), []).append({name: value for name, value in row.items() if value is not None})
    return found


def _edits(bases: Sequence[ArrayKnowledgeBase]) -> SchemaEdits:
    """What the makers of the bases said about their schemas; where two speak of one thing, the first."""
    told = [SchemaEdits.from_json(base.manifest.facts.get("edits")) for base in reversed(bases)]
    types = {name: edit.model_copy(update={"show": None}) for edits in told for name, edit in edits.types.items()}
    return SchemaEdits(types=types, relations={name: edit for edits in told for name, edit in edits.relations.items()})
