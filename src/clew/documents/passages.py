"""From the blocks of a file to passages, sections, pages and tables: spans that never cross a page or a section."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from clew.core.proper_names import sentence_spans
from clew.documents.extracted import Block, Cells, Extracted, TextLine, markdown
from clew.documents.formats.pdf_blocks import CAPTION, LONGEST_CAPTION

PASSAGE_LENGTH = 600
"""Characters a passage holds at most, unless a sentence is longer; 0 means one sentence each, as in the paper."""
LONGEST_LABEL = 60
"""Characters of a line that may stand as a label above a paragraph."""
TABLE_LENGTH = 3000
"""Characters of Markdown above which a table is cut into runs of rows, each under the header."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its place; `parent` is the position of the section it belongs to."""

    heading: str
    level: int
    start: int
    page: int | None
    parent: int | None


PrintedLine = tuple[tuple[int, int], tuple[float, float, float, float]]
"""The characters of a passage that stand on one line, and its box on the page."""


@dataclass(frozen=True, slots=True)
class TextPassage:
    """A span of a file's text; `table` is the position of the table whose rows it holds, where it holds rows."""

    text: str
    start: int
    end: int
    page: int | None
    section: int | None
    table: int | None = None
    lines: tuple[PrintedLine, ...] = ()


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table: whole where it is short, caption and header alone where its rows are passages."""

    text: str
    caption: str
    start: int
    end: int
    page: int | None
    section: int | None
    lines: tuple[PrintedLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """A file cut into pieces, each kind in reading order."""

    sections: tuple[Section, ...]
    passages: tuple[TextPassage, ...]
    tables: tuple[TextTable, ...]

    def headings(self, section: int | None) -> tuple[str, ...]:
        """The heading of a section and those above it, outermost first."""
        found: list[str] = []
        while section is not None:
            found.append(self.sections[section].heading)
            section = self.sections[section].parent
        return tuple(reversed(found))


def outline(extracted: Extracted, length: int = PASSAGE_LENGTH) -> Outline:
    """Cut a file into sections, passages of about `length` characters, and tables."""
    sections: list[Section] = []
    passages: list[TextPassage] = []
    tables: list[TextTable] = []
    waiting: list[Block] = []

    def close() -> None:
        section = len(sections) - 1 if sections else None
        passages.extend(_passages(extracted.text, waiting, section, length))
        waiting.clear()

    for block in with_captions(extracted.text, extracted.blocks):
        if block.kind == "contents":  # a table of contents repeats headings and answers nothing
            continue
        if block.kind == "paragraph":
            if waiting and block.page != waiting[-1].page:
                close()
            waiting.append(block)
            continue
        close()
        if block.kind == "heading":
            sections.append(_section(extracted.text, block, sections))
        elif block.cells is not None:
            section = len(sections) - 1 if sections else None
            table, rows = _table(extracted.text, block, block.cells, section, len(tables))
            tables.append(table)
            passages.extend(rows)
    close()
    printed = _Printed(extracted.lines)
    return Outline(
        tuple(sections),
        tuple(replace(passage, lines=printed.within(passage)) for passage in passages),
        tuple(replace(table, lines=printed.within(table)) for table in tables),
    )


def with_captions(text: str, blocks: Sequence[Block]) -> list[Block]:
    """The blocks, a paragraph such as "Table 2. Fees" right before or else right after a table made its caption."""
    kept: list[Block] = []
    waiting: Block | None = None  # a caption that no table has followed yet
    for block in blocks:
        last = kept[-1] if kept else None
        if block.cells is not None and not block.cells.caption and waiting is not None and waiting is last:
            kept[-1] = _captioned(text, block, waiting)
            waiting = None
            continue
        waiting = block if _is_caption(text, block) else None
        if waiting is None or last is None or last.cells is None or last.cells.caption or last.page != block.page:
            kept.append(block)
        else:
            kept[-1], waiting = _captioned(text, last, block), None
    return kept


def _is_caption(text: str, block: Block) -> bool:
    short = block.kind == "paragraph" and block.end - block.start < LONGEST_CAPTION
    return short and CAPTION.match(text[block.start : block.end].lstrip("*_")) is not None


def _captioned(text: str, table: Block, caption: Block) -> Block:
    words = " ".join(text[caption.start : caption.end].split()).strip("*_")
    cells = None if table.cells is None else replace(table.cells, caption=words)
    start, end = min(table.start, caption.start), max(table.end, caption.end)
    return replace(table, cells=cells, start=start, end=end)


class _Printed:
    """Finds the printed lines of a span."""

    def __init__(self, lines: Sequence[TextLine]) -> None:
        self._lines = sorted(lines, key=lambda line: line.start)
        self._starts = [line.start for line in self._lines]

    def within(self, span: TextPassage | TextTable) -> tuple[PrintedLine, ...]:
        """Those on its page, the characters counted from its start; lines are short, so few are looked at."""
        first = max(0, bisect_left(self._starts, span.start) - 1)
        found = []
        for line in self._lines[first : bisect_left(self._starts, span.end)]:
            start, end = max(line.start, span.start), min(line.end, span.end)
            if start < end and line.page == span.page:
                box = (line.x0, line.top, line.x1, line.bottom)
                found.append(((start - span.start, end - span.start), box))
        return tuple(found)


def _section(text: str, block: Block, before: Sequence[Section]) -> Section:
    heading = text[block.start : block.end].strip().strip("#").strip()
    parent = next((place for place in reversed(range(len(before))) if before[place].level < block.level), None)
    return Section(" ".join(heading.split()), block.level, block.start, block.page, parent)


def _passages(text: str, blocks: Sequence[Block], section: int | None, length: int) -> Iterator[TextPassage]:
    """Whole sentences until the length is reached; paragraphs are kept together where they fit."""
    spans: list[tuple[int, int]] = []
    opening: list[int] = []  # of each sentence, the place of the first one of its paragraph
    for block in blocks:
        begun = len(spans)
        for span in sentence_spans(text, block.start, block.end):
            spans += _cut(text, *span, max(2 * length, 1200))
        opening += [begun] * (len(spans) - begun)
    first = 0
    for place in range(1, len(spans)):
        if spans[place][1] - spans[first][0] <= length:
            continue
        cut = place
        while cut > max(first, place - 2) and length and _announces(text, spans[cut - 1], spans[cut]):
            cut -= 1
        if first < opening[cut] and cut < place and spans[place][1] - spans[opening[cut]][0] <= length:
            cut = opening[cut]  # the whole paragraph that announces it
        if cut == first and spans[place - 1][1] - spans[first][0] > length:
            cut = place  # what is announced may be one sentence too long, no more
        if cut > first:
            begin, last = spans[first][0], spans[cut - 1][1]
            yield TextPassage(text[begin:last], begin, last, blocks[0].page, section)
            first = cut
    if spans:
        begin, last = spans[first][0], spans[-1][1]
        yield TextPassage(text[begin:last], begin, last, blocks[0].page, section)


def _announces(text: str, span: tuple[int, int], following: tuple[int, int]) -> bool:
    """Whether a sentence belongs before the next one: it ends in a colon, or is a label above a sentence."""
    last, gap = text[span[1] - 1], text[span[1] : following[0]]
    label = span[1] - span[0] <= LONGEST_LABEL and last.isalnum() and gap.count("\n") > 1
    return last == ":" or (label and text[following[1] - 1] in ".!?")


def _cut(text: str, start: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
    """A sentence without end, such as a page of code, is cut at white space."""
    while end - start > longest:
        space = max(text.rfind(mark, start + longest // 2, start + longest) for mark in "\n ;,")
        stop = space if space > start else start + longest
        yield (start, stop)
        start = stop
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        yield (start, end)


def _table(
    text: str, block: Block, cells: Cells, section: int | None, number: int
) -> tuple[TextTable, list[TextPassage]]:
    whole = markdown(cells)
    short = len(whole) <= TABLE_LENGTH
    shown = whole if short else markdown(cells, ())
    table = TextTable(shown, cells.caption, block.start, block.end, block.page, section)
    if short:
        return table, []
    lines = _row_lines(text, block, len(cells.rows))
    parts = []
    for first, last in _row_runs(cells):
        rows = markdown(cells, cells.rows[first:last])
        start, end = (lines[first][0], lines[last - 1][1]) if lines else (block.start, block.end)
        parts.append(TextPassage(rows, start, end, block.page, section, number))
    return table, parts


def _row_runs(cells: Cells) -> Iterator[tuple[int, int]]:
    """Runs of rows whose Markdown is about as long as a passage may be for a table."""
    first, size = 0, 0
    for place, row in enumerate(cells.rows):
        width = sum(map(len, row)) + 3 * len(row)
        if place > first and size + width > TABLE_LENGTH // 2:
            yield (first, place)
            first, size = place, 0
        size += width
    yield (first, len(cells.rows))


def _row_lines(text: str, block: Block, rows: int) -> list[tuple[int, int]]:
    """The line of each row in the text; none where rows and lines do not match."""
    spans, start = [], block.start
    for line in text[block.start : block.end].split("\n"):
        if "|" in line:
            spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans[2:] if len(spans) == rows + 2 else []
