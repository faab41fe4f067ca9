"""What every reader of a format hands over, and how it is kept, by content.

A text, and where its pages, headings, paragraphs and tables are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from clew.core.disk import refuse_link, write_whole
from clew.core.limits import spend
from clew.store.graph.manifest import KEPT_TEXT, sealed_text, unsealed_text

Kind = Literal["heading", "paragraph", "table", "contents"]
"""Contents are lists of headings, figures or words with their page numbers."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A table: its header, its rows (as long as the header each) and its caption, all as written."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A span of the text and what it is; no page where the format has none. A table has the page it begins on."""

    kind: Kind
    start: int
    end: int
    page: int | None = None
    level: int = 0
    cells: Cells | None = None


@dataclass(frozen=True, slots=True)
class TextLine:
    """A printed line: its characters in the text, and its box on the page in points from the top left."""

    start: int
    end: int
    page: int
    x0: float
    top: float
    x1: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a file and its blocks in reading order; every span counts characters of `text`."""

    title: str
    """As the document gives it; empty where it gives none."""
    text: str
    blocks: tuple[Block, ...]
    pages: int = 0
    """How many pages the file has; 0 where the format has none."""
    notes: tuple[str, ...] = ()
    """What could not be read although the rest could, such as a page that is only an image."""
    lines: tuple[TextLine, ...] = ()
    """Where each line is printed, so that a quotation can be marked; empty where the format has no pages."""
    labels: tuple[str, ...] = ()
    """What the pages are called, such as iv or A-3; empty where they are called 1, 2, 3."""


def cells_of(rows: Sequence[Sequence[str]], caption: str = "") -> Cells | None:
    """Rows as a table: empty rows and columns dropped, short rows filled up; None where nothing is left."""
    tidy = [[" ".join(cell.split()) for cell in row] for row in rows]
    tidy = [row for row in tidy if any(row)]
    if not tidy:
        return None
    width = max(map(len, tidy))
    spend(width * len(tidy))
    tidy = [row + [""] * (width - len(row)) for row in tidy]
    kept = [column for column in range(width) if any(row[column] for row in tidy)]
    header, *body = (tuple(row[column] for column in kept) for row in tidy)
    return Cells(header, tuple(body), " ".join(caption.split()))


def markdown(cells: Cells, rows: Sequence[Sequence[str]] | None = None) -> str:
    """The caption, the header and the rows (all of them, or those given) as a Markdown table."""
    lines = [cells.caption, ""] if cells.caption else []
    lines += [_line(cells.header), "|" + " --- |" * len(cells.header)]
    lines += [_line(row) for row in (cells.rows if rows is None else rows)]
    return "\n".join(lines)


def _line(row: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


VERSION = 6
"""Raised whenever a reader extracts something else than before."""


def content_digest(file: Path) -> str:
    """What tells the bytes of a file apart."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:32]


def content_key(file: Path, ending: str) -> str:
    """What identifies a file's text: its bytes, its format and the version of the readers."""
    return f"{content_digest(file)}{ending}-{VERSION}"


def digest_of(key: str) -> str:
    """The digest of the bytes in what identifies a file's text."""
    return key[:32]


class ExtractedCache:
    """One JSON file per content, under its digest; what was not used by a build is dropped at its end."""

    def __init__(self, folder: Path) -> None:
        refuse_link(folder)
        self.folder = folder
        self._used: set[str] = set()

    def has(self, key: str) -> bool:
        """Whether a content was read before."""
        self._used.add(self._name(key))
        return (self.folder / self._name(key)).exists()

    def get(self, key: str) -> Extracted | None:
        """The text of a content read before; None where there is none, or none that can be read."""
        self._used.add(self._name(key))
        try:
            content = unsealed_text((self.folder / self._name(key)).read_bytes())
            return None if content is None else from_json(content)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, content: bytes) -> None:
        """Keep a text as JSON; written beside and renamed, so that a kill leaves no half file."""
        self._used.add(self._name(key))
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / self._name(key), sealed_text(content))

    def drop_unused(self) -> None:
        """Forget contents that no file has any more; files of other names are not ours."""
        for file in self.folder.glob("*.json"):
            if KEPT_TEXT.fullmatch(file.name) and file.name not in self._used:
                file.unlink(missing_ok=True)

    def _name(self, key: str) -> str:
        return f"{key}.json"


def to_json(extracted: Extracted) -> bytes:
    """The one form in which texts are kept and handed from one process to another."""
    return json.dumps(asdict(extracted)).encode("ascii")  # text may hold halves of pairs, which UTF-8 cannot write


def from_json(content: bytes) -> Extracted:
    """What `to_json` wrote."""
    raw = json.loads(content)
    blocks = tuple(_block(block) for block in raw["blocks"])
    lines, labels = tuple(TextLine(**line) for line in raw["lines"]), tuple(raw["labels"])
    return Extracted(raw["title"], raw["text"], blocks, raw["pages"], tuple(raw["notes"]), lines, labels)


def _block(raw: dict[str, Any]) -> Block:
    return Block(**{**raw, "cells": _cells(raw["cells"])})


def _cells(raw: dict[str, Any] | None) -> Cells | None:
    if raw is None:
        return None
    return Cells(tuple(raw["header"]), tuple(map(tuple, raw["rows"])), raw["caption"])
