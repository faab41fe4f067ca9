"""Assembles what a reader finds, with the anchor of each block and the title the reader settles on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clew.documents.extracted import Block, Cells, Extracted, Kind, TextBuilder
from clew.documents.formats.grid import with_caption

NO_TITLES = re.compile(
    r"(powerpoint[- ]presentation|presentation\d*|untitled\d*|unknown|title|document\d*|(microsoft )?word.*)?",
    re.IGNORECASE,
)
"""What programs write where the author gave no title."""


@dataclass(frozen=True, slots=True)
class AnchoredBlock(Block):
    """A block with the id of its own element or of the nearest one before it."""

    anchor: str = ""


def first_heading(text: str, blocks: Sequence[Block]) -> str:
    """The first heading, where no other one is on its level: a title, not the first of several."""
    headings = [block for block in blocks if block.kind == "heading"]
    if not headings or sum(block.level == headings[0].level for block in headings) > 1:
        return ""
    return " ".join(text[headings[0].start : headings[0].end].split())


@dataclass
class DocumentBuilder(TextBuilder):
    """A `TextBuilder` that also takes preformatted text, anchors and whole extracted files."""

    anchor: str = ""

    def preformatted(self, text: str) -> None:
        """A paragraph that keeps its line breaks and its spaces."""
        lines = [line.rstrip() for line in text.expandtabs(4).split("\n")]
        self._add("paragraph", "\n".join(lines).strip("\n"))

    def table(self, rows: Sequence[Sequence[str]], caption: str = "") -> None:
        """A table; a first row that is one wide cell is its caption, the next one its header."""
        if rows:
            rows, caption = with_caption(rows, caption)
        super().table(rows, caption)

    def append(self, other: Extracted, deeper: int = 0) -> None:
        """The blocks of another file, its headings some levels deeper."""
        for block in other.blocks:
            text = other.text[block.start : block.end]
            if block.kind == "heading":
                self.heading(text, block.level + deeper)
            elif block.cells is not None:
                self.table([block.cells.header, *block.cells.rows], block.cells.caption)
            else:
                self.preformatted(text)

    def extracted(self, *titles: str, notes: Iterable[str] = ()) -> Extracted:
        """Everything added, under the first of the titles that says something."""
        tidy = (" ".join(title.split()) for title in titles)
        title = next((title for title in tidy if not NO_TITLES.fullmatch(title)), "")
        return Extracted(title, self.text(), tuple(self.blocks), self.page or 0, tuple(notes))

    def first_heading(self) -> str:
        """The heading that opens the text, where no other one is on its level: a title, not the first of several."""
        return first_heading(self.text(), self.blocks)

    def _add(self, kind: Kind, text: str, *, level: int = 0, cells: Cells | None = None) -> None:
        before = len(self.blocks)
        super()._add(kind, text, level=level, cells=cells)
        if self.anchor and len(self.blocks) > before:
            last = self.blocks[-1]
            self.blocks[-1] = AnchoredBlock(
                last.kind, last.start, last.end, last.page, last.level, last.cells, self.anchor
            )
