"""Assembles what a reader finds, block after block, under the title the reader settles on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from clew.core.limits import spend
from clew.documents.extracted import Block, Cells, Extracted, Kind, TextLine, cells_of, markdown
from clew.documents.formats.grid import with_caption

NO_TITLES = re.compile(
    r"(powerpoint[- ]presentation|presentation\d*|untitled\d*|unknown|title|document\d*|(microsoft )?word.*"
    r"|(table of )?contents|inhalt(sverzeichnis)?|table des matières|índice|indice|sommaire|.*(\.\s?){4,}\W*\w*)?",
    re.IGNORECASE,
)
"""What programs write where the author gave no title, and what stands above and in tables of contents."""
NUMBERED = re.compile(
    r"(?i:chapter|section|part|appendix)\s+\w{1,5}\b|\d{1,3}(\.\d+)+\.?\s+\S|(\d{1,3}|I)[.):]\s+\S|[01]\s+\S"
)
"""The number of a section: what it opens is a part of a document."""
Place = tuple[int, float, float, float, float]
"""A page and a box on it: x0, top, x1, bottom."""


def first_heading(text: str, blocks: Sequence[Block]) -> str:
    """The first heading, where no other one is on its level and it has no number: a title, not the first of several."""
    headings = [block for block in blocks if block.kind == "heading"]
    if not headings or sum(block.level == headings[0].level for block in headings) > 1:
        return ""
    title = " ".join(text[headings[0].start : headings[0].end].split())
    return "" if is_section(title) else title


def is_section(heading: str) -> bool:
    """Whether a heading names a part of a document rather than the document."""
    return NUMBERED.match(heading) is not None or NO_TITLES.fullmatch(heading) is not None


@dataclass
class TextBuilder:
    """The text of a format that has no plain text of its own; blank headings and paragraphs are left out."""

    page: int | None = None
    blocks: list[Block] = field(default_factory=list)
    lines: list[TextLine] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)
    _length: int = 0

    def heading(self, text: str, level: int) -> None:
        """A heading, its white space made single."""
        self._add("heading", " ".join(text.split()), level=level)

    def paragraph(self, text: str) -> None:
        """A paragraph, its white space made single."""
        self._add("paragraph", " ".join(text.split()))

    def preformatted(self, text: str) -> None:
        """A paragraph that keeps its line breaks and its spaces."""
        lines = [line.rstrip() for line in text.expandtabs(4).split("\n")]
        self._add("paragraph", "\n".join(lines).strip("\n"))

    def table(self, rows: Sequence[Sequence[str]], caption: str = "") -> None:
        """A table, unless it is empty; a first row that is one wide cell is its caption, the next one its header."""
        if rows:
            spend(sum(len(cell) for row in rows for cell in row))
            rows, caption = with_caption(rows, caption)
        cells = cells_of(rows, caption)
        if cells is not None:
            self._add("table", markdown(cells), cells=cells)

    def printed(
        self, kind: Kind, pieces: Sequence[tuple[str, Place]], *, level: int = 0, cells: Cells | None = None
    ) -> None:
        """A block whose lines have a place on a page; the pieces follow each other without a space."""
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
        """The blocks of another file, its headings some levels deeper."""
        for block in other.blocks:
            text = other.text[block.start : block.end]
            if block.kind == "heading":
                self.heading(text, block.level + deeper)
            elif block.cells is not None:
                self.table([block.cells.header, *block.cells.rows], block.cells.caption)
            else:
                self.preformatted(text)

    def text(self) -> str:
        """All blocks, separated by blank lines."""
        return "".join(self._parts)

    def first_heading(self) -> str:
        """The title, where a heading is one."""
        return first_heading(self.text(), self.blocks)

    def extracted(self, *titles: str, notes: Iterable[str] = ()) -> Extracted:
        """Everything added, under the first of the titles that says something."""
        tidy = (" ".join(title.split()) for title in titles)
        title = next((title for title in tidy if not NO_TITLES.fullmatch(title)), "")
        return Extracted(title, self.text(), tuple(self.blocks), self.page or 0, tuple(notes))

    def _add(self, kind: Kind, text: str, *, level: int = 0, cells: Cells | None = None) -> None:
        if not text:
            return
        spend(len(text))
        if self._parts:
            self._parts.append("\n\n")
            self._length += 2
        start = self._length
        self._parts.append(text)
        self._length += len(text)
        self.blocks.append(Block(kind, start, self._length, self.page, level, cells))
