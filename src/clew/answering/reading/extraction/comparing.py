"""Answer questions about two things: one of them by a date or a description, or whether both are alike.

The answers come from facts about the subject of an encyclopedic text: its birth and death, its origin and its maker.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from clew.answering.reading.extraction.asked import Asked, meanings
from clew.answering.reading.extraction.spans import DATE, MONTH, ORIGIN, YEAR
from clew.core.proper_names import name_key, proper_names, sentences, title_forms
from clew.core.roles import Read, Source

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
    forms = (map(name_key, title_forms(source.title)) for source in sources)
    return next((place for place, own in enumerate(forms) if key in own), None)


_EARLIER = re.compile(r"\b(?:first|older|oldest|elder|earlier|earliest|before)\b", re.IGNORECASE)
_LATER = re.compile(r"\b(?:last|later|latest|younger|youngest|newer|more recent(?:ly)?|after)\b", re.IGNORECASE)
_AMONG = re.compile(r"\b(?:between|out of|among) (?:the )?$", re.IGNORECASE)
_SAME = re.compile(r"\b(?:same|share|similar)\b", re.IGNORECASE)
_MAKERS = ("direct", "perform", "compos", "produc", "writ", "creat")


@dataclass(frozen=True, slots=True)
class ComparedThing:
    """A thing in the question, in the question's words, and the source about it."""

    text: str
    source: int
    start: int
    end: int


def options(question: str, sources: Sequence[Source]) -> list[ComparedThing]:
    """Return the things in the question that have a source, in reading order. Longer titles take precedence."""
    folded = question.casefold()
    found: list[ComparedThing] = []
    forms = [(form, place) for place, source in enumerate(sources) for form in title_forms(source.title)]
    for form, place in sorted(forms, key=lambda pair: (-len(pair[0]), pair[1])):
        match = re.search(rf"(?<!\w){re.escape(form.casefold())}(?!\w)", folded)
        if match is None or any(option.source == place for option in found):
            continue
        if not any(option.start < match.end() and match.start() < option.end for option in found):
            text = re.sub(r"\s*\([^)]*\)\s*$", "", question[match.start() : match.end()])
            found.append(ComparedThing(text, place, *match.span()))
    return sorted(found, key=lambda option: option.start)


def compared(asked: Asked, sources: Sequence[Source]) -> Read | None:
    """Return the answer to a question about two things. Return None for other questions, or if a source is missing."""
    named = options(asked.text, sources)
    for first, second in pairwise(named):
        between = asked.text[first.end : second.start]
        joined = re.search(r"\b(?:and|as|with)\b", between)
        if re.search(r"\bor\b", between) or (joined and _AMONG.search(asked.text[: first.start])):
            return _one_of(asked, (first, second), sources)
        if asked.kind == "yes or no" and joined:
            return _alike(asked, (first, second), sources)
    return None


def _one_of(asked: Asked, pair: tuple[ComparedThing, ComparedThing], sources: Sequence[Source]) -> Read:
    persons = [_meant(asked, option, sources) for option in pair]
    cited = tuple(dict.fromkeys((*(option.source for option in pair), *persons)))
    earlier, later = _EARLIER.search(asked.text), _LATER.search(asked.text)
    if earlier or later:
        days = [_day(asked, sources[place].text) for place in persons]
        known = [value for value in days if value is not None]
        if known:
            best = min(known) if earlier else max(known)
            return Read(pair[days.index(best)].text, cited)
    asking = asked.terms - meanings(pair[0].text) - meanings(pair[1].text)
    said = [len(asking & meanings(sources[place].text)) for place in persons]
    return Read(pair[said.index(max(said))].text, cited)


def _alike(asked: Asked, pair: tuple[ComparedThing, ComparedThing], sources: Sequence[Source]) -> Read:
    persons = [_meant(asked, option, sources) for option in pair]
    cited = tuple(dict.fromkeys((*(option.source for option in pair), *persons)))
    first, second = (sources[place] for place in persons)
    if _SAME.search(asked.text):
        if asked.about("nationality", "country") and not asked.about("located"):
            alike = bool(origins(first.text) & origins(second.text))
        else:
            shared = places(first.text, first.title) & places(second.text, second.title)
            alike = len(shared) >= (1 if asked.about("country") else 2)  # a state comes with its country
        return Read("yes" if alike else "no", cited)
    wanted = asked.terms - meanings(pair[0].text) - meanings(pair[1].text) - meanings("both")
    holds = all(wanted <= meanings(f"{source.title} {source.text}") for source in (first, second))
    return Read("yes" if holds else "no", cited)


def _meant(asked: Asked, option: ComparedThing, sources: Sequence[Source]) -> int:
    """Return the source about an option, or about its director or other maker if the question asks about the maker."""
    for verb in _MAKERS:
        if re.search(rf"\b{verb}\w*(?:or|er|ors|ers)\b", asked.text, re.IGNORECASE):
            found = maker(sources[option.source].text, verb, sources)
            return option.source if found is None else found
    return option.source


def _day(asked: Asked, text: str) -> Day | None:
    """Return the date to compare: of death, of birth, or the first date in the text."""
    if asked.about("died"):
        return life(text).died
    lived = life(text)
    return lived.born if lived.born and not asked.about("released") else day(text)
