"""Tables as grids: merged cells, headers of several rows, several tables in one sheet."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Literal

from clew.core.limits import spend

MAX_SPAN = 1000
"""Maximum number of columns or rows that one cell fills. Browsers limit columns to the same number."""
HEADER_SHARE = 0.6
"""Minimum share of the columns that a header fills. Rows above it that fill fewer columns are titles."""
NUMBER = re.compile(r"[-+(]?\W?\d[\d.,\s]*\W{0,3}%?")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell and the number of columns and rows it covers."""

    text: str
    columns: int = 1
    rows: int = 1


def spread(rows: Iterable[Sequence[Cell]]) -> list[list[str]]:
    """Repeat the text of merged cells in every row and column they cover."""
    grid: list[list[str]] = []
    below: dict[int, tuple[str, int]] = {}  # column → text of a merged cell, and its remaining rows
    for row in rows:
        line: list[str] = []
        reaching, below = below, {}
        for cell in row:
            _reach_down(line, reaching, below)
            columns = max(1, min(cell.columns, MAX_SPAN))
            spend(columns * (1 + len(cell.text)))
            for _ in range(columns):
                if cell.rows > 1:
                    below[len(line)] = (cell.text, min(cell.rows, MAX_SPAN) - 1)
                line.append(cell.text)
        _reach_down(line, reaching, below)
        spend(len(line))
        grid.append(line)
    return grid


def _reach_down(line: list[str], reaching: dict[int, tuple[str, int]], below: dict[int, tuple[str, int]]) -> None:
    """Fill the columns of a row that cells of the rows above cover."""
    while len(line) in reaching:
        text, left = reaching.pop(len(line))
        if left > 1:
            below[len(line)] = (text, left - 1)
        line.append(text)


def with_one_header(rows: Sequence[Sequence[str]], header_rows: int) -> list[Sequence[str]]:
    """Merge several header rows into one. Join the texts of each column without repetitions."""
    if header_rows < 2 or len(rows) <= header_rows:
        return list(rows)
    width = max(map(len, rows[:header_rows]))
    names = []
    for column in range(width):
        above = [row[column] for row in rows[:header_rows] if column < len(row) and row[column].strip()]
        names.append(" ".join(text for text, _ in groupby(above)))
    return [names, *rows[header_rows:]]


def with_caption(rows: Sequence[Sequence[str]], caption: str) -> tuple[list[Sequence[str]], str]:
    """Use the first row as the caption if it is one cell over all columns."""
    names = {text.strip() for text in rows[0]} if len(rows) > 2 and len(rows[0]) > 1 else set()
    if len(names) != 1 or not all(names):
        return list(rows), caption
    return list(rows[1:]), caption or names.pop()


Range = tuple[int, int, int, int]
"""A merged range: top, left, bottom, right."""


@dataclass
class Sheet:
    """The filled cells of a sheet by row and column, and its merged ranges."""

    cells: dict[tuple[int, int], str] = field(default_factory=dict)
    merged: list[Range] = field(default_factory=list)


@dataclass(frozen=True)
class SheetPart:
    """A table of a sheet with its caption, or lines of text."""

    kind: Literal["table", "text"]
    rows: list[Sequence[str]]
    caption: str = ""


Area = list[tuple[int, dict[int, str]]]
"""Consecutive rows: row number, then text by column."""


def parts(sheet: Sheet) -> Iterator[SheetPart]:
    """Yield tables and texts in reading order. Blank rows and columns separate them. Titles become captions."""
    rows: dict[int, dict[int, str]] = {}
    for (row, column), text in sorted(sheet.cells.items()):
        if text.strip():
            rows.setdefault(row, {})[column] = text
    waiting: list[str] = []

    def texts(lines: Sequence[str]) -> Iterator[SheetPart]:
        if lines:
            yield SheetPart("text", [[line] for line in lines])

    joined = _merged_columns(sheet, sorted(rows))
    ranges_by_top: dict[int, list[Range]] = {}
    for merged in sheet.merged:
        ranges_by_top.setdefault(merged[0], []).append(merged)
    for area in _areas(list(rows.items()), joined):
        for part in _read_area(area, sheet, joined, ranges_by_top):
            if part.kind == "text" and len(part.rows) <= 3 and all(len(line) == 1 for line in part.rows):
                waiting += [line[0] for line in part.rows]  # maybe the title of the table below
                continue
            if part.kind == "table":
                titles = waiting[-3:] if all(len(line) < 200 for line in waiting[-3:]) else []
                yield from texts(waiting[: len(waiting) - len(titles)])
                yield SheetPart("table", part.rows, ". ".join(line for line in (*titles, part.caption) if line))
            else:
                yield from texts(waiting)
                yield part
            waiting = []
    yield from texts(waiting)


def _areas(rows: Area, joined_columns: set[tuple[int, int]]) -> Iterator[Area]:
    """Split at blank rows, then at blank columns, as often as possible."""
    stack = [rows]
    while stack:
        area = stack.pop()
        spend(1 + sum(len(cells) for _, cells in area))
        if not area:
            continue
        cut = _cut_rows(area)
        if len(cut) == 1:
            cut = _cut_columns(area, joined_columns)
        if len(cut) == 1:
            yield area
        else:
            stack.extend(reversed(cut))


def _cut_rows(area: Area) -> list[Area]:
    cut: list[Area] = [[]]
    for number, cells in area:
        if cut[-1] and number > cut[-1][-1][0] + 1 and not _goes_on(cut[-1], cells):
            cut.append([])
        cut[-1].append((number, cells))
    return cut


def _goes_on(above: Area, cells: dict[int, str]) -> bool:
    """Return whether a row after a blank row continues the table above: same columns, numbers under numbers."""
    last = above[-1][1]
    if len(above) < 2 or len(cells) < 2 or not cells.keys() <= last.keys():
        return False
    numbers = {column for column, text in cells.items() if NUMBER.fullmatch(text.strip())}
    return any(NUMBER.fullmatch(last[column].strip()) for column in numbers)


def _cut_columns(area: Area, joined: set[tuple[int, int]]) -> list[Area]:
    used = sorted({column for _, cells in area for column in cells})
    starts = [used[0]]
    for before, column in pairwise(used):
        if column > before + 1 and not any((number, column - 1) in joined for number, _ in area):
            starts.append(column)
    if len(starts) == 1:
        return [area]
    bounds = [*starts[1:], used[-1] + 1]
    sides: list[Area] = []
    for start, stop in zip(starts, bounds, strict=True):
        side = [(n, {c: text for c, text in cells.items() if start <= c < stop}) for n, cells in area]
        sides.append([(number, cells) for number, cells in side if cells])
    return sides


def _merged_columns(sheet: Sheet, rows: Sequence[int]) -> set[tuple[int, int]]:
    """Return the positions in the given rows that a cell of several columns covers."""
    return {place for merged in sheet.merged if merged[3] > merged[1] for place in _positions(merged, rows)}


def _positions(merged: Range, rows: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Return the positions in the sorted rows that a merged cell covers."""
    top, left, bottom, right = merged
    inside = rows[bisect_left(rows, top) : bisect_right(rows, min(bottom, top + MAX_SPAN))]
    columns = range(left, min(right, left + MAX_SPAN) + 1)
    spend(1 + len(inside) * len(columns))
    return ((row, column) for row in inside for column in columns)


def _read_area(
    area: Area, sheet: Sheet, joined: set[tuple[int, int]], ranges_by_top: Mapping[int, Sequence[Range]]
) -> Iterator[SheetPart]:
    """Yield title lines, the table from its header on, and the lines below it."""
    widest = max(len(cells) for _, cells in area)
    wide = [len(cells) > 1 for _, cells in area]
    if widest < 2:
        lines: list[Sequence[str]] = [[text] for _, cells in area for text in cells.values()]
        is_list = len(area) > 3 and max(len(text) for [text] in lines) < 60
        yield SheetPart("table" if is_list else "text", lines)
        return
    spend(sum(max(cells) - min(cells) + widest for _, cells in area if len(cells) > 1))
    filled = [
        max(len(cells), sum((number, column) in joined for column in range(min(cells), max(cells) + widest)))
        if len(cells) > 1
        else len(cells)
        for number, cells in area
    ]
    first = next(index for index, count in enumerate(filled) if count > 1 and count >= HEADER_SHARE * widest)
    full = next((index for index, (_, cells) in enumerate(area) if len(cells) == widest), first)
    has_gap = max(area[first][1]) - min(area[first][1]) >= filled[first]
    if has_gap and not any(NUMBER.fullmatch(text) for text in area[full][1].values()):
        first = full  # notes above the header may fill many columns, too
    last = len(wide) - wide[::-1].index(True)
    titles = [" ".join(cells.values()) for _, cells in area[:first]]
    body = area[first:last]
    spanning = _spans_of(body, sheet, ranges_by_top)
    left = min(min(cells) for _, cells in body)
    right = max(max(max(cells) for _, cells in body), max((c for _, c in spanning), default=0))
    spend((right - left + 1) * len(body))
    rows = [[spanning.get((n, c), cells.get(c, "")) for c in range(left, right + 1)] for n, cells in body]
    header_rows = 1
    numbers = [number for number, _ in body]
    while header_rows < min(4, len(body)) and _has_wide_cell(sheet, numbers[header_rows - 1], left, right):
        header_rows += 1
    yield SheetPart("table", with_one_header(rows, header_rows), ". ".join(titles))
    if last < len(area):
        yield SheetPart("text", [[text] for _, cells in area[last:] for text in cells.values()])


def _spans_of(area: Area, sheet: Sheet, ranges: Mapping[int, Sequence[Range]]) -> dict[tuple[int, int], str]:
    """Return the text of every position that a merged cell covers. `ranges` has the merged cells by their top row."""
    rows = sorted(number for number, _ in area)
    filled = {}
    for merged in (merged for row in rows for merged in ranges.get(row, ())):
        text = sheet.cells.get(merged[:2], "")
        if text:
            filled.update(dict.fromkeys(_positions(merged, rows), text))
    return filled


def _has_wide_cell(sheet: Sheet, row: int, left: int, right: int) -> bool:
    """Return whether a row groups columns: a cell over some columns, with their names in the row below."""
    spend(len(sheet.merged) // 20)
    return any(
        top <= row <= bottom and left <= first < last <= right and last - first < right - left
        for top, first, bottom, last in sheet.merged
    )
