"""Convert tables of PostgreSQL back to sources. `loading.py` does the reverse."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew.store.graph.tables import NODE_COLUMNS, Piece, Tables
from clew.store.postgres.connection import Database

if TYPE_CHECKING:  # it imports this module
    from clew.store.postgres.knowledge_base import PostgresKnowledgeBase

Decoders = dict[str, Callable[[Any], Any]]


def stored_schema(told: str) -> pa.Schema:
    """Parse the stored Arrow schema of nodes or edges."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(told)))


def decoders(told: str, but: Collection[str] = ()) -> Decoders:
    """Return functions that convert each attribute from JSON."""
    return {field.name: _decoder(field.type) for field in stored_schema(told) if field.name not in but}


def _decoder(kind: pa.DataType) -> Callable[[Any], Any]:
    if pa.types.is_floating(kind):
        return float
    if pa.types.is_date32(kind):
        return date.fromisoformat
    return datetime.fromisoformat if pa.types.is_timestamp(kind) else lambda value: value


def read_columns(database: Database, told: str) -> pa.RecordBatch:
    """Read the columns of all nodes in the order of their ids."""
    query = "SELECT key, name, aliases, text, attributes FROM nodes ORDER BY id"
    keys, names, aliases, texts, packed = zip(*database.rows(query), strict=True)
    columns: dict[str, Sequence[Any]] = {"key": keys, "name": names, "text": texts}
    columns["aliases"] = [some or None for some in aliases]
    for name, decode in decoders(told, NODE_COLUMNS).items():
        columns[name] = [decode(row[name]) if name in row else None for row in packed]
    schema = stored_schema(told)
    return pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def read_tables(kb: PostgresKnowledgeBase) -> Tables:
    """Return sources from which a base could be built again."""
    kinds, names = kb.schema.type_names, kb.schema.relation_names
    nodes = pa.Table.from_batches([kb.columns()])
    nodes = nodes.append_column("type", pa.array([kinds[code] for code in kb.types.tolist()], pa.large_string()))
    query = (
        "SELECT h.key, e.relation, t.key, e.attributes FROM edges e "
        "JOIN nodes h ON h.id = e.head JOIN nodes t ON t.id = e.tail ORDER BY e.head, e.relation, e.tail, e.nth"
    )
    rows, told = kb.database.rows(query), kb.generation.facts["edge_columns"]
    ends = {"head": [row[0] for row in rows], "relation": [names[row[1]] for row in rows]}
    ends["tail"] = [row[2] for row in rows]
    columns = {name: pa.array(values, pa.large_string()) for name, values in ends.items()}
    for field in stored_schema(told):
        decode = _decoder(field.type)
        packed = (row[3] or {} for row in rows)
        values = [decode(some[field.name]) if field.name in some else None for some in packed]
        columns[field.name] = pa.array(values, field.type)
    source = str(kb.address)
    return Tables(
        (Piece(nodes, source),), (Piece(pa.table(columns), source),), notes=kb.notes, visibility=kb.visibility
    )
