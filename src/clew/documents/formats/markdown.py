"""Markdown reader: both kinds of headings, list items, fenced code, tables. Spans count characters of the file."""

from __future__ import annotations

import re
from pathlib import Path

from clew.documents.extracted import Extracted, cells_of, row_cells
from clew.documents.formats.text_file import BlockCollector, Lines, read_text

ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*(?:\{#[\w.:-]+[^}]*\})?[ \t]*$")
SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,4}[.)])[ \t]+\S")
HTML_HEADING = re.compile(r"\s*<h([1-6])[^>]*>([^<]+)</h[1-6]>\s*$", re.IGNORECASE)
BOLD_QUESTION = re.compile(r"\s*(?:\*\*|__)(?=\S)(.{5,250}\?)(?:\*\*|__)\s*$")
ANCHOR = re.compile(r"""\s*<a\s+(?:id|name)=["']?[^"'>\s]+["']?[^>]*>\s*(?:</a>)?\s*$""", re.IGNORECASE)
TITLE = re.compile(r"""title:\s*["']?(.+?)["']?\s*$""", re.IGNORECASE)
MARKS = re.compile(r"[*_`]+|!?\[([^\]]*)\]\([^)]*\)")
LONGEST_CAPTION = 200
"""A paragraph right above a table is its caption if it has fewer characters than this."""


def read_markdown(file: Path) -> Extracted:
    """Read a Markdown file. The title comes from the preamble or the first heading."""
    lines = Lines(read_text(file))
    scan = _MarkdownScan(lines)
    row, title = _preamble(lines)
    while row < len(lines):
        row = scan.take(row)
    return scan.found.extracted(title or MARKS.sub(r"\1", scan.found.first_heading()))


def _preamble(lines: Lines) -> tuple[int, str]:
    """Return the first line after a YAML preamble, and its title."""
    if lines[0].rstrip() != "---":
        return 0, ""
    closing = next((row for row in range(1, min(len(lines), 200)) if lines[row].rstrip() in {"---", "..."}), 0)
    titles = (TITLE.match(lines[row]) for row in range(1, closing))
    return closing + 1 if closing else 0, next((found.group(1) for found in titles if found), "")


class _MarkdownScan:
    """State of one pass over the lines."""

    def __init__(self, lines: Lines) -> None:
        self.found = BlockCollector(lines)
        self._lines = lines
        self._level = 0

    def take(self, row: int) -> int:
        """Read the block that starts on a line. Return the line after it."""
        line = self._lines[row]
        if not line.strip():
            return row + 1
        if heading := ATX.match(line):
            if heading.group(2):
                self._heading(row, len(heading.group(1)), heading.span(2))
            return row + 1
        if heading := HTML_HEADING.match(line):
            self._heading(row, int(heading.group(1)), heading.span(2))
            return row + 1
        if ANCHOR.match(line):
            return row + 1
        if fence := FENCE.match(line):
            return self._take_code(row, fence.group(1))
        if self._is_table(row):
            return self._take_table(row, "")
        return self._take_paragraph(row)

    def _heading(self, row: int, level: int, within: tuple[int, int] | None = None) -> None:
        self._level = level
        self.found.heading(row, level, within)

    def _take_paragraph(self, first: int) -> int:
        lines = self._lines
        row = first + 1
        while not lines.is_blank(row) and not self._interrupts(row):
            if SETEXT.match(lines[row]) and not ITEM.match(lines[first]):
                self._level = 1 if "=" in lines[row] else 2
                self.found.add("heading", *lines.span(first, row), level=self._level)
                return row + 1
            if self._is_table(row):
                caption = lines.text[slice(*lines.span(first, row))]
                if len(caption) < LONGEST_CAPTION:
                    return self._take_table(row, caption)
                break
            row += 1
        question = BOLD_QUESTION.match(lines[first]) if row == first + 1 else None
        if question:
            self.found.heading(first, self._level + 1, question.span(1))
        else:
            self.found.paragraph(first, row)
        return row

    def _interrupts(self, row: int) -> bool:
        line = self._lines[row]
        return bool(ATX.match(line) or FENCE.match(line) or ITEM.match(line) or HTML_HEADING.match(line))

    def _take_code(self, row: int, fence: str) -> int:
        last = row + 1
        while last < len(self._lines) and not self._lines[last].lstrip().startswith(fence):
            last += 1
        self.found.paragraph(row + 1, last)
        return last + 1

    def _is_table(self, row: int) -> bool:
        if row + 1 >= len(self._lines) or "|" not in self._lines.whole(row):
            return False
        rule = self._lines.whole(row + 1)
        return "-" in rule and bool(RULE.match(rule)) and len(row_cells(self._lines.whole(row))) == len(row_cells(rule))

    def _take_table(self, row: int, caption: str) -> int:
        last = row + 2
        while last < len(self._lines) and "|" in self._lines.whole(last):
            last += 1
        rows = [row_cells(self._lines.whole(number)) for number in (row, *range(row + 2, last))]
        self.found.table(row, last, cells_of(rows, caption))
        return last
