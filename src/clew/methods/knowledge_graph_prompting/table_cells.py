"""Cells of tables: a Markdown table read back, and texts as numbers, dates, yes or no."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass

CELL = re.compile(r"(?<!\\)\|")
NUMBER = re.compile(
    r"(?P<open>\()?(?P<sign>[-−–+])?\s*(?:(?:US|A|C)?[$€£¥]|USD|EUR|GBP)?\s*(?P<sign2>[-−–+])?"
    r"(?P<digits>\d{1,3}(?:[,   '’]\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+)(?P<power>[eE][-+]?\d+)?"
    r"\s*(?P<unit>%|°?[A-Za-zµ€$£¥°²³/·]{0,12}(?:\s?[A-Za-z²³/·]{0,8})?)\)?(?:\s?\[\w{1,3}\])?"
)
EMPTY = frozenset({"", "-", "–", "—", "na", "n/a", "nan", "null", "none", "?", "..", "...", "*"})
LONGEST_EMPTY = 8
"""Longer cells, white space included, say something."""
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
class Row:
    """The cells of a row, the node whose text it stands in, and where in that text."""

    cells: tuple[str, ...]
    start: int = 0
    end: int = 0
    node: int = 0


@dataclass(frozen=True, eq=False)
class Table:
    """A header and rows of as many cells, as they are written."""

    title: str
    header: tuple[str, ...]
    rows: tuple[Row, ...]


def read_table(text: str, title: str = "", node: int = 0) -> Table | None:
    """The Markdown table in a text; None where there is none."""
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
        rows.append(Row(tuple(cells + [""] * (len(header) - len(cells))), begin, end, node))
    return Table(title, tuple(header), tuple(rows))


def joined(tables: Sequence[Table]) -> Table:
    """Pieces of one table, each under its header, as one."""
    return Table(tables[0].title, tables[0].header, tuple(row for table in tables for row in table.rows))


def is_empty(cell: str) -> bool:
    """Whether a cell says nothing."""
    return len(cell) < LONGEST_EMPTY and cell.strip().lower() in EMPTY


def unit(cell: str) -> str:
    """What is written after a number; empty where nothing is, or where the cell is no number."""
    found = NUMBER.fullmatch(cell.strip())
    return "" if found is None else found["unit"].strip()


def number(cell: str) -> float | None:
    """A cell as a number: thousands separated, with a sign, a currency, a scale, a unit, or in brackets."""
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
    """A cell as a date: 2021-03-05, 2021/3/5, 5.3.2021, 3/25/2021, 5 March 2021, March 2021."""
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
    """A cell as yes or no."""
    return TRUTH.get(cell.strip().lower())


def _cells(line: str) -> list[str]:
    parts = CELL.split(line.strip().removeprefix("|").removesuffix("|"))
    return [part.strip().replace("\\|", "|") for part in parts]
