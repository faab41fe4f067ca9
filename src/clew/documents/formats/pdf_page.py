"""What is printed on a page of a PDF, in points from the top left of the page as it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Box(NamedTuple):
    """A rectangle in points; `top` and `bottom` grow downwards."""

    x0: float
    top: float
    x1: float
    bottom: float

    def holds(self, word: Word) -> bool:
        """Whether the middle of a word lies inside."""
        across, down = (word.x0 + word.x1) / 2, (word.top + word.bottom) / 2
        return self.x0 - 1 <= across <= self.x1 + 1 and self.top <= down <= self.bottom


class Font(NamedTuple):
    """How a run of letters is printed."""

    name: str
    size: float
    bold: bool = False
    mono: bool = False
    sideways: bool = False


class Word(NamedTuple):
    """Letters without a space between them, and their box."""

    text: str
    x0: float
    top: float
    x1: float
    bottom: float
    font: Font


@dataclass(frozen=True, slots=True)
class Sheet:
    """What is printed on a page: words in the order of the file, rules, and whether a picture covers much of it."""

    width: float
    height: float
    words: list[Word]
    rules: list[Box]
    pictured: bool
    cut: bool = False
    """Whether the page has more characters than are read."""


@dataclass(frozen=True, slots=True)
class View:
    """The page as shown: from the coordinates of the file to points from the top left."""

    left: float
    bottom: float
    right: float
    top: float
    quarter_turns: int

    def boxes(self, corners: NDArray[Any]) -> NDArray[np.float64]:
        """Left, top, right, bottom of the file's rectangles as x0, top, x1, bottom of the page."""
        x, y = corners[:, [0, 2]], corners[:, [1, 3]]
        across, down = (
            (x - self.left, self.top - y),
            (y - self.bottom, x - self.left),
            (self.right - x, y - self.bottom),
            (self.top - y, self.right - x),
        )[self.quarter_turns]
        return np.column_stack([across.min(1), down.min(1), across.max(1), down.max(1)]).astype(np.float64)
