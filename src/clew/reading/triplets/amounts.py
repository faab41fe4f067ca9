"""Numbers in a question: how many of something there must be, and conditions on numbers and dates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clew.core.query import Comparison, Condition
from clew.reading.language.relation_words import content, word_likeness, words
from clew.reading.triplets.reading import NUMBERS, Reading

BEFORE: tuple[tuple[str, Comparison], ...] = (
    ("at least", ">="),
    ("no fewer than", ">="),
    ("no less than", ">="),
    ("no more than", "<="),
    ("at most", "<="),
    ("up to", "<="),
    ("more than", ">"),
    ("greater than", ">"),
    ("higher than", ">"),
    ("larger than", ">"),
    ("longer than", ">"),
    ("older than", ">"),
    ("fewer than", "<"),
    ("less than", "<"),
    ("lower than", "<"),
    ("smaller than", "<"),
    ("shorter than", "<"),
    ("younger than", "<"),
    ("not before", ">="),
    ("not after", "<="),
    ("exactly", "="),
    ("over", ">"),
    ("above", ">"),
    ("under", "<"),
    ("below", "<"),
    ("after", ">"),
    ("since", ">="),
    ("before", "<"),
    ("until", "<="),
)
"""Words before a number that say how to compare, longer ones first."""
AFTER: tuple[tuple[str, Comparison], ...] = (("or more", ">="), ("or fewer", "<="), ("or less", "<="))
ABOUT_TIME = frozenset({"after", "since", "before", "until", "not before", "not after"})
NUMERIC = frozenset({"integer", "number", "date"})


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in a question with its comparison: words [first, last)."""

    first: int
    last: int
    comparison: Comparison
    value: float
    cue: str = ""

    @property
    def is_count(self) -> bool:
        """Whether it may say how many there are of something."""
        return self.value == int(self.value) and self.value < 1000 and self.cue not in ABOUT_TIME


def amounts(reading: Reading) -> Iterator[Amount]:
    """The numbers outside mentions that come with a comparison, or alone after "in"."""
    texts = [word.text for word in reading.words]
    for place, text in enumerate(texts):
        value = _number(text)
        if value is None or place in reading.taken:
            continue
        for cue, comparison in BEFORE:
            parts = cue.split()
            if texts[max(0, place - len(parts)) : place] == parts:
                yield Amount(place - len(parts), place + 1, comparison, value, cue)
                break
        else:
            for cue, comparison in AFTER:
                if texts[place + 1 : place + 3] == cue.split():
                    yield Amount(place, place + 3, comparison, value, cue)
                    break
            else:
                if place and texts[place - 1] in ("in", "of", "from", "during"):
                    yield Amount(place, place + 1, "=", value, "in")


def conditions(
    reading: Reading, found: list[Amount], variables: Mapping[str, tuple[str, ...]], kinds: Mapping[str, str]
) -> Iterator[tuple[Condition, Amount]]:
    """Amounts as conditions on attributes; `variables` gives the attributes of each variable, `kinds` their types.

    An attribute is meant where one of its words stands near the number; a year alone means the one date there is.
    """
    for amount in found:
        best: tuple[float, str, str] | None = None
        for variable, attributes in variables.items():
            for attribute in attributes:
                kind = kinds.get(attribute, "text")
                if kind in NUMERIC:
                    near = _nearness(reading, amount, attribute)
                    if kind == "date" and 1000 <= amount.value < 3000:
                        near = max(near, 0.3)
                    if near > 0.0 and (best is None or near > best[0]):
                        best = near, variable, attribute
        if best is not None:
            _, variable, attribute = best
            value = int(amount.value) if amount.value == int(amount.value) else amount.value
            yield Condition(variable, attribute, amount.comparison, value), amount


def _nearness(reading: Reading, amount: Amount, attribute: str) -> float:
    best = 0.0
    for part in content(words(attribute)):
        for place, word in enumerate(reading.words):
            distance = min(abs(place - amount.first), abs(place - amount.last + 1))
            if place not in reading.taken and distance <= 5 and word_likeness(part, word.text):
                best = max(best, word_likeness(part, word.text) / (1 + 0.1 * distance))
    return best


def _number(text: str) -> float | None:
    if text in NUMBERS:
        return float(NUMBERS[text])
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None
