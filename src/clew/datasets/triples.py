"""Files of bare triples as tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from clew.datasets.files import read_rows
from clew.kb.tables import Piece, Tables


def triple_tables(file: Path, separator: str = "\t", subject_class: str | None = None) -> Tables:
    """Head, relation and tail per line; `subject_class` is the label a user would give with `--class`."""
    rows = list(read_rows(file, separator, 3))
    columns = {
        name: pa.array([cells[place] for _, cells in rows], pa.string())
        for place, name in enumerate(("head", "relation", "tail"))
    }
    lines = pa.array([number for number, _ in rows], pa.int64())
    piece = Piece(pa.table(columns), str(file), lines=lines)
    if subject_class is None:
        return Tables((), (piece,), implicit=True)
    return Tables((), (piece,), implicit=True, implicit_type=subject_class)
