"""Read tables from Markdown: columns of numbers, dates, truth values, categories and texts, and the naming column.

First clean up the table: a missing header or a header in two rows, a column of row numbers, rows of totals. A table
with a column for each year also has a long form with one row for each year.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

CELL = re.compile(r"(?<!\\)\|")
NUMBER = re.compile(
    r"(?P<open>\()?(?P<sign>[-−–+])?\s*(?:(?:US|A|C)?[$€£¥]|USD|EUR|GBP)?\s*(?P<sign2>[-−–+])?"
    r"(?P<digits>\d{1,3}(?:[,   '’]\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+)(?P<power>[eE][-+]?\d+)?"
    r"\s*(?P<unit>%|°?[A-Za-zµ€$£¥°²³/·]{0,12}(?:\s?[A-Za-z²³/·]{0,8})?)\)?(?:\s?\[\w{1,3}\])?"
)
EMPTY = frozenset({"", "-", "–", "—", "na", "n/a", "nan", "null", "none", "?", "..", "...", "*"})
LONGEST_EMPTY = 8
"""Length from which on a cell counts as filled, including white space."""
TRUTH = {"yes": True, "no": False, "true": True, "false": False, "y": True, "n": False, "✓": True, "✗": False}
SCALES = {
    **dict.fromkeys(("k", "thousand", "thousands"), 1e3),
    **dict.fromkeys(("m", "mn", "mio", "million", "millions"), 1e6),
    **dict.fromkeys(("b", "bn", "billion", "billions"), 1e9),
    **dict.fromkeys(("t", "tn", "trillion", "trillions"), 1e12),
}
MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
WRITTEN_DATE = re.compile(r"(?:(\d{1,2})\.? )?([A-Za-z]{3,9})\.? (?:(\d{1,2})(?:st|nd|rd|th)?,? )?(\d{4})$")


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


def read_table(text: str, title: str = "", node: int = 0) -> Table | None:
    """Return the Markdown table in a text, or None if it has no table."""
    lines, start = [], 0
    for line in text.split("\n"):
        if line.lstrip().startswith("|"):
            lines.append((line, start, start + len(line)))
        start += len(line) + 1
    if len(lines) < 2:
        return None
    header = _cells(lines[0][0])
    rows = []
    for line, begin, end in lines[2:]:
        cells = _cells(line)[: len(header)]
        rows.append(TableRow(tuple(cells + [""] * (len(header) - len(cells))), begin, end, node))
    return Table(title, tuple(header), tuple(rows))


def joined(tables: Sequence[Table]) -> Table:
    """Join pieces of one table, each with its own header."""
    return Table(tables[0].title, tables[0].header, tuple(row for table in tables for row in table.rows))


def is_empty(cell: str) -> bool:
    """Return whether a cell is empty."""
    return len(cell) < LONGEST_EMPTY and cell.strip().lower() in EMPTY


def unit(cell: str) -> str:
    """Return the text after a number. Empty if the cell has no unit or is not a number."""
    found = NUMBER.fullmatch(cell.strip())
    return "" if found is None else found["unit"].strip()


def number(cell: str) -> float | None:
    """Parse a number with thousands separators, a sign, a currency, a scale, a unit, or brackets."""
    try:
        return float(cell)
    except ValueError:
        found = NUMBER.fullmatch(cell.strip())
    if found is None:
        return None
    digits = found["digits"]
    if re.fullmatch(r"\d+,\d+", digits) and not re.fullmatch(r"\d{1,3},\d{3}", digits):
        digits = digits.replace(",", ".")  # a decimal comma
    value = float(re.sub(r"[,   '’]", "", digits) + (found["power"] or ""))
    value *= SCALES.get(found["unit"].split(" ")[0].lower(), 1.0) if len(found["unit"]) > 1 else 1.0
    signs = (found["sign"] or "") + (found["sign2"] or "")
    is_negative = any(sign in signs for sign in "-−–") or (found["open"] is not None and cell.rstrip().endswith(")"))
    return -value if is_negative else value


def date(cell: str) -> datetime.date | None:
    """Parse a date: 2021-03-05, 2021/3/5, 5.3.2021, 3/25/2021, 5 March 2021, March 2021."""
    written = cell.strip()
    try:
        if found := re.fullmatch(r"(\d{4})([-/])(\d{1,2})(?:\2(\d{1,2}))?(?:[T ].*)?", written):
            return datetime.date(int(found[1]), int(found[3]), int(found[4] or 1))
        if found := re.fullmatch(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", written):
            return datetime.date(int(found[3]), int(found[2]), int(found[1]))
        if found := re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", written):
            first, second = int(found[1]), int(found[2])
            month, day = (first, second) if first <= 12 else (second, first)
            return datetime.date(int(found[3]), month, day)
        if (found := WRITTEN_DATE.match(written)) and (month := MONTHS.get(found[2][:3].lower(), 0)):
            return datetime.date(int(found[4]), month, int(found[1] or found[3] or 1))
    except ValueError:  # the 31st of February
        return None
    return None


def truth(cell: str) -> bool | None:
    """Parse yes or no."""
    return TRUTH.get(cell.strip().lower())


def _cells(line: str) -> list[str]:
    parts = CELL.split(line.strip().removeprefix("|").removesuffix("|"))
    return [part.strip().replace("\\|", "|") for part in parts]


Kind = Literal["number", "integer", "date", "boolean", "category", "text"]
Floats = NDArray[np.float64]
Read = Callable[[str], float | datetime.date | None]
SAMPLE = 400
"""Number of cells to check for the type of a column."""
MOST = 0.8
"""Minimum share of filled cells that have the type of the column."""
DISTINCT = 0.9
"""Minimum share of different names among the rows for a naming column."""
REPEATED = 0.6
"""Maximum share of different texts in a category."""
LONGEST_NAME = 80
"""Maximum characters of a name or a category. Longer texts are descriptions."""
MOST_CATEGORIES = 2_000
"""Maximum number of different texts of a category."""
FEWEST_YEARS = 3
"""Minimum number of columns named by years in a table with one column per year."""
MOST_UNITS = 2
"""Maximum number of different units. With more, the column contains names such as 41B, 51C and 61A."""
YEAR = re.compile(r"\D{0,3}((?:1[5-9]|20)\d\d)\D?")
TOTALS = re.compile(
    r"(?:grand |sub-?)?(?:totals?|sum|all|overall|altogether|average|mean|median)\b.{0,20}", re.IGNORECASE
)
NAMELESS = re.compile(r"|#|no\.?|nr\.?|index|unnamed: \d+|row", re.IGNORECASE)
PLAIN_NAMES = frozenset({"", "name", "names", "title", "id", "key", "label", "item"})
"""Headers that do not name the kind of the rows."""


UNIT, TITLE_UNIT = re.compile(r"\(([^()\d]+)\)\s*$"), re.compile(r"\((in [^()\d]+)\)\s*$")


@dataclass(frozen=True, eq=False)
class TableColumn:
    """A column: its header, its cells as numbers (dates as days, yes as 1, otherwise NaN) and as texts."""

    name: str
    kind: Kind
    cells: tuple[str, ...]
    values: Floats
    scale: float = 1.0
    """Factor for the numbers of this column, from its header: 1000 for "in thousands"."""

    @property
    def is_compared(self) -> bool:
        """Whether its values have an order."""
        return self.kind in ("number", "integer", "date")

    def with_unit(self, value: str, title: str) -> str:
        """Add the unit of the header, or of the title: “120 MWh”, “13.1 (in millions of euros)”."""
        found = UNIT.search(self.name) or TITLE_UNIT.search(title)
        if found is None or self.kind not in ("number", "integer") or not value[-1:].isdigit():
            return value
        return f"{value} ({found[1]})" if " " in found[1] else f"{value} {found[1]}"

    @cached_property
    def is_name(self) -> bool:
        """Whether its texts identify the rows."""
        filled = [cell for cell in self.cells if cell]
        is_distinct = len(filled) >= DISTINCT * len(self.cells) and len(set(filled)) >= DISTINCT * len(filled) > 0
        return is_distinct and self.kind in ("text", "category") and max(map(len, filled)) <= LONGEST_NAME

    @cached_property
    def codes(self) -> tuple[tuple[str, ...], NDArray[np.int32]]:
        """Distinct texts, sorted, and the index of each row's text. -1 for empty cells."""
        texts = tuple(sorted({cell for cell in self.cells if not is_empty(cell)}))
        place = {text: at for at, text in enumerate(texts)}
        return texts, np.array([place.get(cell, -1) for cell in self.cells], dtype=np.int32)


@dataclass(frozen=True, eq=False)
class Columns:
    """A table by columns. `key` is the index of the column that names the rows, or None."""

    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]
    key: int | None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each row."""
        return self.columns[self.key].cells if self.key is not None else ("",) * len(self.rows)

    @property
    def noun(self) -> str:
        """Word for a row: the header of the naming column, or the title if that header is too general."""
        own = "" if self.key is None else self.columns[self.key].name
        return self.title if own.strip().lower() in PLAIN_NAMES else own


def columns_of(table: Table) -> Columns:
    """Return the typed columns of a table."""
    table = without_row_numbers(with_header(table))
    table = replace(table, rows=without_totals(table))
    header = [name.strip() for name in table.header]
    scale = scale_of(table.title)
    columns = [_column(name, [row.cells[place] for row in table.rows], scale) for place, name in enumerate(header)]
    key = _key(columns)
    if key is not None and columns[key].kind == "category":
        columns[key] = replace(columns[key], kind="text")
    return Columns(table.title, tuple(columns), table.rows, key)


# Cleaning


def with_header(table: Table) -> Table:
    """Return the table with one header. Merge two rows of names, and turn a header with data into a row."""
    if not table.rows:
        return table
    first, rest = table.rows[0].cells, table.rows[1 : 1 + SAMPLE]
    is_number = [_share([row.cells[at] for row in rest], number) > MOST for at in range(len(table.header))]
    years = [at for at, name in enumerate(table.header) if YEAR.fullmatch(name.strip())]
    if len(years) < FEWEST_YEARS and any(
        numeric and not is_empty(name) and number(name) is not None
        for numeric, name in zip(is_number, table.header, strict=True)
    ):
        own = TableRow(table.header, node=table.rows[0].node)
        return Table(table.title, tuple(f"column {at + 1}" for at in range(len(table.header))), (own, *table.rows))
    below = [cell for cell, numeric in zip(first, is_number, strict=True) if numeric and not is_empty(cell)]
    if len(rest) > 1 and len(below) > 1 and all(number(cell) is None for cell in below):
        return Table(table.title, _merged(table.header, first), table.rows[1:])
    return table


def _merged(upper: Sequence[str], lower: Sequence[str]) -> tuple[str, ...]:
    """Merge two rows of names. An empty upper cell continues the cell before it."""
    names, last = [], ""
    for above, below in zip(upper, lower, strict=True):
        last = above or last
        names.append(f"{last} {below}".strip() if below and below != last else last)
    return tuple(names)


def without_row_numbers(table: Table) -> Table:
    """Remove a first column that only numbers the rows."""
    if len(table.header) < 2 or not NAMELESS.fullmatch(table.header[0].strip()):
        return table
    first = table.rows[0].cells[0] if table.rows else ""
    if first not in ("0", "1") or any(row.cells[0] != str(at) for at, row in enumerate(table.rows, start=int(first))):
        return table
    return Table(table.title, table.header[1:], tuple(replace(row, cells=row.cells[1:]) for row in table.rows))


def without_totals(table: Table) -> tuple[TableRow, ...]:
    """Remove rows of totals: at the end by their name, at the start if a number is the sum of the other rows."""
    rows = list(table.rows)
    while len(rows) > 2 and TOTALS.fullmatch(_first_filled(rows[-1])):
        rows.pop()
    if len(rows) > 2 and TOTALS.fullmatch(_first_filled(rows[0])) and _is_sum(rows[0], rows[1:]):
        rows.pop(0)
    return tuple(rows)


def _first_filled(row: TableRow) -> str:
    return next((cell.strip(" *:") for cell in row.cells if not is_empty(cell)), "")


def _is_sum(row: TableRow, others: Sequence[TableRow]) -> bool:
    for place, cell in enumerate(row.cells):
        value = number(cell)
        own = [found for other in others if (found := number(other.cells[place])) is not None]
        if value and own and abs(sum(own) - value) <= 0.01 * abs(value):
            return True
    return False


# Types


def _share(cells: Sequence[str], read: Read) -> float:
    filled = [cell for cell in cells if not is_empty(cell)]
    return sum(read(cell) is not None for cell in filled) / len(filled) if filled else 0.0


def kind_of(cells: Sequence[str]) -> Kind:
    """Return the type of most filled cells in a column."""
    known = [cell for cell in cells if not is_empty(cell)]
    filled = known[:: max(1, len(known) // SAMPLE)]
    if not filled:
        return "text"
    if _share(filled, truth) == 1.0:
        return "boolean"
    if _share(filled, date) > MOST:
        return "date"
    if _share(filled, number) > MOST and len({unit(cell) for cell in filled} - {""}) <= MOST_UNITS:
        values = [value for cell in filled if (value := number(cell)) is not None]
        return "integer" if all(value.is_integer() for value in values) else "number"
    different = set(known)
    is_repeated = len(different) <= max(1, REPEATED * len(known)) and len(different) <= MOST_CATEGORIES
    return "category" if is_repeated and max(map(len, different)) <= LONGEST_NAME else "text"


def scale_of(name: str) -> float:
    """Return the factor for numbers if a header or title names a scale: `Sales ($ bn)`, `telephones (thousands)`."""
    words = re.findall(r"[a-z]+", name.lower())
    return next((SCALES[word] for word in words if word in SCALES and len(word) > 1), 1.0)


def _column(name: str, cells: Sequence[str], scale: float) -> TableColumn:
    tidy = tuple("" if is_empty(cell) else cell.strip() for cell in cells)
    kind = kind_of(tidy)
    return TableColumn(name, kind, tidy, _values(kind, tidy), max(scale_of(name), scale) if kind != "date" else 1.0)


def _values(kind: Kind, cells: Sequence[str]) -> Floats:
    if kind in ("text", "category"):
        return np.full(len(cells), np.nan)
    read: Read = date if kind == "date" else truth if kind == "boolean" else number
    return np.array([_as_number(read(cell) if cell else None) for cell in cells], dtype=np.float64)


def _as_number(value: float | datetime.date | None) -> float:
    if value is None:
        return float("nan")
    return float(value.toordinal() if isinstance(value, datetime.date) else value)


def _key(columns: Sequence[TableColumn]) -> int | None:
    """Return the column that names the rows: the first of distinct texts, or of dates or years, or of any text."""

    for place, column in enumerate(columns):
        if column.is_name:
            return place
    for place, column in enumerate(columns[:2]):
        is_year = column.kind == "integer" and all(YEAR.fullmatch(cell) for cell in column.cells if cell)
        if (column.kind == "date" or is_year) and len(set(column.cells)) == len(column.cells):
            return place
    return next((place for place, column in enumerate(columns) if column.kind in ("text", "category")), None)


# Years as columns


def long_form(table: Columns) -> Columns | None:
    """Return one row for each row and year if years are columns, or else None."""
    years = [(place, found[1]) for place, one in enumerate(table.columns) if (found := YEAR.fullmatch(one.name))]
    years = [(place, year) for place, year in years if table.columns[place].kind in ("number", "integer")]
    if len(years) < FEWEST_YEARS:
        return None
    others = [place for place in range(len(table.columns)) if place not in dict(years)]
    columns = []
    for place in others:
        column = table.columns[place]
        kind: Kind = "category" if place == table.key else column.kind
        values = np.tile(column.values, len(years))
        columns.append(replace(column, cells=column.cells * len(years), values=values, kind=kind))
    count = len(table.rows)
    written = tuple(year for _, year in years for _ in range(count))
    columns.append(TableColumn("year", "integer", written, np.array(written, dtype=np.float64)))
    cells = tuple(cell for place, _ in years for cell in table.columns[place].cells)
    values = np.concatenate([table.columns[place].values for place, _ in years])
    is_whole = bool(np.all(np.isnan(values) | (values == np.floor(values))))
    scale = table.columns[years[0][0]].scale
    columns.append(TableColumn(table.title or "value", "integer" if is_whole else "number", cells, values, scale))
    key = None if table.key is None else others.index(table.key)
    return Columns(table.title, tuple(columns), table.rows * len(years), key)


@dataclass(frozen=True, eq=False)
class Panel:
    """A table with several rows of one name that differ in a column of years."""

    table: Columns
    year: int

    def slice(self, year: float) -> Columns | None:
        """Return the rows of one year without the column of years, or None if it has no rows."""
        rows = np.flatnonzero(self.table.columns[self.year].values == year).tolist()
        if not rows:
            return None
        kept = [column for place, column in enumerate(self.table.columns) if place != self.year]
        columns = [
            replace(column, cells=tuple(column.cells[row] for row in rows), values=column.values[rows])
            for column in kept
        ]
        key = _key(columns)
        if key is not None and columns[key].is_name:
            columns[key] = replace(columns[key], kind="text")
        return Columns(self.table.title, tuple(columns), tuple(self.table.rows[row] for row in rows), key)


def panel_of(table: Columns) -> Panel | None:
    """Return a table as a panel: its long form, or itself if rows of one name differ by year. Otherwise None."""
    table = long_form(table) or table
    if table.key is None or table.columns[table.key].is_name or table.columns[table.key].is_compared:
        return None  # names or dates identify the rows
    for place, column in enumerate(table.columns):
        if column.kind == "integer" and all(YEAR.fullmatch(cell) for cell in column.cells if cell):
            return Panel(table, place)
    return None
