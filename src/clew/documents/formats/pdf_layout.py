"""From the words of a page and their places to lines, paragraphs, headings and tables without rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

CAPTION = re.compile(r"\s*(table|tab\.|tabelle|tableau|tabla)\s+([A-Z]?\d+|[IVXLC]+)\b", re.IGNORECASE)
NUMBERED = re.compile(r"\d+(\.\d+)*\.?\s+\S")


@dataclass(frozen=True, slots=True)
class Word:
    """A word and its box; `top` and `bottom` grow downwards."""

    text: str
    x0: float
    x1: float
    top: float
    bottom: float
    size: float
    bold: bool = False

    @property
    def middle(self) -> float:
        """Its vertical middle."""
        return (self.top + self.bottom) / 2


@dataclass(frozen=True, slots=True)
class Line:
    """Words that stand beside each other, from left to right."""

    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        """Its words with single spaces."""
        return " ".join(word.text for word in self.words)

    @property
    def top(self) -> float:
        """The highest top of its words."""
        return min(word.top for word in self.words)

    @property
    def bottom(self) -> float:
        """The lowest bottom of its words."""
        return max(word.bottom for word in self.words)

    @property
    def left(self) -> float:
        """Where it begins."""
        return self.words[0].x0

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.words[-1].x1

    @property
    def size(self) -> float:
        """The usual size of its letters."""
        return median(word.size for word in self.words)

    @property
    def bold(self) -> bool:
        """Whether all of it is bold."""
        return all(word.bold for word in self.words)

    def cells(self) -> list[tuple[float, float, str]]:
        """Its words grouped where the gaps between them are wider than spaces: left, right, text."""
        groups = [[self.words[0]]]
        for before, word in pairwise(self.words):
            if word.x0 - before.x1 > max(0.9 * word.size, 6.0):
                groups.append([])
            groups[-1].append(word)
        return [(group[0].x0, group[-1].x1, " ".join(word.text for word in group)) for group in groups]


@dataclass(frozen=True, slots=True)
class Area:
    """A table found on a page: its box and its rows."""

    x0: float
    top: float
    x1: float
    bottom: float
    rows: tuple[tuple[str, ...], ...]

    def holds(self, word: Word) -> bool:
        """Whether the middle of a word lies inside."""
        return self.x0 <= (word.x0 + word.x1) / 2 <= self.x1 and self.top <= word.middle <= self.bottom


def flow_lines(words: Sequence[Word]) -> list[Line]:
    """Lines in the order in which the page was written, which keeps columns apart."""
    lines: list[list[Word]] = []
    for word in words:
        if lines and _continues(lines[-1][-1], word):
            lines[-1].append(word)
        else:
            lines.append([word])
    return [Line(tuple(line)) for line in lines]


def _continues(before: Word, word: Word) -> bool:
    level = abs(word.middle - before.middle) < 0.5 * max(before.size, word.size)
    return level and -0.3 * word.size < word.x0 - before.x1 < 3 * max(before.size, 8.0)


def visual_lines(words: Sequence[Word]) -> list[Line]:
    """Lines across the whole width of the page, top to bottom."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda word: (word.middle, word.x0)):
        if lines and abs(word.middle - lines[-1][0].middle) < 0.4 * max(word.size, 1.0):
            lines[-1].append(word)
        else:
            lines.append([word])
    return [Line(tuple(sorted(line, key=lambda word: word.x0))) for line in lines]


def unruled_tables(lines: Sequence[Line]) -> Iterator[Area]:
    """Runs of at least three lines whose short cells stand in the same columns."""
    run: list[Line] = []
    for line in lines:
        fits = len(line.cells()) > 1 and (not run or (_aligned(run, line) and _close(run[-1], line)))
        if not fits:
            yield from _as_table(run)
            run = []
        if len(line.cells()) > 1:
            run.append(line)
    yield from _as_table(run)


def _close(above: Line, below: Line) -> bool:
    return below.top - above.bottom < 2.5 * max(above.size, below.size)


def _aligned(run: Sequence[Line], line: Line) -> bool:
    """At least two cells share a left edge, a right edge or a middle with a column above."""
    columns = [cell for above in run[-3:] for cell in above.cells()]

    def stands_in_column(cell: tuple[float, float, str]) -> bool:
        return any(
            min(abs(cell[0] - x0), abs(cell[1] - x1), abs(cell[0] + cell[1] - x0 - x1) / 2) < 4.0
            for x0, x1, _ in columns
        )

    return sum(map(stands_in_column, line.cells())) >= 2


def _as_table(run: Sequence[Line]) -> Iterator[Area]:
    if len(run) < 3:
        return
    cells = [cell for line in run for cell in line.cells()]
    if median(len(text.split()) for _, _, text in cells) > 4:  # columns of prose, not of values
        return
    columns = _columns(cells)
    if len(columns) < 2:
        return
    rows = []
    for line in run:
        row = [""] * len(columns)
        for x0, x1, text in line.cells():
            place = max(range(len(columns)), key=lambda c: min(x1, columns[c][1]) - max(x0, columns[c][0]))
            row[place] = f"{row[place]} {text}".strip()
        rows.append(tuple(row))
    yield Area(
        min(line.left for line in run) - 1,
        run[0].top - 1,
        max(line.right for line in run) + 1,
        run[-1].bottom + 1,
        tuple(rows),
    )


def _columns(cells: Sequence[tuple[float, float, str]]) -> list[tuple[float, float]]:
    """Where cells of different lines overlap they are one column."""
    columns: list[tuple[float, float]] = []
    for x0, x1, _ in sorted(cells):
        if columns and x0 < columns[-1][1] - 1:
            columns[-1] = (columns[-1][0], max(columns[-1][1], x1))
        else:
            columns.append((x0, x1))
    return columns


def paragraphs(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines that belong together: same size of letters, no gap, no indent, no caption or heading between them."""
    found: list[list[Line]] = []
    for line in lines:
        if found and _same_paragraph(found[-1], line):
            found[-1].append(line)
        else:
            found.append([line])
    return found


def _same_paragraph(block: Sequence[Line], line: Line) -> bool:
    last = block[-1]
    if abs(last.size - line.size) > 0.6 or last.bold != line.bold or CAPTION.match(line.text):
        return False
    gap = line.top - last.bottom
    if gap < -line.size:  # up to the next column: a sentence may go on there
        return not last.text.rstrip().endswith((".", ":", "?", "!"))
    usual = min((b.top - a.bottom for a, b in pairwise(block)), default=0.45 * line.size)
    if gap > max(usual + 0.35 * line.size, 0.2 * line.size):
        return False
    indented = line.left - min(other.left for other in block[-3:]) > 0.8 * line.size
    return not (indented and last.text.rstrip().endswith((".", "!", "?")))


def joined(block: Sequence[Line]) -> str:
    """The text of a paragraph, words divided at the end of a line made whole."""
    text = ""
    for line in block:
        if re.search(r"[^\W\d_]{2}-$", text) and line.text[:1].islower():
            text = text[:-1] + line.text
        else:
            text = f"{text} {line.text}" if text else line.text
    return text.replace("\u00ad", "")


def heading_level(block: Sequence[Line], body_size: float) -> int:
    """1 to 3 for a heading, by the size of its letters or by being bold and short; 0 for anything else."""
    text = joined(block)
    if len(block) > 3 or len(text) > 160 or not any(letter.isalpha() for letter in text):
        return 0
    ratio = block[0].size / max(body_size, 1.0)
    if ratio > 1.45:
        return 1
    if ratio > 1.12:
        return 2
    stands_alone = len(text) < 100 and not text.rstrip().endswith((".", ",", ";"))
    return 3 if block[0].bold and stands_alone and (ratio > 0.97 or NUMBERED.match(text)) else 0
