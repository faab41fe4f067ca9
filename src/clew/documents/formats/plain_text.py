"""Plain text reader: paragraphs, list items and cautiously guessed headings. Spans count characters of the file."""

from __future__ import annotations

import re
from pathlib import Path

from clew.documents.extracted import Extracted
from clew.documents.formats.text_file import BlockCollector, Lines, read_text

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
    found = BlockCollector(lines, page=1 if "\f" in text else None)
    breaks = [offset for offset, mark in enumerate(text) if mark == "\f"] if "\f" in text else []
    passed, row = 0, 0
    while row < len(lines):
        while passed < len(breaks) and breaks[passed] < lines.start(row):
            passed += 1
        if breaks:
            found.page = passed + 1
        row = _take(found, lines, row, breaks[passed] if passed < len(breaks) else len(text))
    opens = found.blocks and found.blocks[0].kind == "heading"
    read = found.extracted(found.first_heading() if opens else "", len(breaks) + 1 if breaks else 0)
    return Extracted(read.title, text, read.blocks, read.pages)


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
