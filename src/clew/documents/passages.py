"""Split the blocks of a file into passages, sections, pages and tables. No span crosses a page or a section."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from clew.core.proper_names import sentence_spans
from clew.documents.extracted import Block, Cells, Extracted, TextLine, markdown
from clew.documents.formats.pdf_blocks import CAPTION, LONGEST_CAPTION

PASSAGE_LENGTH = 600
"""Maximum characters of a passage, unless a sentence is longer. 0 means one sentence each, as in the paper."""
LONGEST_LABEL = 60
"""Maximum length of a label line above a paragraph, in characters."""
TABLE_LENGTH = 3000
"""Maximum length of a table in Markdown characters. Longer tables are split into runs of rows, each with the header."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its position. `parent` is the index of the enclosing section."""

    heading: str
    level: int
    start: int
    page: int | None
    parent: int | None


PrintedLine = tuple[tuple[int, int], tuple[float, float, float, float]]
"""The characters of a passage on one line, and the line's box on the page."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A passage or a table. A long table has only its caption and header here, and its rows are in passages."""

    text: str
    start: int
    end: int
    page: int | None
    section: int | None
    table: int | None = None
    """Index of the table whose rows a passage contains."""
    caption: str = ""
    lines: tuple[PrintedLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """The sections, passages and tables of a file, each in reading order."""

    sections: tuple[Section, ...]
    passages: tuple[TextPart, ...]
    tables: tuple[TextPart, ...]

    def headings(self, section: int | None) -> tuple[str, ...]:
        """Return the heading of a section and its ancestors, outermost first."""
        found: list[str] = []
        while section is not None:
            found.append(self.sections[section].heading)
            section = self.sections[section].parent
        return tuple(reversed(found))


def outline(extracted: Extracted, length: int = PASSAGE_LENGTH) -> Outline:
    """Split a file into sections, passages of about `length` characters, and tables."""
    sections: list[Section] = []
    passages: list[TextPart] = []
    tables: list[TextPart] = []
    waiting: list[Block] = []

    def close() -> None:
        section = len(sections) - 1 if sections else None
        passages.extend(_passages(extracted.text, waiting, section, length))
        waiting.clear()

    for block in with_captions(extracted.text, extracted.blocks):
        if block.kind == "contents":  # repeats headings and answers no question
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
    """Use a paragraph such as "Table 2. Fees" directly before or else after a table as its caption."""
    result: list[Block] = []
    waiting: Block | None = None  # a caption without a table so far
    for block in blocks:
        last = result[-1] if result else None
        if block.cells is not None and not block.cells.caption and waiting is not None and waiting is last:
            result[-1] = _captioned(text, block, waiting)
            waiting = None
            continue
        waiting = block if _is_caption(text, block) else None
        if waiting is None or last is None or last.cells is None or last.cells.caption or last.page != block.page:
            result.append(block)
        else:
            result[-1], waiting = _captioned(text, last, block), None
    return result


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

    def within(self, span: TextPart) -> tuple[PrintedLine, ...]:
        """Return the printed lines on the span's page. Characters count from the span's start."""
        first = max(0, bisect_left(self._starts, span.start) - 1)
        found = []
        for line in self._lines[first : bisect_left(self._starts, span.end)]:
            start, end = max(line.start, span.start), min(line.end, span.end)
            if start < end and line.page == span.page:
                found.append(((start - span.start, end - span.start), (line.x0, line.top, line.x1, line.bottom)))
        return tuple(found)


def _section(text: str, block: Block, before: Sequence[Section]) -> Section:
    heading = text[block.start : block.end].strip().strip("#").strip()
    parent = next((i for i in reversed(range(len(before))) if before[i].level < block.level), None)
    return Section(" ".join(heading.split()), block.level, block.start, block.page, parent)


def _passages(text: str, blocks: Sequence[Block], section: int | None, length: int) -> Iterator[TextPart]:
    """Yield passages of whole sentences up to the length. Paragraphs stay together if they fit."""
    spans: list[tuple[int, int]] = []
    opening: list[int] = []  # index of the first sentence of each sentence's paragraph
    for block in blocks:
        start = len(spans)
        for span in sentence_spans(text, block.start, block.end):
            spans += _cut(text, *span, max(2 * length, 1200))
        opening += [start] * (len(spans) - start)
    first = 0
    for index in range(1, len(spans)):
        if spans[index][1] - spans[first][0] <= length:
            continue
        cut = index
        while cut > max(first, index - 2) and length and _announces(text, spans[cut - 1], spans[cut]):
            cut -= 1
        if first < opening[cut] and cut < index and spans[index][1] - spans[opening[cut]][0] <= length:
            cut = opening[cut]  # the whole paragraph before it
        if cut == first and spans[index - 1][1] - spans[first][0] > length:
            cut = index  # exceed the length by one sentence at most
        if cut > first:
            begin, last = spans[first][0], spans[cut - 1][1]
            yield TextPart(text[begin:last], begin, last, blocks[0].page, section)
            first = cut
    if spans:
        begin, last = spans[first][0], spans[-1][1]
        yield TextPart(text[begin:last], begin, last, blocks[0].page, section)


def _announces(text: str, span: tuple[int, int], following: tuple[int, int]) -> bool:
    """Return whether a sentence introduces the next: it ends in a colon, or is a label above a sentence."""
    last, gap = text[span[1] - 1], text[span[1] : following[0]]
    label = span[1] - span[0] <= LONGEST_LABEL and last.isalnum() and gap.count("\n") > 1
    return last == ":" or (label and text[following[1] - 1] in ".!?")


def _cut(text: str, start: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
    """Split an overlong sentence, such as a page of code, at white space."""
    while end - start > longest:
        space = max(text.rfind(mark, start + longest // 2, start + longest) for mark in "\n ;,")
        stop = space if space > start else start + longest
        yield (start, stop)
        start = stop
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        yield (start, end)


def _table(text: str, block: Block, cells: Cells, section: int | None, number: int) -> tuple[TextPart, list[TextPart]]:
    whole = markdown(cells)
    short = len(whole) <= TABLE_LENGTH
    shown = whole if short else markdown(cells, ())
    table = TextPart(shown, block.start, block.end, block.page, section, caption=cells.caption)
    if short:
        return table, []
    lines = _row_lines(text, block, len(cells.rows))
    parts = []
    for first, last in _row_runs(cells):
        rows = markdown(cells, cells.rows[first:last])
        start, end = (lines[first][0], lines[last - 1][1]) if lines else (block.start, block.end)
        parts.append(TextPart(rows, start, end, block.page, section, number))
    return table, parts


def _row_runs(cells: Cells) -> Iterator[tuple[int, int]]:
    """Yield runs of rows of about half of TABLE_LENGTH in Markdown."""
    first, size = 0, 0
    for index, row in enumerate(cells.rows):
        width = sum(map(len, row)) + 3 * len(row)
        if index > first and size + width > TABLE_LENGTH // 2:
            yield (first, index)
            first, size = index, 0
        size += width
    yield (first, len(cells.rows))


def _row_lines(text: str, block: Block, rows: int) -> list[tuple[int, int]]:
    """Return the span of each row in the text. Empty if rows and lines do not match."""
    spans, start = [], block.start
    for line in text[block.start : block.end].split("\n"):
        if "|" in line:
            spans.append((start, start + len(line)))
        start += len(line) + 1
    return spans[2:] if len(spans) == rows + 2 else []
