"""Plain text: paragraphs between blank lines; a form feed begins a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from clew.documents.extracted import Block, Extracted
from clew.documents.formats.decoding import read_text

PARAGRAPH = re.compile(r"[^\s\f](?:[^\f\n]|\n(?![ \t]*(?:\n|\f|\Z)))*")


def read_plain_text(file: Path) -> Extracted:
    """Spans count characters of the file itself."""
    text = read_text(file)
    pages = text.count("\f") + 1 if "\f" in text else 0
    return Extracted("", text, tuple(_blocks(text, pages)), pages)


def _blocks(text: str, pages: int) -> Iterator[Block]:
    page, seen = 1, 0
    for found in PARAGRAPH.finditer(text):
        page += text.count("\f", seen, found.start())
        seen = found.start()
        end = found.start() + len(found.group().rstrip())
        yield Block("paragraph", found.start(), end, page if pages else None)
