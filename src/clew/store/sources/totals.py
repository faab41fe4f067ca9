"""Find the rows of a table that describe no thing: repeated headers, and sums of other rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.store.sources.pieces import is_number, is_text, typed_with_unit

MIN_SUMMED, MIN_SUMS = 2, 2
"""Minimum number of rows in a sum, and of columns with exact sums if a row is not called a total."""
ROUNDED = 0.01
"""Maximum relative difference between a total and the sum of the rows."""
MAX_CALLED = 100
"""Maximum number of rows called totals. If there are more, the word belongs to names."""
TOTALS = r"(?i:\b(totals?|sum|all|overall|altogether)\b)"


def repeated_headers(table: pa.Table) -> list[int]:
    """Return the rows that repeat the headers."""
    columns = zip(table.column_names, table.columns, strict=True)
    is_same = [pc.equal(cells, name) for name, cells in columns if is_text(cells.type)]
    return list(pc.indices_nonzero(reduce(pc.and_, is_same)).to_pylist()) if len(is_same) > 1 else []


def total_rows(table: pa.Table, typed: Sequence[pa.ChunkedArray]) -> list[int]:
    """Return the rows with the sums of other rows. `typed` contains the columns with their narrowest types.

    A row that is called a total sums up the rows above it, the rows since the previous total, or the rows below it,
    in one column. A last or first row with any other name is the exact sum of the others in several columns.
    """
    words = [cells for cells in table.columns if is_text(cells.type)][:3]
    names = pc.coalesce(*(pc.if_else(pc.equal(cells, ""), None, cells) for cells in words), "")
    called = pc.indices_nonzero(pc.match_substring_regex(names, TOTALS)).to_pylist() if words else []
    if 0 < len(called) <= MAX_CALLED:
        is_other = ~np.isin(np.arange(table.num_rows), called)
        others = [(cells, _numbers(cells.filter(pa.array(is_other)))) for cells in table.columns]
        return [row for row in called if any(_sums_up(cells, own, row, is_other) for cells, own in others)]
    numbers = [cells for cells in typed if is_number(cells.type)]
    ends = (row for row in (table.num_rows - 1, 0) if sum(_is_exact(cells, row) for cells in numbers) >= MIN_SUMS)
    return list(ends)[:1]


def _is_exact(cells: pa.ChunkedArray, row: int) -> bool:
    """Return whether a number is the sum of all others, of which at least three are not zero."""
    is_sum = math.isclose(pc.sum(cells).as_py() or 0, 2 * (cells[row].as_py() or math.nan), rel_tol=1e-9)
    return is_sum and pc.sum(pc.not_equal(cells, 0)).as_py() > MIN_SUMMED + 1


def _sums_up(cells: pa.ChunkedArray, numbers: np.ndarray | None, row: int, is_other: np.ndarray) -> bool:
    """Return whether a cell is the sum of other rows, whose numbers are given."""
    total, spread = _numbers(cells.slice(row, 1)), np.zeros(len(is_other))
    if numbers is None or total is None or not total[0]:
        return False
    spread[is_other] = numbers
    previous = max(np.flatnonzero(~is_other[:row]), default=-1)
    parts = (spread[:row], spread[previous + 1 : row]) if row else (spread,)
    summed = (part.sum() for part in parts if np.count_nonzero(part) >= MIN_SUMMED)
    return any(abs(one - total[0]) <= ROUNDED * abs(total[0]) for one in summed)


def _numbers(cells: pa.ChunkedArray) -> np.ndarray | None:
    typed = typed_with_unit(cells)[0] if is_text(cells.type) else cells
    return np.nan_to_num(pc.cast(typed, pa.float64()).to_numpy()) if is_number(typed.type) else None
