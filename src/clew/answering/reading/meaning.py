"""Possible meanings of a question, the words that each meaning explains, and names that the base does not have.

1  Each word gets the probability that it belongs to a name. A linear layer computes it from the state of the choosing
   encoder for the best plan, with letters for linked names. It was fitted over many schemas
   (`benchmarks/fit_names.py`).
2  Adjacent words of names form one span. A likely link by spelling turns the span into a mention.
3  All other spans are unknown names, each with names of similar spelling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from rapidfuzz import fuzz, process

from clew.answering.reading.encoders import Encoders, Floats, ReadQuestion
from clew.answering.reading.mentions import NamedSpan, Sense
from clew.answering.reading.plan import Plan
from clew.answering.reading.quantities import Quantity, without_amount
from clew.core.nouns import singular
from clew.core.query import AnyQuery
from clew.core.roles import Interpretation
from clew.core.types import UnknownName
from clew.store.index.tokens import Token, stem, stop_words, terms, tokenise


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the question that is linked to no node, with the probability that it belongs to a name."""

    start: int
    end: int
    text: str
    likely: float


@dataclass(frozen=True)
class Meaning:
    """One interpretation of the question."""

    plan: Plan
    named: tuple[NamedSpan, ...]
    """The mentions that the plan refers to by index."""
    senses: tuple[Sense, ...]
    """The sense of each mention."""
    numbers: tuple[Quantity, ...]
    score: float
    """Log-probability among the compared meanings and "none of them"."""
    prior: float
    """Sum of the log-probabilities of its parts."""
    text: str
    """The plan in words, with letters for mentions."""
    asked: Interpretation | AnyQuery | None = None
    """The written query, for nodes or for rows. The plan then only outlines it: its form, numbers and values."""

    @property
    def share(self) -> float:
        """Probability of the meaning: the exponential of the score."""
        return float(np.exp(self.score))


@dataclass(frozen=True)
class Understanding:
    """Possible meanings of a question, the likeliest first."""

    question: str
    named: tuple[NamedSpan, ...] = ()
    meanings: tuple[Meaning, ...] = ()
    certainty: float = 0.0
    """Probability that the first meaning is right."""
    is_english: bool = True
    words: tuple[Word, ...] = ()
    """Words that are linked to no node."""
    unknown: tuple[UnknownName, ...] = ()
    """Names that are missing in the base."""
    is_sayable: bool = True
    """Whether a query is likely to say the question. Otherwise only texts may answer it."""


def joined(meanings: Sequence[Meaning]) -> list[Meaning]:
    """Join meanings that ask the same, whether A leads to B or B to A, and add up their probabilities."""
    found: dict[object, Meaning] = {}
    for one in meanings:
        plan = one.plan
        key: object = plan, one.named, one.senses
        if plan.form == "exists" and len(plan.branches) == len(plan.mentions) == 1:
            (way,), (end,) = plan.branches, plan.mentions
            there, back = (way.mention, end, way.hops), (end, way.mention, tuple(hop ^ 1 for hop in way.hops[::-1]))
            key = frozenset({there, back}), plan.requirements, one.named, one.senses
        known = found.get(key)
        found[key] = one if known is None else replace(known, score=float(np.logaddexp(known.score, one.score)))
    return sorted(found.values(), key=lambda one: -one.score)


def explained_part(question: str, meaning: Meaning) -> float:
    """Return the share of a question's content words that its plan explains."""
    words = [token.text for token in tokenise(question) if token.text not in stop_words()]
    return 1 - len(unexplained(question, meaning).split()) / max(1, len(words))


def unexplained(question: str, meaning: Meaning) -> str:
    """Return the content words of a question outside mentions, used numbers and the plan's words."""
    used = {requirement.quantity for requirement in meaning.plan.requirements}
    spans = [(one.start, one.end) for one in meaning.named]
    spans += [(one.start, one.end) for place, one in enumerate(meaning.numbers) if place in used]
    known = set(terms(meaning.text))
    left = [
        question[token.start : token.end]
        for token in tokenise(question)
        if not any(start <= token.start < end for start, end in spans)
        and token.text not in stop_words()
        and known.isdisjoint(terms(token.text))
    ]
    return " ".join(left)


NAME = {True: 0.5, False: 0.3}
"""Minimum probability that a word belongs to a name: for readings above CERTAIN, and for other readings."""
CERTAIN = 0.2
"""Minimum certainty of a reading to present."""
OFFSET, BY_CERTAINTY, ROUNDING = 1.0, 0.6, 0.005
"""Reduction of a word's log odds of being a name: a constant, a factor for the reading's certainty, and smoothing."""
BESIDE = 0.2
"""Minimum probability for a word next to a word of a name."""
SPELLED_ALIKE = 0.05
"""Minimum probability for a word that is spelled exactly like a name of the base."""
REPLACED = re.compile(r"\b[A-H] \( [^)]*\)|\bnumber \d+ \( [^)]*\)")
"""Placeholders for names and quantities in a question as the encoder reads it."""
JOINING = frozenset({"and", "or", "nor"})
"""Words that join two names."""
MISSPELLED = 85
"""Minimum similarity of a word to a word of the schema, 0..100."""
BEYOND = 2
"""Number of words before and after a span that may belong to the name."""
PIECES = 4
"""Maximum number of further word pieces that count. A word of many pieces is rare."""


@dataclass(frozen=True)
class SchemaTerms:
    """Words of a schema. Paraphrases in a question are similar to them."""

    words: frozenset[str]
    encoders: Encoders

    @cached_property
    def stems(self) -> frozenset[str]:
        """The words without their endings."""
        return frozenset(map(stem, self.words))

    def similarity(self, ids: Sequence[int]) -> float:
        """Return the similarity of a word, as word pieces, to the most similar word of the schema."""
        vector = self.encoders.pieces_vector(ids)
        return float((self._vectors @ vector).max() / np.linalg.norm(vector))

    @cached_property
    def _vectors(self) -> Floats:
        return self.encoders.word_vectors(sorted(self.words - stop_words()) or ["thing"])


@dataclass(frozen=True)
class NameWords:
    """Recognises the words of names. `weights` are for the encoder's state, then for the features of `word_rows`."""

    weights: Floats
    bias: float

    @classmethod
    def open(cls, folder: Path) -> NameWords | None:
        """Read the weights fitted for the encoders in a folder, or return None if the file is missing."""
        file = folder / "names.json"
        if not file.is_file():
            return None
        told = json.loads(file.read_text("utf-8"))
        return cls(np.array(told["weights"], dtype=np.float32), float(told["bias"]))

    def words(
        self,
        question: str,
        spans: Sequence[tuple[int, int]],
        read: ReadQuestion,
        plan: str,
        schema: SchemaTerms,
        certainty: float,
    ) -> list[Word]:
        """Return the words outside `spans`. In `read`, placeholders replace these spans."""
        tokens, rows = word_rows(question, spans, read, plan, schema)
        against = OFFSET + BY_CERTAINTY * np.log((certainty + ROUNDING) / (1 - certainty + ROUNDING))
        likely = 1 / (1 + np.exp(against - rows @ self.weights - self.bias)) if tokens else []
        return [Word(one.start, one.end, one.text, float(p)) for one, p in zip(tokens, likely, strict=True)]


def word_rows(
    question: str, spans: Sequence[tuple[int, int]], read: ReadQuestion, plan: str, schema: SchemaTerms
) -> tuple[list[Token], Floats]:
    """Return the words of a question outside some spans, and a row of features for each word."""
    own = [one for one in tokenise(question) if not any(start <= one.start < end for start, end in spans)]
    replaced = [match.span() for match in REPLACED.finditer(read.text)]
    same = [one for one in tokenise(read.text) if not any(start <= one.start < end for start, end in replaced)]
    if [one.text for one in own] != [one.text for one in same]:
        return [], np.zeros((0, 0), dtype=np.float32)
    said, tokens, rows = set(terms(plan)), [], []
    for token, place in zip(own, same, strict=True):
        pieces = [at for at, (start, end) in enumerate(read.offsets) if start < place.end and place.start < end]
        if pieces:
            is_first, root = place.start == 0, stem(token.text)
            is_capital = question[token.start].isupper() and not is_first and not question.isupper()
            ids = [read.ids[at] for at in pieces]
            told: list[float] = [is_capital, root in schema.stems, root in said, min(len(pieces) - 1, PIECES), is_first]
            told += [schema.similarity(ids), np.log(max(ids))]  # frequent words have small ids
            tokens.append(token)
            rows.append(np.concatenate((read.states[pieces].mean(axis=0), np.array(told, dtype=np.float32))))
    return tokens, np.array(rows, dtype=np.float32)


def unknown_spans(known: Understanding, schema_words: Collection[str]) -> list[tuple[int, int]]:
    """Return runs of words that form a name, including adjacent less likely words and stop words between them."""
    question = known.question
    names_only, runs = without_amount(question), list[list[Word]]()
    for word in known.words:
        if word.likely >= BESIDE and word.text not in stop_words() and names_only[word.start : word.end].strip():
            between = question[runs[-1][-1].end : word.start] if runs else ","
            if between.strip() in ("", "-", "'", ".", *(stop_words() - JOINING)):
                runs[-1].append(word)
            else:
                runs.append([word])
    for run in runs:
        while len(run) > 1 and are_like(run[0].text, schema_words):  # "import" before the name of a module
            del run[0]
    return [
        (run[0].start, run[-1].end)
        for run in runs
        if max(one.likely for one in run) >= NAME[known.certainty >= CERTAIN]
        and not are_like(question[run[0].start : run[-1].end], schema_words)
    ]


def windows(
    question: str, start: int, end: int, named: Sequence[NamedSpan], words: Sequence[Word]
) -> list[tuple[int, int]]:
    """Return spans that may be the whole name, shortest first.

    Each contains the likeliest word of the span and may extend the span by up to BEYOND words. A span that overlaps a
    mention includes the whole mention.
    """
    tokens = tokenise(question)
    core = max((word for word in words if start <= word.start < end), key=lambda word: word.likely, default=None)
    inside = [at for at, one in enumerate(tokens) if start <= one.start < end]
    if core is None or not inside:
        return [(start, end)]
    at = next(place for place in inside if tokens[place].start == core.start)
    firsts, lasts = range(max(0, inside[0] - BEYOND), at + 1), range(at, min(len(tokens), inside[-1] + 1 + BEYOND))
    spans = [
        _with_mentions(tokens[first].start, tokens[last].end, named)
        for first in firsts
        for last in lasts
        if tokens[first].text not in stop_words() and tokens[last].text not in stop_words()
    ]
    return sorted(set(spans), key=lambda span: span[1] - span[0]) or [(start, end)]


def _with_mentions(start: int, end: int, named: Sequence[NamedSpan]) -> tuple[int, int]:
    over = [one for one in named if one.start < end and start < one.end]
    return min([start, *(one.start for one in over)]), max([end, *(one.end for one in over)])


def are_like(text: str, schema_words: Collection[str]) -> bool:
    """Return whether all words of a text are schema words or stop words. Accept misspellings and plurals."""
    known = [*schema_words, *stop_words()]

    def is_known(word: str) -> bool:
        return process.extractOne(word, known, scorer=fuzz.ratio, score_cutoff=MISSPELLED) is not None

    return all(is_known(one.text) or is_known(singular(one.text)) for one in tokenise(text))
