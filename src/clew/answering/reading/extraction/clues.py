"""Clues for a span as the answer: its shape, its sentence, the words around it, and the passages it connects."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from clew.answering.reading.extraction.asked import Asked, as_meanings, meanings
from clew.answering.reading.extraction.spans import SentenceSpan, spans
from clew.core.proper_names import name_key, title_forms
from clew.core.proper_names import sentences as split_sentences
from clew.core.roles import Source
from clew.store.index.tokens import terms, tokenise

Clues = dict[str, float]
_OPENS_LIFE = re.compile(r"\([^()]*$")
_LINKS = frozenset(
    {"in", "at", "from", "near", "of", "by", "with", "as", "is", "was", "for", "to", "on", "named", "called"}
)
DIRECT = 0.9
"""Minimum share of the question's weight for a source that covers the question."""
_AT = ("in", "at", "near", "from")
_WHO = ("by", "and", "with", "actor", "actress", "director", "singer", "son of", "daughter of")


@dataclass(frozen=True)
class SourceSentence:
    """A sentence of a source, with the terms of its words and their positions."""

    source: int
    place: int
    text: str
    words: tuple[tuple[str, int], ...]
    """Term and position of every word that is not a stop word. Positions count words."""

    @cached_property
    def meanings(self) -> frozenset[str]:
        """Terms of all words."""
        return frozenset(meaning for meaning, _ in self.words)


@dataclass(frozen=True)
class CluedSpan:
    """A span of a sentence with its clues."""

    text: str
    key: str
    source: int
    clues: Clues


class Evidence:
    """Sentences of the sources and the links between sources, for one question."""

    def __init__(self, asked: Asked, sources: Sequence[Source]) -> None:
        self.asked, self.sources = asked, sources
        self.sentences = [
            SourceSentence(place, number, text, _words(text))
            for place, source in enumerate(sources)
            for number, text in enumerate(split_sentences(source.text))
        ]
        count = Counter(meaning for sentence in self.sentences for meaning in sentence.meanings)
        self.rarity = {term: math.log(1 + len(self.sentences) / (1 + count[term])) for term in sorted(asked.terms)}
        self.wanted = meanings(asked.noun or "")
        self.whole = sum(self.rarity.values()) or 1.0
        question = f" {_plain(asked.text)} "
        forms = [[f" {_plain(form)} " for form in title_forms(source.title)] for source in sources]
        self.texts = [f" {_plain(source.text)} " for source in sources]
        self.keys = [{name_key(form) for form in title_forms(source.title)} for source in sources]
        self.in_question = [any(form in question for form in own) for own in forms]
        self.names = [
            {other for other, own in enumerate(forms) if other != place and any(form in text for form in own)}
            for place, text in enumerate(self.texts)
        ]
        self.covered = [
            meanings(f"{source.title} {source.text}") & asked.terms if source.text else frozenset()
            for source in sources
        ]

    def share(self, found: frozenset[str]) -> float:
        """Return the weight of some of the question's terms."""
        return sum(self.rarity[term] for term in sorted(found & self.asked.terms)) / self.whole

    def linked(self, source: int) -> set[int]:
        """Return the sources that name this source or that it names."""
        return self.names[source] | {other for other, named in enumerate(self.names) if source in named}

    @cached_property
    def reach(self) -> str:
        """Either "direct" (one source covers the question) or "linked". Each has its own clue weights."""
        asking = self.share(self.asked.terms - self.wanted)
        best = max((self.share(found - self.wanted) for found in self.covered), default=0.0)
        return "direct" if best >= DIRECT * asking else "linked"

    @cached_property
    def of_source(self) -> list[Clues]:
        """The clues that all spans of a source share."""
        found = []
        for place in range(len(self.sources)):
            others = self.linked(place)
            chain = max((self.share(self.covered[place] | self.covered[other]) for other in others), default=0.0)
            from_question = any(self.in_question[other] for other in others)
            found.append(
                {
                    "rank": 1 / (1 + place),
                    "covered": self.share(self.covered[place]),
                    "chain": chain,
                    "title asked": float(self.in_question[place]),
                    "reached": float(from_question and not self.in_question[place]),
                    "alone": float(not others),
                }
            )
        return found

    def candidates(self) -> Iterator[CluedSpan]:
        """Yield every span with words that the question does not have."""
        focus = self.asked.focus
        for sentence in self.sentences:
            of_source = self.of_source[sentence.source]
            title = meanings(self.sources[sentence.source].title)
            of_sentence = {
                **of_source,
                "sentence": self.share(sentence.meanings),
                "sentence and title": self.share(sentence.meanings | title),
                "focus": len(focus & sentence.meanings) / (len(focus) or 1),
                "opening": float(sentence.place == 0),
            }
            shared = {f"{self.reach} {clue}": value for clue, value in of_sentence.items()}
            anchors = [(self.rarity[word], at, word in focus) for word, at in sentence.words if word in self.rarity]
            for span in spans(sentence.text):
                clues = self._clues(sentence, span, anchors)
                if clues is not None:
                    text = sentence.text[span.start : span.end]
                    yield CluedSpan(text, name_key(text), sentence.source, {**shared, **clues})

    def _clues(
        self, sentence: SourceSentence, span: SentenceSpan, anchors: Sequence[tuple[float, int, bool]]
    ) -> Clues | None:
        asked, text = self.asked, sentence.text
        said = text[span.start : span.end]
        own = frozenset(as_meanings(terms(said)))
        if not own or own <= asked.terms:
            return None
        first = text.count(" ", 0, span.start)
        last = first + said.count(" ")
        gaps = [(weight, max(first - at, at - last, 1), is_focus) for weight, at, is_focus in anchors]
        gaps = [gap for gap, (_, at, _) in zip(gaps, anchors, strict=True) if not first <= at <= last]
        key, before = name_key(said), _edge_word(text[: span.start].split()[-1:])
        clues: Clues = {
            f"{asked.kind}: {span.shape}": 1.0,
            f"{asked.kind} is title": float(key in self.keys[sentence.source]),
            "is other title": float(any(key in keys for keys in self.keys) and key not in self.keys[sentence.source]),
            "near": sum(weight / gap for weight, gap, _ in gaps) / self.whole,
            "near focus": sum(1 / gap for _, gap, is_focus in gaps if is_focus) / (len(asked.focus) or 1),
            "asked words": len(own & asked.terms) / len(own),
            "words": float(min(last - first, 6)),
            "place": first / (1 + text.count(" ")),
            **self._elsewhere(f" {_plain(said)} "),
        }
        if before in _LINKS:
            clues[f"{asked.kind} after {before}"] = 1.0
        if self.wanted:
            near = {meaning for meaning, at in sentence.words if -3 <= at - last <= 4 or -3 <= at - first <= 0}
            beside = meanings(f"{before} {_edge_word(text[span.end :].split(maxsplit=1)[:1])}")
            clues["noun near"] = float(bool(self.wanted & near))
            clues["noun beside"] = float(bool(self.wanted & beside))
            clues["noun inside"] = float(bool(self.wanted & own))
            clues["is the noun"] = float(self._is_a(key, self.wanted))
        if span.shape in ("date", "year"):
            clues |= self._life(text, span)
        return clues

    def _elsewhere(self, plain: str) -> Clues:
        """Return clues from all sources that contain the same words."""
        holding = [text for text in self.texts if plain in text]
        return {
            "sources": len(holding) / len(self.texts),
            f"{self.asked.kind} like a place": float(
                any(f" {word}{plain}" in text for text in holding for word in _AT)
            ),
            f"{self.asked.kind} like a person": float(
                any(f" {word}{plain}" in text for text in holding for word in _WHO)
            ),
        }

    def _is_a(self, key: str, wanted: frozenset[str]) -> bool:
        """Return whether the source about a name uses the noun of the question in its first sentence."""
        for place, keys in enumerate(self.keys):
            if key in keys:
                opening = next((s for s in self.sentences if s.source == place), None)
                return opening is not None and bool(wanted & opening.meanings)
        return False

    def _life(self, text: str, span: SentenceSpan) -> Clues:
        """Return clues for a date in the brackets after a name. Birth is before the dash, death after it."""
        inside = _OPENS_LIFE.search(text[: span.start])
        if inside is None:
            return {}
        is_death = bool(re.search(r"[–—-]", inside[0]))
        asks_birth, asks_death = self.asked.about("born"), self.asked.about("died")
        if not asks_birth and not asks_death:
            return {"date in brackets": 1.0}
        return {"life fits" if (asks_death and is_death) or (asks_birth and not is_death) else "life differs": 1.0}


def _words(text: str) -> tuple[tuple[str, int], ...]:
    places = ((token.text, text.count(" ", 0, token.start)) for token in tokenise(text))
    return tuple((meaning, place) for word, place in places for meaning in as_meanings(terms(word)))


def _edge_word(parts: list[str]) -> str:
    return parts[0].strip("\"'“”‘’(),.;:").lower() if parts else ""


def _plain(text: str) -> str:
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())
