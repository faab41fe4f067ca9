"""From files and folders to the tables of a knowledge base: documents, pages, sections, passages, tables, edges."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clew.core.errors import NotFoundError, SourceError
from clew.documents.extracted import Block, Cells, Extracted, TextLine
from clew.documents.formats import READERS
from clew.documents.passages import outline
from clew.documents.rows import DocumentOptions, OutlinedFile, document_tables
from clew.kb.schema_file import SchemaEdits
from clew.kb.tables import Tables
from clew.models.protocol import Embedder

VERSION = 2
"""Raised whenever a reader extracts something else than before."""
OWN = re.compile(r"[0-9a-f]{32}(\.\w+)?-\d+\.json")
"""What a kept text is called."""


def content_key(file: Path) -> str:
    """What identifies a file's text: its bytes, its format and the version of the readers."""
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    return f"{digest[:32]}{file.suffix.lower()}-{VERSION}"


class ExtractedCache:
    """One JSON file per content; what was not used by a build is dropped at its end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._used: set[str] = set()

    def get(self, key: str) -> Extracted | None:
        """The text of a content read before; None where there is none, or none that can be read."""
        self._used.add(self._name(key))
        try:
            raw = json.loads((self.folder / self._name(key)).read_text("utf-8"))
            return _from_json(raw)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, extracted: Extracted) -> None:
        """Keep a text; written beside and renamed, so that a kill leaves no half file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.folder / f".{self._name(key)}"
        draft.write_text(json.dumps(asdict(extracted), ensure_ascii=False), "utf-8")
        draft.replace(self.folder / self._name(key))

    def drop_unused(self) -> None:
        """Forget contents that no file has any more; files of other names are not ours."""
        for file in self.folder.glob("*.json"):
            if OWN.fullmatch(file.name) and file.name not in self._used:
                file.unlink(missing_ok=True)

    def _name(self, key: str) -> str:
        return f"{key}.json"


def _from_json(raw: dict[str, Any]) -> Extracted:
    blocks = tuple(Block(**{**block, "cells": _cells(block["cells"])}) for block in raw["blocks"])
    lines, sizes = tuple(TextLine(**line) for line in raw["lines"]), tuple(map(tuple, raw["sizes"]))
    labels = tuple(raw["labels"])
    return Extracted(raw["title"], raw["text"], blocks, raw["pages"], tuple(raw["notes"]), lines, labels, sizes)


def _cells(raw: dict[str, Any] | None) -> Cells | None:
    if raw is None:
        return None
    return Cells(tuple(raw["header"]), tuple(map(tuple, raw["rows"])), raw["caption"])


Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many files are done, and how many there are."""


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
    files: int
    skipped: tuple[Skipped, ...] = ()


def read_folder(
    paths: Sequence[Path],
    options: DocumentOptions | None = None,
    progress: Progress = lambda *_: None,
    embedder: Embedder | None = None,
) -> ReadFolder:
    """Read every file below the given paths; what cannot be read is reported by name and the rest is used."""
    options = options or DocumentOptions()
    cache = None if options.cache is None else ExtractedCache(options.cache)
    found = find_files(paths)
    outlined, skipped = [], []
    for done, (name, file) in enumerate(found):
        progress(name, done, len(found))
        try:
            extracted = _extract(file, options, cache)
        except SourceError as error:
            skipped.append(Skipped(name, str(error).removeprefix(f"{file}: ")))
            continue
        skipped += [Skipped(name, note) for note in extracted.notes]
        title = extracted.title or file.stem.replace("_", " ")
        cut = outline(extracted, options.passage_length)
        outlined.append(OutlinedFile(name, title, extracted.pages, cut, extracted.labels))
    if cache is not None:
        cache.drop_unused()
    if not any(file.outline.passages or file.outline.tables for file in outlined):
        reasons = "; ".join(f"{one.file}: {one.reason}" for one in skipped[:5])
        raise SourceError(f"none of the {len(found)} files holds text that can be read. {reasons}".rstrip())
    tables, edits = document_tables(outlined, options, lambda what: progress(what, len(found), len(found)), embedder)
    return ReadFolder(tables, edits, len(outlined), tuple(skipped))


def find_files(paths: Sequence[Path]) -> list[tuple[str, Path]]:
    """Every file below the paths with its name relative to them, sorted; hidden files and knowledge bases left out."""
    found: dict[str, Path] = {}
    for path in paths:
        if not path.exists():
            raise NotFoundError(f"{path} does not exist")
        below = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
        for file in below:
            relative = file.name if path.is_file() else file.relative_to(path).as_posix()
            if file != path and (_hidden(relative) or _in_base(file, path)):
                continue
            name = relative if relative not in found else f"{path.name}/{relative}"
            found[name] = file
    return sorted(found.items())


def _hidden(relative: str) -> bool:
    return any(part.startswith((".", "~$")) for part in relative.split("/"))


def _in_base(file: Path, root: Path) -> bool:
    return any((parent / "manifest.json").exists() for parent in file.parents if parent.is_relative_to(root))


def _extract(file: Path, options: DocumentOptions, cache: ExtractedCache | None) -> Extracted:
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise SourceError(f"no reader for files that end in {file.suffix or 'nothing'!r}", file=file)
    size = file.stat().st_size
    if size == 0:
        raise SourceError("the file is empty", file=file)
    if size > options.most_megabytes * 1_000_000:
        raise SourceError(f"the file has {size // 1_000_000} MB, more than {options.most_megabytes}", file=file)
    key = content_key(file)
    known = None if cache is None else cache.get(key)
    if known is not None:
        return known
    extracted = reader(file)
    if not extracted.blocks:
        raise SourceError("the file holds no text", file=file)
    if cache is not None:
        cache.put(key, extracted)
    return extracted
