"""Detect headings and their levels by the outline, or else by print and numbering."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from clew.documents.formats.pdf_blocks import CAPTION, FIGURE, Mark, PageBlock
from clew.documents.formats.pdf_lines import Font, Line

NUMBERING = re.compile(r"((chapter|section|appendix|part|kapitel|anhang|teil)?[\divxlc]*[a-z]?)", re.IGNORECASE)
"""Text before a title that may be missing in print or in the outline."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A bookmark: its level from 1, its title, and its page from 0."""

    level: int
    title: str
    page: int


def marked_lines(entries: Sequence[Entry], pages: Sequence[Sequence[Line]]) -> dict[tuple[int, int], Mark]:
    """Return the heading of each page and line that belongs to an outline entry."""
    marks: dict[tuple[int, int], Mark] = {}
    for number, entry in enumerate(entries):
        title = letters(entry.title)
        if not title:
            continue
        for page in (entry.page, entry.page + 1, entry.page - 1):
            found = _find(title, pages[page], {p for n, p in marks if n == page}) if 0 <= page < len(pages) else None
            if found is not None:
                marks.update({(page, line): Mark(number, entry.level) for line in range(*found)})
                break
    return marks


def letters(text: str) -> str:
    """Return only the letters and digits, in lower case."""
    return "".join(letter for letter in text.lower() if letter.isalnum())


def _find(title: str, lines: Sequence[Line], taken: set[int]) -> tuple[int, int] | None:
    """Find up to three lines that form the title. Prefer the largest print."""
    found = []
    plain = [letters(line.text) if line.table is None else "" for line in lines]
    for start in range(len(plain)):
        text = ""
        for end in range(start, min(start + 3, len(plain))):
            if end in taken or not plain[end]:
                break
            text += plain[end]
            if _same(text, title):
                found.append((-lines[start].size, start, end + 1))
            if len(text) > len(title) + 12:
                break
    return min(found)[1:] if found else None


def _same(printed: str, title: str) -> bool:
    longer, shorter = (printed, title) if len(printed) >= len(title) else (title, printed)
    if not shorter or not longer.endswith(shorter):
        return False
    return longer == shorter or NUMBERING.fullmatch(longer[: -len(shorter)]) is not None


NUMBERED = re.compile(r"(?:(?:chapter|appendix|section)\s+)?((?:\d{1,2}|[A-Z])(?:\.\d{1,2})*)\.?\s+\S", re.IGNORECASE)
LARGER = 1.12
"""Minimum ratio to the text size that counts as larger print."""
LONGEST = 150
"""Maximum characters of a heading that is recognised by its print."""
DEEPEST = 6
"""Deepest level of a heading, as in HTML."""

Style = tuple[str, float, bool]


@dataclass(frozen=True)
class HeadingStyles:
    """The body font, and the heading level of each print style."""

    body: Font
    levels: dict[Style, int]
    numbered_base: int | None
    """Level of headings numbered 1, 2, 3. None if headings have no numbers."""
    title: PageBlock | None = None
    """The title on the first page if the outline starts after it."""


def style_of(block: PageBlock) -> Style:
    """Return the print style of a block: font, size rounded to half a point, and bold."""
    line = block.lines[0]
    return (line.font.name, round(2 * line.size) / 2, line.bold)


def block_text(block: PageBlock) -> str:
    """Join the lines of a block with spaces."""
    return " ".join(line.text for line in block.lines)


def learn_styles(pages: Sequence[Sequence[PageBlock]], body: Font, outline_entries: int) -> HeadingStyles:
    """Learn the print styles of the headings in a document."""
    blocks = [block for page in pages for block in page]
    first_page = pages[0] if pages else []
    marked = [(style_of(block), block.mark) for block in blocks if block.mark is not None]
    entries = {mark.entry for _, mark in marked}
    if len(entries) >= 3 and len(entries) >= 0.5 * outline_entries:
        seen = Counter((style, mark.level) for style, mark in marked)
        usual: dict[Style, int] = {}
        for (style, level), _ in seen.most_common():
            usual.setdefault(style, level)
        distinct = {style: level for style, level in usual.items() if style[1] > LARGER * body.size}
        return HeadingStyles(body, distinct, None, title_block(first_page, body))
    candidates = [block for block in blocks if _stands_out(block, body)]
    sizes: list[float] = []
    for size in sorted({_rank_size(block) for block in candidates}, reverse=True):
        if not sizes or sizes[-1] - size > 0.6:
            sizes.append(size)
    levels = {}
    for block in candidates:
        rank = next(position for position, size in enumerate(sizes, 1) if size - _rank_size(block) <= 0.6)
        levels[style_of(block)] = min(rank, DEEPEST)
    numbered = Counter(
        levels[style_of(block)] - _depth(number) + 1
        for block in candidates
        if (number := NUMBERED.match(block_text(block)))
    )
    base = max(1, numbered.most_common(1)[0][0]) if numbered else None
    return HeadingStyles(body, levels, base)


def title_block(first_page: Sequence[PageBlock], body: Font) -> PageBlock | None:
    """Return the block in the largest print of the first page, if it stands out."""
    large = [block for block in first_page if block.lines[0].size > LARGER * body.size and _stands_out(block, body)]
    return max(large, key=lambda block: block.lines[0].size, default=None)


def heading_level(block: PageBlock, styles: HeadingStyles) -> int:
    """Return the level of a heading, starting at 1, or 0 for any other block."""
    if block.mark is not None:
        return min(block.mark.level, DEEPEST)
    if block is styles.title:
        return 1
    if not _stands_out(block, styles.body):
        return 0
    level = styles.levels.get(style_of(block), 0)
    numbered = NUMBERED.match(block_text(block))
    if level and numbered and styles.numbered_base is not None:
        level = styles.numbered_base + _depth(numbered) - 1
    return min(level, DEEPEST)


def _rank_size(block: PageBlock) -> float:
    line = block.lines[0]
    return line.size + (0.0 if line.bold else -0.3)


def _depth(numbered: re.Match[str]) -> int:
    return numbered[1].count(".") + 1


def _stands_out(block: PageBlock, body: Font) -> bool:
    """Return whether a block looks like a heading.

    It is short, larger or bolder than the text, and not a sentence, item, caption or formula.
    """
    text = block_text(block)
    if block.sort != "text" or len(block.lines) > 3 or len(text) > LONGEST or CAPTION.match(text) or FIGURE.match(text):
        return False
    letters = sum(letter.isalpha() for letter in text)
    if letters < 3 or letters < 0.5 * len(text.replace(" ", "")):
        return False
    line = block.lines[0]
    numbered = NUMBERED.match(text)
    if line.is_item and not numbered:
        return False
    if line.size > LARGER * body.size:
        return not text.endswith((",", ";")) and text[:1] not in "•*–"
    if not line.bold or body.bold or line.size < 0.95 * body.size or not text[0].isalnum():
        return False
    return len(text) < 90 and not text.endswith((".", ",", ";", ":")) and (text[0].isupper() or bool(numbered))
