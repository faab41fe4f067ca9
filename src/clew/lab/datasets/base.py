"""The knowledge base a data set brings: built once, kept in the cache under the digest of its content."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from clew.core.errors import CorruptError, FormatError, InputError, LockedError
from clew.core.version import __version__
from clew.documents.graph.edges import EdgeOptions
from clew.documents.rows import corpus_tables
from clew.lab.datasets.questions import Dataset, Paragraph
from clew.models.embedding.opening import PASSAGES, open_embedder
from clew.models.settings import Settings
from clew.store.building import Say, build
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import FORMAT, MANIFEST
from clew.store.graph.tables import Piece, Tables
from clew.store.index.build import name_tables, open_lexical, open_names

PATIENCE = 600.0
"""Seconds to wait for another process that builds the same base."""


def dataset_base(
    dataset: Dataset, edges: EdgeOptions | None = None, say: Say = lambda _: None, note: Say = lambda _: None
) -> Path:
    """The folder of the base of a data set; `edges` join the passages of a corpus, `note` is told of a stale base."""
    if dataset.paragraphs:
        return _corpus_base(dataset.name, dataset.paragraphs, edges or EdgeOptions(), say, note)
    tables = dataset.base
    if tables is None:
        raise InputError(f"{dataset.name} brings no knowledge base: name one with --kb")
    return _cached(dataset.name, _digest_of_tables(tables), lambda: tables, say, note)


def question_base(dataset: Dataset, question: str, edges: EdgeOptions | None = None) -> Path:
    """The folder of the small base of one question's own paragraphs."""
    given = frozenset(dataset.contexts[question])
    own = [paragraph for paragraph in dataset.paragraphs if paragraph.key in given]
    return _corpus_base(dataset.name, own, edges or EdgeOptions(), lambda _: None, lambda _: None)


def _corpus_base(name: str, paragraphs: Sequence[Paragraph], edges: EdgeOptions, say: Say, note: Say) -> Path:
    # Named after what it is made from, not after its tables: edges are costly to find out.
    texts = [(paragraph.key, paragraph.title, paragraph.text) for paragraph in paragraphs]
    digest = hashlib.sha256(json.dumps([_BUILDER, texts, asdict(edges)]).encode()).hexdigest()

    def tables() -> Tables:
        say("edges between passages")
        embedder = open_embedder(PASSAGES) if {"knn", "mdr"} & set(edges.kinds) else None
        return corpus_tables(paragraphs, edges, embedder)

    return _cached(name, digest, tables, say, note)


def _cached(name: str, digest: str, tables: Callable[[], Tables], say: Say, note: Say) -> Path:
    """Build these tables, unless the cache has them already in a form that this version opens."""
    folder = Settings.load().cache_folder / "bases" / f"{name}-{digest[:16]}.kb"
    deadline = time.monotonic() + PATIENCE
    while not _opens(folder, note):
        try:
            build(tables(), folder, say=say)
            break
        except LockedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
    return folder


def _opens(folder: Path, note: Say) -> bool:
    """Whether a base is there, whole, and none of its parts comes from another version."""
    if not (folder / MANIFEST).exists():
        return False
    try:
        kb = ArrayKnowledgeBase.open(folder)
        open_names(kb, name_tables(kb), open_lexical(kb))
    except (FormatError, CorruptError) as error:
        note(f"a base in the cache is built again: {error}")
        return False
    return True


_BUILDER = ["clew", __version__, FORMAT]
"""A new version builds anew."""


def _digest_of_tables(tables: Tables) -> str:
    """Of everything a build looks at and of nothing else: file names may change."""
    digest = hashlib.sha256(json.dumps([_BUILDER, tables.implicit, tables.implicit_type, tables.notes]).encode())
    for piece in (*tables.nodes, None, *tables.edges):
        digest.update(b"|" if piece is None else _bytes(piece))
    return digest.hexdigest()


def _bytes(piece: Piece) -> memoryview:
    sink = pa.BufferOutputStream()
    table = piece.table.combine_chunks()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())
