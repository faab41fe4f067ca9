"""Tables of nodes and edges as sources give them, and what was wrong with their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from clew.core.errors import CorruptError, SourceError


@dataclass(frozen=True, slots=True)
class Problem:
    """One row that cannot be used, and where it stands; line 0 means the whole file."""

    message: str
    file: str
    line: int


@dataclass
class Problems:
    """Raises at the first problem, or counts and lists them where `skip` is set."""

    skip: bool = False
    listed: list[Problem] = field(default_factory=list)
    count: int = 0
    most_listed: int = 1000

    def add(self, message: str, file: str, line: int) -> None:
        """Report one row."""
        if not self.skip:
            raise SourceError(f"{message}; --skip-bad leaves such rows out and lists them", file=file, line=line)
        self.count += 1
        if len(self.listed) < self.most_listed:
            self.listed.append(Problem(message, file, line))


NODE_COLUMNS = ("key", "type", "name", "aliases", "text")
"""Columns with a meaning of their own; all others are attributes. Only `key` is required."""
GROUPS = "clew:groups"
"""Column of nodes or edges: the groups that may see a row, everybody where there are none. It is no attribute."""
ELEMENT = "clew:element"
"""Column of nodes that were read of a graph database: what it calls them. It is no attribute."""
HIDDEN = (GROUPS, ELEMENT)
EDGE_COLUMNS = ("head", "relation", "tail")
"""Required columns of an edge table; all others are edge attributes."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of one file; row i stands on line `first_line + i`, or on `lines[i]` where rows and lines differ."""

    table: pa.Table
    file: str
    first_line: int = 1
    lines: pa.Array | None = None

    def line(self, row: int) -> int:
        """The line a row came from."""
        return self.first_line + row if self.lines is None else int(self.lines[row].as_py())


@dataclass(frozen=True)
class Visibility:
    """How a base tells which groups a row is for. The base stores it, so that it applies to later changes too."""

    column: str | None = None
    """Column of groups in the sources (`--map groups=COLUMN`)."""
    rules: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Pattern of files or keys, such as `hr/*` → groups (`--visible FILE`)."""

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Visibility:
        """Read it from the facts of a base. Bases of earlier versions have none."""
        stored = facts.get("visibility", {})
        try:
            rules = {str(pattern): [*map(str, groups)] for pattern, groups in stored.get("rules", {}).items()}
            return cls(stored.get("column") and str(stored["column"]), rules)
        except (AttributeError, TypeError):
            raise CorruptError("the manifest does not say who may see what: build the base again") from None

    def to_facts(self) -> dict[str, Any]:
        """Return the facts to store. Empty if the base has no groups."""
        stored = {"column": self.column, "rules": dict(self.rules)}
        return {"visibility": {name: value for name, value in stored.items() if value}} if any(stored.values()) else {}


@dataclass(frozen=True, eq=False)
class Tables:
    """All nodes and edges of a knowledge base before the build; keys may be strings or integers.

    Where there are no node pieces, or `implicit` is true, entities that only edges name become nodes too.
    """

    nodes: tuple[Piece, ...]
    edges: tuple[Piece, ...]
    implicit: bool = False
    implicit_type: str = "entity"
    """The type of nodes that only edges name, as heads; `--class movie` sets it."""
    notes: tuple[str, ...] = ()
    """Attribution and version of the sources, shown by `clew info`."""
    skipped: tuple[Problem, ...] = ()
    """Rows the readers left out, where they were told to."""
    answers: tuple[str, ...] = ()
    """The types whose nodes may be answers, where the format of the sources says so; empty means all."""
    visibility: Visibility = Visibility()
