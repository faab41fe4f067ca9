"""Detect tables without rules: rows of short cells in the same columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from clew.documents.formats.pdf_lines import (
    MARKER,
    Box,
    PrintedTable,
    PrintedWord,
    Segment,
    box_around,
    rows_of,
    segments_of,
)

LEADERS = (". . .", "....", "……", "_____")
"""Dots between an entry and its page number."""
NUMERIC = re.compile(r"[-+±~<>≤≥$€£]?\s?\d[\d.,:/%\s×x^*±()-]*[%a-zA-Zµ°]{0,4}|[-–—.*†✓✗]|n/?a|N/?A|yes|no|Yes|No")
"""A number with its unit, a tick, or a mark for a missing value."""
LONGEST_CELL = 12
"""Maximum length of a cell, in words. Longer cells are prose."""

Cell = tuple[float, float, list[PrintedWord]]


def cell_text(words: Sequence[PrintedWord]) -> str:
    """Join the words of a cell line by line, and join words divided at line ends."""
    text = ""
    for row in rows_of(segments_of(words)):
        line = " ".join(word.text for segment in row for word in segment.words)
        divided = re.search(r"[^\W\d_]{2}-$", text) and line[:1].islower()
        text = text[:-1] + line if divided else f"{text} {line}" if text else line
    return text


def cells_of_row(row: Sequence[Segment]) -> list[Cell]:
    """Group the words of a row into cells at gaps wider than spaces."""
    cells: list[Cell] = []
    for word in (word for segment in row for word in segment.words):
        if cells and word.x0 - cells[-1][1] <= max(0.9 * word.font.size, 6.0):
            x0, x1, words = cells[-1]
            words.append(word)
            cells[-1] = (x0, max(x1, word.x1), words)
        else:
            cells.append((word.x0, word.x1, [word]))
    return cells


def has_leaders(text: str) -> bool:
    """Return whether a text contains a row of dots."""
    return any(dots in text for dots in LEADERS)


def rows_and_tables(rows: Sequence[list[Segment]]) -> Iterator[list[Segment] | PrintedTable]:
    """Yield the rows of a text column, with each run of rows that forms a table replaced by that table."""
    run: list[list[Segment]] = []
    cells: list[list[Cell]] = []
    for row in rows:
        row_cells = cells_of_row(row) if row[0].table is None else []
        candidate = len(row_cells) > 1 and _may_be_row(row, row_cells)
        if run and not (candidate and _aligned(cells, row_cells) and _close(run[-1], row)):
            yield from _closed(run)
            run, cells = [], []
        if candidate:
            run.append(row)
            cells.append(row_cells)
        else:
            yield row
    yield from _closed(run)


def _closed(run: Sequence[list[Segment]]) -> Iterator[list[Segment] | PrintedTable]:
    table = aligned_table(run, ruled=False) if len(run) > 2 else None
    if table is None:
        yield from run
    else:
        yield table


def _may_be_row(row: Sequence[Segment], cells: Sequence[Cell]) -> bool:
    words = [word for segment in row for word in segment.words]
    if sum(word.font.mono for word in words) > 0.6 * len(words):
        return False
    if has_leaders(" ".join(word.text for word in words)):
        return False
    if len(cells) == 2 and MARKER.fullmatch(" ".join(word.text for word in cells[0][2])):
        return False
    return all(len(cell[2]) <= LONGEST_CELL for cell in cells)


def _close(above: Sequence[Segment], below: Sequence[Segment]) -> bool:
    size = max(segment.bottom - segment.top for segment in (*above, *below))
    return min(segment.top for segment in below) - max(segment.bottom for segment in above) < 1.8 * size


def _aligned(run: Sequence[Sequence[Cell]], row: Sequence[Cell]) -> bool:
    """Return whether at least two cells share a left edge, right edge or middle with a column above."""
    columns = [cell for above in run[-3:] for cell in above]

    def is_in_column(cell: Cell) -> bool:
        return any(
            min(abs(cell[0] - x0), abs(cell[1] - x1), abs(cell[0] + cell[1] - x0 - x1) / 2) < 4.0
            for x0, x1, _ in columns
        )

    return sum(map(is_in_column, row)) >= 2


def aligned_table(rows: Sequence[Sequence[Segment]], *, ruled: bool) -> PrintedTable | None:
    """Build a table from rows whose cells fall into columns. Without rules it must also look like a table."""
    cells = [cells_of_row(row) for row in rows]
    if len(rows) < 2 or sum(1 for row in cells if len(row) > 1) < 2:
        return None
    columns = columns_of([cell for row in cells for cell in row], len(rows))
    if len(columns) < 2:
        return None
    grid = [placed(row, columns) for row in cells]
    boxes = [box_around(row) for row in rows]
    grid, boxes = _unwrapped(grid, boxes)
    texts = [tuple(cell_text(cell) for cell in row) for row in grid]
    if not (_looks_ruled(texts) if ruled else _looks_like_table(texts)):
        return None
    box = Box(min(b.x0 for b in boxes) - 1, boxes[0].top, max(b.x1 for b in boxes) + 1, max(b.bottom for b in boxes))
    bold = all(word.font.bold for cell in grid[0] for word in cell)
    return PrintedTable(box, tuple(texts), tuple(boxes), ruled, bold)


def columns_of(cells: Sequence[Cell], rows: int) -> list[tuple[float, float]]:
    """Return the horizontal spans that cells cover. A gap may be bridged by one cell in eight rows."""
    edges = sorted([(x0 + 0.5, 1) for x0, _, _ in cells] + [(x1 - 0.5, -1) for _, x1, _ in cells])
    columns: list[tuple[float, float]] = []
    depth, start = 0, 0.0
    bridges = rows // 8
    for x, step in edges:
        if depth <= bridges < depth + step:
            start = x
        elif depth + step <= bridges < depth:
            columns.append((start, x))
        depth += step
    return [column for column in columns if column[1] - column[0] > 1]


def placed(row: Sequence[Cell], columns: Sequence[tuple[float, float]]) -> list[list[PrintedWord]]:
    """Assign each cell to the column it overlaps most. Return the words of each column."""
    found: list[list[PrintedWord]] = [[] for _ in columns]
    for x0, x1, words in row:
        overlaps = [min(x1, right) - max(x0, left) for left, right in columns]
        found[overlaps.index(max(overlaps))] += words
    return found


def _unwrapped(
    grid: Sequence[list[list[PrintedWord]]], boxes: Sequence[Box]
) -> tuple[list[list[list[PrintedWord]]], list[Box]]:
    """Merge lines that continue cells of the row above: close to it, and without a first cell."""
    gaps = [below.top - above.top for above, below in pairwise(boxes)]
    usual = median(gaps) if gaps else 0.0
    rows: list[list[list[PrintedWord]]] = [list(grid[0])]
    merged = [boxes[0]]
    for row, box, gap in zip(grid[1:], boxes[1:], gaps, strict=True):
        continues = not row[0] and all(above for cell, above in zip(row, rows[-1], strict=True) if cell)
        if continues and gap <= usual + 1 and len(rows) > 1 and not _mostly_numeric(row):
            rows[-1] = [above + cell for above, cell in zip(rows[-1], row, strict=True)]
            merged[-1] = Box(merged[-1].x0, merged[-1].top, max(merged[-1].x1, box.x1), box.bottom)
        else:
            rows.append(list(row))
            merged.append(box)
    return rows, merged


def _mostly_numeric(row: Sequence[Sequence[PrintedWord]]) -> bool:
    texts = [" ".join(word.text for word in cell) for cell in row if cell]
    return sum(NUMERIC.fullmatch(text) is not None for text in texts) * 2 > len(texts)


def is_contents(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether numbered entries end in increasing page numbers."""
    pages = [int(row[-1]) for row in rows if row[-1].isdecimal()]
    numbered = [number for row in rows if (number := re.match(r"(\d+(\.\d+)*|[A-Z])\.?(\s|$)", " ".join(row).strip()))]
    grows = all(page <= following for page, following in pairwise(pages))
    return grows and len(pages) > 0.6 * len(rows) and len(numbered) > 0.5 * len(rows)


def _looks_ruled(rows: Sequence[Sequence[str]]) -> bool:
    filled = [cell for row in rows for cell in row if cell]
    if any(map(has_leaders, filled)):
        return False
    prose = sum(len(cell.split()) > 2 * LONGEST_CELL for cell in filled)
    return len(filled) > 0.4 * len(rows) * len(rows[0]) and prose < 0.3 * len(filled)


def _looks_like_table(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether cells look like a table: short, mostly filled, with values, not a list or a paper's authors."""
    filled = [cell for row in rows for cell in row if cell]
    if len(filled) < 0.6 * len(rows) * len(rows[0]) or median(len(cell.split()) for cell in filled) > 4:
        return False
    if any("@" in cell for cell in filled) or is_contents(rows):
        return False
    columns = [[cell for cell in column if cell] for column in zip(*rows, strict=True)]
    if all(MARKER.fullmatch(cell) for cell in columns[0]):
        columns = columns[1:]
        if len(columns) < 2:
            return False
    values = [sum(NUMERIC.fullmatch(cell) is not None for cell in column) > 0.5 * len(column) for column in columns]
    letters = sum(any(letter.isalpha() for letter in cell) for cell in filled)
    if letters == 0:  # axes of charts have no header
        return False
    return (any(values) and len(rows) > 2) or (len(columns) > 2 and len(rows) > 3)
