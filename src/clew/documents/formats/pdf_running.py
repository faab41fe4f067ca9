"""Running heads, running feet and page numbers: learned from what repeats at the edges of the pages."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from clew.documents.formats.pdf_lines import Line
from clew.documents.formats.pdf_page import Box

EDGE = 0.16
"""Share of the page's height, at the top and at the bottom, where running heads stand."""
NUMBER = re.compile(r"\d+|\b[ivxlc]+\b", re.IGNORECASE)
PAGE_NUMBER = re.compile(r"\W*(\w{1,6}\.?\s)?#(\s*(/|\w{1,4})\s*#)?\W*")
"""A line that is only a page number, once its numbers are replaced."""

Slot = tuple[bool, int, str, float]
"""Top or bottom, height on the page, font and its size."""


def without_running_heads(
    pages: Sequence[Sequence[Line]], heights: Sequence[float], body_size: float
) -> list[list[Line]]:
    """The lines of each page without those that run through the document."""
    edges = [dict(_edges(lines, height)) for lines, height in zip(pages, heights, strict=True)]
    texts = Counter(key for page in edges for key in {(is_top, plain(line)) for is_top, line in page.values()})
    slots: dict[Slot, list[str]] = defaultdict(list)
    for page in edges:
        for is_top, line in page.values():
            slots[_slot(is_top, line)].append(plain(line))
    running = {slot for slot, found in slots.items() if _runs(found, len(pages))}
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
        [line for place, line in enumerate(lines) if place not in edge or not dropped(number, *edge[place])]
        for number, (lines, edge) in enumerate(zip(pages, edges, strict=True), 1)
    ]


def plain(line: Line) -> str:
    """Its text with numbers replaced, so that page numbers do not matter."""
    return NUMBER.sub("#", line.text)


def _edges(lines: Sequence[Line], height: float) -> Iterable[tuple[int, tuple[bool, Line]]]:
    """The outermost three lines at the top and at the bottom that stand apart from the text, with their places."""
    down = sorted(enumerate(lines), key=lambda placed: placed[1].box.top)
    yield from ((place, (True, line)) for place, line in _apart(down, lambda box: box.bottom < EDGE * height))
    yield from ((place, (False, line)) for place, line in _apart(down[::-1], lambda box: box.top > (1 - EDGE) * height))


def _apart(inwards: Sequence[tuple[int, Line]], at_edge: Callable[[Box], bool]) -> Sequence[tuple[int, Line]]:
    """Lines at the edge up to the last gap before the text begins; a page keeps at least its innermost lines."""
    count = min(sum(1 for _, line in inwards if at_edge(line.box)), len(inwards) - 1)
    while 0 < count < len(inwards):
        line, following = inwards[count - 1][1], inwards[count][1]
        gap = max(following.box.top - line.box.bottom, line.box.top - following.box.bottom)
        if gap > 0.4 * line.size:
            break
        count -= 1
    return [placed for placed in inwards[: min(count, 3)] if placed[1].table is None]


def _slot(is_top: bool, line: Line) -> Slot:
    return is_top, round((line.box.top + line.box.bottom) / 10), line.font.name, line.font.size


def _runs(texts: Sequence[str], pages: int) -> bool:
    """Whether most of what stands in a slot stands there on several pages, as the names of chapters do."""
    counts = Counter(texts)
    repeated = sum(count for count in counts.values() if count > 1)
    return len(texts) > max(2, 0.25 * pages) and repeated > 0.5 * len(texts)
