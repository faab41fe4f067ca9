"""Builder that collects the blocks of a document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from clew.core.limits import spend
from clew.documents.extracted import Block, Cells, Extracted, Kind, TextLine, cells_of, markdown
from clew.documents.formats.grid import with_caption, with_one_header

NO_TITLES = re.compile(
    r"(powerpoint[- ]presentation|presentation\d*|untitled\d*|unknown|title|document\d*|(microsoft )?word.*"
    r"|(table of )?contents|inhalt(sverzeichnis)?|table des matières|índice|indice|sommaire|.*(\.\s?){4,}\W*\w*)?",
    re.IGNORECASE,
)
"""Titles that programs write by default, and headings and lines of tables of contents."""
NUMBERED = re.compile(
    r"(?i:chapter|section|part|appendix)\s+\w{1,5}\b|\d{1,3}(\.\d+)+\.?\s+\S|(\d{1,3}|I)[.):]\s+\S|[01]\s+\S"
)
"""A section number: its heading belongs to a part of the document."""
Place = tuple[int, float, float, float, float]
"""A page and a box on it: x0, top, x1, bottom."""


def first_heading(text: str, blocks: Sequence[Block]) -> str:
    """Return the first heading if it looks like a title: no number, and no other heading on its level."""
    headings = [block for block in blocks if block.kind == "heading"]
    if not headings or sum(block.level == headings[0].level for block in headings) > 1:
        return ""
    title = " ".join(text[headings[0].start : headings[0].end].split())
    return "" if is_section(title) else title


def is_section(heading: str) -> bool:
    """Return whether a heading names a part of a document, not the document."""
    return NUMBERED.match(heading) is not None or NO_TITLES.fullmatch(heading) is not None


@dataclass
class TextBuilder:
    """Builds the text of a format without plain text. Blank headings and paragraphs are skipped."""

    page: int | None = None
    blocks: list[Block] = field(default_factory=list)
    lines: list[TextLine] = field(default_factory=list)
    _caption: str = ""
    _parts: list[str] = field(default_factory=list)
    _length: int = 0

    def heading(self, text: str, level: int) -> None:
        """Add a heading with white space collapsed."""
        self._add("heading", " ".join(text.split()), level=level)

    def paragraph(self, text: str) -> None:
        """Add a paragraph with white space collapsed."""
        self._add("paragraph", " ".join(text.split()))

    def preformatted(self, text: str) -> None:
        """Add a paragraph with its line breaks and spaces unchanged."""
        lines = [line.rstrip() for line in text.expandtabs(4).split("\n")]
        self._add("paragraph", "\n".join(lines).strip("\n"))

    def caption(self, text: str) -> None:
        """Store the caption of the next table. It becomes a paragraph if another block follows."""
        self.paragraph(self.take_caption())
        self._caption = text

    def take_caption(self) -> str:
        """Return the stored caption, and remove it."""
        caption, self._caption = self._caption, ""
        return caption

    def table(self, rows: Sequence[Sequence[str]], caption: str = "", headers: Sequence[bool] = ()) -> None:
        """Add a table unless it is empty. If the first row is one wide cell, use it as the caption.

        `headers` tells which rows are headers. Several at the top become one.
        """
        if rows:
            rows = with_one_header(rows, (*headers, False).index(False))
            spend(sum(len(cell) for row in rows for cell in row))
            rows, caption = with_caption(rows, caption)
        cells = cells_of(rows, caption)
        if cells is not None:
            self._add("table", markdown(cells), cells=cells)

    def printed(
        self, kind: Kind, pieces: Sequence[tuple[str, Place]], *, level: int = 0, cells: Cells | None = None
    ) -> None:
        """Add a block whose lines have positions on a page. The pieces are concatenated without spaces."""
        before = len(self.blocks)
        self._add(kind, "".join(text for text, _ in pieces), level=level, cells=cells)
        if len(self.blocks) == before:
            return
        start = self.blocks[-1].start
        for text, (page, *box) in pieces:
            x0, top, x1, bottom = (round(edge, 1) for edge in box)
            if text.strip():
                self.lines.append(TextLine(start, start + len(text.rstrip()), page, x0, top, x1, bottom))
            start += len(text)

    def append(self, other: Extracted, deeper: int) -> None:
        """Add the blocks of another file, with headings `deeper` levels down."""
        for block in other.blocks:
            text = other.text[block.start : block.end]
            if block.kind == "heading":
                self.heading(text, block.level + deeper)
            elif block.cells is not None:
                self.table([block.cells.header, *block.cells.rows], block.cells.caption)
            else:
                self.preformatted(text)

    def text(self) -> str:
        """Return all blocks, separated by blank lines."""
        return "".join(self._parts)

    def first_heading(self) -> str:
        """Return the first heading if it is a title."""
        return first_heading(self.text(), self.blocks)

    def extracted(self, *titles: str, notes: Iterable[str] = ()) -> Extracted:
        """Return everything added, under the first meaningful title."""
        tidy = (" ".join(title.split()) for title in titles)
        title = next((title for title in tidy if not NO_TITLES.fullmatch(title)), "")
        return Extracted(title, self.text(), tuple(self.blocks), self.page or 0, tuple(notes))

    def _add(self, kind: Kind, text: str, *, level: int = 0, cells: Cells | None = None) -> None:
        if not text:
            return
        if self._caption:
            self.paragraph(self.take_caption())
        spend(len(text))
        if self._parts:
            self._parts.append("\n\n")
            self._length += 2
        start = self._length
        self._parts.append(text)
        self._length += len(text)
        self.blocks.append(Block(kind, start, self._length, self.page, level, cells))
