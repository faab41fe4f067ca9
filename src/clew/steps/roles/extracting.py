"""Reading without a model: the span of the passages that fits the question's kind and stands where its words are."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from clew.index.terms import terms
from clew.index.tokens import tokenise
from clew.steps.language.proper_names import name_key, proper_names, title_forms
from clew.steps.language.sentences import sentences as split_sentences
from clew.steps.roles.protocol import Read, Reading

Kind = Literal["name", "date", "number", "yes or no", "anything"]

_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(
    rf"\b(?:(?:\d{{1,2}} )?(?:{_MONTH})(?: \d{{1,2}})?,? \d{{4}}|(?:{_MONTH}) \d{{1,2}}|1\d{{3}}|20\d{{2}})\b"
)
_YEAR = re.compile(r"\b(?:1\d{3}|20\d{2})\b")
_NUMBER = re.compile(r"\b\d[\d,.]*\d\b|\b\d\b")
_QUOTED = re.compile(r"[\"“]([^\"”]{2,60})[\"”]")
_KIND_WORDS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (re.compile(r"\b(?:when|(?:what|which) (?:year|date|month|decade)|date of)\b", re.IGNORECASE), "date"),
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
_EITHER = re.compile(
    r"(?:[,:?]| (?:first|older|younger|earlier|later|between))\s+([^,:?]+?),? or ([^,?]+)\??\s*$", re.IGNORECASE
)
_EARLIER = re.compile(r"\b(?:first|older|oldest|earlier|earliest)\b", re.IGNORECASE)
_LATER = re.compile(r"\b(?:last|later|latest|younger|youngest|newer|more recent(?:ly)?)\b", re.IGNORECASE)


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
    """Every sentence with the share of the question's rare words in it and its source's title, heaviest first."""
    texts = [
        (place, text, source.title)
        for place, source in enumerate(reading.sources)
        for text in split_sentences(source.text)
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
    return sorted(sentences, key=lambda sentence: -sentence.weight)


def spans(text: str, kind: Kind) -> Iterator[tuple[int, int, float]]:
    """The pieces of a sentence that may answer a question of this kind, each with how well it fits."""
    if kind == "date":
        yield from ((*match.span(), 1.0) for match in _DATE.finditer(text))
        return
    if kind == "number":
        yield from ((*match.span(), 1.0) for match in _NUMBER.finditer(text))
        return
    for name in proper_names(text):
        one_word = " " not in name.text
        yield name.start, name.end, 0.7 if one_word else 1.0  # nationalities and fragments are single words
    if kind == "anything":
        yield from ((*match.span(1), 1.0) for match in _QUOTED.finditer(text))
        yield from ((*match.span(), 0.4) for match in _DATE.finditer(text))


@dataclass(frozen=True)
class BestSpan:
    """Prefers spans near the question's rare words, said in several sentences, and not asked with.

    A question that names two things is answered by one of them, by their years where it asks for the earlier or the
    later. Yes or no it cannot tell: it then cites the best sources and leaves the answer open.
    """

    citations: int = 2
    repeat: float = 0.2
    """What each further sentence that holds a span adds, as a share of that sentence's weight."""
    near: float = 0.05
    """How fast a span loses weight with each word between it and the question's words."""

    def read(self, readings: Sequence[Reading]) -> list[Read]:
        """One answer per reading; the best sentence where no span fits."""
        return [self._read(reading) for reading in readings]

    def _read(self, reading: Reading) -> Read:
        sentences = weigh_sentences(reading)
        if not sentences or sentences[0].weight <= 0:
            return Read(None)
        kind = asked_kind(reading.question)
        best_sources = tuple(dict.fromkeys(sentence.source for sentence in sentences))[: self.citations]
        either = either_of(reading)
        if either is not None:
            return either
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
        for sentence in sentences:
            for span, weight in self._fitting(sentence, asked, kind).items():
                if span in found:
                    found[span] = (found[span][0] + self.repeat * weight, found[span][1])
                else:
                    found[span] = (weight, sentence.source)
        return found

    def _fitting(self, sentence: Sentence, asked: frozenset[str], kind: Kind) -> dict[str, float]:
        """The spans of one sentence that say something new."""
        anchors = [token.start for token in tokenise(sentence.text) if asked.intersection(terms(token.text))]
        weights: dict[str, float] = {}
        for start, end, fit in spans(sentence.text, kind):
            said = set(terms(sentence.text[start:end]))
            if not said or said <= asked:
                continue
            fresh = len(said - asked) / len(said)
            between = min((_words_between(sentence.text, start, end, anchor) for anchor in anchors), default=20)
            weight = sentence.weight * fresh * fit / (1 + self.near * between)
            span = sentence.text[start:end]
            weights[span] = max(weight, weights.get(span, 0.0))
        return weights


def _words_between(text: str, start: int, end: int, anchor: int) -> int:
    between = text[anchor:start] if anchor < start else text[end:anchor]
    return between.count(" ")


def either_of(reading: Reading) -> Read | None:
    """One of the two things a question names ("…, A or B?"): by their years where it asks for one end of time."""
    match = _EITHER.search(reading.question)
    if match is None:
        return None
    options = [match[1].strip(), match[2].strip(" ?")]
    sources = [_about(option, reading) for option in options]
    if None in sources:
        return None
    earlier, later = _EARLIER.search(reading.question), _LATER.search(reading.question)
    years = [_first_year(reading.sources[place].text) for place in sources if place is not None]
    if (earlier or later) and None not in years:
        pick = min if earlier else max
        chosen = years.index(pick(year for year in years if year is not None))
        return Read(options[chosen], tuple(place for place in sources if place is not None))
    return None


def _about(option: str, reading: Reading) -> int | None:
    wanted = name_key(option)
    for place, source in enumerate(reading.sources):
        if any(name_key(form) == wanted for form in title_forms(source.title)):
            return place
    return None


def _first_year(text: str) -> int | None:
    match = _YEAR.search(text)
    return int(match[0]) if match else None
