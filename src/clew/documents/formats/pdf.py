"""PDF reader: text in reading order, tables as cells, headings by outline or print, the position of each line.

It removes running heads and joins words divided at line ends.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clew.core.errors import SourceError, needing
from clew.documents.extracted import Extracted, Kind, cells_of, markdown
from clew.documents.formats.builder import Place, TextBuilder, is_section
from clew.documents.formats.pdf_blocks import (
    Mark,
    PageBlock,
    code_lines,
    page_blocks,
    rows_over_pages,
    with_continued_tables,
)
from clew.documents.formats.pdf_headings import heading_level, learn_styles, marked_lines
from clew.documents.formats.pdf_lines import Box, Font, Line

if TYPE_CHECKING:
    from clew.documents.formats.pdf_file import ReadPages

NO_TITLES = frozenset({"untitled", "anonymous", "unspecified", "unknown", "document"})


def read_pdf(file: Path) -> Extracted:
    """Read a PDF. Raise SourceError if it is damaged or encrypted, or contains no text."""
    with needing("documents", "pypdfium2"):
        from clew.documents.formats.pdf_file import read_pages
    read = read_pages(file)
    if not any(read.pages):
        problem = "contains only images, so it was probably scanned" if read.images else "contains no text"
        note = f": {read.notes[0]}" if read.notes else ""
        raise SourceError(f"the PDF {problem}{note}", file=file)
    return assembled(read)


def assembled(read: ReadPages) -> Extracted:
    """Assemble the document: remove running heads, mark headings, join divided words."""
    body = body_font(read.pages)
    pages = without_running_heads(read.pages, [height for _, height in read.sizes], body.size)
    marks: dict[int, dict[int, Mark]] = defaultdict(dict)
    for (page, line), mark in marked_lines(read.entries, pages).items():
        marks[page][line] = mark
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
        read.title if usable else "" if is_section(first) else first,
        text,
        tuple(builder.blocks),
        read.count,
        tuple(read.notes),
        tuple(builder.lines),
        read.labels,
    )


def body_font(pages: Sequence[Sequence[Line]]) -> Font:
    """Return the font of most letters outside code."""
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
        lines = code_lines(block.lines) if block.sort == "code" else texts
        pieces = [f"{text}\n" for text in lines[:-1]] + lines[-1:]
    else:
        pieces = joined([" ".join(text.split()) for text in texts], words)
    positions: list[Place] = [(page, *line.box) for line in block.lines]
    kind: Kind = "contents" if block.sort == "contents" else "heading" if level else "paragraph"
    builder.printed(kind, list(zip(pieces, positions, strict=True)), level=level)


def _add_table(builder: TextBuilder, block: PageBlock, page: int, words: frozenset[str]) -> None:
    tables = [line.table for line in block.lines if line.table is not None]
    caption = "".join(joined([line.text for line in block.caption], words))
    rows = rows_over_pages(tables)
    cells = cells_of([row for row, _, _ in rows], caption)
    if cells is None:
        return
    boxes: list[Place] = [(page + part, *box) for _, part, box in rows]
    positions = [boxes[0], *boxes]  # the rule under the header of a Markdown table is not printed
    if cells.caption:
        positions = [(page, *block.caption[0].box)] * 2 + positions
    lines = markdown(cells).split("\n")
    pieces = [f"{line}\n" for line in lines[:-1]] + lines[-1:]
    builder.printed("table", list(zip(pieces, positions, strict=True)), cells=cells)


# Running heads, running feet and page numbers, detected by repetition at page edges.

EDGE = 0.16
"""Share of the page height, at the top and at the bottom, that may contain running heads."""
NUMBER = re.compile(r"\d+|\b[ivxlc]+\b", re.IGNORECASE)
PAGE_NUMBER = re.compile(r"\W*(\w{1,6}\.?\s)?#(\s*(/|\w{1,4})\s*#)?\W*")
"""A line that is only a page number, after replacing its numbers."""

Slot = tuple[bool, int, str, float]
"""Position of a line: at the top, height on the page, font and font size."""


def without_running_heads(
    pages: Sequence[Sequence[Line]], heights: Sequence[float], body_size: float
) -> list[list[Line]]:
    """Return the lines of each page without running heads."""
    edges = [dict(_edges(lines, height)) for lines, height in zip(pages, heights, strict=True)]
    texts = Counter(key for page in edges for key in {(is_top, plain(line)) for is_top, line in page.values()})
    slots: dict[Slot, list[str]] = defaultdict(list)
    for page in edges:
        for is_top, line in page.values():
            slots[_slot(is_top, line)].append(plain(line))
    running = {slot for slot, found_texts in slots.items() if _runs(found_texts, len(pages))}
    numbered = Counter[bool]()
    for (is_top, text), count in texts.items():
        numbered[is_top] += count if PAGE_NUMBER.fullmatch(text) else 0

    def dropped(number: int, is_top: bool, line: Line) -> bool:
        text = plain(line)
        if PAGE_NUMBER.fullmatch(text):
            return numbered[is_top] > 2 or re.sub(r"\D", "", line.text) == str(number)
        count = texts[is_top, text]
        if count > max(2, 0.5 * len(pages)):
            return True
        often = count > max(2, 0.25 * len(pages)) or _slot(is_top, line) in running
        return often and line.size <= 1.1 * body_size

    return [
        [line for index, line in enumerate(lines) if index not in edge or not dropped(number, *edge[index])]
        for number, (lines, edge) in enumerate(zip(pages, edges, strict=True), 1)
    ]


def plain(line: Line) -> str:
    """Return the text with numbers replaced, so that page numbers do not matter."""
    return NUMBER.sub("#", line.text)


def _edges(lines: Sequence[Line], height: float) -> Iterable[tuple[int, tuple[bool, Line]]]:
    """Yield the outermost three lines at the top and at the bottom that are separate from the text, by index."""
    down = sorted(enumerate(lines), key=lambda item: item[1].box.top)
    yield from ((index, (True, line)) for index, line in _apart(down, lambda box: box.bottom < EDGE * height))
    yield from ((index, (False, line)) for index, line in _apart(down[::-1], lambda box: box.top > (1 - EDGE) * height))


def _apart(inwards: Sequence[tuple[int, Line]], at_edge: Callable[[Box], bool]) -> Sequence[tuple[int, Line]]:
    """Return the lines at the edge up to the last gap before the text, except the innermost line of the page."""
    count = min(sum(1 for _, line in inwards if at_edge(line.box)), len(inwards) - 1)
    while 0 < count < len(inwards):
        line, following = inwards[count - 1][1], inwards[count][1]
        gap = max(following.box.top - line.box.bottom, line.box.top - following.box.bottom)
        if gap > 0.4 * line.size:
            break
        count -= 1
    return [item for item in inwards[: min(count, 3)] if item[1].table is None]


def _slot(is_top: bool, line: Line) -> Slot:
    return is_top, round((line.box.top + line.box.bottom) / 10), line.font.name, line.font.size


def _runs(texts: Sequence[str], pages: int) -> bool:
    """Return whether most texts at a position occur there on several pages, as chapter names do."""
    counts = Counter(texts)
    repeated = sum(count for count in counts.values() if count > 1)
    return len(texts) > max(2, 0.25 * pages) and repeated > 0.5 * len(texts)


DIVIDED = re.compile(r"([^\W\d_]+)[-‐\u00ad]$")
FIRST = re.compile(r"[^\W\d_]+")
LONG = 4
"""Minimum length of two known words around a hyphen to count as a compound, in letters."""


def words_of(texts: Iterable[str]) -> frozenset[str]:
    """Return the words of a document and its hyphenated compounds in lower case, without divided words."""
    words: set[str] = set()
    for text in texts:
        words.update(re.findall(r"[^\W\d_]+(?:[-‐][^\W\d_]+)*(?![-‐\u00ad\w])", text.lower()))
    return frozenset(words)


def joined(lines: Sequence[str], words: frozenset[str]) -> list[str]:
    """Return the lines of a paragraph as pieces to concatenate without spaces."""
    pieces = [line.replace("\u00ad", "") if line[-1:] != "\u00ad" else line for line in lines]
    for index, following in enumerate(pieces[1:]):
        pieces[index] = _ending(pieces[index], following, words)
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
    """Return whether the hyphen belongs to the word, judged by other uses in the document."""
    if not after[0].islower() or before[-1].isupper() or re.search(r"[-‐\d_/]" + re.escape(before) + r"[-‐]$", line):
        return True  # names, abbreviations, compounds of three words
    first, second = before.lower(), after.lower()
    if first + second in words:
        return False
    if f"{first}-{second}" in words:
        return True
    return min(len(first), len(second)) >= LONG and first in words and second in words
