"""Node and edge tables of the sources, and problems with their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from clew.core.errors import CorruptError, SourceError


@dataclass(frozen=True, slots=True)
class Problem:
    """An unusable row and its position. Line 0 means the whole file."""

    message: str
    file: str
    line: int


@dataclass
class Problems:
    """Collects problems with `skip`, otherwise raises an error at the first problem."""

    skip: bool = False
    listed: list[Problem] = field(default_factory=list)
    count: int = 0
    most_listed: int = 1000

    def add(self, message: str, file: str, line: int) -> None:
        """Report an unusable row."""
        if not self.skip:
            raise SourceError(f"{message}: add --skip-bad to skip and list such rows", file=file, line=line)
        self.count += 1
        if len(self.listed) < self.most_listed:
            self.listed.append(Problem(message, file, line))


STRING = pa.large_string()
"""Type of texts in tables."""
NODE_COLUMNS = ("key", "type", "name", "aliases", "text")
"""Columns with a special meaning. All other columns are attributes. Only `key` is required."""
GROUPS = "clew:groups"
"""Column of nodes or edges with the groups that may see a row, not an attribute. Rows without groups are public."""
ELEMENT = "clew:element"
"""Column with the ids of nodes from a graph database, not an attribute."""
ROW = "clew:row"
"""Column with the row of each node in the table that it was read from, not an attribute."""
HIDDEN = (GROUPS, ELEMENT, ROW)
EDGE_COLUMNS = ("head", "relation", "tail")
"""Required columns of an edge table. All other columns are edge attributes."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Rows of one file. Row i is on line `first_line + i`, or on `lines[i]` if rows and lines differ."""

    table: pa.Table
    file: str
    first_line: int = 1
    lines: pa.Array | None = None

    def line(self, row: int) -> int:
        """Return the line of a row."""
        return self.first_line + row if self.lines is None else int(self.lines[row].as_py())

    def lines_of(self, rows: pa.Array) -> pa.Array:
        """Return the lines of some rows."""
        rows = rows.cast(pa.int64())
        return pc.add(rows, self.first_line) if self.lines is None else self.lines.take(rows)

    def filter(self, mask: pa.Array | pa.ChunkedArray) -> Self:
        """Return the marked rows with their lines."""
        return replace(self, table=self.table.filter(mask), lines=self.lines_of(pc.indices_nonzero(mask)))

    def texts(self, column: str) -> pa.ChunkedArray:
        """Return a column as text."""
        return self.table[column].cast(pa.large_string())


def texts_of(pieces: Iterable[Piece], column: str = "key") -> pa.ChunkedArray:
    """Return a column of several pieces as text."""
    return pa.chunked_array([chunk for piece in pieces for chunk in piece.texts(column).chunks], pa.large_string())


@dataclass(frozen=True)
class Visibility:
    """How groups are assigned to rows. The base stores it for later changes."""

    column: str | None = None
    """Column of groups in the sources (`--map groups=COLUMN`)."""
    rules: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Pattern of files or keys, such as `hr/*` → groups (`--visible FILE`)."""

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Visibility:
        """Read from the facts of a base. Bases of earlier versions have no visibility."""
        stored = facts.get("visibility", {})
        try:
            rules = {str(pattern): [*map(str, groups)] for pattern, groups in stored.get("rules", {}).items()}
            return cls(stored.get("column") and str(stored["column"]), rules)
        except (AttributeError, TypeError):
            raise CorruptError("the visibility in the manifest is invalid: build the base again") from None

    def to_facts(self) -> dict[str, Any]:
        """Return the facts to store. Empty if the base has no groups."""
        stored = {"column": self.column, "rules": dict(self.rules)}
        return {"visibility": {name: value for name, value in stored.items() if value}} if any(stored.values()) else {}


@dataclass(frozen=True, eq=False)
class Tables:
    """All nodes and edges of a knowledge base before the build. Keys may be strings or integers.

    Without node tables, or with `implicit`, entities that only edges name also become nodes.
    """

    nodes: tuple[Piece, ...]
    edges: tuple[Piece, ...]
    implicit: bool = False
    implicit_type: str = "entity"
    """Type of heads that only edges name. `--class movie` sets it. Such tails have the type `entity`."""
    notes: tuple[str, ...] = ()
    """Attribution and version of the sources, shown by `clew info`."""
    skipped: tuple[Problem, ...] = ()
    """Rows that the readers skipped, if allowed."""
    answers: tuple[str, ...] = ()
    """Types whose nodes may be answers, if the source format specifies them. Empty means all."""
    visibility: Visibility = Visibility()
