"""Spans of a sentence that may be an answer: names, dates, numbers, quoted titles and plain noun phrases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from clew.core.proper_names import proper_names
from clew.store.index.tokens import stop_words

Shape = Literal["name", "word", "place", "origin", "date", "year", "number", "quoted", "phrase"]

MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
DATE = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)? (?:{MONTH}),? \d{{3,4}}|(?:{MONTH}) \d{{1,2}}, \d{{3,4}}|(?:{MONTH}),? \d{{4}}"
    rf"|(?:{MONTH}) \d{{1,2}}|\d{{1,2}} (?:{MONTH}))\b"
)
YEAR = re.compile(r"\b(?:1\d{3}|20\d{2})s?\b")
RANGE = re.compile(r"\b(?:from )?\d{4}(?: to |–|-| until )\d{4}\b")
COUNTED = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty"
_LARGE = "hundred|thousand|million|billion|trillion"
NUMBER = re.compile(
    rf"(?<![\w.,])(?:[$£€] ?)?(?:\d[\d,]*(?:\.\d+)?|\b(?:{COUNTED}|{_LARGE})\b)(?:[ -](?:{_LARGE}))?%?", re.IGNORECASE
)
QUOTED = re.compile(r"[\"“] ?([^\"”“]{2,60}?) ?[\"”]")
ORIGIN = re.compile(r"[A-Z][a-z]+(?:ish|ese|[^aeiou]an|ian|ean|ch|eek|elsh|utch|aqi|aeli|stani|wiss)\b")
_PLAIN = re.compile(r"(?<![\w’'-])[a-z][\w’'-]*(?: [a-z][\w’'-]*)*")
_JOINTS = (re.compile(r" (?:in|on|to|for)(?: the)? "), re.compile(r" of(?: the)? "))


@dataclass(frozen=True, slots=True)
class SentenceSpan:
    """A span of a sentence and its shape."""

    start: int
    end: int
    shape: Shape


def spans(text: str) -> Iterator[SentenceSpan]:
    """Yield every span of a sentence that may be an answer. Spans may overlap."""
    taken: list[tuple[int, int]] = []
    for pattern in (DATE, RANGE, YEAR):
        for match in pattern.finditer(text):
            if not any(start <= match.start() < end for start, end in taken):
                taken.append(match.span())
                yield SentenceSpan(*match.span(), "year" if pattern is not DATE else "date")
            elif pattern is YEAR:
                yield SentenceSpan(*match.span(), "year")
    for match in NUMBER.finditer(text):
        if not any(start <= match.start() < end for start, end in taken):
            yield SentenceSpan(*match.span(), "number")
    yield from (SentenceSpan(*match.span(1), "quoted") for match in QUOTED.finditer(text))
    yield from _names(text)
    yield from _phrases(text)


def _names(text: str) -> Iterator[SentenceSpan]:
    before: tuple[int, int] | None = None
    for name in proper_names(text):
        if ORIGIN.fullmatch(name.text.rpartition(" ")[2]):
            yield SentenceSpan(name.start, name.end, "origin")
        else:
            yield SentenceSpan(name.start, name.end, "name" if " " in name.text else "word")
        if before is not None and text[before[1] : name.start] == ", ":
            yield SentenceSpan(before[0], name.end, "place")
        before = (name.start, name.end)
        for joint in _JOINTS:  # "Lake in Brown County" contains two names, "University of Ohio" one or two
            place = name.start
            for joined in joint.finditer(name.text):
                yield SentenceSpan(place, name.start + joined.start(), "name")
                place = name.start + joined.end()
            if place > name.start:
                yield SentenceSpan(place, name.end, "name")
        first = name.text.split(" ", 1)
        if len(first) == 2 and ORIGIN.fullmatch(first[0]):
            yield SentenceSpan(name.start, name.start + len(first[0]), "origin")


def _phrases(text: str) -> Iterator[SentenceSpan]:
    """Yield runs of up to four plain words between stop words and punctuation."""
    for run in _PLAIN.finditer(text):
        words = re.finditer(r"\S+", run.group())
        for is_stop_word, some in groupby(words, key=lambda word: word.group() in stop_words()):
            if not is_stop_word:
                phrase = list(some)
                yield from _tails(text, run.start() + phrase[0].start(), run.start() + phrase[-1].end())


def _tails(text: str, start: int, end: int) -> Iterator[SentenceSpan]:
    words = text[start:end].split(" ")
    if len(words) <= 4 and (len(words) > 1 or len(words[0]) > 3):
        yield SentenceSpan(start, end, "phrase")
    if len(words) > 1:  # the noun without its modifiers
        yield SentenceSpan(end - len(words[-1]), end, "phrase")
