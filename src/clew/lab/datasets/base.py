"""Build the knowledge base of a data set once and cache it under the digest of its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from clew.core.errors import CorruptError, FormatError, InputError
from clew.core.version import __version__
from clew.documents.passage_graph import EdgeOptions
from clew.documents.rows import TitledText, corpus_tables
from clew.lab.datasets.questions import Dataset, Paragraph
from clew.models.embedding.opening import PASSAGES, open_embedder
from clew.models.settings import Settings
from clew.store.building import Say, build, build_once
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import FORMAT, MANIFEST
from clew.store.graph.tables import Piece, Tables
from clew.store.index.build import name_tables, open_lexical, open_names


def dataset_base(
    dataset: Dataset, edges: EdgeOptions | None = None, say: Say = lambda _: None, note: Say = lambda _: None
) -> Path:
    """Return the folder of a data set's base.

    `edges` connect corpus passages. `note` receives a message about a stale base.
    """
    if dataset.paragraphs:
        return _corpus_base(dataset.name, dataset.paragraphs, edges or EdgeOptions(), say, note)
    tables = dataset.base
    if tables is None:
        raise InputError(f"{dataset.name} has no knowledge base: pass one with --kb")
    return _cached(dataset.name, _digest_of_tables(tables), lambda: tables, say, note)


def question_base(dataset: Dataset, question: str, edges: EdgeOptions | None = None) -> Path:
    """Return the folder of a base that contains only one question's paragraphs."""
    given = frozenset(dataset.contexts[question])
    own = [paragraph for paragraph in dataset.paragraphs if paragraph.key in given]
    return _corpus_base(dataset.name, own, edges or EdgeOptions(), lambda _: None, lambda _: None)


def _corpus_base(name: str, paragraphs: Sequence[Paragraph], edges: EdgeOptions, say: Say, note: Say) -> Path:
    # Hash the input, not the tables: computing the edges is expensive.
    texts = [TitledText(paragraph.key, paragraph.title, paragraph.text) for paragraph in paragraphs]
    digest = hashlib.sha256(json.dumps([_BUILDER, texts, asdict(edges)]).encode()).hexdigest()

    def tables() -> Tables:
        say("edges between passages")
        embedder = open_embedder(PASSAGES) if {"knn", "mdr"} & set(edges.kinds) else None
        return corpus_tables(texts, edges, embedder)

    return _cached(name, digest, tables, say, note)


def _cached(name: str, digest: str, tables: Callable[[], Tables], say: Say, note: Say) -> Path:
    """Build the tables unless the cache has a base that this version can open."""
    folder = Settings.load().cache_folder / "bases" / f"{name}-{digest[:16]}.kb"
    build_once(lambda: _opens(folder, note), lambda: build(tables(), folder, say=say))
    return folder


def _opens(folder: Path, note: Say) -> bool:
    """Return whether the folder has a complete base whose parts all have the current format."""
    if not (folder / MANIFEST).exists():
        return False
    try:
        kb = ArrayKnowledgeBase.open(folder)
        open_names(kb, name_tables(kb), open_lexical(kb))
    except (FormatError, CorruptError) as error:
        note(f"rebuilding a cached base: {error}")
        return False
    return True


_BUILDER = ["clew", __version__, FORMAT]
"""Part of every cache key. A new version rebuilds the base."""


def _digest_of_tables(tables: Tables) -> str:
    """Hash everything that affects the build. File names do not."""
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
