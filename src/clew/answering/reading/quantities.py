"""Numbers, dates and steps in a question. These are the only grammars of the reader. Files contain their words.

3.5 million, 1,200, 2k, a dozen, half a million, twenty-five, 12 %, 1990, the 1990s, May 2010, 3 May 2010, 2010-05-03,
in May, 3 May. 1990 is both a year and a number. A step is the row before or after a row of a table: "the opponent
after Japan".
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Literal

from clew.answering.reading import words_file
from clew.core.amounts import NO_YEAR
from clew.core.schema import words_of
from clew.store.index.tokens import Token

YEARS = range(1000, 2200)
"""Four-digit numbers in this range may be years."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number or a date in a text. A date covers the days from `low` to `high`, both included."""

    start: int
    end: int
    text: str
    value: float | None = None
    """The number, or None for a date that is not a number."""
    low: str = ""
    """First day of a date, such as 2010-05-01."""
    high: str = ""
    """Last day of a date. The year of a month or a day without a year is NO_YEAR."""
    unit: str = ""
    """Unit after a number."""

    @property
    def is_date(self) -> bool:
        """Whether the quantity can be a date."""
        return bool(self.low)

    @property
    def month_and_day(self) -> tuple[int, int]:
        """The month and the day of a date without a year, or 0 for what is missing."""
        if int(self.low[:4] or 0) != NO_YEAR:
            return 0, 0
        return int(self.low[5:7]), int(self.low[8:]) if self.low == self.high else 0


@dataclass(frozen=True)
class _Words:
    numbers: dict[str, float]
    scales: dict[str, float]
    halves: dict[str, float]
    months: dict[str, int]
    decades: dict[str, int]
    units: dict[str, dict[str, float]]
    joints: list[str]
    joining: list[str]
    denying: list[str]


@cache
def _words() -> _Words:
    raw = tomllib.loads(words_file("quantities.toml"))
    return _Words(**raw)


def _any_of(words: Iterable[str]) -> str:
    """Return a regular expression for one of some words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    words = _words()
    day, year = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>[12]\d{3})"
    number, scale = _any_of(words.numbers), _any_of(words.scales)
    month = rf"(?P<month>{_any_of(words.months)})\.?"
    digits = r"(?<![\w.,-])[-+]?\d+(?:[.,'  ]\d{3})*(?:[.,]\d+)?"
    spelt = rf"(?:{number})(?:[- ](?:{number}))?"
    return tuple(
        re.compile(pattern, re.IGNORECASE)
        for pattern in (
            r"(?<!\d)(?P<year>[12]\d{3})-(?P<month>\d\d)-(?P<day>\d\d)(?!\d)",
            rf"\b{day}\s+(?:of\s+)?{month}\s+,?{year}\b",
            rf"\b{month}\s+{day},?\s+{year}\b",
            rf"\b{month}\s+(?:of\s+)?{year}\b",
            r"(?<!\d)(?P<year>[12]\d{3})-(?P<month>\d\d)(?![\d-])",
            rf"\b{day}\s+(?:of\s+)?{month}\b",
            rf"\b{month}\s+{day}\b",
            rf"\b(?<=in\s){month}\b",
            rf"\b(?:the\s+)?(?:(?P<decade>[12]\d{{2}}0)'?s|(?P<tens>{_any_of(words.decades)}))\b",
            rf"\b(?P<half>{'|'.join(words.halves)})\s+an?\s+(?P<scale>{scale})\b",
            rf"(?:\b(?P<article>an?)\s+|(?P<number>{digits}|\b{spelt})\s?)(?P<scale>{scale})\b",
            rf"(?P<number>{digits})(?P<thousands>k\b)?(?P<percent>\s?%)?",
            rf"\b(?P<number>{spelt})\b",
        )
    )


def _may_hold_any(text: str) -> bool:
    """Return whether a text has a digit or a word that starts like a number or a month. Most questions do not."""
    words = _words()
    spelt = (*words.numbers, *words.scales, *words.halves, *words.decades, *words.months)
    return any(map(str.isdecimal, text)) or any(word.startswith(spelt) for word in re.findall(r"\w+", text.lower()))


def quantities(text: str) -> list[Quantity]:
    """Return the numbers and dates of a text in reading order, without overlaps."""
    if not _may_hold_any(text):
        return []
    found: list[Quantity] = []
    for pattern in _patterns():
        for match in pattern.finditer(text):
            if not any(match.start() < other.end and other.start < match.end() for other in found):
                quantity = _quantity(match)
                if quantity is not None:
                    found.append(quantity)
    return _with_units(text, _with_common_scale(text, sorted(found, key=lambda quantity: quantity.start)))


def _with_units(text: str, found: list[Quantity]) -> list[Quantity]:
    """Add the unit after a number to the number, and to a number joined before it."""
    every = list(found)
    for place in reversed(range(len(found))):
        word = re.match(r"[\s-]?([a-zA-Z]+)", text[found[place].end :])
        unit = _unit(word[1]) if word else ""
        following = every[place + 1] if place + 1 < len(found) else None
        if not unit and following and text[found[place].end : following.start].strip().lower() in _words().joints:
            unit = following.unit
        if unit and found[place].value is not None:
            every[place] = replace(found[place], unit=unit)
    return every


def _unit(word: str) -> str:
    """Return the unit that a word names in singular or plural, or an empty text."""
    known = [name for kind in _words().units.values() for name in kind]
    return next((one for one in (word.lower(), word.lower().removesuffix("s")) if one in known), "")


def _with_common_scale(text: str, found: list[Quantity]) -> list[Quantity]:
    """Apply a scale after two joined numbers to both: `between 10 and 15 million` means ten million."""
    words = _words()
    scaled = re.compile(rf"({_any_of(words.scales)})$", re.IGNORECASE)
    for place, (first, second) in enumerate(pairwise(found)):
        scale = scaled.search(second.text)
        is_joined = text[first.end : second.start].strip().lower() in words.joints
        if scale and is_joined and first.value is not None and second.value and not scaled.search(first.text):
            factor = words.scales[scale[1].lower()]
            if 0 < first.value < second.value / factor:
                found[place] = replace(first, value=first.value * factor, low="", high="")
    return found


def _quantity(match: re.Match[str]) -> Quantity | None:
    groups, words = {name: value for name, value in match.groupdict().items() if value}, _words()
    place = (match.start(), match.end(), match.group())
    if groups.keys() & {"year", "month", "decade", "tens"}:
        return _date(place, groups)
    if "half" in groups:
        return Quantity(*place, value=words.halves[groups["half"].lower()] * words.scales[groups["scale"].lower()])
    if "scale" in groups:
        factor = number_of(groups["number"]) if "number" in groups else 1.0
        return None if factor is None else Quantity(*place, value=factor * words.scales[groups["scale"].lower()])
    value = number_of(groups["number"])
    if value is None:
        return None
    if "thousands" in groups:
        return Quantity(*place, value * 1000)
    if re.fullmatch(r"\d{4}", groups["number"]) and int(value) in YEARS:
        return Quantity(*place, value, f"{int(value):04}-01-01", f"{int(value):04}-12-31")
    return Quantity(*place, value)


def _date(place: tuple[int, int, str], groups: dict[str, str]) -> Quantity | None:
    if "decade" in groups or "tens" in groups:
        first = int(groups["decade"]) if "decade" in groups else _words().decades[groups["tens"].lower()]
        return Quantity(*place, low=f"{first}-01-01", high=f"{first + 9}-12-31")
    year, named = groups.get("year", f"{NO_YEAR:04}"), groups["month"].lower().rstrip(".")
    month = int(named) if named.isdecimal() else _words().months[named]
    if not 1 <= month <= 12:
        return None
    if "day" in groups:
        day = f"{year}-{month:02}-{int(groups['day']):02}"
        return Quantity(*place, low=day, high=day)
    return Quantity(*place, low=f"{year}-{month:02}-01", high=f"{year}-{month:02}-31")


Joint = Literal["", "joined", "denied"]


def joint(text: str) -> Joint:
    """Return whether a text between two names joins them (", ", "or") or also negates them ("nor")."""
    words, known = re.findall(r"[^\s,]+", text.lower()), _words()
    if not all(word in (*known.joints, *known.joining, *known.denying) for word in words):
        return ""
    if any(word in known.denying for word in words):
        return "denied"
    return "joined" if "," in text or words else ""


def number_of(text: str) -> float | None:
    """Return the value of digits or number words: 1,200 and 1.200 are 1200, 1,2 and 1.2 are 1.2."""
    words, plain = _words(), text.strip().lower()
    if not any(letter.isdecimal() for letter in plain):
        parts = re.split(r"[- ]", plain)
        return sum(words.numbers[part] for part in parts) if all(part in words.numbers for part in parts) else None
    plain = re.sub(r"['  ]", "", plain)
    grouped = re.fullmatch(r"([-+]?[1-9]\d{0,2}(?:([.,])\d{3})(?:\2\d{3})*)([.,]\d+)?", plain)
    if grouped and (grouped[3] is None or grouped[3][0] != grouped[2]):
        whole = grouped[1].replace(grouped[2], "")
        plain = whole + (grouped[3].replace(",", ".") if grouped[3] else "")
    try:
        return float(plain.replace(",", "."))
    except ValueError:
        return None


def in_units_of(quantity: Quantity, attribute: str) -> list[float]:
    """Return the possible values of a number in the unit of an attribute, the likeliest first.

    18 million are 18 in `population_millions`, 3 hours are 180 in `running_time_min`. If the attribute's name has no
    unit, 50 MB may be 50, and 50,000 or 50,000,000 or 0.05.
    """
    words, value, named = _words(), quantity.value, words_of(attribute).split()
    if value is None:
        return []
    for word in named:
        factor = words.scales.get(word) or words.scales.get(word.removesuffix("s"))
        if factor and len(word) > 1 and abs(value) >= factor:
            return [value / factor]
    for kind in words.units.values():
        if quantity.unit in kind:
            own = next((_unit(word) for word in reversed(named) if _unit(word) in kind), "")
            if own:
                return [value * kind[quantity.unit] / kind[own]]
            return list(dict.fromkeys([value, *(value * kind[quantity.unit] / factor for factor in kind.values())]))
    return [value]


REACH = 2
"""Maximum distance of a step word from the name, in words."""


@cache
def _phrases() -> dict[str, list[str]]:
    """Return words for the rows next to a row, and the regular expressions of phrases."""
    return tomllib.loads(words_file("phrases.toml"))


def _said(kind: str) -> re.Pattern[str]:
    return re.compile("|".join(_phrases()[kind]), re.IGNORECASE)


def asks_for(kind: Literal["average", "difference"], question: str) -> bool:
    """Return whether a question asks for an average, or for the difference of two values."""
    return _said(kind).search(question) is not None


def without_amount(question: str) -> str:
    """Return a question with blanks for the words that only ask for a number: "how many"."""
    return _said("amount").sub(lambda match: " " * len(match[0]), question)


def steps(tokens: Sequence[Token], outside: Collection[int], starts: Collection[int]) -> dict[str, int]:
    """Return the words before something, with their steps.

    `outside` lists the tokens outside names, and `starts` the first character of each thing that has neighbours.
    """
    first = {index for index, token in enumerate(tokens) if token.start in starts}
    near = (index for index in outside if not first.isdisjoint(range(index + 1, index + 1 + REACH)))
    said = dict.fromkeys(_phrases()["after"], 1) | dict.fromkeys(_phrases()["before"], -1)
    return {tokens[index].text: step for index in near if (step := said.get(tokens[index].text))}
