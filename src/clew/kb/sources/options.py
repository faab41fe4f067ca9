"""What the caller may say about sources that they do not say themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clew.core.errors import InputError
from clew.kb.tables import EDGE_COLUMNS, NODE_COLUMNS


@dataclass(frozen=True)
class SourceOptions:
    """How to read sources; every field has a default that reads well-named files as they are."""

    nodes: tuple[Path, ...] = ()
    """Files to read as node tables, whatever their columns look like."""
    edges: tuple[Path, ...] = ()
    """Files to read as edge tables."""
    triples: tuple[Path, ...] = ()
    """Files to read as triples without a header."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Role → column name, such as name=title; overrides what the names suggest."""
    encoding: str | None = None
    """Encoding of text files; None means UTF-8, or what a byte-order mark says."""
    node_type: str | None = None
    """The type of nodes whose source names none, and of the subjects of triples."""
    language: str = "en"
    """The language of RDF labels and texts, where there are several."""
    trust: bool = False
    """Allow the STaRK pickles, through a restricted reader."""
    skip_bad: bool = False
    """Leave out rows that cannot be read and list them, instead of stopping at the first."""


def parse_columns(assignments: list[str] | tuple[str, ...]) -> dict[str, str]:
    """`["name=title"]` → `{"name": "title"}`, checking the roles."""
    columns = {}
    for assignment in assignments:
        role, _, column = assignment.partition("=")
        if not column or role not in NODE_COLUMNS + EDGE_COLUMNS:
            roles = ", ".join(NODE_COLUMNS + EDGE_COLUMNS)
            raise InputError(f"--map {assignment}: expected ROLE=COLUMN with a role among {roles}")
        columns[role] = column
    return columns
