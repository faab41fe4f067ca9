"""PDF: text in reading order, tables as cells, headings by outline or print, the place of each line on its page."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clew.core.errors import MissingExtraError, SourceError
from clew.documents.extracted import Extracted, Kind, cells_of, markdown
from clew.documents.formats.builder import Place, TextBuilder
from clew.documents.formats.pdf_blocks import (
    Mark,
    PageBlock,
    code_lines,
    page_blocks,
    rows_over_pages,
    with_continued_tables,
)
from clew.documents.formats.pdf_headings import heading_level, learn_styles, marked_lines
from clew.documents.formats.pdf_lines import Line
from clew.documents.formats.pdf_page import Font
from clew.documents.formats.pdf_running import without_running_heads

if TYPE_CHECKING:
    from clew.documents.formats.pdf_file import ReadPages

NO_TITLES = frozenset({"untitled", "anonymous", "unspecified", "unknown", "document"})


def read_pdf(file: Path, *, with_tables: bool = True) -> Extracted:
    """Raises SourceError for a file that is damaged or encrypted, or holds no text."""
    try:
        from clew.documents.formats.pdf_file import read_pages
    except ImportError as error:
        raise MissingExtraError("pypdfium2", "documents") from error
    read = read_pages(file, with_tables=with_tables)
    if not any(read.pages):
        what = "holds only images, so it was probably scanned" if read.images else "holds no text"
        raise SourceError(f"the PDF {what}: {read.notes[0] if read.notes else 'there is nothing to search'}", file=file)
    return assembled(read)


def assembled(read: ReadPages) -> Extracted:
    """The document as text, blocks and places: running heads out, headings in, divided words made whole."""
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


DIVIDED = re.compile(r"([^\W\d_]+)[-‐\u00ad]$")
FIRST = re.compile(r"[^\W\d_]+")
LONG = 4
"""Letters from which two words of the document around a hyphen are taken as a compound."""


def words_of(texts: Iterable[str]) -> frozenset[str]:
    """The words of a document and its compounds with a hyphen, in lower case; ends of divided words left out."""
    words: set[str] = set()
    for text in texts:
        words.update(re.findall(r"[^\W\d_]+(?:[-‐][^\W\d_]+)*(?![-‐\u00ad\w])", text.lower()))
    return frozenset(words)


def joined(lines: Sequence[str], words: frozenset[str]) -> list[str]:
    """The lines of a paragraph as pieces that follow each other without a space."""
    pieces = [line.replace("\u00ad", "") if line[-1:] != "\u00ad" else line for line in lines]
    for place, following in enumerate(pieces[1:]):
        pieces[place] = _ending(pieces[place], following, words)
    if pieces:
        pieces[-1] = pieces[-1].rstrip("\u00ad")
    return pieces


def _ending(line: str, following: str, words: frozenset[str]) -> str:
    before, after = DIVIDED.search(line), FIRST.match(following)
    if before is None or after is None:
        return line + " "
    if line[-1] == "\u00ad":
        return line[:-1]
    return line if keeps_hyphen(line, before[1], after[0], words) else line[:-1]


def keeps_hyphen(line: str, before: str, after: str, words: frozenset[str]) -> bool:
    """Whether the hyphen belongs to the word: by how the rest of the document writes it."""
    if not after[0].islower() or before[-1].isupper() or re.search(r"[-‐\d_/]" + re.escape(before) + r"[-‐]$", line):
        return True  # names, abbreviations, compounds of three words
    first, second = before.lower(), after.lower()
    if first + second in words:
        return False
    if f"{first}-{second}" in words:
        return True
    return min(len(first), len(second)) >= LONG and first in words and second in words
