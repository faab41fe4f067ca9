"""Build a knowledge base from files and folders of documents. A second run reads only changed files."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from clew.core.addresses import is_postgres
from clew.core.disk import list_files
from clew.core.errors import CorruptError, FormatError, NotFoundError, SourceError
from clew.core.texts import whole_text
from clew.core.workers import Workers
from clew.documents.extracted import Extracted, ExtractedCache, content_key, digest_of, from_json
from clew.documents.formats import READERS, beginning, format_of, plain_name
from clew.documents.formats.text_file import decoded
from clew.documents.originals import remember_sources, remembered_rules
from clew.documents.passages import outline
from clew.documents.reading import ReadingProcesses, ReadingWorkers, check_file, reason, replied
from clew.documents.rows import DocumentOptions, OutlinedFile, document_tables
from clew.documents.workbooks import SHEETS, are_tables
from clew.models.embedding.opening import PASSAGES, open_embedder
from clew.models.protocol import Embedder
from clew.store.building import BuildReport, Say, facts_of, into, write_base
from clew.store.graph.manifest import EXTRACTED
from clew.store.graph.schema_file import SchemaEdits
from clew.store.graph.storage import locked
from clew.store.graph.tables import Problem, Tables, Visibility
from clew.store.graph.visibility import Rules, restricted
from clew.store.index.build import forget_rows
from clew.store.sources.files import GRAPHS, RECORDS, kind_of, stem_of

TEXTS = frozenset({".html", ".htm", ".xhtml", ".md", ".markdown", ".rst", ".man"})
DOCUMENTS = frozenset(READERS) - TEXTS - {".txt", ".text", ".csv", ".tsv", ".json"}
"""File suffixes that always contain documents."""
PROSE = DOCUMENTS | TEXTS
"""File suffixes that contain documents unless other files contain nodes and edges."""
GRAPH = GRAPHS | RECORDS | {".parquet", ".pq", ".sqlite", ".sqlite3", ".duckdb"}  # `.db` may be Thumbs.db
"""File suffixes that contain nodes and edges."""
TABLES = frozenset({".csv", ".tsv", ".tab", ".psv", ".list"})
Progress = Callable[[str, int, int], None]
"""Callback with the current step, the number of files done, and the number of files."""


def build_documents(
    paths: Sequence[Path],
    place: str | Path,
    options: DocumentOptions | None = None,
    *,
    progress: Progress = lambda *_: None,
    say: Say = lambda _: None,
    jobs: int | None = None,
    workers: Workers | None = None,
    widen: bool = False,
) -> BuildReport:
    """Read files and folders and build their base. The report lists files that cannot be read.

    `jobs` is the maximum number of processes, by default the number of cores. `workers` read instead of processes.
    Without rules in the options, the rules of the replaced base apply. `widen` allows the new base to show content to
    more people than before.
    """
    given = options or DocumentOptions()
    embedder = open_embedder(PASSAGES) if {"knn", "mdr"} & set(given.edges.kinds) else None
    rules, is_given = given.visible or earlier_rules(place), bool(given.visible)

    def build_in(folder: Path) -> BuildReport:
        options = given if given.cache is not None else replace(given, cache=folder / EXTRACTED)
        with locked(folder):  # the cache of extracted texts is inside
            read = read_folder(paths, options, progress, embedder, jobs=jobs, workers=workers)
            tables = restricted(read.tables, rules, strict=is_given)
            report = write_base(tables, folder, read.edits, skip_bad=False, say=say, widen=widen)
            forget_rows(folder)
        skipped = report.skipped + len(read.skipped)
        return replace(report, skipped=skipped, problems=(*read.skipped, *report.problems))

    report = into(place, build_in, say, widen=widen)
    if not is_postgres(place):
        remember_sources(Path(place), paths, rules)
    return report


def earlier_rules(place: str | Path) -> Rules:
    """Return the visibility rules of the base at an address, by group."""
    try:
        return Visibility.from_facts(facts_of(place)).rules
    except (NotFoundError, FormatError):  # bases of earlier versions have no rules
        return {}
    except CorruptError:
        return remembered_rules(Path(place))


def hold_documents(paths: Sequence[Path], *, follow_links: bool = False) -> bool:
    """Return whether sources are documents, not tables of nodes and edges.

    Names and suffixes decide. Text files with any other suffix are documents if they contain sentences.
    """
    files = [file for _, file in find_files(paths, follow_links=follow_links)[0]]
    names = [file.stem.lower() for file in files]
    if any("nodes" in name or "edges" in name or "triples" in name for name in names):
        return False
    endings = {kind_of(file) for file in files}
    if endings & SHEETS and not (endings - SHEETS) & PROSE:
        return not all(are_tables(file) for file in files if kind_of(file) in SHEETS)
    if endings & GRAPH:
        return endings & GRAPH <= RECORDS and bool(endings & DOCUMENTS)
    if endings & PROSE:
        return True
    named = {".txt", ".text"} if endings & TABLES else {".txt", ".text", *(endings - READERS.keys())}
    return any(kind_of(file) in named and is_prose(file) for file in files)


EVEN_LINES = 0.8
"""Minimum share of table lines with the most common number of cells. The other lines may be cut or have line breaks."""


def is_prose(file: Path) -> bool:
    """Return whether a text file contains sentences.

    In prose, few lines have tabs or bars, and few have the same number of cells between commas.
    """
    if not format_of(file):
        return False
    lines = [line for line in decoded(beginning(file)).splitlines() if line.strip()]
    separated = sum("\t" in line.strip() or line.count("|") >= 2 for line in lines)
    cells = Counter(len(row) for line in lines for row in csv.reader([line]))
    even = max((count for number, count in cells.items() if number > 1), default=0)
    is_even = len(lines) > 1 and even >= EVEN_LINES * len(lines)
    return bool(lines) and separated * 2 < len(lines) and not is_even


READ_HERE, ALL_READ_HERE = 1_000_000, 4_000_000
"""Maximum bytes of one file, and of all, that are read in this process. More bytes are read in parallel processes."""
UNBOUNDED = frozenset({".pdf"})
"""Formats in which a small file may take long to read."""


@dataclass(frozen=True, eq=False)
class ReadFolder:
    """The tables of a base, the display settings of its types, and the files that could not be used."""

    tables: Tables
    edits: SchemaEdits
    skipped: tuple[Problem, ...] = ()


def read_folder(
    paths: Sequence[Path],
    options: DocumentOptions | None = None,
    progress: Progress = lambda *_: None,
    embedder: Embedder | None = None,
    *,
    jobs: int | None = None,
    workers: Workers | None = None,
) -> ReadFolder:
    """Read all files below the paths. Report files that cannot be read and use all other files.

    `jobs` is the maximum number of processes, by default the number of cores. `workers` read instead of processes.
    """
    options = options or DocumentOptions()
    cache = None if options.cache is None else ExtractedCache(options.cache)
    found, links = find_files(paths, follow_links=options.follow_links)
    outlined, skipped = [], [*links]
    processes = jobs or os.cpu_count() or 1
    with closing(_read_all([file for _, file in found], options, cache, processes, workers)) as results:
        for done, (name, file) in enumerate(found):
            progress(name, done, len(found))
            result, digest = next(results)
            if isinstance(result, str):
                skipped.append(Problem(result, name, 0))
                continue
            skipped += [Problem(note, name, 0) for note in result.notes]
            stem = stem_of(file) if kind_of(file) in READERS else plain_name(file)
            title = result.title or whole_text(stem).replace("_", " ")
            cut = outline(result, options.passage_length)
            outlined.append(OutlinedFile(name, title, result.pages, cut, result.labels, digest))
    if cache is not None:
        cache.drop_unused()
    if not any(file.outline.passages or file.outline.tables for file in outlined):
        reasons = "; ".join(f"{file.file}: {file.message}" for file in skipped[:5])
        raise SourceError(f"none of the {len(found)} files contains readable text. {reasons}".rstrip())
    tables, edits = document_tables(outlined, options, lambda what: progress(what, len(found), len(found)), embedder)
    return ReadFolder(tables, edits, tuple(skipped))


def _read_all(
    files: Sequence[Path], options: DocumentOptions, cache: ExtractedCache | None, jobs: int, workers: Workers | None
) -> Generator[tuple[Extracted | str, str | None], None, None]:
    """Yield the text of each file, or the reason for an error, with the file's digest. Cache each text at once."""
    results: dict[int, Extracted | str] = {}
    keys: dict[int, str] = {}
    unread: list[int] = []
    for index, file in enumerate(files):
        try:
            check_file(file, options.most_megabytes)
            keys[index] = content_key(file, format_of(file))
        except SourceError as error:
            results[index] = reason(error, file)
        except OSError as error:
            results[index] = f"the file cannot be opened: {error.strerror}"
        else:
            if cache is None or not cache.has(keys[index]):
                unread.append(index)
    apart = _read_apart(files, unread)

    def store(index: int, reply: bytes) -> None:
        results[index] = result = from_reply(reply)
        if cache is not None and isinstance(result, Extracted):
            cache.put(keys[index], reply)

    waited_for = set(apart)
    away, store_away = [files[index] for index in apart], lambda at, reply: store(apart[at], reply)
    with (
        ReadingProcesses(away, jobs, store_away) if workers is None else ReadingWorkers(away, workers, store_away)
    ) as reading:
        for index, file in enumerate(files):
            while index in waited_for and index not in results:
                reading.wait()
            cached = None if cache is None or index in results else cache.get(keys[index])
            if cached is not None:
                results[index] = cached
            elif index not in results:
                store(index, replied(file))
            yield results.pop(index), digest_of(keys[index]) if index in keys else None


def _read_apart(files: Sequence[Path], unread: Sequence[int]) -> list[int]:
    """Return the files to read in separate processes: slow formats, large files, or all if they are many bytes."""
    sizes = {index: files[index].stat().st_size for index in unread if files[index].exists()}
    bounded = {index: size for index, size in sizes.items() if kind_of(files[index]) not in UNBOUNDED}
    if sum(bounded.values()) > ALL_READ_HERE:
        return list(sizes)
    return [index for index, size in sizes.items() if index not in bounded or size > READ_HERE]


def from_reply(reply: bytes) -> Extracted | str:
    """Return the extracted text of a reply, or its error."""
    refused = json.loads(reply) if reply.startswith(b'{"error"') else None
    return from_json(reply) if refused is None else str(refused["error"])


def find_files(
    paths: Sequence[Path], *, follow_links: bool = False
) -> tuple[list[tuple[str, Path]], tuple[Problem, ...]]:
    """Find the files below the paths by their relative names, sorted, and the entries that are skipped.

    Skip hidden files and knowledge bases.
    """
    found: dict[str, Path] = {}
    skipped: list[Problem] = []
    for path in paths:
        if not path.exists():
            raise NotFoundError(f"{path} does not exist")
        listed = list_files(path, follow_links=follow_links)
        for file in listed.files:
            relative = whole_text(file.name if file == path else file.relative_to(path).as_posix())
            if file != path and _in_base(file, path):
                continue
            name = relative if relative not in found else f"{path.name}/{relative}"
            found[name] = file
        skipped += [Problem(why, whole_text(entry.relative_to(path).as_posix()), 0) for entry, why in listed.skipped]
    return sorted(found.items()), tuple(skipped)


def _in_base(file: Path, root: Path) -> bool:
    return any((parent / "manifest.json").exists() for parent in file.parents if parent.is_relative_to(root))
