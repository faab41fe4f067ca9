"""Output of all format readers, and its cache by content.

The output is a text with the spans of its pages, headings, paragraphs and tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from clew.core.disk import file_sha256, refuse_link, write_whole
from clew.core.limits import spend
from clew.store.graph.manifest import KEPT_TEXT, sealed_text, unsealed_text

Kind = Literal["heading", "paragraph", "table", "contents"]
"""`contents` are lists of headings, figures or words with page numbers."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A table: its header, rows as long as the header, and its caption, unchanged from the file."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A span of the text and its kind. `page` is the page of its first line, or None in formats without pages."""

    kind: Kind
    start: int
    end: int
    page: int | None = None
    level: int = 0
    cells: Cells | None = None


@dataclass(frozen=True, slots=True)
class TextLine:
    """A printed line: its character span, and its box on the page in points from the top left."""

    start: int
    end: int
    page: int
    x0: float
    top: float
    x1: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a file and its blocks in reading order. All spans count characters of `text`."""

    title: str
    """Title given by the document. Empty if it gives no title."""
    text: str
    blocks: tuple[Block, ...]
    pages: int = 0
    """Number of pages. 0 if the format has no pages."""
    notes: tuple[str, ...] = ()
    """Problems with parts of the file, such as a page that is only an image."""
    lines: tuple[TextLine, ...] = ()
    """Position of each line, to highlight quotations. Empty if the format has no pages."""
    labels: tuple[str, ...] = ()
    """Page labels such as iv or A-3. Empty if the labels are 1, 2, 3."""


def cells_of(rows: Sequence[Sequence[str]], caption: str = "") -> Cells | None:
    """Build a table without empty rows and columns, with short rows padded. Return None if no cell has text."""
    tidy = [[" ".join(cell.split()) for cell in row] for row in rows]
    tidy = [row for row in tidy if any(row)]
    if not tidy:
        return None
    width = max(map(len, tidy))
    spend(width * len(tidy))
    tidy = [row + [""] * (width - len(row)) for row in tidy]
    columns = [column for column in range(width) if any(row[column] for row in tidy)]
    header, *body = (tuple(row[column] for column in columns) for row in tidy)
    return Cells(header, tuple(body), " ".join(caption.split()))


def markdown(cells: Cells, rows: Sequence[Sequence[str]] | None = None) -> str:
    """Render the caption, the header and all or the given rows as a Markdown table."""
    lines = [cells.caption, ""] if cells.caption else []
    lines += [_line(cells.header), "|" + " --- |" * len(cells.header)]
    lines += [_line(row) for row in (cells.rows if rows is None else rows)]
    return "\n".join(lines)


def row_cells(line: str) -> list[str]:
    """Return the cells of a row of a Markdown table."""
    cells = re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))
    return [cell.replace("\\|", "|").strip() for cell in cells]


def _line(row: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


VERSION = 7
"""Version of the readers. Increase it when a reader extracts different text."""


def content_key(file: Path, ending: str) -> str:
    """Return the cache key of a file's text: the digest of its bytes, its format and the version of the readers."""
    return f"{file_sha256(file)[:32]}{ending}-{VERSION}"


def digest_of(key: str) -> str:
    """Return the digest of the file's bytes from a cache key."""
    return key[:32]


class ExtractedCache:
    """Cache with one JSON file per content, named by digest. A build deletes the files it did not use."""

    def __init__(self, folder: Path) -> None:
        refuse_link(folder)
        self.folder = folder
        self._used: set[str] = set()

    def has(self, key: str) -> bool:
        """Return whether the cache contains a text, and mark it as used."""
        return self._file(key).exists()

    def get(self, key: str) -> Extracted | None:
        """Return a cached text, or None if it is missing or unreadable."""
        try:
            content = unsealed_text(self._file(key).read_bytes())
            return None if content is None else from_json(content)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, content: bytes) -> None:
        """Store a text as JSON. The write is atomic."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._file(key), sealed_text(content))

    def drop_unused(self) -> None:
        """Delete cached texts that no file has used. Leave files with other names alone."""
        for file in self.folder.glob("*.json"):
            if KEPT_TEXT.fullmatch(file.name) and file.name not in self._used:
                file.unlink(missing_ok=True)

    def _file(self, key: str) -> Path:
        """Return the file of a text, and mark it as used."""
        self._used.add(f"{key}.json")
        return self.folder / f"{key}.json"


def to_json(extracted: Extracted) -> bytes:
    """Serialize a text for the cache and for other processes."""
    return json.dumps(asdict(extracted)).encode("ascii")  # UTF-8 cannot encode lone surrogates


def from_json(content: bytes) -> Extracted:
    """Parse the output of `to_json`."""
    raw = json.loads(content)
    blocks = tuple(Block(**{**block, "cells": _cells(block["cells"])}) for block in raw["blocks"])
    lines, labels = tuple(TextLine(**line) for line in raw["lines"]), tuple(raw["labels"])
    return Extracted(raw["title"], raw["text"], blocks, raw["pages"], tuple(raw["notes"]), lines, labels)


def _cells(raw: dict[str, Any] | None) -> Cells | None:
    if raw is None:
        return None
    return Cells(tuple(raw["header"]), tuple(map(tuple, raw["rows"])), raw["caption"])
