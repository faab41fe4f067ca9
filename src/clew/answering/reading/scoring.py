"""Score a question with the trained encoder, over the hops, attributes and types of a schema."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clew.answering.reading.encoders import Encoders, Floats, unit
from clew.answering.reading.fitted import Fitted
from clew.answering.reading.plan import FORMS, LETTERS
from clew.answering.reading.quantities import Quantity
from clew.answering.reading.vocabulary import Vocabulary
from clew.core.array_files import read_array
from clew.core.scores import round_network
from clew.models.embedding.onnx import DIMENSION
from clew.store.index.tokens import terms


@dataclass(frozen=True, eq=False)
class MentionScores:
    """Encoder scores for a mention: log-probabilities and raw scores over the vocabulary."""

    type: int
    paths: Floats
    """6 × hops: the hop of paths of length 1, hops 1 and 2 of length 2, and hops 1 to 3 of length 3."""
    negated: float
    """Probability that the question negates the statement about the mention."""
    denied: Floats
    """Scores over hops: the negated hop."""
    values: Floats
    """Scores over attributes: the requested attribute of the mention."""
    lengths: Floats
    """Score changes for paths of one, two and three hops from the mention."""
    first: frozenset[int] | None = None
    """Hops with edges at the mention. None means all hops of its type."""


@dataclass(frozen=True, eq=False)
class QuantityScores:
    """Encoder scores for a number or date."""

    operators: Floats
    """Log-probabilities over `OPERATORS`."""
    compared: Floats
    """Scores over attributes, then over hops with counted end nodes: the compared attribute or count."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Encoder scores for one question."""

    forms: Floats
    """Log-probabilities over `FORMS`."""
    types: Floats
    """Log-probabilities over node types."""
    lacking: float
    """Probability that the answer must not have a certain relation at all."""
    lacked: Floats
    """Scores over hops that end at the answer: the missing relation."""
    related: float
    """Probability that the answer is related to a node that the question does not name."""
    relating: Floats
    """Scores over hops that end at the answer: the relation to the unnamed node."""
    valued: float
    """Probability that the question asks for an attribute of the nodes that a superlative selects."""
    either: float
    """Probability that one of several requirements is enough."""
    counted: Floats
    """Scores over hops: the hop to count for most and fewest."""
    values: Floats
    """Scores over attributes: the requested attribute of the answer."""
    extremes: Floats
    """Scores over attributes: the attribute of a superlative or comparison."""
    switches: Floats
    """Log-probabilities of no boolean attribute, then of each attribute."""
    positive: float
    """Probability that the boolean attribute must be true."""
    mentions: tuple[MentionScores, ...] = ()
    quantities: tuple[QuantityScores, ...] = ()
    categories: tuple[tuple[int, str], ...] = ()
    """Attributes with a value that occurs in the question."""
    called: frozenset[tuple[int, str]] = frozenset()
    """The pairs in `categories` whose value is directly after the name of the attribute."""
    parts: tuple[tuple[int, str], ...] = ()
    """Attributes with values that contain words of the question."""
    denied: frozenset[tuple[int, str]] = frozenset()
    """The pairs in `categories` that the answer must not have: "not liquid"."""
    step: int = 0
    """1 if the question asks for the row after a row of a table, -1 for the row before."""
    differs: bool = False
    """Whether the question asks for the difference of two values."""
    averages: bool = False
    """Whether the question has a word for an average."""
    named_attributes: frozenset[int] = frozenset()
    """Attributes whose names occur in the question."""
    groups: tuple[tuple[int, ...], ...] = ()
    """Mentions of one type that the question joins: "neither A nor B"."""


HEADS = (
    *("only", "first of two", "second of two", "first of three", "second of three", "third of three"),
    *("denied", "lacked", "counted", "value", "value of answer", "extreme", "quantity", "switch", "type"),
    *("counted quantity", "relating"),
)
"""Names of the stacked matrices in the weights, in their order."""
SKETCHED = {"forms": len(FORMS), "related": 2, "valued": 2}
"""Outputs of the question sketch with their number of classes: the form, and whether it has a rare part."""
FOCUS, OTHER = "§", "•"
DATED = 3.0
"""Score subtracted for a number of neighbors if the number may be a date."""
SAID = 4.0
"""Score added for a type that the question names."""
COMPARED = ("number", "integer", "date", "category", "text")


@dataclass(frozen=True, slots=True)
class TypedSpan:
    """A span of the question for a node or a number, and the word for its type."""

    start: int
    end: int
    kind: str


def masked(question: str, spans: Sequence[TypedSpan], focus: int | None = None) -> str:
    """Return the question with types instead of names, one of them marked: `who directed § film §`."""
    marks = [FOCUS if place == focus else OTHER for place in range(len(spans))]
    pieces = [(one.start, one.end, f"{mark} {one.kind} {mark}") for one, mark in zip(spans, marks, strict=True)]
    return _with_placeholders(question, sorted(pieces, key=lambda piece: piece[0]))


def lettered(question: str, named: Sequence[TypedSpan], numbers: Sequence[Quantity]) -> str:
    """Return the question with letters for names: `who directed A ( film ) after number 1 ( 1999 )`."""
    pieces = [(span.start, span.end, f"{LETTERS[place]} ( {span.kind} )") for place, span in enumerate(named)]
    pieces += [(one.start, one.end, f"number {place + 1} ( {one.text} )") for place, one in enumerate(numbers)]
    return _with_placeholders(question, sorted(pieces))


def _with_placeholders(question: str, pieces: Sequence[tuple[int, int, str]]) -> str:
    """Replace spans of a question, given in reading order, by other words."""
    told, position = [], 0
    for start, end, text in pieces:
        told += [question[position:start], text]
        position = end
    return " ".join(" ".join([*told, question[position:]]).split())


BRACKETED = re.compile(r"\([^)]*\)")


def without_names(masked: str) -> str:
    """Remove the placeholders of names from a masked question."""
    return re.sub(rf"[{FOCUS}{OTHER}][^{FOCUS}{OTHER}]*[{FOCUS}{OTHER}]", " ", masked)


def shared_words(said: str, text: str) -> tuple[float, float]:
    """Return the shares of a question's content words that are in a plan's names, and only in its descriptions."""
    asked = set(terms(without_names(said)))
    if not asked:
        return 0.0, 0.0
    names = asked & set(terms(BRACKETED.sub(" ", text)))
    return len(names) / len(asked), len((asked & set(terms(text))) - names) / len(asked)


@dataclass(frozen=True)
class Labels:
    """Vectors of a vocabulary, computed once and cached in a folder."""

    vocabulary: Vocabulary
    encoders: Encoders
    folder: Path | None = None
    fitted: Fitted | None = None

    @cached_property
    def hops(self) -> Floats:
        """One row per hop."""
        return self._moved(self.vocabulary.hop_texts)

    @cached_property
    def attributes(self) -> Floats:
        """One row per attribute."""
        return self._moved(self.vocabulary.attribute_texts)

    @cached_property
    def types(self) -> Floats:
        """One row per type."""
        return self._vectors(self.vocabulary.type_texts)

    def _moved(self, texts: Sequence[str]) -> Floats:
        vectors = self._vectors(texts)
        return vectors if self.fitted is None else vectors + self.fitted.of(texts)

    def _vectors(self, texts: Sequence[str]) -> Floats:
        if self.folder is None or not texts:
            return unit(self.encoders.meaning(texts))
        digest = hashlib.sha256("\n".join((self.encoders.version, *texts)).encode()).hexdigest()[:24]
        file = self.folder / f"labels-{digest}.npy"
        with suppress(OSError, ValueError):  # a truncated file is written again
            stored: Floats = read_array(file.read_bytes())
            if stored.shape == (len(texts), DIMENSION):
                return stored
        vectors = unit(self.encoders.meaning(texts))
        with suppress(OSError):  # in a read-only folder they are computed each time
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".npy", delete=False) as partial:
                np.save(partial, vectors)
            Path(partial.name).replace(file)
        return vectors


def length_scores(vocabulary: Vocabulary, heads: Mapping[str, Floats], kind: int) -> Floats:
    """Return the score changes for paths of one, two and three hops from a type.

    Training compared a right path with a sample of the paths. If a type has more paths, the scores are lowered
    accordingly.
    """
    counts = vocabulary.path_counts[kind]
    seen = np.minimum(heads["seen_paths"], counts) if "seen_paths" in heads else counts
    return np.asarray(heads["lengths"] + np.log(np.maximum(seen, 1) / np.maximum(counts, 1)), dtype=np.float32)


@dataclass(frozen=True)
class QuestionScorer:
    """Scores questions over one vocabulary."""

    vocabulary: Vocabulary
    encoders: Encoders
    labels: Labels

    def score(
        self,
        question: str,
        named: Sequence[TypedSpan],
        types: Sequence[int],
        numbers: Sequence[Quantity],
        categories: tuple[tuple[int, str], ...] = (),
    ) -> Scores:
        """Score a question. `named` are the spans of names, `types` their types, `categories` the values in it."""
        heads, count = self.encoders.heads, len(named)
        hops, attributes = self.labels.hops, self.labels.attributes
        dated = [TypedSpan(one.start, one.end, "date" if one.is_date else "number") for one in numbers]
        texts = [masked(question, named)]
        texts += [masked(question, named, place) for place in range(count)]
        texts += [masked(question, [*named, one], count) for one in dated]
        raw = self.encoders.asked(texts)
        vectors = unit(raw)
        whole, focused, numbered = vectors[0], vectors[1 : 1 + count], vectors[1 + count :]
        said = self.encoders.told(texts[0])
        known = np.concatenate((raw[0], self.encoders.word_features(said)))
        sketch = np.maximum(heads["sketch"] @ known + heads["sketch_bias"], 0)
        told = {name: sketch @ heads[name].T + heads[f"{name}_bias"] for name in SKETCHED}
        flags = _shares((raw[0] @ heads["flags"].T + heads["flags_bias"]).reshape(2, 2))[:, 1]
        switches = np.where(self._is_switch, self._compared("switch", whole, attributes), -1e4)
        positive = _shares(raw[0] @ heads["positive"].T + heads["positive_bias"])[1]
        mentions = tuple(
            MentionScores(
                kind,
                np.stack([self._compared(name, one, hops) for name in HEADS[:6]]),
                float(_shares(raw[1 + place] @ heads["negated"].T + heads["negated_bias"])[1]),
                self._compared("denied", one, hops),
                self._compared("value", one, attributes),
                length_scores(self.vocabulary, heads, kind),
            )
            for place, (kind, one) in enumerate(zip(types, focused, strict=True))
        )
        quantities = tuple(
            QuantityScores(
                _logged(raw[1 + count + place] @ heads["operators"].T + heads["operators_bias"]),
                np.append(
                    np.where(self._may_be(number), self._compared("quantity", one, attributes), -1e4),
                    self._compared("counted quantity", one, hops) - (DATED if number.is_date else 0.0),
                ),
            )
            for place, (number, one) in enumerate(zip(numbers, numbered, strict=True))
        )
        return Scores(
            _logged(told["forms"]),
            _logged(self._compared("type", whole, self.labels.types) + SAID * self.said_types(said)),
            float(flags[0]),
            self._compared("lacked", whole, hops),
            float(_shares(told["related"])[1]),
            self._compared("relating", whole, hops),
            float(_shares(told["valued"])[1]),
            float(flags[1]),
            self._compared("counted", whole, hops),
            self._compared("value of answer", whole, attributes),
            self._compared("extreme", whole, attributes),
            _logged(np.concatenate((heads["no_switch"], switches))),
            float(positive),
            mentions,
            quantities,
            categories,
        )

    def _compared(self, head: str, vector: Floats, labels: Floats) -> Floats:
        return round_network(labels @ (vector @ self.encoders.heads["pairs"][HEADS.index(head)]))

    def said_types(self, text: str) -> Floats:
        """Return 1 for each type whose words occur in a question outside names, 0 for the other types."""
        said = set(terms(without_names(text)))
        return np.array([words <= said for words in self._type_terms], dtype=np.float32)

    @cached_property
    def _type_terms(self) -> list[set[str]]:
        words = self.vocabulary.type_words
        return [set(terms(words(name))) or {""} for name in self.vocabulary.schema.type_names]

    @cached_property
    def _is_switch(self) -> NDArray[np.bool_]:
        return np.equal(self._kinds, "boolean")

    def _may_be(self, number: Quantity) -> NDArray[np.bool_]:
        """Return for each attribute whether it can be compared with a number or a date."""
        return np.isin(self._kinds, ["date"] if number.month_and_day[0] else COMPARED)

    @cached_property
    def _kinds(self) -> NDArray[np.str_]:
        return np.array([one.kind for one in self.vocabulary.attributes], dtype=np.str_)


def _logged(raw: Floats) -> Floats:
    """Normalise to log-probabilities."""
    return round_network(raw - np.logaddexp.reduce(raw))


def _shares(raw: Floats) -> Floats:
    """Return probabilities along the last axis."""
    rounded = round_network(raw).astype(np.float64)
    exact = np.exp(rounded - rounded.max(axis=-1, keepdims=True))
    return np.asarray(exact / exact.sum(axis=-1, keepdims=True), dtype=np.float32)
