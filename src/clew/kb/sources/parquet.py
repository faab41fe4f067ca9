"""Parquet files, typed as they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from clew.core.errors import NotFoundError, SourceError
from clew.kb.sources.files import read_bytes
from clew.kb.sources.pieces import RawTable, is_text
from clew.kb.sources.roles import edge_roles, node_roles


def read_parquet(path: Path, columns: Mapping[str, str]) -> RawTable:
    """The whole table; lines are row numbers, from 1. Types and relations stay dictionaries: few words, many rows."""
    if not path.exists():
        raise NotFoundError(f"{path}: no such file")
    content = pa.py_buffer(read_bytes(path)) if path.suffix == ".gz" else None
    try:
        schema = pq.read_schema(path if content is None else pa.BufferReader(content))
        roles = (edge_roles(schema.names, columns).get("relation"), node_roles(schema.names, columns).get("type"))
        words = [name for name in roles if name is not None and is_text(schema.field(name).type)]
        source = path if content is None else pa.BufferReader(content)
        table = pq.ParquetFile(source, read_dictionary=words).read()
    except (pa.ArrowInvalid, OSError) as broken:
        raise SourceError(f"not a whole Parquet file: {broken}", file=path) from broken
    if not table.num_rows:
        raise SourceError("the file holds no rows", file=path)
    return RawTable(table, str(path))
