"""Files and folders of documents to a finished knowledge base; run again, it reads only what changed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from clew.core.disk import list_files
from clew.core.errors import CorruptError, FormatError, NotFoundError, SourceError
from clew.core.texts import whole_text
from clew.core.workers import Workers
from clew.documents.extracted import Extracted, ExtractedCache, content_key, digest_of, from_json
from clew.documents.formats import GRAPHS, READERS, RECORDS, beginning, format_of, named_ending, plain_name
from clew.documents.formats.text_file import decoded
from clew.documents.originals import remember_sources, remembered_rules
from clew.documents.passages import outline
from clew.documents.processes import ReadingProcesses, ReadingWorkers
from clew.documents.reading import check_file, reason, replied
from clew.documents.rows import DocumentOptions, OutlinedFile, document_tables
from clew.models.embedding.opening import PASSAGES, open_embedder
from clew.models.protocol import Embedder
from clew.store.building import BuildReport, Say, facts_of, into, write_base
from clew.store.graph.manifest import EXTRACTED
from clew.store.graph.schema_file import SchemaEdits
from clew.store.graph.storage import locked
from clew.store.graph.tables import Problem, Tables, Visibility
from clew.store.graph.visibility import Rules, restricted
from clew.store.index.build import forget_rows
from clew.store.postgres import is_address

TEXTS = frozenset({".html", ".htm", ".xhtml", ".md", ".markdown", ".rst", ".man"})
DOCUMENTS = frozenset(READERS) - TEXTS - {".txt", ".text", ".csv", ".tsv", ".json"}
"""Endings of files that hold documents whatever lies beside them."""
PROSE = DOCUMENTS | TEXTS
"""Endings of files that hold documents where nothing beside them holds nodes and edges."""
GRAPH = GRAPHS | RECORDS | {".parquet", ".sqlite", ".sqlite3"}
"""Endings of files that hold nodes and edges."""
TABLES = frozenset({".csv", ".tsv", ".tab", ".psv", ".list"})
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many files are done, and how many there are."""


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
    """Read files and folders and build their base; files that cannot be read are listed in the report.

    `jobs` is how many processes read at most; without it, as many as there are cores. `workers` read instead of them.
    Without rules in the options, the rules of the base that is replaced apply. `widen` allows that more people see
    something than before.
    """
    given = options or DocumentOptions()
    embedder = open_embedder(PASSAGES) if {"knn", "mdr"} & set(given.edges.kinds) else None
    rules, is_given = given.visible or earlier_rules(place), bool(given.visible)

    def build_in(folder: Path) -> BuildReport:
        options = given if given.cache is not None else replace(given, cache=folder / EXTRACTED)
        with locked(folder):  # what is read is kept there at once
            read = read_folder(paths, options, progress, embedder, jobs=jobs, workers=workers)
            tables = restricted(read.tables, rules, strict=is_given)
            report = write_base(tables, folder, read.edits, skip_bad=False, say=say, widen=widen)
            forget_rows(folder)
        problems = tuple(Problem(one.reason, one.file, 0) for one in read.skipped)
        return replace(report, skipped=report.skipped + len(problems), problems=(*problems, *report.problems))

    report = into(place, build_in, say, widen=widen)
    if not is_address(place):
        remember_sources(Path(place), paths, rules)
    return report


def earlier_rules(place: str | Path) -> Rules:
    """Return the rules that say which groups may see the documents of the base at a place."""
    try:
        return Visibility.from_facts(facts_of(place)).rules
    except (NotFoundError, FormatError):  # earlier versions stored none
        return {}
    except CorruptError:
        return remembered_rules(Path(place))


def hold_documents(paths: Sequence[Path], *, follow_links: bool = False) -> bool:
    """Whether sources are documents to be read, rather than tables of nodes and edges."""
    files = [file for _, file in find_files(paths, follow_links=follow_links)[0]]
    names = [file.stem.lower() for file in files]
    if any("nodes" in name or "edges" in name or "triples" in name for name in names):
        return False
    endings = {named_ending(file) for file in files}
    if endings & GRAPH:
        return endings & GRAPH <= RECORDS and bool(endings & DOCUMENTS)
    if endings & PROSE:
        return True
    named = {".txt", ".text"} if endings & TABLES else {".txt", ".text", *(endings - READERS.keys())}
    return any(named_ending(file) in named and is_prose(file) for file in files)


EVEN_LINES = 0.8
"""Share of the lines of a table that have as many commas as most. In the others, some cells are quoted."""


def is_prose(file: Path) -> bool:
    """Whether the lines of a text file are sentences: few are cut by tabs, by bars or into as many parts as most."""
    if not format_of(file):
        return False
    lines = [line for line in decoded(beginning(file)).splitlines() if line.strip()]
    separated = sum("\t" in line.strip() or line.count("|") >= 2 for line in lines)
    commas = Counter(line.count(",") for line in lines)
    even = max((count for number, count in commas.items() if number), default=0)
    is_even = len(lines) > 1 and even >= EVEN_LINES * len(lines)
    return bool(lines) and separated * 2 < len(lines) and not is_even


READ_HERE = 1_000_000
"""Bytes up to which a file is read without a process of its own, where all such files together have few bytes."""
ALL_READ_HERE = 4_000_000
UNBOUNDED = frozenset({".pdf"})
"""Formats in which a small file can take long."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that could not be used, and why."""

    file: str
    reason: str


@dataclass(frozen=True, eq=False)
class ReadFolder:
    """The tables of a base, how its types are shown, and what was left out."""

    tables: Tables
    edits: SchemaEdits
    skipped: tuple[Skipped, ...] = ()


def read_folder(
    paths: Sequence[Path],
    options: DocumentOptions | None = None,
    progress: Progress = lambda *_: None,
    embedder: Embedder | None = None,
    *,
    jobs: int | None = None,
    workers: Workers | None = None,
) -> ReadFolder:
    """Read every file below the given paths; what cannot be read is reported by name and the rest is used.

    `jobs` is how many processes read at most; without it, as many as there are cores. `workers` read instead of them.
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
                skipped.append(Skipped(name, result))
                continue
            skipped += [Skipped(name, note) for note in result.notes]
            written = plain_name(file)
            stem = Path(written).stem if named_ending(file) in READERS else written
            title = result.title or whole_text(stem).replace("_", " ")
            cut = outline(result, options.passage_length)
            outlined.append(OutlinedFile(name, title, result.pages, cut, result.labels, digest))
    if cache is not None:
        cache.drop_unused()
    if not any(file.outline.passages or file.outline.tables for file in outlined):
        reasons = "; ".join(f"{one.file}: {one.reason}" for one in skipped[:5])
        raise SourceError(f"none of the {len(found)} files holds text that can be read. {reasons}".rstrip())
    tables, edits = document_tables(outlined, options, lambda what: progress(what, len(found), len(found)), embedder)
    return ReadFolder(tables, edits, tuple(skipped))


def _read_all(
    files: Sequence[Path],
    options: DocumentOptions,
    cache: ExtractedCache | None,
    jobs: int,
    workers: Workers | None,
) -> Generator[tuple[Extracted | str, str | None], None, None]:
    """The text of each file in order, or why there is none, with its digest; what is read is kept at once."""
    results: dict[int, Extracted | str] = {}
    keys: dict[int, str] = {}
    unread: list[int] = []
    for place, file in enumerate(files):
        try:
            check_file(file, options.most_megabytes)
            keys[place] = content_key(file, format_of(file))
        except SourceError as error:
            results[place] = reason(error, file)
        except OSError as error:
            results[place] = f"the file cannot be opened: {error.strerror}"
        else:
            if cache is None or not cache.has(keys[place]):
                unread.append(place)
    apart = _read_apart(files, unread)

    def keep(place: int, reply: bytes) -> None:
        results[place] = result = from_reply(reply)
        if cache is not None and isinstance(result, Extracted):
            cache.put(keys[place], reply)

    waited_for = set(apart)
    away, keep_away = [files[place] for place in apart], lambda at, reply: keep(apart[at], reply)
    with (
        ReadingProcesses(away, jobs, keep_away) if workers is None else ReadingWorkers(away, workers, keep_away)
    ) as reading:
        for place, file in enumerate(files):
            while place in waited_for and place not in results:
                reading.wait()
            known = None if cache is None or place in results else cache.get(keys[place])
            if known is not None:
                results[place] = known
            elif place not in results:
                keep(place, replied(file))
            yield results.pop(place), digest_of(keys[place]) if place in keys else None


def _read_apart(files: Sequence[Path], unread: Sequence[int]) -> list[int]:
    """Which files are read by processes: what may take long, and many files; a few small ones would only wait."""
    sizes = {place: files[place].stat().st_size for place in unread if files[place].exists()}
    bounded = {place: size for place, size in sizes.items() if named_ending(files[place]) not in UNBOUNDED}
    if sum(bounded.values()) > ALL_READ_HERE:
        return list(sizes)
    return [place for place, size in sizes.items() if place not in bounded or size > READ_HERE]


def from_reply(reply: bytes) -> Extracted | str:
    """What was extracted, or why nothing was."""
    refused = json.loads(reply) if reply.startswith(b'{"error"') else None
    return from_json(reply) if refused is None else str(refused["error"])


def find_files(
    paths: Sequence[Path], *, follow_links: bool = False
) -> tuple[list[tuple[str, Path]], tuple[Skipped, ...]]:
    """Find the files below the paths by their relative names, sorted, and the entries that are skipped.

    Hidden files and knowledge bases are left out.
    """
    found: dict[str, Path] = {}
    skipped: list[Skipped] = []
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
        skipped += [Skipped(whole_text(place.relative_to(path).as_posix()), why) for place, why in listed.skipped]
    return sorted(found.items()), tuple(skipped)


def _in_base(file: Path, root: Path) -> bool:
    return any((parent / "manifest.json").exists() for parent in file.parents if parent.is_relative_to(root))
