"""The knowledge base a data set brings: built once, kept in the cache under the digest of its content."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from clew import __version__
from clew.building import build
from clew.datasets.passages import passage_tables
from clew.datasets.questions import Dataset
from clew.errors import InputError, LockedError
from clew.kb.storage import FORMAT, MANIFEST
from clew.kb.tables import Piece, Tables
from clew.models.settings import Settings

PATIENCE = 600.0
"""Seconds to wait for another process that builds the same base."""


def dataset_base(dataset: Dataset, say: Callable[[str], None] = lambda _: None) -> Path:
    """The folder of the base of a data set."""
    tables = dataset.base or (passage_tables(dataset.paragraphs) if dataset.paragraphs else None)
    if tables is None:
        raise InputError(f"{dataset.name} brings no knowledge base: name one with --kb")
    return cached_base(dataset.name, tables, say)


def question_base(dataset: Dataset, question: str) -> Path:
    """The folder of the small base of one question's own paragraphs."""
    given = frozenset(dataset.contexts[question])
    own = [paragraph for paragraph in dataset.paragraphs if paragraph.key in given]
    return cached_base(dataset.name, passage_tables(own), lambda _: None)


def cached_base(name: str, tables: Tables, say: Callable[[str], None]) -> Path:
    """Build these tables, unless the cache has them already."""
    folder = Settings.load().cache_folder / "bases" / f"{name}-{_digest(tables)}.kb"
    deadline = time.monotonic() + PATIENCE
    while not (folder / MANIFEST).exists():
        try:
            build(tables, folder, say=say)
        except LockedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
    return folder


def _digest(tables: Tables) -> str:
    """Of everything a build looks at, the version that builds included, and of nothing else: file names may change."""
    digest = hashlib.sha256()
    facts = {
        "format": FORMAT,
        "version": __version__,
        "implicit": [tables.implicit, tables.implicit_type],
        "notes": tables.notes,
    }
    digest.update(json.dumps(facts).encode())
    for piece in (*tables.nodes, None, *tables.edges):
        digest.update(b"|" if piece is None else _bytes(piece))
    return digest.hexdigest()[:16]


def _bytes(piece: Piece) -> memoryview:
    sink = pa.BufferOutputStream()
    table = piece.table.combine_chunks()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())
