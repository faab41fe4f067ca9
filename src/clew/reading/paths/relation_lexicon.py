"""What the relations and types of a base are called, and how well a phrase of a question matches each of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from clew.core.schema import Schema
from clew.models.protocol import Embedder
from clew.queries.relation_paths import Move
from clew.reading.language.phrases import PhraseVectors
from clew.reading.language.relation_words import forms, word_likeness, words
from clew.reading.paths.question_words import FUNCTION_WORDS, asked_as, root, singular, singulars

Floats = NDArray[np.float32]
KINDS: dict[str, tuple[str, ...]] = {
    "person": ("person", "people", "actor", "father", "author", "director", "president"),
    "place": ("place", "location", "city", "country"),
    "time": ("year", "date", "time"),
    "number": ("number", "amount", "count"),
    "thing": ("thing", "object", "type", "genre", "language", "work", "organization"),
    "manner": ("cause", "manner", "method", "way"),
}
"""Kinds of answers, and words that stand for each."""
SHARPNESS = 0.1
"""How fast a kind loses with its distance from the best one."""
NAMES_TYPE = 0.7
"""The cosine from which a word names a node type: “films” names movies."""
ALIKE = 0.2
"""The cosine of unrelated words, roughly."""
BESIDE_BEST = 0.3
"""How much a relation loses for each point by which another matches the phrase better."""
BY_LETTERS, AS_ASKED = 0.5, 0.5
"""What a match by letters, or through the lexicon of questions, is worth at most."""
UNTYPED = frozenset(("entity", "value"))
"""Types of nodes nothing is known about."""


def property_words(relation: str) -> tuple[str, ...]:
    """The words that say what a relation means: the last part of domain.type.property."""
    return words(relation.rsplit(".", 1)[-1])


def domain_words(relation: str) -> tuple[str, ...]:
    """The type that a dotted name says its subjects have."""
    parts = relation.split(".")
    return words(parts[-2]) if len(parts) > 1 else ()


def variants(relation: str) -> tuple[str, ...]:
    """Phrases for a relation: its name, what is left without small words, each word, agent nouns."""
    name = property_words(relation)
    core = tuple(word for word in name if word not in FUNCTION_WORDS) or name
    agents = [form for word in core for form in forms(word)]
    return tuple(dict.fromkeys((" ".join(name), " ".join(core), *core, *agents)))


class RelationLexicon:
    """Vectors and words of a schema, made once per base."""

    def __init__(self, schema: Schema, embedder: Embedder) -> None:
        self.relations = schema.relation_names
        self.code = schema.relation_code
        self.vectors = PhraseVectors(embedder)
        spoken = [variants(name) for name in self.relations]
        empty: Floats = np.zeros((0, embedder.dimension), dtype=np.float32)
        self._variants = self.vectors.of([text for texts in spoken for text in texts]) if spoken else empty
        self._starts = np.cumsum([0, *(len(texts) for texts in spoken[:-1])], dtype=np.int64)
        self.properties = self._embedded([" ".join(property_words(name)) for name in self.relations])
        self.domains = self._embedded([" ".join(domain_words(name)) for name in self.relations])
        self.has_domain = np.array([bool(domain_words(name)) for name in self.relations])
        self.sentences = self._embedded([_sentence(name) for name in self.relations])
        self.types = {kind.name: kind.label for kind in schema.node_types if kind.name not in UNTYPED}
        self.leads_to = _leads_to(schema)
        self._labels = self._embedded(list(self.types.values()))
        self._by_word = _by_word([{part for text in texts for part in text.split()} for texts in spoken])
        self._asked = _asked(self.relations)
        self.kinds = self._kinds(self._variants, self._starts)
        self.domain_kinds = self._kinds(self.domains)
        self.type_kinds = dict(zip(self.types, self._kinds(self._labels), strict=True))
        self.phrases = frozenset(
            phrase
            for phrase in (tuple(map(singular, property_words(name))) for name in self.relations)
            if 1 < len(phrase) <= 4 and not FUNCTION_WORDS.isdisjoint(phrase)
        )
        self.type_named = lru_cache(maxsize=50_000)(self._type_named)
        self._row = lru_cache(maxsize=50_000)(self._match)

    def match(self, phrases: Sequence[str]) -> Floats:
        """One row per phrase, one column per relation: 0 for no match, about 1 for its name."""
        if not phrases or not self.relations:
            return np.zeros((len(phrases), len(self.relations)), dtype=np.float32)
        self.vectors.of(list(phrases))  # all at once, before each is asked for
        return np.stack([self._row(phrase) for phrase in phrases])

    def same_relation(self, first: str, second: str) -> bool:
        """Whether the same relation matches two words best."""
        rows = self.match([first, second])
        return bool(rows.shape[1]) and int(rows[0].argmax()) == int(rows[1].argmax()) and bool(rows.max(axis=1).all())

    def _match(self, phrase: str) -> Floats:
        best = np.maximum.reduceat(self._variants @ self.vectors.of([phrase])[0], self._starts)
        usual = (float(best.mean()) + ALIKE) / 2
        found = np.clip(best - usual - BESIDE_BEST * (best.max() - best), 0.0, None)
        total = math.log(len(self.relations) + 1)
        telling = [word for word in phrase.split() if word not in FUNCTION_WORDS]
        for word in telling:
            for known, owners in self._by_word.items():
                alike = word_likeness(word, known)
                if alike:
                    special = 0.4 + 0.6 * (1 - math.log(len(owners)) / total)
                    value = BY_LETTERS * alike * special / math.sqrt(len(telling))
                    found[owners] = np.maximum(found[owners], value)
        asked = self._asked.get(tuple(map(root, phrase.split())))
        if asked is not None:
            found[asked] = np.maximum(found[asked], AS_ASKED * (1 - 0.6 * math.log(len(asked)) / total))
        return np.asarray(found, dtype=np.float32)

    def _type_named(self, word: str) -> str | None:
        if not self.types or word in FUNCTION_WORDS or not word.isalpha():
            return None
        likeness = (self.vectors.of(list(singulars(word))) @ self._labels.T).max(axis=0)
        best = int(likeness.argmax())
        return list(self.types)[best] if likeness[best] > NAMES_TYPE else None

    def _embedded(self, texts: list[str]) -> Floats:
        return self.vectors.of(texts) if texts else np.zeros((0, self._variants.shape[1]), dtype=np.float32)

    def _kinds(self, vectors: Floats, starts: NDArray[np.int64] | None = None) -> Floats:
        """How probable each kind is for the ends of a relation, or for a type."""
        likeness = np.stack([(vectors @ self.vectors.of(list(some)).T).max(axis=1) for some in KINDS.values()], axis=1)
        if starts is not None and len(starts):
            likeness = np.maximum.reduceat(likeness, starts, axis=0)
        raised = np.exp((likeness - likeness.max(axis=1, keepdims=True)) / SHARPNESS)
        return np.asarray(raised / raised.sum(axis=1, keepdims=True), dtype=np.float32)


def _leads_to(schema: Schema) -> dict[Move, str]:
    """The type most ends of a relation have, in both directions."""
    counts: dict[Move, Counter[str]] = {}
    for relation in schema.relations:
        counts.setdefault(Move(relation.name, "out"), Counter())[relation.tail] += relation.count
        counts.setdefault(Move(relation.name, "in"), Counter())[relation.head] += relation.count
    return {move: some.most_common(1)[0][0] for move, some in counts.items()}


def _sentence(relation: str) -> str:
    name, domain = " ".join(property_words(relation)), " ".join(domain_words(relation))
    return name if domain in name else f"{domain} {name}"


def _by_word(parts: Sequence[set[str]]) -> dict[str, NDArray[np.int64]]:
    found: dict[str, list[int]] = {}
    for code, some in enumerate(parts):
        for part in some - FUNCTION_WORDS:
            found.setdefault(part, []).append(code)
    return {part: np.array(codes) for part, codes in found.items()}


def _asked(relations: Sequence[str]) -> dict[tuple[str, ...], NDArray[np.int64]]:
    found: dict[tuple[str, ...], list[int]] = {}
    for code, name in enumerate(relations):
        named = {singular(word) for word in property_words(name)}
        for heads, phrases in asked_as():
            if not named.isdisjoint(heads):
                for phrase in phrases:
                    codes = found.setdefault(tuple(map(root, phrase.split())), [])
                    if code not in codes:
                        codes.append(code)
    return {phrase: np.array(codes) for phrase, codes in found.items()}
