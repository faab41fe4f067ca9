"""A Markdown table read back as typed cells: numbers, dates or text by column."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

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
