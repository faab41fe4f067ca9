"""Arrange the words of a page into lines in reading order, column by column if the text has columns.

A gutter is an empty strip that few lines cross. Lines that cross it (titles, wide figures) split the page into bands.
Within a band the left column comes first. Labels next to explanations also leave a strip free. So columns count only
if the file writes them one after the other, or if both sides contain whole lines of prose. Positions are in points from
the top left of the displayed page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import numpy as np

MARKER = re.compile(r"([•◦▪‣●○■□–—*·∗◆➢✓-]|o|\(?(\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)]|\[\d{1,3}\])")
"""The marker of a list item, as a separate word."""
LEVELS = 4
"""Number of coverage levels to search for a gutter, starting with the lowest."""
WIDE_GAP = 1.2
"""Minimum gap between words of different columns, as a multiple of the font size."""
THIN = 3.0
"""Maximum thickness of a rule, in points."""


class Box(NamedTuple):
    """A rectangle in points. `top` and `bottom` increase downwards."""

    x0: float
    top: float
    x1: float
    bottom: float

    def holds(self, word: PrintedWord) -> bool:
        """Return whether the middle of a word is inside."""
        across, down = (word.x0 + word.x1) / 2, (word.top + word.bottom) / 2
        return self.x0 - 1 <= across <= self.x1 + 1 and self.top <= down <= self.bottom


class Font(NamedTuple):
    """Font properties of a run of letters."""

    name: str
    size: float
    bold: bool = False
    mono: bool = False
    sideways: bool = False


class PrintedWord(NamedTuple):
    """Letters without spaces, and their box."""

    text: str
    x0: float
    top: float
    x1: float
    bottom: float
    font: Font


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A table on a page: its box, its rows of cells, and the box of each row."""

    box: Box
    rows: tuple[tuple[str, ...], ...]
    row_boxes: tuple[Box, ...]
    ruled: bool
    bold_header: bool = False
    """Whether the whole first row is bold."""


@dataclass(frozen=True, slots=True)
class Line:
    """A printed line of one column, or a table in place of its lines."""

    text: str
    box: Box
    font: Font
    first_width: float = 0.0
    """Width of the first word, to check whether it would have fitted on the line above."""
    hang: float = 0.0
    """Start of a list item's text after its marker. For other lines, the start of the line."""
    column: tuple[float, float] = (0.0, 0.0)
    """Left and right limits of the column."""
    mono: bool = False
    """Whether nearly all letters are monospaced."""
    bold: bool = False
    """Whether all letters are bold."""
    table: PrintedTable | None = None

    @property
    def size(self) -> float:
        """Font size of most letters."""
        return self.font.size

    @property
    def is_item(self) -> bool:
        """Whether the line starts with a list marker."""
        return self.hang > self.box.x0


class Segment:
    """Adjacent words without a wide gap, or a table."""

    __slots__ = ("bottom", "order", "table", "top", "words", "x0", "x1")

    def __init__(self, words: list[PrintedWord], order: int, table: PrintedTable | None = None) -> None:
        self.words, self.order, self.table = words, order, table
        self.x0, self.top, self.x1, self.bottom = box_around(words) if table is None else table.box


def box_around(parts: Collection[PrintedWord | Box | Segment]) -> Box:
    """Return the smallest box around all parts."""
    return Box(
        min(part.x0 for part in parts),
        min(part.top for part in parts),
        max(part.x1 for part in parts),
        max(part.bottom for part in parts),
    )


RowsAndTables = Callable[[Sequence[list[Segment]]], Iterator[list[Segment] | PrintedTable]]
"""Function that finds tables among the rows of a column."""


def lines_in_reading_order(
    words: Sequence[PrintedWord], tables: Sequence[PrintedTable] = (), find_tables: RowsAndTables = iter
) -> list[Line]:
    """Return the lines and tables of a page in reading order. Rotated text comes last."""
    upright = [word for word in words if not word.font.sideways]
    segments = segments_of(upright)
    for table in tables:
        inside = [segment.order for segment in segments if segment.top < table.box.bottom]
        segments.append(Segment([], max(inside, default=-1), table))
    lines = _ordered(segments, find_tables, 0) if segments else []
    sideways = [word for word in words if word.font.sideways]
    return lines + [_line([segment], (segment.x0, segment.x1)) for segment in segments_of(sideways)]


def segments_of(words: Iterable[PrintedWord]) -> list[Segment]:
    """Group consecutive words of the file that are adjacent on the page."""
    groups: list[list[PrintedWord]] = []
    before: PrintedWord | None = None
    for word in words:
        if before is not None and _adjacent(before, word):
            groups[-1].append(word)
        else:
            groups.append([word])
        before = word
    return [Segment(group, order) for order, group in enumerate(groups)]


def _adjacent(before: PrintedWord, word: PrintedWord) -> bool:
    size = max(before.font.size, word.font.size)
    level = abs((word.top + word.bottom) - (before.top + before.bottom)) < size
    return level and -0.5 * size < word.x0 - before.x1 < WIDE_GAP * size


def _ordered(segments: list[Segment], find_tables: RowsAndTables, depth: int) -> list[Line]:
    gutter = _gutter(segments) if depth < 4 else None
    if gutter is None:
        limits = (min(segment.x0 for segment in segments), max(segment.x1 for segment in segments))
        return [_line(row, limits) for row in find_tables(rows_of(segments))]
    lines: list[Line] = []
    for band in _bands(segments, gutter):
        for part in band:
            if part:
                lines += _ordered(part, find_tables, depth + 1)
    return lines


def _bands(segments: list[Segment], gutter: float) -> list[tuple[list[Segment], list[Segment], list[Segment]]]:
    """Return bands from top to bottom: segments across the gutter, or a left and a right column."""
    bands: list[tuple[list[Segment], list[Segment], list[Segment]]] = []
    for segment in sorted(segments, key=lambda item: (item.top, item.x0)):
        crosses = segment.x0 < gutter < segment.x1
        if not bands or crosses != bool(bands[-1][0]):
            bands.append(([], [], []))
        bands[-1][0 if crosses else 1 if segment.x1 <= gutter else 2].append(segment)
    return bands


def _gutter(segments: list[Segment]) -> float | None:
    """Return the middle of a strip that few lines cross and that has text columns on both sides."""
    if len(segments) < 8:
        return None
    left, right = min(segment.x0 for segment in segments), max(segment.x1 for segment in segments)
    size = median(segment.bottom - segment.top for segment in segments)
    strips = int((right - left) / 2) + 2
    change = np.zeros(strips + 1)
    for segment in segments:
        change[int((segment.x0 - left) / 2)] += segment.bottom - segment.top
        change[int((segment.x1 - left) / 2) + 1] -= segment.bottom - segment.top
    cover = np.cumsum(change)[:strips]
    inner = cover[int(0.15 * strips) : int(0.85 * strips)]
    for level in np.unique(inner)[:LEVELS]:
        if level > 0.3 * np.percentile(cover, 75):
            break
        edges = np.flatnonzero(np.diff(np.concatenate(([0], (cover <= level).view(np.int8), [0]))))
        for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            middle = left + start + end  # strips are two points wide
            inside = 0.15 < (middle - left) / max(right - left, 1) < 0.85
            if inside and 2 * (end - start) >= 0.7 * size and _has_columns(segments, middle):
                return float(middle)
    return None


def _has_columns(segments: list[Segment], gutter: float) -> bool:
    sides = [(segment, segment.x0 >= gutter) for segment in segments if segment.x1 <= gutter or segment.x0 >= gutter]
    left = [segment for segment, is_right in sides if not is_right]
    right = [segment for segment, is_right in sides if is_right]
    if len(left) < 4 or len(right) < 4:
        return False
    if min(max(segment.bottom for segment in side) for side in (left, right)) <= max(
        min(segment.top for segment in side) for side in (left, right)
    ):
        return False  # one below the other
    written = [is_right for _, is_right in sorted(sides, key=lambda side: side[0].order)]
    changes = sum(side != following for side, following in pairwise(written))
    fewest = min(len(left), len(right))
    if changes <= max(2, 0.2 * fewest):
        return changes < fewest
    return all(median(_letters(segment) for segment in side) >= 25 for side in (left, right)) and all(
        median(segment.x1 - segment.x0 for segment in side) > 0.6 * (max(s.x1 for s in side) - min(s.x0 for s in side))
        for side in (left, right)
    )


def _letters(segment: Segment) -> int:
    return sum(len(word.text) for word in segment.words)


def rows_of(segments: Iterable[Segment]) -> list[list[Segment]]:
    """Group segments of the same height into rows, left to right and top to bottom."""
    rows: list[list[Segment]] = []
    top = bottom = 0.0
    for segment in sorted(segments, key=lambda item: (item.top + item.bottom, item.x0)):
        overlap = min(bottom, segment.bottom) - max(top, segment.top)
        if rows and overlap > 0.5 * min(bottom - top, segment.bottom - segment.top) and segment.table is None:
            rows[-1].append(segment)
            top, bottom = min(top, segment.top), max(bottom, segment.bottom)
            if segment.bottom - segment.top < 0.8 * (bottom - top):
                continue
        else:
            rows.append([segment])
            top, bottom = (segment.top, segment.bottom) if segment.table is None else (0.0, 0.0)
    return [part for row in rows for part in _apart(sorted(row, key=lambda item: item.x0))]


def _apart(row: list[Segment]) -> list[list[Segment]]:
    """Split a row before distant print in another font, such as a sign in the corner of a slide."""
    parts = [row[:1]]
    for before, segment in pairwise(row):
        font, other = before.words[-1].font, segment.words[0].font
        far = segment.x0 - before.x1 > 8 * max(font.size, other.size)
        sign = font.name != other.name and _letters(segment) < 3 and not segment.words[0].text.isdecimal()
        if far and (sign or max(font.size, other.size) > 1.15 * min(font.size, other.size)):
            parts.append([])
        parts[-1].append(segment)
    return parts


def _line(row: Sequence[Segment] | PrintedTable, column: tuple[float, float]) -> Line:
    table = row if isinstance(row, PrintedTable) else row[0].table
    if table is not None:
        return Line("", table.box, Font("", 0.0), column=column, table=table)
    assert not isinstance(row, PrintedTable)
    return line_of([word for segment in row for word in segment.words], column)


def line_of(words: Sequence[PrintedWord], column: tuple[float, float]) -> Line:
    """Build a line from words, left to right. Monospaced text keeps its gaps."""
    weights: Counter[Font] = Counter()
    for word in words:
        weights[word.font] += len(word.text)
    font = weights.most_common(1)[0][0] if len(weights) > 1 else words[0].font
    box = box_around(words)
    counted = weights.total() - (len(words[0].text) if words[0].text.isdecimal() and not words[0].font.mono else 0)
    mono = font.mono and sum(count for other, count in weights.items() if other.mono) > 0.85 * counted
    text = spaced(words) if mono else " ".join(word.text for word in words)
    marked = len(words) > 1 and MARKER.fullmatch(words[0].text) is not None
    hang = words[1].x0 if marked else box.x0
    bold = all(word.font.bold for word in words)
    return Line(text, box, font, words[0].x1 - words[0].x0, hang, column, mono, bold)


def spaced(words: Sequence[PrintedWord]) -> str:
    """Join monospaced words with spaces in proportion to their gaps."""
    letters = sum(len(word.text) for word in words)
    width = max(sum(word.x1 - word.x0 for word in words) / max(letters, 1), 1.0)
    text = words[0].text
    for before, word in pairwise(words):
        text += " " * max(1, min(80, round((word.x0 - before.x1) / width))) + word.text
    return text
