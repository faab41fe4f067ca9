"""Text files in any encoding, their lines, and the blocks in them. Spans count characters of the text."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from pathlib import Path

from clew.core.errors import SourceError
from clew.documents.extracted import Block, Cells, Extracted, Kind
from clew.documents.formats.builder import first_heading

MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([\w.:-]{3,20})""", re.IGNORECASE)


def read_text(file: Path) -> str:
    """Read a text with Unix line ends. Raise SourceError if the file contains zero bytes."""
    content = file.read_bytes()
    if b"\0" in content[:65536] and not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError("the file is not text: it contains zero bytes", file=file)
    return decoded(content)


def decoded(content: bytes) -> str:
    """Decode bytes by their byte order mark, as UTF-8, by their declared encoding, or as Western European."""
    for mark, encoding in MARKS:
        if content.startswith(mark):
            return unix(content.decode(encoding, errors="replace"))
    try:
        return unix(content.decode("utf-8"))
    except UnicodeDecodeError:
        declared = DECLARED.search(content[:2048])
        name = declared.group(1).decode("ascii") if declared else "cp1252"
        try:
            return unix(content.decode(name, errors="replace"))
        except (LookupError, UnicodeError, ValueError):
            return unix(content.decode("cp1252", errors="replace"))


CONTROLS = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufffd]")
"""Control characters, and replacements of undecodable bytes, which do not occur in text."""


def decoded_text(beginning: bytes) -> str:
    """Decode the first bytes of a file, whose last character may be cut. Return "" if they are not text."""
    wide = beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = decoded(beginning if wide else beginning[: beginning.rfind(b"\n") + 1] or beginning)
    return "" if CONTROLS.search(text[:-1]) else text


def unix(text: str) -> str:
    """Convert all line ends to `\\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


LONGEST_LINE = 400
"""Maximum length of a heading, rule or table row, in characters. Longer lines match no pattern."""


class Lines:
    """The lines of a text. Indexing truncates lines that are too long for patterns."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0]
        for line in text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, row: int) -> str:
        start, stop = self._starts[row], self._starts[row + 1] - 1
        return self.text[start:stop] if stop - start <= LONGEST_LINE else self.text[start : start + LONGEST_LINE] + "x"

    def whole(self, row: int) -> str:
        """Return a whole line of any length."""
        return self.text[self._starts[row] : self._starts[row + 1] - 1]

    def start(self, row: int) -> int:
        """Return the offset of a line."""
        return self._starts[row]

    def is_blank(self, row: int) -> bool:
        """Return whether a line is blank or outside the text."""
        return not 0 <= row < len(self) or (not self[row].strip() and not self.whole(row).strip())

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return the span from one line up to another, without surrounding white space."""
        start, stop = self._starts[first], min(self._starts[last], len(self.text) + 1) - 1
        while start < stop and self.text[start].isspace():
            start += 1
        while stop > start and self.text[stop - 1].isspace():
            stop -= 1
        return start, stop

    def indent(self, row: int) -> int:
        """Return the indent of a line, in columns."""
        line = self[row].expandtabs(8)
        return len(line) - len(line.lstrip())


@dataclass
class BlockCollector:
    """Collects the blocks of a text."""

    lines: Lines
    page: int | None = None
    blocks: list[Block] = field(default_factory=list)

    def paragraph(self, first: int, last: int) -> None:
        """Add lines as one paragraph unless they are blank."""
        self.add("paragraph", *self.lines.span(first, last))

    def heading(self, row: int, level: int, within: tuple[int, int] | None = None) -> None:
        """Add a line, or a part of it, as a heading."""
        start = self.lines.start(row)
        span = self.lines.span(row, row + 1) if within is None else (start + within[0], start + within[1])
        self.add("heading", *span, level=level)

    def table(self, first: int, last: int, cells: Cells | None) -> None:
        """Add lines as a table, or as text without cells."""
        self.add("paragraph" if cells is None else "table", *self.lines.span(first, last), cells=cells)

    def add(self, kind: Kind, start: int, end: int, level: int = 0, cells: Cells | None = None) -> None:
        """Add a span of the text unless it is empty."""
        if start < end:
            self.blocks.append(Block(kind, start, end, self.page, level, cells))

    def first_heading(self) -> str:
        """Return the first heading if it is a title."""
        return first_heading(self.lines.text, self.blocks)

    def extracted(self, title: str = "", pages: int = 0) -> Extracted:
        """Return everything added."""
        return Extracted(title, self.lines.text, tuple(self.blocks), pages)
