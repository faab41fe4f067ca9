"""Restore a damaged base: recompute derived data, and read lost data from the source files again.

incoming edges, indexes    from nodes.arrow, edges.arrow, types.npy and the outgoing edges
vectors                    from the texts, with the embedder of the base
texts of documents         removed, and read again by the next build
nodes and edges            from the documents, if this user built the base from them
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from clew.core.errors import CorruptError, ModelError, UntrustedEmbedder
from clew.documents.building import build_documents
from clew.documents.originals import remembered_sources
from clew.models.embedding.opening import DEFAULT
from clew.store.building import Say, check, write_base
from clew.store.confirmed import repair_confirmed
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import CONFIRMED, altered_texts, read_manifest, remedy_for
from clew.store.graph.schema_file import SchemaEdits
from clew.store.graph.storage import locked, sweep, verify
from clew.store.index.build import (
    discard_vectors,
    embed_documents,
    embedder_of,
    forget_rows,
    have_all_vectors,
    vector_folder,
    vectors_are_behind,
)
from clew.store.index.vectors import vector_problems


@dataclass(frozen=True)
class RepairReport:
    """The problems of a base, the repairs made, and the remaining steps."""

    problems: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def repair(folder: Path, say: Say = lambda _: None) -> RepairReport:
    """Restore a base. Raise CorruptError if its data are damaged and its sources are unknown."""
    say("checking")
    problems = check(folder)
    sweep(folder)
    if not problems and not vectors_are_behind(folder):
        with suppress(OSError):  # a read-only folder has no leftovers of a killed build
            forget_rows(folder)
        return RepairReport()
    done: list[str] = []
    notes: list[str] = []
    if verify(folder) or not _opens(folder):
        say("graph and indexes")
        done.append(_restored_graph(folder, say))
    if folder / CONFIRMED in altered_texts(folder):
        kept, lost = repair_confirmed(folder)
        done.append(f"{CONFIRMED}: kept {kept:,} confirmed answers, lost {lost:,}: check them")
    with locked(folder):
        for text in altered_texts(folder):
            text.unlink()
            done.append(f"removed {text.name}: {remedy_for(text)}")
        say("vectors")
        done += _restored_vectors(folder, notes)
    left = check(folder)
    if left:
        raise CorruptError("; ".join(left))
    return RepairReport(tuple(problems), tuple(done), tuple(notes))


def _opens(folder: Path) -> bool:
    try:
        return not ArrayKnowledgeBase.open(folder).inconsistencies()
    except CorruptError:
        return False


def _restored_graph(folder: Path, say: Say) -> str:
    """Write a new generation from the base's own data, or else from the documents."""
    try:
        with locked(folder):
            manifest = read_manifest(folder)
            kb = ArrayKnowledgeBase.open(folder, whole=False)
            tables, edits = kb.to_tables(), SchemaEdits.from_json(manifest.facts.get("edits"))
            kb.release()
            write_base(tables, folder, edits, skip_bad=False, say=say, lenient=True)
        return "recomputed the graph and the indexes from the data"
    except CorruptError as damage:
        sources = remembered_sources(folder)
        if not sources or not all(source.exists() for source in sources):
            raise CorruptError(f"{damage} Its data cannot be restored: build it from its sources again") from damage
    build_documents(sources, folder, say=say)
    return f"built again from {', '.join(map(str, sources))}, with the default options of `clew build`"


def _restored_vectors(folder: Path, notes: list[str]) -> list[str]:
    """Recompute vectors that were altered, and vectors that a restored generation lacks."""
    kb = ArrayKnowledgeBase.open(folder)
    kinds = [relations for relations in (False, True) if have_all_vectors(kb, relations=relations)]
    damaged = vector_problems(vector_folder(folder))
    try:
        spec = embedder_of(kb)
    except CorruptError:
        spec = DEFAULT
    except UntrustedEmbedder as unknown:
        if damaged:
            discard_vectors(folder)
        notes.append(str(unknown))
        return ["removed the vectors"] if damaged else []
    if damaged:
        discard_vectors(folder)
    if not kinds:
        return ["removed the vectors: they are computed when needed"] if damaged else []
    try:
        count = embed_documents(kb, spec, kinds)
    except ModelError as failure:
        notes.append(f"the vectors are missing ({failure}): run `clew embed {folder}`")
        return []
    return [f"computed {count:,} vectors with {spec}"]
