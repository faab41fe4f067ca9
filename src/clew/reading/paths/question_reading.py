"""How a question is read outwards from its topic: which words form a unit, in which order, and what is asked for.

Words that stand together are one chunk, and one hop of a path explains a chunk at most once: “time zone” is no two
relations. Possessives and “of” link chunks to the topic: a linked chunk that nothing explains speaks against a path.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from clew.reading.paths.question_words import (
    ARTICLES,
    AUXILIARIES,
    CUES,
    DOING,
    FUNCTION_WORDS,
    KIND_WORDS,
    LIGHT,
    PREPOSITIONS,
    singular,
)
from clew.reading.paths.topic_mask import MASK

Kind = Literal["person", "place", "time", "number", "manner"]
Side = Literal["left", "right"]
LONGEST = 3
_TOKEN = re.compile(r"\[\]|'s\b|\w+(?:-\w+)*")
_NAMING = frozenset(("name", "list", "give", "find", "show", "tell", "this"))
_BEFORE_NOUN = frozenset(["is", "are", "was", "were", "the", "a", "an", "some", "of", "all", "any", "me", "us"])


@dataclass(frozen=True)
class Knowledge:
    """What the reader must know of the base: which words name a type, and which words mean the same relation."""

    type_named: Callable[[str], str | None]
    same_relation: Callable[[str, str], bool]
    phrases: frozenset[tuple[str, ...]] = frozenset()
    """Relation names that hold a function word, such as (place, of, birth): read as one unit."""


@dataclass(frozen=True, slots=True)
class Span:
    """A phrase that may name a relation: its words, the chunks it lies in and how many of them are linked."""

    text: str
    side: Side
    start: int
    end: int
    chunks: tuple[int, int]
    linked: int


@dataclass(frozen=True)
class Order:
    """One way to read: where each span begins and ends among the chunks, counted from the topic."""

    begins: tuple[int, ...]
    ends: tuple[int, ...]


@dataclass(frozen=True)
class QuestionReading:
    """A question as the aligner needs it."""

    spans: tuple[Span, ...]
    orders: tuple[Order, ...]
    chunks: int
    linked: int
    words: tuple[tuple[Side, int], ...]
    """The places of the words that want an explanation."""
    content: str
    """Those words as a text."""
    cued: bool
    types: tuple[str, ...]
    """Node types the question names."""
    sought: frozenset[str]
    """The same without the one that only says what the topic is, as in “the film []”."""
    kind: Kind | None
    focus: tuple[str, ...]
    """The noun asked for, as in “which languages”."""


def read_question(masked: str, knowledge: Knowledge) -> QuestionReading:
    """Read a question whose topic is masked."""
    left, right = _sides(masked)
    reader = _Reader(left, right, knowledge)
    return reader.read()


def _sides(masked: str) -> tuple[list[str], list[str]]:
    tokens: list[str] = []
    for token in _TOKEN.findall(masked.lower()):
        together = re.fullmatch(r"co-(\w+)", token)
        grand = re.fullmatch(r"grand(\w{3,})", token)
        if together:
            tokens += ["co", together[1]]
        elif grand:  # the father of the father
            tokens += [grand[1], "of", grand[1]]
        else:
            tokens.append(token)
    for place, token in enumerate(tokens):
        ends = place == len(tokens) - 1
        earns = tokens[place + 1 : place + 2] == ["for"] and "living" in tokens[place + 2 : place + 4]
        if token in ("do", "did", "does") and (ends or earns):
            tokens[place] = DOING
    if MASK not in tokens:
        return [], tokens
    topic = tokens.index(MASK)
    return tokens[:topic], tokens[topic + 1 :]


class _Reader:
    def __init__(self, left: list[str], right: list[str], knowledge: Knowledge) -> None:
        self.left, self.right, self.knowledge = left, right, knowledge
        self.tokens: dict[Side, list[str]] = {"left": left, "right": right}
        self.chunk_of: dict[Side, list[int | None]] = {"left": self._chunks("left"), "right": self._chunks("right")}
        self.count: dict[Side, int] = {
            side: 1 + max((chunk for chunk in self.chunk_of[side] if chunk is not None), default=-1)
            for side in self.tokens
        }
        self.linked: dict[Side, set[int]] = {"left": self._chain("left"), "right": self._chain("right")}

    def read(self) -> QuestionReading:
        spans = [*self._spans("left"), *self._spans("right")]
        words = [
            (side, place) for side in self.tokens for place, word in enumerate(self.tokens[side]) if self._tells(word)
        ]
        everything = self.left + self.right
        named = [kind for word in everything if (kind := self._type(word)) is not None]
        sought = Counter(named) - Counter(kind for word in self.left[-1:] if (kind := self._type(word)) is not None)
        kind, focus = expectation([*self.left, MASK, *self.right], self._is_type)
        return QuestionReading(
            tuple(spans),
            tuple(self._order(name, spans) for name in self._orders()),
            self.count["left"] + self.count["right"],
            len(self.linked["left"]) + len(self.linked["right"]),
            tuple(words),
            " ".join(word for word in everything if word not in FUNCTION_WORDS and word != "'s"),
            any(word in CUES for word in everything),
            tuple(named),
            frozenset(sought),
            kind,
            focus,
        )

    def _type(self, word: str) -> str | None:
        return None if word in FUNCTION_WORDS else self.knowledge.type_named(word)

    def _is_type(self, word: str) -> bool:
        return self._type(word) is not None

    def _separates(self, word: str) -> bool:
        return word in FUNCTION_WORDS or word in CUES or word == "'s" or self._is_type(word)

    def _tells(self, word: str) -> bool:
        return not self._separates(word) and word not in LIGHT

    def _chunks(self, side: Side) -> list[int | None]:
        """The chunk of every token; None for separators."""
        tokens = self.tokens[side]
        glued = self._glued(tokens)
        found: list[int | None] = []
        chunk, last = -1, None
        for place, word in enumerate(tokens):
            if self._separates(word) and place not in glued:
                found.append(None)
                continue
            together = last is not None and (last == place - 1 or self._same(tokens, last, place, glued))
            chunk += not together
            found.append(chunk)
            last = place
        return self._without_verbs(side, found, glued)

    def _glued(self, tokens: Sequence[str]) -> set[int]:
        """Places inside a relation's name that holds function words."""
        glued: set[int] = set()
        for length in (4, 3, 2):
            for start in range(len(tokens) - length + 1):
                if tuple(map(singular, tokens[start : start + length])) in self.knowledge.phrases:
                    glued |= set(range(start, start + length))
        return glued

    def _same(self, tokens: Sequence[str], last: int, place: int, glued: set[int]) -> bool:
        """The director that directed, wrote the screenplay: two words for one relation."""
        if last in glued or place in glued:
            return False
        between = tokens[last + 1 : place]
        joins = all(word in ARTICLES or word in ("that", "who", "which") for word in between)
        return joins and self.knowledge.same_relation(tokens[last], tokens[place])

    def _without_verbs(self, side: Side, chunks: list[int | None], glued: set[int]) -> list[int | None]:
        """In “does []'s father work” the verb is a chunk of its own."""
        tokens = self.tokens[side]
        if side == "left" or tokens[:1] != ["'s"]:
            return chunks
        helped = any(word in ("do", "does", "did") for word in self.left)
        shift, found = 0, []
        for place, chunk in enumerate(chunks):
            continues = place > 0 and chunk is not None and chunks[place - 1] == chunk and place not in glued
            closes = place + 1 == len(chunks) or chunks[place + 1] != chunk
            if continues and closes and (helped or tokens[place].endswith(("ing", "ed", "dead"))):
                shift += 1
            found.append(None if chunk is None else chunk + shift)
        return found

    def _chain(self, side: Side) -> set[int]:
        """Chunks joined to the topic by possessives on the right, by “of” on the left, without a break."""
        tokens, chunks = self.tokens[side], self.chunk_of[side]
        link, linked, current = False, set(), None
        for place in range(len(tokens)) if side == "right" else reversed(range(len(tokens))):
            chunk, word = chunks[place], tokens[place]
            if chunk is not None:
                if chunk == current:
                    continue
                if not link:
                    break
                linked.add(chunk)
                current, link = chunk, False
            elif word == ("'s" if side == "right" else "of"):
                link = True
            elif word not in ARTICLES and not self._is_type(word):
                break
        return linked

    def _spans(self, side: Side) -> list[Span]:
        tokens = self.tokens[side]
        found = []
        for start in range(len(tokens)):
            for end in range(start + 1, min(start + LONGEST, len(tokens)) + 1):
                words = tokens[start:end]
                if words[0] in FUNCTION_WORDS or words[-1] in FUNCTION_WORDS or (len(words) == 1 and words[0] in LIGHT):
                    continue
                if any(word in CUES or word == "'s" or self._is_type(word) for word in words):
                    continue
                found.append(self._span(side, start, end, " ".join(words)))
            if tokens[start + 1 : start + 2] and tokens[start + 1] in PREPOSITIONS and self._tells(tokens[start]):
                found.append(self._span(side, start, start + 1, f"{tokens[start]} {tokens[start + 1]}"))
        return found

    def _span(self, side: Side, start: int, end: int, text: str) -> Span:
        chunks = sorted({chunk for chunk in self.chunk_of[side][start:end] if chunk is not None})
        linked = len(self.linked[side].intersection(chunks))
        return Span(text, side, start, end, (chunks[0], chunks[-1]), linked)

    def _orders(self) -> list[str]:
        """Right side first where it is a possessive or stands beside the topic; left first after a preposition."""
        left, right = self.count["left"], self.count["right"]
        if self._one_clause():
            return ["clause"]
        if self.right[:1] == ["'s"] or not left or not right:
            return ["right left"]
        if self.chunk_of["right"][0] is not None:
            return ["right left", "one right left", "left right"]
        if self.left[-1] in PREPOSITIONS or self.left[-1] in ARTICLES:
            return ["left right"]
        return ["right left", "left right"]

    def _one_clause(self) -> bool:
        """What language do [] speak: the noun and the verb speak of the same hop."""
        return (
            self.count["left"] == 1
            and self.count["right"] >= 1
            and self.left[0] in ("what", "which", "how", "in", "on", "to")
            and self.chunk_of["left"][-1] is None
            and not (self.linked["left"] or self.linked["right"] or self.right[:1] == ["'s"])
            and any(word in AUXILIARIES for word in self.left)
            and not any(self._is_type(word) for word in self.left + self.right)
        )

    def _order(self, name: str, spans: Sequence[Span]) -> Order:
        left, right = self.count["left"], self.count["right"]

        def place(side: Side, chunk: int) -> int:
            if name == "clause":
                return chunk if side == "right" else 0
            if name == "one right left":
                return left - chunk if side == "left" else chunk and left + chunk
            if name == "right left":
                return chunk if side == "right" else right + left - 1 - chunk
            return left - 1 - chunk if side == "left" else left + chunk

        places = [[place(span.side, chunk) for chunk in range(span.chunks[0], span.chunks[1] + 1)] for span in spans]
        return Order(tuple(min(part) for part in places), tuple(max(part) + 1 for part in places))


def expectation(tokens: Sequence[str], is_type: Callable[[str], bool]) -> tuple[Kind | None, tuple[str, ...]]:
    """What kind of answer a question expects by its question word, or the noun it asks for."""
    kinds: dict[str, Kind] = {"who": "person", "whom": "person", "where": "place", "when": "time"}
    for place, word in enumerate(tokens):
        if word in kinds:
            return kinds[word], ()
        if word == "how":
            return ("number" if tokens[place + 1 : place + 2] in (["many"], ["much"]) else "manner"), ()
        if word in ("what", "which"):
            return None, _noun(tokens, place + 1, is_type) or _noun(tokens, _skip(tokens, place + 1), is_type)
    for place, word in enumerate(tokens[:6]):
        if word in _NAMING:
            noun = _noun(tokens, _skip(tokens, place + 1), is_type)
            if noun:
                return None, noun
    return None, _noun(tokens, 1, is_type) if tokens[:1] == ["the"] else ()


def _skip(tokens: Sequence[str], place: int) -> int:
    while place < len(tokens) and tokens[place] in _BEFORE_NOUN:
        place += 1
    return place


def _noun(tokens: Sequence[str], place: int, is_type: Callable[[str], bool]) -> tuple[str, ...]:
    found: list[str] = []
    while place < len(tokens) and len(found) < 4 and tokens[place] not in FUNCTION_WORDS | {MASK, "'s"}:
        found.append(tokens[place])
        place += 1
    if found and found[-1] in KIND_WORDS and tokens[place : place + 1] == ["of"]:
        rest = [word for word in tokens[place + 1 : place + 4] if word not in FUNCTION_WORDS and word != MASK]
        if rest:  # the type of a film is no film, the type of music is some music
            return (found[-1],) if any(map(is_type, rest)) else (found[-1], *rest)
    return tuple(word for word in found if word not in LIGHT) or tuple(found)
