"""The numbers of numbered paragraphs, which office files leave to the program that shows them."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

ROMAN = {1000: "m", 900: "cm", 500: "d", 400: "cd", 100: "c", 90: "xc", 50: "l", 40: "xl", 10: "x", 9: "ix"}
ROMAN |= {5: "v", 4: "iv", 1: "i"}
HOLE = re.compile(r"%(\d)")


def written(number: int, style: str) -> str:
    """A number as a list shows it: 3, c, iii."""
    if style.lower().endswith("letter"):
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 % 8 + 1)
    elif style.lower().endswith("roman"):
        text, left = "", number % 4000
        for value, letters in ROMAN.items():
            text += letters * (left // value)
            left %= value
    else:
        return str(number)
    return text.upper() if style.startswith("upper") else text


@dataclass(frozen=True, slots=True)
class ListLevel:
    """How one level of a list is numbered: in which style, in which words, from which number on."""

    style: str
    pattern: str
    start: int = 1


@dataclass
class ListNumbers:
    """Counts the paragraphs of every list; a new item on one level begins the levels below anew."""

    levels: dict[tuple[str, int], ListLevel]
    _counts: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))

    def next(self, name: str, depth: int) -> str:
        """The number of the next paragraph of a list on a level; nothing for bullets."""
        level = self.levels.get((name, depth))
        if level is None:
            return ""
        counts = self._counts[name]
        counts[depth] = counts.get(depth, level.start - 1) + 1
        for deeper in [other for other in counts if other > depth]:
            del counts[deeper]
        if level.style in {"bullet", "none"}:
            return ""

        def shown(hole: re.Match[str]) -> str:
            at = int(hole.group(1)) - 1
            above = self.levels.get((name, at), level)
            return written(counts.get(at, above.start), above.style)

        return HOLE.sub(shown, level.pattern)
