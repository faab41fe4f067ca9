"""Tables of documents: a Markdown table read back as typed cells, and simple questions looked up in it without a model.

Simple questions ask for a cell, the highest or lowest value, a sum, a mean, a number of rows, rows above or below a
value, or how much more one row has than another.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from clew.index.tokens import terms

CellType = Literal["number", "year", "date", "text"]
CELL = re.compile(r"(?<!\\)\|")
NUMBER = re.compile(
    r"[(\-−–+]?\s*(?:[$€£¥]|USD|EUR|GBP)?\s*[\-−–+]?"
    r"(\d{1,3}(?:[,  '’]\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+)\s*"
    r"(%|°?[A-Za-zµ€$£°²³/·]{0,12}(?:\s?[A-Za-z²³/·]{0,8})?)\)?$"
)
MONTHS = {
    name[:3]: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
WRITTEN_DATE = re.compile(r"(?:(\d{1,2})\.? )?([A-Za-z]{3,9})\.? (?:(\d{1,2})(?:st|nd|rd|th)?,? )?(\d{4})$")


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a row and where its line stands in the table's text."""

    cells: tuple[str, ...]
    start: int
    end: int


@dataclass(frozen=True)
class TypedTable:
    """Header and rows; a column has a type where most of its filled cells are of it."""

    header: tuple[str, ...]
    rows: tuple[Row, ...]

    @cached_property
    def types(self) -> tuple[CellType, ...]:
        """The type of each column."""
        return tuple(_column_type([row.cells[place] for row in self.rows]) for place in range(len(self.header)))

    def value(self, row: Row, column: int) -> float | datetime.date | str | None:
        """A cell as its column's type; None where it is empty or of another."""
        text = row.cells[column]
        if self.types[column] in ("number", "year"):
            return number(text)
        if self.types[column] == "date":
            return date(text)
        return text or None


def read_table(text: str) -> TypedTable | None:
    """The table in a text; None where there is none."""
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
        rows.append(Row(tuple(cells + [""] * (len(header) - len(cells))), begin, end))
    return TypedTable(tuple(header), tuple(rows))


def number(text: str) -> float | None:
    """A cell as a number: thousands separated, with a sign, a currency, a unit, a percent sign or in brackets."""
    found = NUMBER.match(text.strip())
    if found is None:
        return None
    digits = found.group(1)
    if re.fullmatch(r"\d+,\d+", digits) and not re.fullmatch(r"\d{1,3},\d{3}", digits):
        digits = digits.replace(",", ".")  # a decimal comma
    value = float(re.sub(r"[,  '’]", "", digits))
    before = text[: found.start(1)]
    return -value if any(sign in before for sign in "-−–(") else value


def date(text: str) -> datetime.date | None:
    """A cell as a date: 2021-03-05, 5.3.2021, 3/25/2021, 5 March 2021, March 2021."""
    written = text.strip()
    try:
        if found := re.fullmatch(r"(\d{4})-(\d{1,2})(?:-(\d{1,2}))?(?:[T ].*)?", written):
            return datetime.date(int(found.group(1)), int(found.group(2)), int(found.group(3) or 1))
        if found := re.fullmatch(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", written):
            return datetime.date(int(found.group(3)), int(found.group(2)), int(found.group(1)))
        if found := re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4})", written):
            first, second = int(found.group(1)), int(found.group(2))
            month, day = (first, second) if first <= 12 else (second, first)
            return datetime.date(int(found.group(3)), month, day)
        if (found := WRITTEN_DATE.match(written)) and (month := MONTHS.get(found.group(2)[:3].lower(), 0)):
            return datetime.date(int(found.group(4)), month, int(found.group(1) or found.group(3) or 1))
    except ValueError:  # the 31st of February
        return None
    return None


def _column_type(cells: Sequence[str]) -> CellType:
    filled = [cell for cell in cells if cell.strip(" -–—")]
    if not filled:
        return "text"
    if sum(date(cell) is not None for cell in filled) > 0.7 * len(filled):
        return "date"
    if all(YEAR.fullmatch(cell) for cell in filled):
        return "year"
    return "number" if sum(number(cell) is not None for cell in filled) > 0.7 * len(filled) else "text"


def _cells(line: str) -> list[str]:
    parts = CELL.split(line.strip().removeprefix("|").removesuffix("|"))
    return [part.strip().replace("\\|", "|") for part in parts]


HIGHEST = re.compile(
    r"\b(highest|largest|biggest|most|greatest|maximum|max|longest|tallest|deepest|heaviest|best)\b", re.I
)
LOWEST = re.compile(r"\b(lowest|smallest|least|fewest|minimum|min|shortest|lightest|cheapest|worst)\b", re.I)
LATEST = re.compile(r"\b(latest|newest|most recent|youngest|last)\b", re.I)
EARLIEST = re.compile(r"\b(earliest|oldest|first)\b", re.I)
MEAN = re.compile(r"\b(average|mean)\b", re.I)
SUM = re.compile(r"\b(sum|total|altogether|in all|combined)\b", re.I)
COUNT = re.compile(r"\bhow many\b|\bnumber of\b|\bcount\b", re.I)
MORE = re.compile(r"\b(how many more|how much more|how many fewer|how much less|difference between)\b", re.I)
LIMIT = re.compile(
    r"\b(above|over|more than|greater than|higher than|at least|below|under|less than|fewer than|lower than|at most)\s+"
    r"([\d.,]+)",
    re.I,
)
UPWARD = frozenset({"above", "over", "more than", "greater than", "higher than", "at least"})
INCLUSIVE = frozenset({"at least", "at most"})


@dataclass(frozen=True, slots=True)
class Found:
    """An answer from a table, the rows it rests on, how it came about, and how well the table fits the question."""

    text: str
    rows: tuple[Row, ...]
    how: str
    fit: float
    """The share of the question's telling words that header and rows account for."""


def look_up(question: str, table: TypedTable) -> Found | None:
    """The answer to a simple question; None where the question is of another kind or names no column."""
    if not table.rows:
        return None
    asked = _Asked(question, table)
    for attempt in (_difference, _limited, _extreme, _total, _cell):
        found = attempt(asked)
        if found is not None:
            return found
    return None


class _Asked:
    """A question with the columns and rows it names."""

    def __init__(self, question: str, table: TypedTable) -> None:
        self.question, self.table = question, table
        self.terms = frozenset(terms(question))
        self.columns = {place: overlap for place, name in enumerate(table.header) if (overlap := self._overlap(name))}
        self.rows = self._named_rows()

    def _overlap(self, name: str) -> float:
        own = terms(name)
        return sum(term in self.terms for term in own) / len(own) if own else 0.0

    def _named_rows(self) -> dict[int, int]:
        """Rows with a cell that the question writes: position → the column of that cell, the longest cell first."""
        low = f" {_plain(self.question)} "
        found: dict[int, tuple[int, int]] = {}
        for place, row in enumerate(self.table.rows):
            for column, cell in enumerate(row.cells):
                written = _plain(cell)
                if self.table.types[column] == "date" and column in self.columns:
                    written = cell_year(cell) or written  # "opened in 1923" names a date
                if len(written) > (0 if column in self.columns else 1) and re.search(rf"\W{re.escape(written)}\W", low):
                    found[place] = max(found.get(place, (0, 0)), (len(written), column))
        longest = max((length for length, _ in found.values()), default=0)
        by_value = {place: column for place, (length, column) in found.items() if length * 2 >= longest}
        return by_value if len(by_value) <= max(3, len(self.table.rows) // 2) else {}

    def column_of(self, types: Sequence[str], *, besides: frozenset[int] = frozenset()) -> int | None:
        """The column of one of these types that the question names best, or the only one of them."""
        fitting = [place for place, kind in enumerate(self.table.types) if kind in types and place not in besides]
        named = [place for place in fitting if place in self.columns]
        if named:
            return max(named, key=lambda place: (self.columns[place], -place))
        return fitting[0] if len(fitting) == 1 else None

    def asked_column(self, besides: frozenset[int]) -> int:
        """The column the answer stands in: the one after "which", or else the first one of text."""
        match = re.search(r"\b(?:which|what|whose|who|where|when)\b(.*)", self.question, re.I)
        after = terms(match.group(1))[:3] if match else []
        for term in after:
            for place, name in enumerate(self.table.header):
                if term in terms(name) and place not in besides:
                    return place
        texts = [place for place, kind in enumerate(self.table.types) if kind == "text" and place not in besides]
        return texts[0] if texts else 0

    def found(self, text: str, rows: Sequence[Row], how: str) -> Found:
        """With the share of the question's words that the table accounts for."""
        written = {term for name in self.table.header for term in terms(name)}
        written |= {term for row in rows[:5] for cell in row.cells for term in terms(cell)}
        fit = len(self.terms & written) / len(self.terms) if self.terms else 0.0
        return Found(text, tuple(rows), how, fit)


def _difference(asked: _Asked) -> Found | None:
    """How much more one named row has than another."""
    if not MORE.search(asked.question) or len(asked.rows) != 2:
        return None
    named = frozenset(asked.rows.values())
    column = asked.column_of(("number",), besides=named)
    if column is None:
        return None
    rows = sorted((asked.table.rows[place] for place in asked.rows), key=lambda row: _place_in(asked.question, row))
    values = [asked.table.value(row, column) for row in rows]
    if not all(isinstance(value, float) for value in values):
        return None
    first, second = (float(value) for value in values if isinstance(value, float))
    return asked.found(_written(abs(first - second)), rows, f"difference of {asked.table.header[column]}")


def _limited(asked: _Asked) -> Found | None:
    """Rows above or below a value: how many, or which."""
    limit = LIMIT.search(asked.question)
    column = asked.column_of(("number",))
    bound = number(limit.group(2).rstrip(".,")) if limit else None
    if limit is None or column is None or bound is None:
        return None
    word = limit.group(1).lower()

    def passes(value: float) -> bool:
        return (value == bound and word in INCLUSIVE) or (value > bound if word in UPWARD else value < bound)

    kept = [row for row in asked.table.rows if isinstance(v := asked.table.value(row, column), float) and passes(v)]
    how = f"{asked.table.header[column]} {word} {limit.group(2)}"
    if COUNT.search(asked.question):
        return asked.found(str(len(kept)), kept, how)
    shown = asked.asked_column(frozenset({column}))
    return asked.found(", ".join(row.cells[shown] for row in kept), kept, how) if kept else None


def _extreme(asked: _Asked) -> Found | None:
    """The row with the highest or lowest value of a column."""
    question = asked.question
    pick: Callable[..., int] = max
    wanted: tuple[str, ...] = ("number",)
    if HIGHEST.search(question):
        pick = max
    elif LOWEST.search(question):
        pick = min
    elif LATEST.search(question) or EARLIEST.search(question):
        pick = max if LATEST.search(question) else min
        wanted = ("date", "year")
    else:
        return None
    column = asked.column_of(wanted)
    if column is None:
        return None
    sizes = {
        place: size for place, row in enumerate(asked.table.rows) if (size := _size(asked, row, column)) is not None
    }
    if not sizes:
        return None
    row = asked.table.rows[pick(sizes, key=lambda place: sizes[place])]
    how = f"{'highest' if pick is max else 'lowest'} {asked.table.header[column]}"
    shown = asked.asked_column(frozenset({column}))
    if re.search(r"\bwhat (?:is|was) the\b|\bhow (?:high|large|much|many|long)\b", question, re.I) and not re.search(
        r"\b(which|who|where)\b", question, re.I
    ):
        shown = column
    return asked.found(row.cells[shown], [row], how)


def _size(asked: _Asked, row: Row, column: int) -> float | None:
    value = asked.table.value(row, column)
    if isinstance(value, datetime.date):
        return float(value.toordinal())
    return value if isinstance(value, float) else None


def _total(asked: _Asked) -> Found | None:
    """The sum or mean of a column, or the number of rows."""
    question = asked.question
    column = asked.column_of(("number",), besides=frozenset(asked.rows.values()))
    if column is not None and (MEAN.search(question) or SUM.search(question)):
        rows = [asked.table.rows[place] for place in asked.rows] if len(asked.rows) > 1 else list(asked.table.rows)
        values = [value for row in rows if isinstance(value := asked.table.value(row, column), float)]
        if values:
            mean = MEAN.search(question) is not None
            value = sum(values) / len(values) if mean else sum(values)
            how = f"{'mean' if mean else 'sum'} of {asked.table.header[column]}"
            return asked.found(_written(value), rows, how)
    if re.search(r"\bhow many (rows|entries|lines)\b", question, re.I):
        return asked.found(str(len(asked.table.rows)), list(asked.table.rows), "number of rows")
    return None


def _cell(asked: _Asked) -> Found | None:
    """The cell of a named row in a named column, or in the column that "which" asks for."""
    if len(asked.rows) != 1:
        return None
    [(place, named)] = asked.rows.items()
    row = asked.table.rows[place]
    columns = {column: overlap for column, overlap in asked.columns.items() if column != named}
    if not columns:
        if len(asked.table.header) != 2:
            return None
        columns = {1 - named: 0.0}
    column = max(columns, key=lambda column: (columns[column], -column))
    return asked.found(row.cells[column], [row], f"{asked.table.header[column]} of {row.cells[named]}")


def _place_in(question: str, row: Row) -> int:
    places = [place for cell in row.cells if cell and (place := question.lower().find(cell.lower())) >= 0]
    return min(places, default=len(question))


def cell_year(cell: str) -> str:
    """The year of a date."""
    value = date(cell)
    return "" if value is None else str(value.year)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[\w.,]+", text.lower()))


def _written(value: float | datetime.date) -> str:
    if isinstance(value, datetime.date):
        return value.isoformat()
    rounded = round(value, 6)
    return str(int(rounded)) if rounded == int(rounded) else f"{rounded:g}"
