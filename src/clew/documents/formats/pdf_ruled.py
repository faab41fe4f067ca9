"""Detect tables drawn with rules: full grids, grids without outer borders, and rules above and below aligned rows."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import rustworkx

from clew.documents.formats.pdf_lines import THIN, Box, PrintedTable, PrintedWord, Segment, rows_of, segments_of
from clew.documents.formats.pdf_unruled import NUMERIC, aligned_table, cell_text, cells_of_row, columns_of, placed

NEAR = 3.0
"""Maximum distance at which two rules meet, in points."""
MAX_RULES = 1000
"""Maximum number of rules on a page. More rules mean a drawing."""


class Rule(NamedTuple):
    """A straight stroke: its position, its start and its end."""

    place: float
    start: float
    end: float


def ruled_tables(words: Sequence[PrintedWord], rules: Sequence[Box]) -> list[PrintedTable]:
    """Return all grids with cells, then all stacks of rules with aligned rows."""
    across = merged([Rule((box.top + box.bottom) / 2, box.x0, box.x1) for box in rules if _flat(box)])
    down = merged([Rule((box.x0 + box.x1) / 2, box.top, box.bottom) for box in rules if _upright(box)])
    if not words or not 2 <= len(across) <= MAX_RULES or len(down) > MAX_RULES:
        return []
    upright = [word for word in words if not word.font.sideways]
    found: list[PrintedTable] = []
    loose: list[Rule] = []
    for horizontals, verticals in grids(across, down):
        if not verticals:
            loose += [rule for rule in horizontals if not any(_framed(rule, other) for other in down)]
            continue
        table = _grid_table(upright, horizontals, verticals)
        if table is not None:
            found.append(table)
    outside = [word for word in upright if not any(table.box.holds(word) for table in found)]
    return found + list(_stacked(outside, loose))


def _flat(box: Box) -> bool:
    return box.bottom - box.top <= THIN < box.x1 - box.x0


def _upright(box: Box) -> bool:
    return box.x1 - box.x0 <= THIN < box.bottom - box.top


def _framed(rule: Rule, upright: Rule) -> bool:
    """Return whether a rule is the upper or lower side of a box with round corners."""
    beside = min(abs(rule.start - upright.place), abs(rule.end - upright.place)) < 4 * NEAR
    return beside and min(abs(rule.place - upright.start), abs(rule.place - upright.end)) < 4 * NEAR


def merged(rules: Sequence[Rule]) -> list[Rule]:
    """Merge strokes that continue or double each other."""
    result: list[Rule] = []
    level: list[Rule] = []
    for rule in sorted(rules):
        if level and rule.place - level[0].place > 2:
            result += _chained(level)
            level = []
        level.append(rule)
    return result + _chained(level)


def _chained(level: Sequence[Rule]) -> list[Rule]:
    chained: list[Rule] = []
    for rule in sorted(level, key=lambda one: one.start):
        if chained and rule.start - chained[-1].end <= NEAR:
            last = chained[-1]
            chained[-1] = Rule(last.place, last.start, max(last.end, rule.end))
        else:
            chained.append(rule)
    return chained


def grids(across: Sequence[Rule], down: Sequence[Rule]) -> Iterator[tuple[list[Rule], list[Rule]]]:
    """Yield groups of rules that touch each other directly or indirectly."""
    flat, upright = np.array(across).reshape(-1, 3), np.array(down).reshape(-1, 3)
    touching = (
        (flat[:, None, 1] - NEAR <= upright[None, :, 0])
        & (upright[None, :, 0] <= flat[:, None, 2] + NEAR)
        & (upright[None, :, 1] - NEAR <= flat[:, None, 0])
        & (flat[:, None, 0] <= upright[None, :, 2] + NEAR)
    )
    first, second = np.nonzero(touching)
    graph = rustworkx.PyGraph()
    graph.add_nodes_from([*across, *down])
    graph.add_edges_from_no_data(list(zip(first.tolist(), (second + len(across)).tolist(), strict=True)))
    groups = []
    for part in sorted(map(sorted, rustworkx.connected_components(graph))):
        horizontals = [across[index] for index in part if index < len(across)]
        groups.append((horizontals, [down[index - len(across)] for index in part if index >= len(across)]))
    alone = [rule for horizontals, verticals in groups if not verticals for rule in horizontals]
    yield from (group for group in groups if group[0] and group[1])
    if alone:
        yield alone, []


def _positions(places: Sequence[float], limits: tuple[float, float]) -> list[float]:
    positions: list[float] = []
    for place in sorted([*places, *limits]):
        if not positions or place - positions[-1] > 2 * NEAR:
            positions.append(place)
    return positions


def _grid_table(words: Sequence[PrintedWord], across: Sequence[Rule], down: Sequence[Rule]) -> PrintedTable | None:
    xs = _positions([rule.place for rule in down], (min(r.start for r in across), max(r.end for r in across)))
    ys = _positions([rule.place for rule in across], (min(r.start for r in down), max(r.end for r in down)))
    if len(xs) < 3 or len(ys) < 3 or len(xs) > 80 or len(ys) > 400:
        return None
    merged_cells = _merged_cells(xs, ys, across, down)
    xs, offset = _without_panels(xs, len(ys) - 1, merged_cells)
    if len(xs) < 3:
        return None
    box = Box(xs[0], ys[0], xs[-1], ys[-1])
    inside = [word for word in words if box.holds(word)]
    if sum(word.font.mono for word in inside) > 0.8 * len(inside):  # code with highlighted words
        return None
    cells: dict[tuple[int, int], list[PrintedWord]] = defaultdict(list)
    for word in inside:
        row = bisect_right(ys, (word.top + word.bottom) / 2) - 1
        column = min(max(bisect_right(xs, (word.x0 + word.x1) / 2) - 1, 0), len(xs) - 2)
        place = (min(row, len(ys) - 2), column + offset)
        cells[merged_cells.get(place, place)].append(word)
    grid = [[cells.get((row, column + offset), []) for column in range(len(xs) - 1)] for row in range(len(ys) - 1)]
    rows, boxes, bold = [], [], []
    if sum(any(row) for row in grid) < 2:  # boxes in a figure
        return None
    parts = [(number, part) for number, row in enumerate(grid) for part in _split_row(row) if any(part)]
    numbers = Counter(number for number, _ in parts)
    for number, part in _split_columns(parts):
        bold.append(all(word.font.bold for cell in part for word in cell))
        rows.append(tuple(cell_text(cell) for cell in part))
        top, bottom = ys[number], ys[number + 1]
        if numbers[number] > 1:
            top, bottom = min(w.top for cell in part for w in cell), max(w.bottom for cell in part for w in cell)
        boxes.append(Box(xs[0], top, xs[-1], bottom))
    if not _is_table(rows) or _cut_by_walls(inside, xs):
        return None
    return _extended(PrintedTable(box, tuple(rows), tuple(boxes), True, bold[0]), words, xs)


def _cut_by_walls(words: Sequence[PrintedWord], xs: Sequence[float]) -> bool:
    """Return whether text continues across cells: then the drawing highlights words and is not a table."""
    cut = 0
    for before, word in pairwise(words):
        level = abs(before.top - word.top) < 0.3 * word.font.size
        if level and -1 < word.x0 - before.x1 < 0.35 * word.font.size:
            cut += bisect_right(xs, before.x1 - 0.5) != bisect_right(xs, word.x0 + 0.5)
    return cut > 0.03 * len(words)


def _extended(table: PrintedTable, words: Sequence[PrintedWord], xs: Sequence[float]) -> PrintedTable:
    """Add the rows below the grid that are aligned with its columns, such as totals."""
    box = table.box
    below = [word for word in words if box.x0 - 2 <= word.x0 and word.x1 <= box.x1 + 2 and word.top > box.bottom - 3]
    rows, boxes = list(table.rows), list(table.row_boxes)
    if len(rows[0]) != len(xs) - 1:
        return table
    height = (box.bottom - box.top) / len(rows)
    for row in rows_of(segments_of(below)):
        row_words = _words_of(row)
        top, bottom = min(word.top for word in row_words), max(word.bottom for word in row_words)
        if top - boxes[-1].bottom > 0.5 * height or bottom - top > 1.5 * height:
            break
        places = [bisect_right(xs, word.x0 + 1) - 1 for word in row_words]
        ends = [bisect_right(xs, word.x1 - 1) - 1 for word in row_words]
        if places != ends or len(set(places)) < max(2, 0.6 * (len(xs) - 1)):
            break
        if not all(0 <= place < len(xs) - 1 for place in places):
            break
        cells = [
            [word for word, place in zip(row_words, places, strict=True) if place == n] for n in range(len(xs) - 1)
        ]
        rows.append(tuple(cell_text(cell) for cell in cells))
        boxes.append(Box(box.x0, top, box.x1, bottom))
    if len(rows) == len(table.rows):
        return table
    whole = Box(box.x0, box.top, box.x1, boxes[-1].bottom)
    return replace(table, box=whole, rows=tuple(rows), row_boxes=tuple(boxes))


def _is_table(rows: Sequence[Sequence[str]]) -> bool:
    """Require two rows with two filled cells. Frames, code boxes and chart grids have fewer."""
    filled = [sum(1 for cell in row if cell) for row in rows]
    columns = sum(1 for column in zip(*rows, strict=True) if any(column))
    lengths = [len(cell.split()) for row in rows for cell in row]
    if max(lengths, default=0) > max(60, 0.6 * sum(lengths)):  # a text box with highlights
        return False
    return sum(1 for count in filled if count > 1) >= 2 and sum(filled) > 0.3 * len(rows) * columns


def _merged_cells(
    xs: Sequence[float], ys: Sequence[float], across: Sequence[Rule], down: Sequence[Rule]
) -> dict[tuple[int, int], tuple[int, int]]:
    """Map each merged cell to its first cell. A cell is merged if there is no rule to its left or above it."""
    walls = _drawn_between(xs, ys, down)
    floors = _drawn_between(ys, xs, across)
    first: dict[tuple[int, int], tuple[int, int]] = {}
    for row in range(len(ys) - 1):
        for column in range(len(xs) - 1):
            if column and not walls[column, row]:
                first[row, column] = first.get((row, column - 1), (row, column - 1))
            elif row and not floors[row, column]:
                first[row, column] = first.get((row - 1, column), (row - 1, column))
    return first


def _without_panels(
    xs: list[float], rows: int, merged_cells: dict[tuple[int, int], tuple[int, int]]
) -> tuple[list[float], int]:
    """Remove columns at the sides that are one tall cell, such as a chart next to the table."""

    def is_panel(column: int) -> bool:
        firsts = Counter(merged_cells.get((row, column), (row, column)) for row in range(rows))
        return rows > 4 and firsts.most_common(1)[0][1] > 0.7 * rows

    panels = [is_panel(column) for column in range(len(xs) - 1)]
    if all(panels):
        return xs[:1], 0
    first, last = panels.index(False), len(panels) - panels[::-1].index(False)
    return xs[first : last + 1], first


def _drawn_between(places: Sequence[float], along: Sequence[float], rules: Sequence[Rule]) -> np.ndarray:
    """Return for each position and interval whether a rule covers most of the interval."""
    drawn = np.zeros((len(places), len(along) - 1), dtype=bool)
    starts, ends = np.array(along[:-1]), np.array(along[1:])
    for rule in rules:
        number = bisect_right(places, rule.place + 2 * NEAR) - 1
        if number >= 0 and abs(places[number] - rule.place) <= 2 * NEAR:
            drawn[number] |= np.minimum(ends, rule.end) - np.maximum(starts, rule.start) > 0.6 * (ends - starts)
    return drawn


def _split_row(cells: Sequence[list[PrintedWord]]) -> list[list[list[PrintedWord]]]:
    """Split a row into several if all filled cells have the same number of aligned lines."""
    lines = [[_words_of(row) for row in rows_of(segments_of(cell))] for cell in cells]
    count = max(map(len, lines))
    full = [cell for cell in lines if len(cell) == count]
    values = sum(all(NUMERIC.fullmatch(" ".join(w.text for w in line)) for line in cell) for cell in full)
    alike = count > 2 and all(len(cell) in (0, count) for cell in lines)
    if count < 2 or len(full) < 2 or not (alike or 2 * values >= len(full)):
        return [list(cells)]
    tops = [min(word.top for cell in full for word in cell[number]) - 2 for number in range(count)]
    parts: list[list[list[PrintedWord]]] = [[[] for _ in cells] for _ in range(count)]
    for column, cell in enumerate(lines):
        for line in cell:
            parts[max(bisect_right(tops, line[0].top) - 1, 0)][column] += line
    return parts


def _split_columns(rows: Sequence[tuple[int, list[list[PrintedWord]]]]) -> list[tuple[int, list[list[PrintedWord]]]]:
    """Split columns that have several aligned values in nearly every row."""
    split: list[list[list[PrintedWord]]] = []  # columns of cells of words
    for cells in zip(*(row for _, row in rows), strict=True):
        inner = [cells_of_row([Segment(cell, 0)]) if cell else [] for cell in cells]
        counts = Counter(len(row) for row in inner)
        count, often = counts.most_common(1)[0]
        spans = columns_of([cell for row in inner for cell in row], len(inner))
        if count > 1 and len(rows) > 2 and often > 0.8 * len(rows) and len(spans) == count:
            split += [list(column) for column in zip(*(placed(row, spans) for row in inner), strict=True)]
        else:
            split.append(list(cells))
    return [(number, [column[index] for column in split]) for index, (number, _) in enumerate(rows)]


def _words_of(row: Sequence[Segment]) -> list[PrintedWord]:
    return [word for segment in row for word in segment.words]


def _stacked(words: Sequence[PrintedWord], rules: Sequence[Rule]) -> Iterator[PrintedTable]:
    """Yield tables between horizontal rules of the same width."""
    stacks: list[list[Rule]] = []
    for rule in sorted(rules):
        if rule.end - rule.start < 60:
            continue
        stack = next((s for s in stacks if abs(s[0].start - rule.start) + abs(s[0].end - rule.end) < 2 * NEAR), None)
        if stack is None:
            stacks.append([rule])
        else:
            stack.append(rule)
    for stack in stacks:
        if len(stack) < 3:  # above the header, below it, and below the last row
            continue
        box = Box(stack[0].start, stack[0].place, stack[0].end, stack[-1].place)
        inside = rows_of(segments_of(word for word in words if box.holds(word)))
        table = aligned_table(inside, ruled=True)
        if table is not None:
            yield replace(table, box=box)
