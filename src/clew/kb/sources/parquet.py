"""Parquet files, typed as they are."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from clew.errors import NotFoundError, SourceError
from clew.kb.sources.files import read_bytes
from clew.kb.sources.pieces import RawTable


def read_parquet(path: Path) -> RawTable:
    """The whole table; lines are row numbers, from 1."""
    if not path.exists():
        raise NotFoundError(f"{path}: no such file")
    try:
        table = pq.read_table(io.BytesIO(read_bytes(path)) if path.suffix == ".gz" else path)
    except (pa.ArrowInvalid, OSError) as broken:
        raise SourceError(f"not a whole Parquet file: {broken}", file=path) from broken
    if not table.num_rows:
        raise SourceError("the file holds no rows", file=path)
    return RawTable(table, str(path))
