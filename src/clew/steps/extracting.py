"""Reading without a model: the span of the passages that fits the question's kind and stands where its words are."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from clew.index.terms import terms
from clew.steps.roles import Read, Reading

Kind = Literal["name", "date", "number", "yes or no", "anything"]

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"“(])|\n+")
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(
    rf"\b(?:(?:\d{{1,2}} )?(?:{_MONTH})(?: \d{{1,2}})?,? \d{{4}}|(?:{_MONTH}) \d{{1,2}}|1\d{{3}}|20\d{{2}})\b"
)
_NUMBER = re.compile(r"\b\d[\d,.]*\d\b|\b\d\b")
_LINK = r"(?:of|the|and|de|la|del|van|von|for|in|on|at|to|&|'s)"
_CAPITAL = r"[A-Z][\w'’.-]*"
_NAME = re.compile(rf"{_CAPITAL}(?:(?: {_LINK}){{0,2}} {_CAPITAL})*")
_QUOTED = re.compile(r"[\"“]([^\"”]{2,60})[\"”]")
_KIND_WORDS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(r"\b(?:when|what year|which year|what date|what month|in what decade)\b", re.IGNORECASE), "date"),
    (
        re.compile(r"\bhow (?:many|much|old|long|far|large|tall|high)\b|\bwhat (?:number|age)\b", re.IGNORECASE),
        "number",
    ),
    (
        re.compile(r"^\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b", re.IGNORECASE),
        "yes or no",
    ),
    (re.compile(r"\b(?:who|whom|whose|where)\b", re.IGNORECASE), "name"),
)


def asked_kind(question: str) -> Kind:
    """What kind of answer a question wants, by its words."""
    return next((kind for pattern, kind in _KIND_WORDS if pattern.search(question)), "anything")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, the position of its source, and the weight of the question's words in and around it."""

    source: int
    text: str
    weight: float


def weigh_sentences(reading: Reading) -> list[Sentence]:
    """Every sentence with the share of the question's rare words that it and its source's title hold."""
    texts = [
        (place, text.strip(), source.title)
        for place, source in enumerate(reading.sources)
        for text in _SENTENCE_END.split(source.text)
        if text.strip()
    ]
    asked = frozenset(terms(reading.question))
    held = [set(terms(text)) & asked for _, text, _ in texts]
    titled = [set(terms(title)) & asked for _, _, title in texts]
    frequency = Counter(term for found in held for term in found)
    rarity = {term: math.log(1 + len(texts) / (1 + frequency[term])) for term in asked}
    whole = sum(rarity[term] for term in sorted(rarity)) or 1.0
    sentences = []
    for (place, text, _), own, title in zip(texts, held, titled, strict=True):
        weight = sum(rarity[term] for term in sorted(own)) + 0.5 * sum(rarity[term] for term in sorted(title - own))
        sentences.append(Sentence(place, text, weight / whole))
    return sentences


def spans(text: str, kind: Kind) -> Iterator[str]:
    """The pieces of a sentence that may answer a question of this kind."""
    if kind == "date":
        yield from (match[0] for match in _DATE.finditer(text))
        return
    if kind == "number":
        yield from (match[0] for match in _NUMBER.finditer(text))
        return
    yield from (match[0].rstrip(".'’-") for match in _NAME.finditer(text))
    if kind == "anything":
        yield from (match[1] for match in _QUOTED.finditer(text))
        yield from (match[0] for match in _DATE.finditer(text))


@dataclass(frozen=True)
class BestSpan:
    """Prefers spans in the sentences that hold the question's rare words, said in several of them, and not asked with.

    Yes or no it cannot tell: it then cites the best sources and leaves the answer open.
    """

    citations: int = 2
    repeat: float = 0.1
    """What each further sentence that holds a span adds, as a share of that sentence's weight."""

    def read(self, readings: Sequence[Reading]) -> list[Read]:
        """One answer per reading; the best sentence where no span fits."""
        return [self._read(reading) for reading in readings]

    def _read(self, reading: Reading) -> Read:
        sentences = sorted(weigh_sentences(reading), key=lambda sentence: -sentence.weight)
        if not sentences or sentences[0].weight <= 0:
            return Read(None)
        kind = asked_kind(reading.question)
        best_sources = tuple(dict.fromkeys(sentence.source for sentence in sentences))[: self.citations]
        if kind == "yes or no":
            return Read(None, best_sources, problem="yes or no needs a language model")
        weights = self._weigh_spans(reading.question, sentences, kind)
        if not weights:
            return Read(sentences[0].text, (sentences[0].source,))
        best = min(weights, key=lambda span: (-weights[span][0], len(span), span))
        return Read(best, (weights[best][1],))

    def _weigh_spans(self, question: str, sentences: Sequence[Sentence], kind: Kind) -> dict[str, tuple[float, int]]:
        """Span → weight and the source of the best sentence it stands in."""
        asked = frozenset(terms(question))
        found: dict[str, tuple[float, int]] = {}
        for sentence in sentences:  # heaviest first
            for span in dict.fromkeys(spans(sentence.text, kind)):
                said = set(terms(span))
                if not said or said <= asked:
                    continue
                fresh = len(said - asked) / len(said)
                if span in found:
                    found[span] = (found[span][0] + self.repeat * sentence.weight * fresh, found[span][1])
                else:
                    found[span] = (sentence.weight * fresh, sentence.source)
        return found
