"""Group the lines of a page into blocks: paragraphs, list items, code, contents, tables with captions, footnotes.

Tables that continue on the next page are merged.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from clew.documents.formats.pdf_lines import Box, Line, PrintedTable
from clew.documents.formats.pdf_unruled import has_leaders

NUMBER_OF_CAPTION = r"\s+([A-Z]?\d+([.-]\d+)*|[IVXLC]+)\b(\s*[:.|–—-]|\s*$|\s+[A-Z(])"
CAPTION = re.compile(r"\s*(?i:table|tab\.|tabelle|tableau|tabla)" + NUMBER_OF_CAPTION)
FIGURE = re.compile(r"\s*(?i:fig(ure|\.)?|abb(ildung|\.)?|listing)" + NUMBER_OF_CAPTION)
ENDS_IN_PAGE = re.compile(r"(?:^|[\s.])(\d{1,4}|[ivxlc]{1,6})$")
INDEX_ENTRY = re.compile(r".*\D,\s*\d{1,4}([,–-]\s*\d{1,4})*$")
SECTION_NUMBER = re.compile(r"(\d+|[A-Z])(\.\d+)*\.?\s+\S")
FOOTNOTE = re.compile(r"(\d{1,2}|[*∗†‡§¶]+)\s?\S")
ENDS = (".", ":", "?", "!", ".”", '."', ".)")
"""Endings of a sentence or an introduction."""
SMALL = 0.93
"""Maximum size of footnotes, as a share of the text size."""
LONGEST_CAPTION = 400
"""Maximum characters of a caption. A longer block that starts like a caption is text about the figure."""

Sort = Literal["text", "code", "contents", "table", "footnote"]


@dataclass(frozen=True, slots=True)
class Mark:
    """The heading of a line. Lines with the same entry form one heading."""

    entry: int
    level: int


@dataclass(frozen=True, slots=True)
class PageBlock:
    """Lines of one block, their heading in the outline, and the caption of a table."""

    sort: Sort
    lines: tuple[Line, ...]
    mark: Mark | None = None
    caption: tuple[Line, ...] = ()


def page_blocks(lines: Sequence[Line], marks: Mapping[int, Mark], height: float, body_size: float) -> list[PageBlock]:
    """Return the blocks of a page in reading order. `marks` maps lines to headings of the outline."""
    notes = footnotes(lines, height, body_size)
    listed = contents(lines)
    blocks: list[PageBlock] = []
    for index, line in enumerate(lines):
        if index in notes:
            continue
        mark, last = marks.get(index), blocks[-1] if blocks else None
        sort: Sort = "text"
        if line.table is not None:
            sort = "table"
        elif index in listed:
            sort = "contents"
        elif mark is None and _is_code(line, last):
            sort = "code"
        if last is not None and last.sort == sort and last.mark == mark and _goes_on(last, line, body_size):
            blocks[-1] = replace(last, lines=(*last.lines, line))
        else:
            blocks.append(PageBlock(sort, (line,), mark))
    small: list[PageBlock] = []
    for index in sorted(notes):
        if small and not FOOTNOTE.match(lines[index].text):
            small[-1] = replace(small[-1], lines=(*small[-1].lines, lines[index]))
        else:
            small.append(PageBlock("footnote", (lines[index],)))
    return with_captions(blocks) + small


def _is_code(line: Line, above: PageBlock | None) -> bool:
    """Return whether a line is monospaced, or a number or bracket between monospaced lines."""
    if line.mono:
        return above is None or not _within_sentence(above, line)
    if above is None or above.sort != "code" or any(map(str.isalpha, line.text)):
        return False
    return abs(line.box.x0 - above.lines[-1].box.x0) < 4 * line.size


def _within_sentence(block: PageBlock, line: Line) -> bool:
    """Return whether a monospaced line, such as a path, continues the sentence above it."""
    last = block.lines[-1]
    level = abs(line.box.x0 - min(other.box.x0 for other in block.lines)) < 1
    close = -line.size < line.box.top - last.box.bottom < 0.3 * line.size
    full = last.box.x1 + line.first_width > line.column[1] - 2 * line.size
    return block.sort == "text" and level and close and full and not last.text.endswith(ENDS)


def _goes_on(block: PageBlock, line: Line, body_size: float) -> bool:
    if block.sort == "table":
        return False
    if block.sort == "contents" or block.mark is not None:
        return True
    if not any(map(str.isalpha, block.lines[-1].text + line.text)):
        return True  # numbers along the axis of a chart
    if block.sort == "code":
        return -line.size < line.box.top - block.lines[-1].box.bottom < 2 * line.size
    return same_paragraph(block.lines, line, body_size)


def same_paragraph(block: Sequence[Line], line: Line, body_size: float) -> bool:
    """Return whether a line continues a paragraph.

    It needs the same print and no gap, indent, early line end, list item, caption or heading in between.
    """
    last = block[-1]
    if abs(last.size - line.size) > (1.6 if line.mono or last.mono else 0.6) or last.bold != line.bold:
        return False
    complete = last.text.endswith(ENDS)
    if line.is_item and not _number_in_sentence(block, line):
        return False
    if complete and (CAPTION.match(line.text) or FIGURE.match(line.text)):
        return False
    gap = line.box.top - last.box.bottom
    if gap < -line.size:  # up to the next column, where a sentence may continue
        return not complete and not line.text[:1].isupper()
    usual = min((below.box.top - above.box.bottom for above, below in pairwise(block)), default=0.3 * line.size)
    if gap > max(usual, 0.0) + 0.35 * line.size:
        return False
    right = max(other.box.x1 for other in (*block, line))
    if last.box.x1 + 0.4 * line.size + line.first_width < right - line.size and not line.text[:1].islower():
        return False  # the first word would have fitted above
    left, limit = line.column
    spare = limit - last.box.x1 - line.first_width
    narrow = abs(last.box.x1 - line.box.x1) < line.size
    if spare > 0.4 * (limit - left) and not narrow and not line.text[:1].islower() and line.size <= 1.12 * body_size:
        return False  # far from full, and not because of a narrow box
    begins = block[0].hang
    if len(block) > 1:
        begins = min(other.box.x0 for other in block[1:])
        if line.box.x0 < begins - 0.8 * line.size and complete:
            return False  # back to the left of a hanging paragraph
    indented = line.box.x0 - min(begins, last.hang) > 0.8 * line.size
    hanging = len(block) == 1 and not last.is_item and not complete
    return not (indented and complete and not hanging)


def _number_in_sentence(block: Sequence[Line], line: Line) -> bool:
    """Return whether an apparent item number is a number in a sentence that happens to start the line."""
    last = block[-1]
    even = abs(line.box.x0 - last.box.x0) < 1 and not block[0].is_item
    return even and line.text[:1].isalnum() and not last.text.endswith((*ENDS, ";", ","))


def footnotes(lines: Sequence[Line], height: float, body_size: float) -> frozenset[int]:
    """Return the lines in small print at the foot of each column, starting with the first footnote mark."""
    columns: dict[tuple[float, float], list[int]] = defaultdict(list)
    for index, line in enumerate(lines):
        columns[line.column].append(index)
    found: set[int] = set()
    for indexes in columns.values():
        tail: list[int] = []
        for index in sorted(indexes, key=lambda i: -lines[i].box.top):
            line = lines[index]
            if line.table is not None or line.mono or line.size > SMALL * body_size or line.box.top < 0.4 * height:
                break
            tail.append(index)
        tail.reverse()
        first = next((n for n, index in enumerate(tail) if FOOTNOTE.match(lines[index].text)), None)
        if first is not None and len(tail) < len(indexes):
            found.update(tail[first:])
    return frozenset(found)


def contents(lines: Sequence[Line]) -> frozenset[int]:
    """Return the lines of a table of contents, a list of figures or an index, with the heading above them."""
    text = [index for index, line in enumerate(lines) if line.table is None]
    paged = [index for index in text if ENDS_IN_PAGE.search(lines[index].text)]
    dotted = [index for index in paged if has_leaders(lines[index].text)]
    found: set[int] = set()
    if len(dotted) > 2:
        found = {index for index in text if dotted[0] <= index <= dotted[-1]}
        rest = [p for p in text if p < dotted[0] or p > dotted[-1]]
        found |= {p for p in rest if p in paged and len(lines[p].text) < 120 and SECTION_NUMBER.match(lines[p].text)}
    elif len(text) > 9:
        entries = [index for index in text if INDEX_ENTRY.fullmatch(lines[index].text)]
        if len(entries) > 0.6 * len(text):
            found = set(text)
        elif len(paged) > 0.6 * len(text) and _rises([lines[index].text for index in paged]):
            found = {index for index in text if paged[0] <= index <= paged[-1]}
    entry = min(found, default=0) - 1
    if entry in text and SECTION_NUMBER.match(lines[entry].text) and not SECTION_NUMBER.match(lines[entry + 1].text):
        found.add(entry)  # the first entry has two lines
    heading = min(found, default=0) - 1
    if heading >= 0 and lines[heading].table is None and len(lines[heading].text) < 40:
        words = re.findall(r"\w+", lines[heading].text.lower())
        if {"contents", "content", "index", "figures", "tables", "inhalt", "inhaltsverzeichnis"} & set(words):
            found.add(heading)
    return frozenset(found)


def _rises(texts: Sequence[str]) -> bool:
    """Return whether the page numbers at line ends increase, and most lines start with a section number."""
    numbers = [int(found[0]) for text in texts if (found := re.search(r"\d+$", text))]
    numbered = sum(SECTION_NUMBER.match(text) is not None for text in texts)
    grows = sum(number <= following for number, following in pairwise(numbers))
    return numbered > 0.5 * len(texts) and grows > 0.9 * (len(numbers) - 1)


def with_captions(blocks: Sequence[PageBlock]) -> list[PageBlock]:
    """Attach to each table the block above, or else below, that starts like "Table 2"."""
    taken: set[int] = set()
    captions: dict[int, int] = {}
    for index, block in enumerate(blocks):
        if block.sort != "table":
            continue
        box = block.lines[0].box
        near = []
        for other, named in enumerate(blocks):
            if other in taken or named.sort != "text" or not CAPTION.match(named.lines[0].text):
                continue
            if sum(len(line.text) for line in named.lines) > LONGEST_CAPTION:
                continue
            above, below = box.top - named.lines[-1].box.bottom, named.lines[0].box.top - box.bottom
            across = named.lines[0].box.x0 < box.x1 and named.lines[0].box.x1 > box.x0
            close = across or abs(other - index) == 1  # a short caption at the margin of a narrow table
            if close and (-4 <= above < 40 or -4 <= below < 40):
                near.append((below >= -4, abs(max(above, below)), other))
        if near:
            captions[index] = min(near)[2]
            taken.add(captions[index])
    return [
        replace(block, caption=blocks[captions[index]].lines) if index in captions else block
        for index, block in enumerate(blocks)
        if index not in taken
    ]


def code_lines(lines: Sequence[Line]) -> list[str]:
    """Return lines of code with their printed indents."""
    left = min(line.box.x0 for line in lines)
    result = []
    for line in lines:
        width = max((line.box.x1 - line.box.x0) / max(len(line.text), 1), 1.0)
        result.append(" " * min(80, round((line.box.x0 - left) / width)) + line.text)
    return result


CONTINUED = re.compile(r"\b(cont\b|cont'd|continued|fortsetzung|suite)", re.IGNORECASE)
SAME_EDGE = 8.0
"""Maximum difference between the sides of two parts of a table, in points."""


def with_continued_tables(pages: Sequence[Sequence[PageBlock]]) -> list[list[PageBlock]]:
    """Return the blocks of each page. Merge a table at the end of a page with its continuation on the next page."""
    result: list[list[PageBlock]] = []
    holder: tuple[int, int] | None = None  # page and index of a table that may continue
    for number, blocks in enumerate(pages):
        remaining = list(blocks)
        if holder is not None and remaining and _continues(result[holder[0]][holder[1]], remaining[0]):
            page, index = holder
            table = result[page][index]
            result[page][index] = replace(table, lines=(*table.lines, remaining[0].lines[0]))
            remaining = remaining[1:]
            holder = holder if all(block.sort == "footnote" for block in remaining) else None
        else:
            holder = None
        result.append(remaining)
        last = next((i for i in reversed(range(len(remaining))) if remaining[i].sort != "footnote"), None)
        if last is not None and remaining[last].sort == "table":
            holder = (number, last)
    return result


def _continues(block: PageBlock, following: PageBlock) -> bool:
    above, below = block.lines[-1].table, following.lines[0].table
    if above is None or below is None or above.ruled != below.ruled:
        return False
    if following.caption and not CONTINUED.search(" ".join(line.text for line in following.caption)):
        return False
    if len(above.rows[0]) != len(below.rows[0]):
        return False
    if abs(above.box.x0 - below.box.x0) > SAME_EDGE or abs(above.box.x1 - below.box.x1) > SAME_EDGE:
        return False
    first = block.lines[0].table
    return first is not None and (below.rows[0] == first.rows[0] or not below.bold_header)


def rows_over_pages(tables: Sequence[PrintedTable]) -> list[tuple[tuple[str, ...], int, Box]]:
    """Return the rows of all parts, each with the number of its part and its box.

    Skip repeated headers. Join a row without a first cell to the row above, since a page break has cut it.
    """
    rows: list[tuple[tuple[str, ...], int, Box]] = []
    for part, table in enumerate(tables):
        for number, (cells, box) in enumerate(zip(table.rows, table.row_boxes, strict=True)):
            first = part > 0 and number == int(table.rows[0] == tables[0].rows[0])
            if part and number == 0 and cells == tables[0].rows[0]:
                continue
            if first and not cells[0] and rows[-1][0][0]:
                joined = tuple(f"{above} {below}".strip() for above, below in zip(rows[-1][0], cells, strict=True))
                rows[-1] = (joined, *rows[-1][1:])
            else:
                rows.append((cells, part, box))
    return rows
