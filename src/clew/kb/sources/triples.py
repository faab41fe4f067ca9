"""Triples without a header: head, relation, tail, separated by a tab, `|` or a comma; entities become nodes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from clew.kb.problems import Problem
from clew.kb.sources.delimited import Dialect, read_delimited
from clew.kb.sources.files import kind_of
from clew.kb.sources.options import SourceOptions
from clew.kb.sources.pieces import as_edges
from clew.kb.tables import EDGE_COLUMNS, Piece

_FEW = 20


def looks_like_triples(dialect: Dialect, path: Path) -> bool:
    """Three fields in most rows, and a first row that is a fact: its relation comes again, or the file is short."""
    widths = Counter(len(row) for row in dialect.rows)
    if len(dialect.header) != 3 or widths[3] * 2 <= len(dialect.rows):
        return False
    relations = Counter(row[1] for row in dialect.rows if len(row) == 3)
    first = relations[dialect.header[1]]
    return first > 1 or (len(dialect.rows) <= _FEW and kind_of(path) != ".csv")


def read_triples(data: bytes, dialect: Dialect, file: str, options: SourceOptions) -> tuple[Piece, list[Problem]]:
    """The edges of a triples file, and the rows left out."""
    raw, skipped = read_delimited(data, dialect, file, EDGE_COLUMNS, skip_bad=options.skip_bad)
    return as_edges(raw, SourceOptions()), skipped
