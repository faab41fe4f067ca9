"""HTML with the standard library: headings, paragraphs, list items and tables; scripts and menus are skipped."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from clew.documents.extracted import Extracted, TextBuilder
from clew.documents.formats.text import read_text

SKIPPED = frozenset({"script", "style", "template", "noscript", "svg", "nav", "head"})
BLOCK_TAGS = """
address article aside blockquote body dd div dl dt fieldset figure figcaption footer form header hr html li main ol p
pre section ul
"""
BREAKS = frozenset(BLOCK_TAGS.split())
HEADINGS = {f"h{level}": level for level in range(1, 7)}


def read_html(file: Path) -> Extracted:
    """The visible text; spans count its characters, not those of the mark-up."""
    parser = _Parser()
    parser.feed(read_text(file))
    parser.close()
    parser.flush()
    builder = parser.builder
    text = builder.text()
    first = next((text[block.start : block.end] for block in builder.blocks if block.kind == "heading"), "")
    return Extracted(" ".join(parser.title.split()) or first, text, tuple(builder.blocks))


class _Parser(HTMLParser):
    """Collects text until a block ends; a table collects its cells, an inner table's text goes to its outer cell."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.builder = TextBuilder()
        self.title = ""
        self._in_title = False
        self._skipping: list[str] = []
        self._words: list[str] = []
        self._level = 0
        self._tables = 0
        self._rows: list[list[str]] = []
        self._caption = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """A new block ends the one before."""
        if tag == "title":
            self._in_title = True
        elif tag in SKIPPED:
            if tag != "head":  # its content is skipped piece by piece: documents may leave out the end tag
                self._skipping.append(tag)
        elif tag == "table":
            self._start_table()
        elif self._tables:
            self._start_in_table(tag)
        elif tag in HEADINGS:
            self.flush()
            self._level = HEADINGS[tag]
        elif tag in BREAKS:
            self.flush()
        elif tag == "br":
            self._words.append(" ")

    def handle_endtag(self, tag: str) -> None:
        """The end of a block, of a table or of something skipped."""
        if tag == "title":
            self._in_title = False
        elif tag in self._skipping:
            while self._skipping.pop() != tag:
                pass
        elif tag == "table" and self._tables:
            self._end_table()
        elif self._tables and tag == "caption":
            self._caption, self._words = "".join(self._words), []
        elif self._tables and tag in {"td", "th"}:
            self._end_cell()
        elif not self._tables and (tag in BREAKS or tag in HEADINGS):
            self.flush()

    def handle_data(self, data: str) -> None:
        """Visible text, or the title."""
        if self._in_title:
            self.title += data
        elif not self._skipping:
            self._words.append(data)

    def flush(self) -> None:
        """End the current block."""
        text, self._words = "".join(self._words), []
        if self._level:
            self.builder.heading(text, self._level)
            self._level = 0
        else:
            self.builder.paragraph(text)

    def _start_table(self) -> None:
        if not self._tables:
            self.flush()
            self._rows, self._caption = [], ""
        self._tables += 1

    def _start_in_table(self, tag: str) -> None:
        if self._tables == 1 and tag == "tr":
            self._end_cell()
            self._rows.append([])
        elif self._tables == 1 and tag in {"td", "th"}:
            self._end_cell()
            if not self._rows:
                self._rows.append([])
            self._rows[-1].append("")
        else:
            self._words.append(" ")

    def _end_cell(self) -> None:
        text, self._words = "".join(self._words).strip(), []
        if self._tables == 1 and self._rows and self._rows[-1] and text:
            self._rows[-1][-1] = f"{self._rows[-1][-1]} {text}".strip()

    def _end_table(self) -> None:
        if self._tables == 1:
            self._end_cell()
            if max((len(row) for row in self._rows), default=0) > 1:
                self.builder.table(self._rows, self._caption)
            else:  # one column: a layout, not a table
                for row in self._rows:
                    self.builder.paragraph(" ".join(row))
        self._tables -= 1
