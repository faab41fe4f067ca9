"""The outline of a PDF (its bookmarks), and the printed lines that its entries name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.documents.formats.pdf_lines import Line

NUMBERING = re.compile(r"((chapter|section|appendix|part|kapitel|anhang|teil)?[\divxlc]*[a-z]?)", re.IGNORECASE)
"""What may stand before a title in print and not in the outline, or the other way round."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A bookmark: its depth from 1, its title, and the page it leads to, from 0."""

    level: int
    title: str
    page: int


@dataclass(frozen=True, slots=True)
class Mark:
    """The heading a line belongs to: lines with the same entry are one heading."""

    entry: int
    level: int


def marked_lines(entries: Sequence[Entry], pages: Sequence[Sequence[Line]]) -> dict[tuple[int, int], Mark]:
    """For each page and line that an entry names, the heading it is part of."""
    marks: dict[tuple[int, int], Mark] = {}
    for number, entry in enumerate(entries):
        title = letters(entry.title)
        if not title:
            continue
        for page in (entry.page, entry.page + 1, entry.page - 1):
            found = _find(title, pages[page], {p for n, p in marks if n == page}) if 0 <= page < len(pages) else None
            if found is not None:
                marks.update({(page, place): Mark(number, entry.level) for place in range(*found)})
                break
    return marks


def letters(text: str) -> str:
    """Only its letters and digits, in lower case."""
    return "".join(letter for letter in text.lower() if letter.isalnum())


def _find(title: str, lines: Sequence[Line], taken: set[int]) -> tuple[int, int] | None:
    """Up to three lines that together are the title, the largest print first."""
    found = []
    plain = [letters(line.text) if line.table is None else "" for line in lines]
    for start in range(len(plain)):
        text = ""
        for end in range(start, min(start + 3, len(plain))):
            if end in taken or not plain[end]:
                break
            text += plain[end]
            if _same(text, title):
                found.append((-lines[start].size, start, end + 1))
            if len(text) > len(title) + 12:
                break
    return min(found)[1:] if found else None


def _same(printed: str, title: str) -> bool:
    longer, shorter = (printed, title) if len(printed) >= len(title) else (title, printed)
    if not shorter or not longer.endswith(shorter):
        return False
    return longer == shorter or NUMBERING.fullmatch(longer[: -len(shorter)]) is not None
