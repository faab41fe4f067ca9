"""Tables that go on over the end of a page, put together again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from clew.documents.formats.pdf_blocks import PageBlock
from clew.documents.formats.pdf_lines import Table
from clew.documents.formats.pdf_page import Box

CONTINUED = re.compile(r"\b(cont\b|cont'd|continued|fortsetzung|suite)", re.IGNORECASE)
SAME_EDGE = 8.0
"""Points by which the sides of the two parts may differ."""


def with_continued_tables(pages: Sequence[Sequence[PageBlock]]) -> list[list[PageBlock]]:
    """The blocks of each page; a table that ends a page and begins the next one stands on the first of them."""
    result: list[list[PageBlock]] = []
    holder: tuple[int, int] | None = None  # page and place of the table that may go on
    for number, blocks in enumerate(pages):
        kept = list(blocks)
        if holder is not None and kept and _continues(result[holder[0]][holder[1]], kept[0]):
            page, place = holder
            result[page][place] = replace(result[page][place], lines=(*result[page][place].lines, kept[0].lines[0]))
            kept = kept[1:]
            alone = all(block.sort == "footnote" for block in kept)
            holder = holder if alone else None
        else:
            holder = None
        result.append(kept)
        last = next((place for place in reversed(range(len(kept))) if kept[place].sort != "footnote"), None)
        if last is not None and kept[last].sort == "table":
            holder = (number, last)
    return result


def _continues(block: PageBlock, following: PageBlock) -> bool:
    above, below = block.lines[-1].table, following.lines[0].table
    if above is None or below is None or above.ruled != below.ruled:
        return False
    if following.caption and not CONTINUED.search(" ".join(line.text for line in following.caption)):
        return False
    if len(above.rows[0]) != len(below.rows[0]):
        return False
    if abs(above.box.x0 - below.box.x0) > SAME_EDGE or abs(above.box.x1 - below.box.x1) > SAME_EDGE:
        return False
    first = block.lines[0].table
    return first is not None and (below.rows[0] == first.rows[0] or not below.bold_header)


def rows_over_pages(tables: Sequence[Table]) -> list[tuple[tuple[str, ...], int, Box]]:
    """The rows of the parts, each with the number of its part and its box.

    A header that is printed again is left out; a row cut by the end of the page, so without a first cell, is joined.
    """
    rows: list[tuple[tuple[str, ...], int, Box]] = []
    for part, table in enumerate(tables):
        for number, (cells, box) in enumerate(zip(table.rows, table.row_boxes, strict=True)):
            first = part > 0 and number == int(table.rows[0] == tables[0].rows[0])
            if part and number == 0 and cells == tables[0].rows[0]:
                continue
            if first and not cells[0] and rows[-1][0][0]:
                joined = tuple(f"{above} {below}".strip() for above, below in zip(rows[-1][0], cells, strict=True))
                rows[-1] = (joined, *rows[-1][1:])
            else:
                rows.append((cells, part, box))
    return rows
