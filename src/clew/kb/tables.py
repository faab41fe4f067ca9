"""What every reader of source files hands to the build: node and edge tables that remember where each row came from."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from clew.kb.problems import Problem

NODE_COLUMNS = ("key", "type", "name", "aliases", "text")
"""Columns with a meaning of their own; all others are attributes. Only `key` is required."""
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
