"""A question taken apart: its words, what they name, what is asked for, and the small words that steer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from clew.index.protocol import Mention
from clew.index.tokens import Token, tokenise


def _set(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


STOP_WORDS = _set(
    """a about all also am among an and any are as at be been being between both but by can could did do does done each
    every for from get gets give given had has have having her here his how i if in into is it its itself just least
    let like list many me more most much my name no nor not of off on one only or other our out please s same several
    she show should so some such t tell than that the their them then there these they this those through to too under
    up us very was we were what when where whether which while who whom whose why will with within without would you
    your find identify know known looking need want are aren isn doesn don didn hasn haven wasn weren cannot never
    neither lacking lack lacks except excluding there together shared share"""
)
"""Words that are never evidence for a relation or a type by themselves."""
NEGATIONS = _set(
    """no not without missing absent unlike
    lacking lack lacks except excluding excludes nor neither never cannot aren isn doesn don didn hasn
    haven wasn weren"""
)
RETURNS = _set("share shares shared sharing same also together other another similar both fellow co alike")
"""Words that hint at going out along a relation and back along it: who acted together with X."""
ASKING = _set(
    """which what who whom whose when where many list name find show give identify tell looking recommend suggest
    provide seeking"""
)
ASKED_AS = {"who": "person", "whom": "person", "when": "date year", "where": "place location country"}
"""What a question word asks for, where no noun says it."""
PERSONS = _set("who whom")
BEING = _set("is are was were")
"""After these a noun says what kind of person is meant: who are the directors; in "when were the films" it does not."""
FILLERS = _set(
    """is are was were do does did the a an all any some me us to of one ones many there can
    could you please list name show find tell give identify every each i am looking for know known want that be
    different with information about on overview rundown suitable possible"""
)
"""Words between the question word and what is asked for."""
KINDS = _set("kind kinds type types sort sorts")
LONGEST_PHRASE = 3
PUNCTUATION = re.compile(r"[,;:.?!()\[\]—–]")
JOINING = _set("and or nor both either neither the a an as well")
"""Words between two names that stand side by side."""
NUMBERS = {
    word: value
    for value, word in enumerate(re.findall(r"\w+", "zero one two three four five six seven eight nine ten"))
}


@dataclass(frozen=True, slots=True)
class Phrase:
    """A span of words [first, last) that may name a relation or a type."""

    first: int
    last: int
    text: str


@dataclass(frozen=True)
class Reading:
    """A question with its mentions, each given as a span of words [first, last)."""

    question: str
    words: tuple[Token, ...]
    mentions: tuple[tuple[int, int], ...]
    asked: tuple[int, int]
    """The words right after the question word: what is asked for; empty where there are none."""
    asked_as: Mapping[int, str] = field(default_factory=dict)
    """Question words that stand for a kind of thing themselves, by place."""

    @cached_property
    def taken(self) -> frozenset[int]:
        """Places of the words inside mentions."""
        return frozenset(place for first, last in self.mentions for place in range(first, last))

    @cached_property
    def breaks(self) -> frozenset[int]:
        """Places of the words that punctuation parts from the word before."""
        return _breaks(self.question, self.words)

    @cached_property
    def content(self) -> frozenset[int]:
        """Places of the words that need an explanation."""
        return frozenset(
            place
            for place, word in enumerate(self.words)
            if place not in self.taken and word.text not in STOP_WORDS and len(word.text) > 1
        )

    @cached_property
    def phrases(self) -> tuple[Phrase, ...]:
        """Runs of up to three words outside mentions that begin and end with a word of content."""
        found = [Phrase(place, place + 1, text) for place, text in self.asked_as.items()]
        numbers = {place for place, word in enumerate(self.words) if word.text.isdigit() or word.text in NUMBERS}
        for first in sorted(self.content - numbers):
            for last in range(first + 1, min(first + LONGEST_PHRASE, len(self.words)) + 1):
                if last - 1 in self.taken or last - 1 in numbers or (last - 1 > first and last - 1 in self.breaks):
                    break
                if last - 1 in self.content:
                    found.append(Phrase(first, last, " ".join(word.text for word in self.words[first:last])))
        return tuple(found)

    def is_asked(self, phrase: Phrase) -> bool:
        """Whether a phrase lies in what is asked for."""
        return phrase.first in self.asked_as or (self.asked[0] <= phrase.first and phrase.last <= self.asked[1])

    def is_head(self, phrase: Phrase) -> bool:
        """Whether a phrase ends what is asked for: in "film genres" the genres are asked for."""
        return phrase.first in self.asked_as or (self.is_asked(phrase) and phrase.last == self.asked[1])

    def negation_before(self, place: int) -> int | None:
        """The nearest negation before a word, not looking past another mention or the beginning of a clause."""
        for before in range(place - 1, -1, -1):
            text = self.words[before].text
            if text in NEGATIONS and not (text == "not" and self._word(before + 1) == "only"):
                return before
            if before in self.taken or text in ("but", "and", "that", "which", "while", "whose"):
                nearer = self._word(before + 1)
                if nearer not in NEGATIONS:
                    return None
        return None

    def joined(self, first: tuple[int, int], second: tuple[int, int]) -> bool:
        """Whether two mentions stand side by side, as in "both A and B"."""
        return all(word.text in JOINING for word in self.words[first[1] : second[0]])

    def parallel(self, first: tuple[int, int], second: tuple[int, int]) -> bool:
        """Whether nothing of content lies between two mentions, as in "in A but not in B"."""
        return all(word.text in STOP_WORDS for word in self.words[first[1] : second[0]])

    @cached_property
    def groups(self) -> dict[tuple[int, int], int]:
        """Mentions that stand side by side have the same number."""
        found: dict[tuple[int, int], int] = {}
        for before, mention in zip((None, *self.mentions), self.mentions, strict=False):
            joined = before is not None and self.joined(before, mention)
            found[mention] = found[before] if joined and before is not None else len(found)
        return found

    def names_between(self, phrase: Phrase, mention: tuple[int, int]) -> int:
        """How many other mentions lie between a phrase and a mention, those beside the mention not counted."""
        first, last = min(phrase.last, mention[1]), max(phrase.first, mention[0])
        return sum(
            1
            for other in self.mentions
            if first <= other[0] and other[1] <= last and self.groups[other] != self.groups[mention]
        )

    def _word(self, place: int) -> str:
        return self.words[place].text if place < len(self.words) else ""


def read(question: str, mentions: Sequence[Mention]) -> Reading:
    """Tokenise a question and find what it asks for."""
    words = tuple(tokenise(question))
    spans = []
    for mention in mentions:
        inside = [i for i, word in enumerate(words) if word.start < mention.end and word.end > mention.start]
        if inside:
            spans.append((inside[0], inside[-1] + 1))
    taken = {place for first, last in spans for place in range(first, last)}
    start, asked_as = 0, {}
    for place, word in enumerate(words):
        if word.text in ASKING and place not in taken:
            start = place + 1
            if word.text in ASKED_AS:
                asked_as[place] = ASKED_AS[word.text]
                if not (word.text in PERSONS and start < len(words) and words[start].text in BEING):
                    return Reading(question, words, tuple(spans), (start, start), asked_as)
            break
    while start < len(words) and start not in taken and _fills([word.text for word in words], start):
        start += 1
    end, breaks = start, _breaks(question, words)
    while end < len(words) and end not in taken and end - start < 4 and not _ends_noun(words[end].text, end > start):
        if end in breaks and end > start:
            break
        end += 1
        if words[end - 1].text.endswith("s") and not words[end - 1].text.endswith("ss"):
            break  # in English a plural ends a noun phrase: "film genres", but "diseases cause"
    return Reading(question, words, tuple(spans), (start, end), asked_as)


def _breaks(question: str, words: Sequence[Token]) -> frozenset[int]:
    parted = (PUNCTUATION.search(question[before.end : word.start]) for before, word in pairwise(words))
    return frozenset(place for place, mark in enumerate(parted, start=1) if mark)


def _fills(texts: list[str], place: int) -> bool:
    """Whether a word only leads to what is asked for; "kinds" does so in "kinds of" alone."""
    if texts[place] in KINDS:
        return texts[place + 1 : place + 2] == ["of"]
    return texts[place] in FILLERS


def _ends_noun(text: str, begun: bool) -> bool:
    return text in STOP_WORDS or (begun and len(text) > 4 and text.endswith(("ed", "ing")))
