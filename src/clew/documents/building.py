"""A folder of documents to a finished knowledge base; run again, it reads only what changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from clew.building import BuildReport, Say, write_base
from clew.core.workers import Workers
from clew.documents.folder import Progress, find_files, read_folder
from clew.documents.formats import READERS
from clew.documents.originals import remember_sources
from clew.documents.rows import DocumentOptions
from clew.index.build import forget_rows
from clew.kb.manifest import EXTRACTED
from clew.kb.storage import locked
from clew.kb.tables import Problem
from clew.kb.visibility import restricted
from clew.models.embedding.opening import PASSAGES, open_embedder

TEXTS = frozenset({".html", ".htm", ".xhtml", ".md", ".markdown", ".rst"})
DOCUMENTS = frozenset(READERS) - TEXTS - {".txt", ".text", ".csv", ".tsv", ".json"}
"""Endings of files that hold documents whatever lies beside them."""
PROSE = DOCUMENTS | TEXTS
"""Endings of files that hold documents where nothing beside them holds nodes and edges."""
RECORDS = frozenset({".jsonl", ".ndjson", ".json"})
GRAPH = RECORDS | {".parquet", ".nt", ".ttl", ".rdf", ".owl", ".nq", ".trig", ".jsonld", ".obo", ".sqlite", ".sqlite3"}
"""Endings of files that hold nodes and edges; records may also be something that documents come with."""
SAMPLE = 65536


def build_documents(
    paths: Sequence[Path],
    folder: Path,
    options: DocumentOptions | None = None,
    *,
    progress: Progress = lambda *_: None,
    say: Say = lambda _: None,
    jobs: int | None = None,
    workers: Workers | None = None,
) -> BuildReport:
    """Read files and folders and build their base; files that cannot be read are listed in the report.

    `jobs` is how many processes read at most; without it, as many as there are cores. `workers` read instead of them.
    """
    options = options or DocumentOptions()
    if options.cache is None:
        options = replace(options, cache=folder / EXTRACTED)
    embedder = open_embedder(PASSAGES) if {"knn", "mdr"} & set(options.edges.kinds) else None
    with locked(folder):  # what is read is kept there at once
        read = read_folder(paths, options, progress, embedder, jobs=jobs, workers=workers)
        tables = restricted(read.tables, options.visible)
        report = write_base(tables, folder, read.edits, skip_bad=False, say=say)
        forget_rows(folder)
    remember_sources(folder, paths)
    problems = tuple(Problem(one.reason, one.file, 0) for one in read.skipped)
    return replace(report, skipped=report.skipped + len(problems), problems=(*problems, *report.problems))


def hold_documents(paths: Sequence[Path]) -> bool:
    """Whether sources are documents to be read, rather than tables of nodes and edges."""
    files = [file for _, file in find_files(paths)] if paths else []
    names = [file.stem.lower() for file in files]
    if any("nodes" in name or "edges" in name or "triples" in name for name in names):
        return False
    endings = {file.suffix.lower() for file in files}
    if endings & GRAPH:
        return endings & GRAPH <= RECORDS and bool(endings & DOCUMENTS)
    return bool(endings & PROSE) or any(file.suffix.lower() in {".txt", ".text"} and is_prose(file) for file in files)


def is_prose(file: Path) -> bool:
    """Whether the lines of a text file are sentences: few of them are cut by tabs or bars, and words follow words."""
    with file.open("rb") as opened:
        lines = [line for line in opened.read(SAMPLE).decode("utf-8", errors="replace").splitlines() if line.strip()]
    separated = sum("\t" in line.strip() or line.count("|") >= 2 for line in lines)
    return bool(lines) and separated * 2 < len(lines)
