"""Text files in any encoding, their lines, and the blocks in them. Spans count characters of the text.

`read_plain_text` finds paragraphs, list items and cautiously guessed headings. Markup has readers in other files.
"""

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

    def extracted(self, title: str) -> Extracted:
        """Return everything added."""
        return Extracted(title, self.lines.text, tuple(self.blocks))


UNDERLINE = re.compile(r"[ \t]*([=\-~*#^\"'+_])\1{2,}[ \t]*$")
TOP_MARKS = "=*#"
"""Underline characters of the highest level."""
CAPITALS = re.compile(r"(?=.*[A-Z]{4}|.*[A-Z]{2}.* [A-Z]{2})[A-Z][^a-z]*[^a-z.,;:!](?:\w\b)?(?:\s*:)?$")
NUMBERED = re.compile(
    r"(?:(?:Chapter|Section|Part|Appendix)\s+)?((?:\d{1,2}\.)*\d{1,2}|[A-Z])[.)]?(?::|\s)\s*([A-Z][^.;]*[^.;,:])$"
)
VERSION = re.compile(
    r"""(?:[*=\s]*)(?:
        (?:version|release|changes?\s+(?:in|from|since|for)|what'?s\s+new\s+in|new\s+in|noteworthy\s+changes\s+in)
            \b.{0,60}\d+(?:\.\d+)+.{0,60}
      | v?\d+\.\d+(?:\.\d+)*[\w.+~-]*(?:[\s:,(\[/-].{0,60})?
      | [\w.+-]{1,40}[\s-]\(?v?\d+\.\d+[\w.+~:-]*\)?(?:[\s:;,(].{0,60})?
      | \d{4}-\d\d-\d\d\s+\S.{0,80}
    )$""",
    re.VERBOSE | re.IGNORECASE,
)
ITEM = re.compile(r"\s*(?:[-*+•o]|\d{1,3}[.)])\s+\S")
COLUMNS = re.compile(r"\S(?: {3,}|\t+)\S.*\S(?: {3,}|\t+)\S")
"""A row of a table."""
LONGEST_HEADING = 90
"""Maximum characters of a heading: about one printed line."""


def read_plain_text(file: Path) -> Extracted:
    """Read a text file. Form feeds separate pages. The title is a heading at the start."""
    text = read_text(file)
    lines = Lines(text.replace("\f", "\n"))
    breaks = [mark.start() for mark in re.finditer("\f", text)]
    found = BlockCollector(lines, page=1 if breaks else None)
    passed, row = 0, 0
    while row < len(lines):
        while passed < len(breaks) and breaks[passed] < lines.start(row):
            passed += 1
        if breaks:
            found.page = passed + 1
        row = _take(found, lines, row, breaks[passed] if passed < len(breaks) else len(text))
    opens = found.blocks and found.blocks[0].kind == "heading"
    title = found.first_heading() if opens else ""
    return Extracted(title, text, tuple(found.blocks), len(breaks) + 1 if breaks else 0)


def _take(found: BlockCollector, lines: Lines, row: int, page_end: int) -> int:
    """Read the heading, item or paragraph that starts on a line. Return the line after it."""
    if lines.is_blank(row) or UNDERLINE.match(lines[row]):
        return row + 1
    is_separate = lines.is_blank(row - 1) or (row > 0 and bool(UNDERLINE.match(lines[row - 1])))
    if is_separate and (level := _underlined(lines, row)):
        found.heading(row, level)
        return row + 2
    if is_separate and (level := _level(lines, row)):
        found.heading(row, level)
        return row + 1
    last = row + 1
    while not lines.is_blank(last) and not ITEM.match(lines[last]) and lines.start(last) <= page_end:
        last += 1
    found.paragraph(row, last)
    return last


def _underlined(lines: Lines, row: int) -> int:
    """Return the level of a line with an underline of about the same length, or 0."""
    title = lines[row].strip()
    if row + 1 >= len(lines) or not (mark := UNDERLINE.match(lines[row + 1])) or len(title) > LONGEST_HEADING:
        return 0
    if abs(len(lines[row + 1].strip()) - len(title)) > max(3, len(title) // 3) or not re.search(r"\w", title):
        return 0
    return 1 if mark.group(1) in TOP_MARKS else 2


def _level(lines: Lines, row: int) -> int:
    """Return the level of a line that is clearly a heading by its form, or 0."""
    line = lines[row].strip()
    if len(line) > LONGEST_HEADING or lines.indent(row) > 4 or COLUMNS.search(line):
        return 0
    if VERSION.match(line) and not line.endswith((".", ",", ";")) and lines.indent(row) == 0:
        return 2
    if CAPITALS.match(line) and (lines.is_blank(row + 1) or lines.indent(row + 1) > lines.indent(row)):
        return 1
    numbered = NUMBERED.match(line)
    if (
        numbered
        and lines.is_blank(row + 1)
        and len(line.split()) <= 10
        and not _next_is_item(lines, row + 1, numbered.group(1))
    ):
        return 1 + numbered.group(1).count(".")
    return 0


def _next_is_item(lines: Lines, row: int, number: str) -> bool:
    """Return whether the next text is another numbered line but not a subsection. Then both are list items."""
    while row < len(lines) and lines.is_blank(row):
        row += 1
    following = NUMBERED.match(lines[row].strip()) if row < len(lines) else None
    return following is not None and not following.group(1).startswith(f"{number}.")
