"""Possible meanings of a question, and the words that each meaning explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.answering.reading.mentions import NamedSpan, Sense
from clew.answering.reading.plan import Plan
from clew.answering.reading.quantities import Quantity
from clew.core.types import UnknownName
from clew.store.index.tokens import stop_words, terms, tokenise


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
