"""What every reader of a format hands over: a text, and where its pages, headings, paragraphs and tables are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["heading", "paragraph", "table", "contents"]
"""Contents are lists of headings, figures or words with their page numbers."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A table: its header, its rows (as long as the header each) and its caption, all as written."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A span of the text and what it is; no page where the format has none. A table has the page it begins on."""

    kind: Kind
    start: int
    end: int
    page: int | None = None
    level: int = 0
    cells: Cells | None = None


@dataclass(frozen=True, slots=True)
class TextLine:
    """A printed line: its characters in the text, and its box on the page in points from the top left."""

    start: int
    end: int
    page: int
    x0: float
    top: float
    x1: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of a file and its blocks in reading order; every span counts characters of `text`."""

    title: str
    """As the document gives it; empty where it gives none."""
    text: str
    blocks: tuple[Block, ...]
    pages: int = 0
    """How many pages the file has; 0 where the format has none."""
    notes: tuple[str, ...] = ()
    """What could not be read although the rest could, such as a page that is only an image."""
    lines: tuple[TextLine, ...] = ()
    """Where each line is printed, so that a quotation can be marked; empty where the format has no pages."""
    labels: tuple[str, ...] = ()
    """What the pages are called, such as iv or A-3; empty where they are called 1, 2, 3."""


def cells_of(rows: Sequence[Sequence[str]], caption: str = "") -> Cells | None:
    """Rows as a table: empty rows and columns dropped, short rows filled up; None where nothing is left."""
    tidy = [[" ".join(cell.split()) for cell in row] for row in rows]
    tidy = [row for row in tidy if any(row)]
    if not tidy:
        return None
    width = max(map(len, tidy))
    tidy = [row + [""] * (width - len(row)) for row in tidy]
    kept = [column for column in range(width) if any(row[column] for row in tidy)]
    header, *body = (tuple(row[column] for column in kept) for row in tidy)
    return Cells(header, tuple(body), " ".join(caption.split()))


def markdown(cells: Cells, rows: Sequence[Sequence[str]] | None = None) -> str:
    """The caption, the header and the rows (all of them, or those given) as a Markdown table."""
    lines = [cells.caption, ""] if cells.caption else []
    lines += [_line(cells.header), "|" + " --- |" * len(cells.header)]
    lines += [_line(row) for row in (cells.rows if rows is None else rows)]
    return "\n".join(lines)


def _line(row: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
