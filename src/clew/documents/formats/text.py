"""Plain text and Markdown."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from clew.core.errors import SourceError
from clew.documents.extracted import Block, Extracted, cells_of

MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def read_text(file: Path) -> str:
    """The file's text with Unix line ends; a file with zero bytes in it is no text."""
    content = file.read_bytes()
    for mark, encoding in MARKS:
        if content.startswith(mark):
            return _unix(content.decode(encoding, errors="replace"))
    if b"\0" in content[:65536]:
        raise SourceError("this is not text: it holds zero bytes", file=file)
    try:
        return _unix(content.decode("utf-8"))
    except UnicodeDecodeError:
        return _unix(content.decode("cp1252", errors="replace"))


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


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


ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
CELL = re.compile(r"(?<!\\)\|")


def read_markdown(file: Path) -> Extracted:
    """Spans count characters of the file; the title is the first heading."""
    text = read_text(file)
    blocks = _Scan(text).blocks()
    title = next((_heading_text(text[b.start : b.end]) for b in blocks if b.kind == "heading"), "")
    return Extracted(title, text, tuple(blocks))


@dataclass
class _Scan:
    """One walk over the lines."""

    text: str
    _found: list[Block] = field(default_factory=list)
    _paragraph: tuple[int, int] | None = None

    def blocks(self) -> list[Block]:
        lines = self._lines()
        row = self._front_matter(lines)
        while row < len(lines):
            row = self._take(lines, row)
        self._close()
        return self._found

    def _lines(self) -> list[tuple[int, int]]:
        lines, start = [], 0
        for line in self.text.splitlines(keepends=True):
            lines.append((start, start + len(line.rstrip("\n"))))
            start += len(line)
        return lines

    def _front_matter(self, lines: list[tuple[int, int]]) -> int:
        """Skip a YAML preamble between two lines of three dashes."""
        if not lines or self._at(lines[0]) != "---":
            return 0
        closing = next((row for row in range(1, min(len(lines), 200)) if self._at(lines[row]) == "---"), None)
        return 0 if closing is None else closing + 1

    def _take(self, lines: list[tuple[int, int]], row: int) -> int:
        line = self._at(lines[row])
        if not line.strip():
            self._close()
            return row + 1
        if heading := ATX.match(line):
            self._close()
            self._found.append(Block("heading", *lines[row], level=len(heading.group(1))))
            return row + 1
        if fence := FENCE.match(line):
            return self._take_code(lines, row, fence.group(1))
        if "|" in line and row + 1 < len(lines) and "-" in (rule := self._at(lines[row + 1])) and RULE.match(rule):
            return self._take_table(lines, row)
        if self._paragraph is not None and SETEXT.match(line):
            start, end = self._paragraph
            self._paragraph = None
            self._found.append(Block("heading", start, end, level=1 if "=" in line else 2))
            return row + 1
        start = lines[row][0] if self._paragraph is None else self._paragraph[0]
        self._paragraph = (start, lines[row][1])
        return row + 1

    def _take_code(self, lines: list[tuple[int, int]], row: int, fence: str) -> int:
        self._close()
        last = row + 1
        while last < len(lines) and not self._at(lines[last]).lstrip().startswith(fence):
            last += 1
        self._found.append(Block("paragraph", lines[row][0], lines[min(last, len(lines) - 1)][1]))
        return last + 1

    def _take_table(self, lines: list[tuple[int, int]], row: int) -> int:
        caption = "" if self._paragraph is None else self.text[slice(*self._paragraph)]
        self._close()
        last = row + 2
        while last < len(lines) and "|" in self._at(lines[last]):
            last += 1
        rows = [_cells(self._at(lines[place])) for place in (row, *range(row + 2, last))]
        cells = cells_of(rows, caption if len(caption) < 200 else "")
        if cells is not None:
            self._found.append(Block("table", lines[row][0], lines[last - 1][1], cells=cells))
        return last

    def _close(self) -> None:
        if self._paragraph is not None:
            start, end = self._paragraph
            body = self.text[start:end]
            self._found.append(Block("paragraph", start + len(body) - len(body.lstrip()), start + len(body.rstrip())))
            self._paragraph = None

    def _at(self, line: tuple[int, int]) -> str:
        return self.text[line[0] : line[1]]


def _cells(line: str) -> list[str]:
    cut = CELL.split(line.strip().removeprefix("|").removesuffix("|"))
    return [cell.replace("\\|", "|").strip() for cell in cut]


def _heading_text(source: str) -> str:
    found = ATX.match(source)
    return (found.group(2) or "") if found else " ".join(source.split())
