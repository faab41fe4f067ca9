"""Contents of a PDF page, in points from the top left of the displayed page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Box(NamedTuple):
    """A rectangle in points. `top` and `bottom` increase downwards."""

    x0: float
    top: float
    x1: float
    bottom: float

    def holds(self, word: PrintedWord) -> bool:
        """Return whether the middle of a word is inside."""
        across, down = (word.x0 + word.x1) / 2, (word.top + word.bottom) / 2
        return self.x0 - 1 <= across <= self.x1 + 1 and self.top <= down <= self.bottom


class Font(NamedTuple):
    """Font properties of a run of letters."""

    name: str
    size: float
    bold: bool = False
    mono: bool = False
    sideways: bool = False


class PrintedWord(NamedTuple):
    """Letters without spaces, and their box."""

    text: str
    x0: float
    top: float
    x1: float
    bottom: float
    font: Font


@dataclass(frozen=True, slots=True)
class PageContents:
    """Printed contents of a page: words in file order, rules, and whether an image covers much of it."""

    width: float
    height: float
    words: list[PrintedWord]
    rules: list[Box]
    pictured: bool
    cut: bool = False
    """Whether the page has more characters than the limit."""


@dataclass(frozen=True, slots=True)
class View:
    """Maps file coordinates to points from the top left of the displayed page."""

    left: float
    bottom: float
    right: float
    top: float
    quarter_turns: int

    def boxes(self, corners: NDArray[Any]) -> NDArray[np.float64]:
        """Convert (left, top, right, bottom) rectangles of the file to (x0, top, x1, bottom) on the page."""
        x, y = corners[:, [0, 2]], corners[:, [1, 3]]
        across, down = (
            (x - self.left, self.top - y),
            (y - self.bottom, x - self.left),
            (self.right - x, y - self.bottom),
            (self.top - y, self.right - x),
        )[self.quarter_turns]
        return np.column_stack([across.min(1), down.min(1), across.max(1), down.max(1)]).astype(np.float64)
