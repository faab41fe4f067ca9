"""Views of a base for groups: a separate base for each state and set of groups, built once.

A view lacks all hidden content, so that names, ranks, counts, suggestions, errors and traces cannot reveal it.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from clew.core.errors import NotFoundError
from clew.models.embedding.opening import open_embedder, trusted_embedder
from clew.models.settings import Settings
from clew.store.building import build_once, write_base
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import MANIFEST
from clew.store.graph.protocol import StoredKnowledgeBase
from clew.store.graph.schema_file import SchemaEdits
from clew.store.graph.storage import locked
from clew.store.graph.visibility import visible
from clew.store.index.build import have_all_vectors, open_lexical, open_vectors, vector_folder
from clew.store.index.vector_store import VectorStore, hashes_of, read_card
from clew.store.index.vectors import BATCH
from clew.store.postgres import is_sql

MOST_VIEWS = 100
"""Maximum number of cached views. The least recently used views are deleted."""


def view_for(kb: StoredKnowledgeBase, groups: Iterable[str]) -> str | Path | None:
    """Return the location of the part visible to these groups, or None if everything is visible."""
    if not kb.groups:
        return None
    known = sorted(kb.groups.intersection(groups))
    digest = hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]
    return _in_database(kb, known, digest) if kb.arrays is None else _folder(kb.arrays, known, digest)


def _build(kb: StoredKnowledgeBase, groups: list[str], edits: object, folder: Path) -> None:
    tables = visible(kb.to_tables(), groups)
    if not any(piece.table.num_rows for piece in tables.nodes):
        raise NotFoundError("the base contains nothing visible to these groups")
    with locked(folder):
        write_base(tables, folder, SchemaEdits.from_json(edits), False, lambda _: None, lenient=True)


def _folder(kb: ArrayKnowledgeBase, groups: list[str], digest: str) -> Path:
    """Build a view in the cache, named by the content of the base, so that it cannot be outdated."""
    views = Settings.load().cache_folder / "views"
    place = views / f"{kb.identity}-{digest}.kb"
    if not (place / MANIFEST).exists():
        views.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = views / f".{place.name}-{secrets.token_hex(4)}"
        try:
            _build(kb, groups, kb.manifest.facts.get("edits"), draft)
            if have_all_vectors(kb):
                _copy_vectors(kb, ArrayKnowledgeBase.open(draft))
            with suppress(OSError):  # another process has built the same view
                draft.rename(place)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        _forget_old(views, place)
    os.utime(place)
    return place


def _copy_vectors(whole: ArrayKnowledgeBase, part: ArrayKnowledgeBase) -> None:
    """Copy the vectors of a view's nodes from the whole base."""
    card = read_card(vector_folder(whole.folder))
    assert card is not None
    embedder = open_embedder(trusted_embedder(card.spec, whole.folder))
    source = VectorStore.open(vector_folder(whole.folder), embedder, spec=card.spec)
    index = open_vectors(part, embedder, open_lexical(part), spec=card.spec)
    for start in range(0, len(part), BATCH):
        hashes = hashes_of([part.text(node) for node in range(start, min(start + BATCH, len(part)))])
        rows = source.rows(hashes)
        known = np.flatnonzero(rows >= 0)
        index.store.add(hashes[known], source.gather(rows[known]))
    index.embed_all()


def _forget_old(views: Path, kept: Path) -> None:
    others = sorted((place for place in views.glob("*.kb") if place != kept), key=lambda place: -place.stat().st_mtime)
    for place in others[MOST_VIEWS - 1 :]:
        shutil.rmtree(place, ignore_errors=True)


def _in_database(kb: StoredKnowledgeBase, groups: list[str], digest: str) -> str:
    """Build a view in the database for all servers. It is deleted with the generation it was built from."""
    from clew.store.postgres.catalog import exists
    from clew.store.postgres.loading import publish

    assert is_sql(kb)
    address = kb.address.named(f"{kb.address.base}~{kb.generation.id}~{digest}")

    def build() -> None:
        with TemporaryDirectory(prefix="clew-") as scratch:
            folder = Path(scratch) / "view.kb"
            _build(kb, groups, kb.generation.facts.get("edits"), folder)
            publish(folder, address, view_of=kb.generation)

    build_once(lambda: exists(address), build)
    return address.url
