"""Facts about the subject of an encyclopedic text: its birth and death, its origin and its maker."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.answering.reading.extraction.spans import DATE, MONTH, ORIGIN, YEAR
from clew.core.proper_names import name_key, proper_names, sentences, title_forms
from clew.core.roles import Source

Day = tuple[int, int, int]
"""Year, month and day. Unknown parts are zero."""
_MONTHS = MONTH.split("|")
_LIFE = re.compile(r"\(([^()]*\d{3}[^()]*)\)")
_BORN = re.compile(r"\bborn\b", re.IGNORECASE)
_DIED = re.compile(r"\b(?:died|death|killed)\b", re.IGNORECASE)
_TO = re.compile(r"\s[–—-]\s?|\s?[–—]\s?|(?<=\d)-(?=\d{4})")


@dataclass(frozen=True, slots=True)
class Life:
    """Dates of birth and death of a person. Unknown dates are None."""

    born: Day | None = None
    died: Day | None = None


def life(text: str) -> Life:
    """Read the brackets after a name, "(5 May 1818 – 14 March 1883)", or dates after the words born and died."""
    for bracket in _LIFE.finditer(text[:400]):
        parts = _TO.split(bracket[1], maxsplit=1)
        if _BORN.search(bracket[1]) or len(parts) == 2:
            born, died = day(parts[0]), day(parts[1]) if len(parts) == 2 else None
            if born or died:
                return Life(born, died or _after(_DIED, text))
    return Life(_after(_BORN, text), _after(_DIED, text))


def day(text: str) -> Day | None:
    """Return the first date of a text, or its year if there is no full date."""
    for match in DATE.finditer(text):
        years = re.findall(r"\d{3,4}", match[0])
        if years:
            month = next(place for place, name in enumerate(_MONTHS, 1) if name in match[0])
            days = re.findall(r"\b\d{1,2}\b", match[0])
            return int(years[0]), month, int(days[0]) if days else 0
    found = re.search(r"\b(?:\d{3,4})\b", text) if len(text) < 60 else YEAR.search(text)
    return (int(found[0].rstrip("s")), 0, 0) if found else None


def _after(word: re.Pattern[str], text: str) -> Day | None:
    found = word.search(text)
    return day(text[found.end() : found.end() + 120]) if found else None


def origins(text: str) -> frozenset[str]:
    """Return nationalities, or else places, in the first sentence. Cut to five letters because of their inflection."""
    opening = " ".join(sentences(text)[:1])
    says = re.search(r"\b(?:is|was|are|were)\b", opening)
    told = opening[says.end() :] if says else opening
    adjectives = [match[0] for match in ORIGIN.finditer(told)]
    places = [name.text.split(",")[0] for name in proper_names(told)]
    return frozenset(name[:5].casefold() for name in (adjectives or places))


def places(text: str, title: str) -> frozenset[str]:
    """Return the names in the first two sentences, without the title."""
    own = name_key(title)
    opening = " ".join(sentences(text)[:2])
    return frozenset(name_key(name.text) for name in proper_names(opening)) - {own}


def maker(text: str, verb: str, sources: Sequence[Source]) -> int | None:
    """Return the source about the maker of a text's subject: after "directed by", or else any source it names."""
    found = re.search(rf"\b{verb}\w*\b[^.]{{0,40}}?\bby\b", text)
    named = [name_key(name.text) for name in proper_names(text[found.end() : found.end() + 120])] if found else []
    for wanted in named:
        if (place := titled(wanted, sources)) is not None:
            return place
    folded = text.casefold()
    for place, source in enumerate(sources):
        if source.text != text and any(form.casefold() in folded for form in title_forms(source.title) if " " in form):
            return place
    return None


def titled(key: str, sources: Sequence[Source]) -> int | None:
    """Return the source whose title has this name key."""
    for place, source in enumerate(sources):
        if any(name_key(form) == key for form in title_forms(source.title)):
            return place
    return None
