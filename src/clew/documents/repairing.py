"""A damaged base restored: what follows from its data is computed anew, its data come from the files it was built from.

the graph inwards, the indexes    from nodes.arrow, edges.arrow, types.npy and the graph outwards
the vectors                       from the texts, by the embedder of the base
the texts of documents            removed: the next build reads those files anew
nodes and edges                   from the documents, where this user built the base from them
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
from clew.store.index.disk_vectors import vector_problems


@dataclass(frozen=True)
class RepairReport:
    """What was wrong, what was done about it, and what is left to do."""

    folder: Path
    problems: tuple[str, ...]
    done: tuple[str, ...]
    notes: tuple[str, ...] = ()


def repair(folder: Path, say: Say = lambda _: None) -> RepairReport:
    """Restore a base; raises where its data are damaged and nothing says what it was built from."""
    say("checking")
    problems = check(folder)
    sweep(folder)
    if not problems and not vectors_are_behind(folder):
        with suppress(OSError):  # where nothing may be written, nothing was left by a kill
            forget_rows(folder)
        return RepairReport(folder, (), ())
    done: list[str] = []
    notes: list[str] = []
    if _is_damaged(folder):
        say("graph and indexes")
        done.append(_restored_graph(folder, say))
    if folder / CONFIRMED in altered_texts(folder):
        kept, lost = repair_confirmed(folder)
        done.append(f"{CONFIRMED}: kept {kept:,} confirmed answers, lost {lost:,}; check them")
    with locked(folder):
        for text in altered_texts(folder):
            text.unlink()
            done.append(f"{text.name} was removed: {remedy_for(text)}")
        say("vectors")
        done += _restored_vectors(folder, notes)
    left = check(folder)
    if left:
        raise CorruptError("; ".join(left))
    return RepairReport(folder, tuple(problems), tuple(done), tuple(notes))


def _is_damaged(folder: Path) -> bool:
    return bool(verify(folder)) or not _opens(folder)


def _opens(folder: Path) -> bool:
    try:
        return not ArrayKnowledgeBase.open(folder).inconsistencies()
    except CorruptError:
        return False


def _restored_graph(folder: Path, say: Say) -> str:
    """Write the generation anew: from its own data, or else from the documents."""
    try:
        with locked(folder):
            manifest = read_manifest(folder)
            kb = ArrayKnowledgeBase.open(folder, whole=False)
            tables, edits = kb.to_tables(), SchemaEdits.from_json(manifest.facts.get("edits"))
            kb.release()
            write_base(tables, folder, edits, skip_bad=False, say=say, lenient=True)
        return "the graph and the indexes were computed from the data"
    except CorruptError as damage:
        sources = remembered_sources(folder)
        if not sources or not all(source.exists() for source in sources):
            raise CorruptError(f"{damage} Its data cannot be restored: build it again from its sources") from damage
    build_documents(sources, folder, say=say)
    return f"built anew from {', '.join(map(str, sources))}, with the options that `clew build` has by itself"


def _restored_vectors(folder: Path, notes: list[str]) -> list[str]:
    """Compute anew the vectors that were altered, and those that a restored generation has no rows for."""
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
        return ["the vectors were removed"] if damaged else []
    if damaged:
        discard_vectors(folder)
    if not kinds:
        return ["the vectors were removed: they are computed when they are needed"] if damaged else []
    try:
        count = embed_documents(kb, spec, kinds)
    except ModelError as failure:
        notes.append(f"the vectors are missing ({failure}): `clew embed {folder}` computes them")
        return []
    return [f"{count:,} vectors were computed by {spec}"]
