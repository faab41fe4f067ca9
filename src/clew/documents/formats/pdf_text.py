"""From the lines of all pages to the text of the document: running heads out, headings in, words made whole."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from clew.documents.extracted import Extracted, Kind, cells_of, markdown
from clew.documents.formats.builder import Place, TextBuilder
from clew.documents.formats.pdf_blocks import PageBlock, code_lines, page_blocks
from clew.documents.formats.pdf_continued import rows_over_pages, with_continued_tables
from clew.documents.formats.pdf_headings import heading_level, learn_styles
from clew.documents.formats.pdf_hyphens import joined, words_of
from clew.documents.formats.pdf_lines import Line
from clew.documents.formats.pdf_outline import Entry, Mark, marked_lines
from clew.documents.formats.pdf_page import Font
from clew.documents.formats.pdf_running import without_running_heads

NO_TITLES = frozenset({"untitled", "anonymous", "unspecified", "unknown", "document"})


@dataclass
class ReadPages:
    """The pages of a file as lines, and what the file says about itself."""

    count: int = 0
    title: str = ""
    entries: list[Entry] = field(default_factory=list)
    labels: tuple[str, ...] = ()
    pages: list[list[Line]] = field(default_factory=list)
    sizes: list[tuple[float, float]] = field(default_factory=list)
    images: list[int] = field(default_factory=list)
    """Pages that are only a picture, and were not recognised."""
    notes: list[str] = field(default_factory=list)


def assembled(read: ReadPages) -> Extracted:
    """The document as text, blocks and places."""
    body = body_font(read.pages)
    pages = without_running_heads(read.pages, [height for _, height in read.sizes], body.size)
    marks: dict[int, dict[int, Mark]] = defaultdict(dict)
    for (page, place), mark in marked_lines(read.entries, pages).items():
        marks[page][place] = mark
    blocks = with_continued_tables(
        [page_blocks(lines, marks[n], read.sizes[n][1], body.size) for n, lines in enumerate(pages)]
    )
    styles = learn_styles(blocks, body, len(read.entries))
    words = words_of(line.text for lines in pages for line in lines)
    builder = TextBuilder()
    for builder.page, page_of_blocks in enumerate(blocks, 1):
        for block in page_of_blocks:
            _add(builder, block, builder.page, heading_level(block, styles), words)
    text = builder.text()
    first = next((text[block.start : block.end] for block in builder.blocks if block.kind == "heading"), "")
    usable = re.search(r"\w{3}", read.title) and read.title.lower().strip("()") not in NO_TITLES
    return Extracted(
        read.title if usable else first,
        text,
        tuple(builder.blocks),
        read.count,
        tuple(read.notes),
        tuple(builder.lines),
        read.labels,
        tuple(read.sizes),
    )


def body_font(pages: Sequence[Sequence[Line]]) -> Font:
    """The font of most letters outside code."""
    weights: Counter[Font] = Counter()
    for lines in pages:
        for line in lines:
            if not line.mono:
                weights[line.font] += len(line.text)
    return weights.most_common(1)[0][0] if weights else Font("", 10.0)


def _add(builder: TextBuilder, block: PageBlock, page: int, level: int, words: frozenset[str]) -> None:
    if block.sort == "table":
        _add_table(builder, block, page, words)
        return
    texts = [line.text for line in block.lines]
    if block.sort in ("code", "contents"):
        kept = code_lines(block.lines) if block.sort == "code" else texts
        pieces = [f"{text}\n" for text in kept[:-1]] + kept[-1:]
    else:
        pieces = joined([" ".join(text.split()) for text in texts], words)
    places: list[Place] = [(page, *line.box) for line in block.lines]
    kind: Kind = "contents" if block.sort == "contents" else "heading" if level else "paragraph"
    builder.printed(kind, list(zip(pieces, places, strict=True)), level=level)


def _add_table(builder: TextBuilder, block: PageBlock, page: int, words: frozenset[str]) -> None:
    tables = [line.table for line in block.lines if line.table is not None]
    caption = "".join(joined([line.text for line in block.caption], words))
    kept = rows_over_pages(tables)
    cells = cells_of([row for row, _, _ in kept], caption)
    if cells is None:
        return
    rows: list[Place] = [(page + part, *box) for _, part, box in kept]
    places = [rows[0], *rows]  # the line under the header of a Markdown table is printed nowhere
    if cells.caption:
        places = [(page, *block.caption[0].box)] * 2 + places
    lines = markdown(cells).split("\n")
    pieces = [f"{line}\n" for line in lines[:-1]] + lines[-1:]
    builder.printed("table", list(zip(pieces, places, strict=True)), cells=cells)
