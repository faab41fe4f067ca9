"""Read tables from Markdown: cells with their position, cleaned headers, and years as columns in a long form.

First clean up the table: a missing header or a header in two rows, a column of row numbers, rows of totals. Years as
columns become a column of years, with one row for each year.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from clew.documents.extracted import row_cells
from clew.store.sources.pieces import is_number, is_text, typed_with_unit
from clew.store.sources.profile import MAX_NAME_CHARS, ColumnProfile, profile_column
from clew.store.sources.totals import repeated_headers, total_rows

EMPTY = frozenset({"", "-", "–", "—", "na", "n/a", "nan", "null", "none", "?", "..", "...", "*"})
TRUTHS = {"yes": "true", "no": "false", "y": "true", "n": "false", "✓": "true", "✗": "false"}
UNIT, TITLE_UNIT = re.compile(r"\(([^()\d]+)\)\s*$"), re.compile(r"\((in [^()\d]+)\)\s*$")
DECIMAL = re.compile(r"(?<=\d),(?=\d{1,2}(?!\d))")
MIN_FIGURES = 0.8
"""Minimum share of filled cells with a digit in a column of numbers or dates."""
DISTINCT = 0.9
"""Minimum share of different names among the rows for a naming column."""
FEWEST_YEARS = 3
"""Minimum number of columns named by years in a table with one column per year."""
YEAR = re.compile(r"\D{0,3}((?:1[5-9]|20)\d\d)\D?")
NAMELESS = re.compile(r"|#|no\.?|nr\.?|index|unnamed: \d+|row", re.IGNORECASE)
PLAIN_NAMES = frozenset({"", "name", "names", "title", "id", "key", "label", "item"})
"""Headers that do not name the kind of the rows."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """The cells of a row, the node that contains the row, and the span in its text."""

    cells: tuple[str, ...]
    start: int = 0
    end: int = 0
    node: int = 0


@dataclass(frozen=True, eq=False)
class Table:
    """A header and rows with the same number of cells, as written."""

    title: str
    header: tuple[str, ...]
    rows: tuple[TableRow, ...]

    def column(self, at: int) -> tuple[str, ...]:
        """Return the cells of a column."""
        return tuple(row.cells[at] for row in self.rows)

    def without(self, at: int) -> Table:
        """Return the table without a column."""
        rows = tuple(replace(row, cells=row.cells[:at] + row.cells[at + 1 :]) for row in self.rows)
        return Table(self.title, self.header[:at] + self.header[at + 1 :], rows)

    @cached_property
    def columns(self) -> tuple[pa.ChunkedArray, ...]:
        """Columns with the types of their cells."""
        return tuple(column for column, _ in self._typed)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Headers with the unit of their cells or, in the title, of all numbers: `revenue (in millions of euros)`."""
        every = TITLE_UNIT.search(self.title)
        labels = []
        for at, (header, (column, own)) in enumerate(zip(self.header, self._typed, strict=True), start=1):
            unit = own or (every[1] if every and is_number(column.type) else "")
            name = header.strip() or f"column {at}"
            labels.append(f"{name} ({unit})" if re.search("[a-z]", unit) and not UNIT.search(name) else name)
        return tuple(labels)

    @cached_property
    def _typed(self) -> tuple[tuple[pa.ChunkedArray, str], ...]:
        return tuple(typed(self.column(at)) for at in range(len(self.header)))

    @cached_property
    def profiles(self) -> tuple[ColumnProfile, ...]:
        """Statistics of the columns."""
        return tuple(map(profile_column, self.header, self.columns))

    @cached_property
    def key(self) -> int | None:
        """The column that names the rows: the first of distinct texts, or of dates or years, or of any text."""
        texts = [at for at, one in enumerate(self.profiles) if one.kind == "text" and one.longest <= MAX_NAME_CHARS]
        dates = [at for at, one in enumerate(self.profiles[:2]) if one.is_unique and self.is_time(at)]
        return next(iter([*filter(self.is_name, texts), *dates, *texts]), None)

    def is_name(self, at: int) -> bool:
        """Return whether most rows have a different short text in this column."""
        one = self.profiles[at]
        return one.longest <= MAX_NAME_CHARS and one.tells(DISTINCT) and one.filled >= DISTINCT * one.rows

    def is_time(self, at: int) -> bool:
        """Return whether a column contains dates or years."""
        one = self.profiles[at]
        return one.kind == "date" or (one.kind == "integer" and all(map(YEAR.fullmatch, one.sample)))

    @cached_property
    def year(self) -> int | None:
        """The column of years if several rows have the same name, or None."""
        if self.key is None or self.is_name(self.key) or self.is_time(self.key):
            return None  # names or dates identify the rows
        years = (at for at, one in enumerate(self.profiles) if one.kind == "integer" and self.is_time(at))
        return next(years, None)

    def of_year(self, year: float) -> Table | None:
        """Return the rows of one year without the column of years, or None if it has no rows."""
        assert self.year is not None
        at = self.year
        part = replace(self, rows=tuple(row for row in self.rows if row.cells[at] == f"{year:.0f}"))
        return part.without(at) if part.rows else None

    @property
    def noun(self) -> str:
        """Word for a row: the header of the naming column, or the title if that header is too general."""
        own = "" if self.key is None else self.header[self.key].strip()
        return (self.title if own.lower() in PLAIN_NAMES else own) or "row"


def typed(cells: Sequence[str]) -> tuple[pa.ChunkedArray, str]:
    """Return cells with their narrowest type, and their unit. Empty cells are missing, as are few words among numbers.

    Yes and no are truth values. A comma before one or two digits is a decimal point.
    """
    texts = [None if is_empty(cell) else cell.strip() for cell in cells]
    if {text.lower() for text in texts if text} <= TRUTHS.keys():
        texts = [text and TRUTHS[text.lower()] for text in texts]
    figures = [text if text and re.search(r"\d", text) else None for text in texts]
    tried = [texts]
    if len(cells) - figures.count(None) > MIN_FIGURES * (len(cells) - texts.count(None)):
        tried += [figures, [text and DECIMAL.sub(".", text) for text in figures]]
    found = [typed_with_unit(pa.chunked_array([pa.array(one, pa.large_string())])) for one in tried]
    return next((one for one in found if not is_text(one[0].type)), found[0])


def read_table(text: str, title: str = "", node: int = 0) -> Table | None:
    """Return the Markdown table in a text, or None if it has no table."""
    lines, start = [], 0
    for line in text.split("\n"):
        if line.lstrip().startswith("|"):
            lines.append((line, start, start + len(line)))
        start += len(line) + 1
    if len(lines) < 2:
        return None
    header = row_cells(lines[0][0])
    rows = []
    for line, begin, end in lines[2:]:
        cells = row_cells(line)[: len(header)]
        rows.append(TableRow(tuple(cells + [""] * (len(header) - len(cells))), begin, end, node))
    return Table(title, tuple(header), tuple(rows))


def joined(tables: Sequence[Table]) -> Table:
    """Join pieces of one table, each with its own header."""
    return Table(tables[0].title, tables[0].header, tuple(row for table in tables for row in table.rows))


def is_empty(cell: str) -> bool:
    """Return whether a cell is empty."""
    return cell.strip().lower() in EMPTY


def cleaned(table: Table) -> Table:
    """Return the table with one header, without row numbers and totals, and with one row for each year."""
    return long_form(without_totals(without_row_numbers(with_header(table))))


def with_header(table: Table) -> Table:
    """Return the table with one header. Merge two rows of names, and turn a header with data into a row."""
    if not table.rows:
        return table
    first, rest = table.rows[0].cells, replace(table, rows=table.rows[1:])
    is_numeric = [is_number(column.type) for column in rest.columns]
    years = [name for name in table.header if YEAR.fullmatch(name.strip())]
    if len(years) < FEWEST_YEARS and any(map(_is_number, _of(table.header, is_numeric))):
        own = TableRow(table.header, node=table.rows[0].node)
        return Table(table.title, tuple(f"column {at + 1}" for at in range(len(table.header))), (own, *table.rows))
    below = [cell for cell in _of(first, is_numeric) if not is_empty(cell)]
    if len(rest.rows) > 1 and len(below) > 1 and not any(map(_is_number, below)):
        return replace(rest, header=_merged(table.header, first))
    return table


def _of(cells: Sequence[str], are_chosen: Sequence[bool]) -> list[str]:
    return [cell for cell, is_chosen in zip(cells, are_chosen, strict=True) if is_chosen]


def _is_number(cell: str) -> bool:
    return is_number(typed([cell])[0].type)


def _merged(upper: Sequence[str], lower: Sequence[str]) -> tuple[str, ...]:
    """Merge two rows of names. An empty upper cell continues the cell before it."""
    names, last = [], ""
    for above, below in zip(upper, lower, strict=True):
        last = above or last
        names.append(f"{last} {below}".strip() if below and below != last else last)
    return tuple(names)


def without_row_numbers(table: Table) -> Table:
    """Remove a first column that only numbers the rows."""
    if len(table.header) < 2 or not NAMELESS.fullmatch(table.header[0].strip()) or not table.rows:
        return table
    first = table.column(0)
    is_numbered = any(first == tuple(map(str, range(start, start + len(first)))) for start in (0, 1))
    return table.without(0) if is_numbered else table


def without_totals(table: Table) -> Table:
    """Remove rows that repeat the headers, or sum up other rows."""
    texts = pa.table([pa.array(table.column(at), pa.large_string()) for at in range(len(table.header))], table.header)
    removed = {*repeated_headers(texts), *total_rows(texts, table.columns)} if table.rows else set()
    rows = tuple(row for at, row in enumerate(table.rows) if at not in removed)
    return replace(table, rows=rows) if rows else table


def long_form(table: Table) -> Table:
    """Return one row for each row and year if years are columns, or else the table."""
    years = {at: found[1] for at, name in enumerate(table.header) if (found := YEAR.fullmatch(name.strip()))}
    years = {at: year for at, year in years.items() if is_number(table.columns[at].type)}
    if len(years) < FEWEST_YEARS:
        return table
    others = [at for at in range(len(table.header)) if at not in years]
    rows = tuple(
        replace(row, cells=(*(row.cells[other] for other in others), year, row.cells[at]))
        for at, year in years.items()
        for row in table.rows
    )
    return Table(table.title, (*(table.header[at] for at in others), "year", table.title or "value"), rows)
