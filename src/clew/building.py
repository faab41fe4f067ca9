"""From source tables to a finished knowledge base: graph and indexes are committed together, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from clew.core.errors import ModelError, StorageError, UntrustedEmbedder
from clew.index.build import build_indexes, forget_rows, have_all_vectors, renew_vectors, vector_folder
from clew.index.vectors import vector_problems
from clew.kb.arrays import ArrayKnowledgeBase
from clew.kb.build import write_graph
from clew.kb.schema_file import SchemaEdits
from clew.kb.sealed import altered_texts
from clew.kb.sources.delta import Delta, apply_delta
from clew.kb.storage import commit, locked, staging, verify
from clew.kb.tables import Problem, Problems, Tables

Say = Callable[[str], None]


@dataclass(frozen=True)
class BuildReport:
    """What was built and which rows of the sources were left out."""

    folder: Path
    nodes: int
    edges: int
    skipped: int = 0
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


def build(
    tables: Tables,
    folder: Path,
    *,
    edits: SchemaEdits | None = None,
    skip_bad: bool = False,
    say: Say = lambda _: None,
) -> BuildReport:
    """Build or replace a knowledge base; a kill at any moment leaves the old one or none."""
    with locked(folder):
        report = write_base(tables, folder, edits or SchemaEdits(), skip_bad, say)
        forget_rows(folder)
        return report


def update(folder: Path, delta: Delta, *, skip_bad: bool = False, say: Say = lambda _: None) -> BuildReport:
    """Add, change and delete nodes and edges; the result equals a fresh build, and embeddings are kept."""
    with locked(folder):
        old = ArrayKnowledgeBase.open(folder)
        edits = SchemaEdits.from_json(old.manifest.facts.get("edits"))
        had_vectors = have_all_vectors(old)
        say("changes")
        tables = apply_delta(old.to_tables(), delta)
        old.release()
        report = write_base(tables, folder, edits, skip_bad, say, lenient=True)
        if had_vectors:
            say("vectors")
            report = with_vectors(report)
        return report


def check(folder: Path) -> list[str]:
    """Everything that is wrong with a knowledge base: files first, then whether it opens and fits together."""
    problems = [*verify(folder), *vector_problems(vector_folder(folder)), *_text_problems(folder)]
    if problems:
        return problems
    try:
        return ArrayKnowledgeBase.open(folder).inconsistencies()
    except StorageError as error:
        return [str(error)]


def _text_problems(folder: Path) -> list[str]:
    remedy = f"`clew repair {folder}` removes it; the next build, or `clew feedback`, makes it anew"
    return [f"{file} was altered: {remedy}" for file in altered_texts(folder)]


def with_vectors(report: BuildReport) -> BuildReport:
    """A base that had all its vectors has them again; where its embedder cannot be reached, the report says so."""
    try:
        renew_vectors(ArrayKnowledgeBase.open(report.folder))
    except (ModelError, UntrustedEmbedder) as error:
        note = f"new nodes have no vectors yet ({error}): `clew embed {report.folder}` computes them"
        return replace(report, notes=(*report.notes, note))
    return report


def write_base(
    tables: Tables, folder: Path, edits: SchemaEdits, skip_bad: bool, say: Say, *, lenient: bool = False
) -> BuildReport:
    """Build in a folder that the caller has locked."""
    problems = Problems(skip_bad)
    with staging(folder) as stage:
        say("graph")
        graph = write_graph(tables, stage, problems)
        edits = (edits.within(graph.schema) if lenient else edits).answering(tables.answers, graph.schema)
        facts = graph.to_json(edits.apply(graph.schema)) | {"edits": edits.to_json()}
        say("indexes")
        build_indexes(ArrayKnowledgeBase.staged(stage, facts), stage / "index")
        say("checksums")
        commit(folder, stage, facts)
    listed = (*tables.skipped, *problems.listed)
    skipped = problems.count + len(tables.skipped)
    return BuildReport(folder, graph.nodes, graph.edges, skipped, listed, graph.notes)
