"""What a question may mean, and which of its words that accounts for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.answering.reading.mentions import Named, Sense
from clew.answering.reading.plan import Plan
from clew.answering.reading.quantities import Quantity
from clew.core.types import UnknownName
from clew.store.index.tokens import stop_words, terms, tokenise


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the question that nothing was linked to, with the probability that it belongs to a name."""

    start: int
    end: int
    text: str
    likely: float


@dataclass(frozen=True)
class Meaning:
    """One way to take the question."""

    plan: Plan
    named: tuple[Named, ...]
    """The mentions that its plan speaks of by position."""
    senses: tuple[Sense, ...]
    """What each of them stands for."""
    numbers: tuple[Quantity, ...]
    score: float
    """Log-probability among the meanings that were chosen among, "none of them" included."""
    prior: float
    """Sum of the log-probabilities of its parts."""
    text: str
    """The plan in words, mentions as letters."""

    @property
    def share(self) -> float:
        """The probability that goes with the score."""
        return float(np.exp(self.score))


@dataclass(frozen=True)
class Understanding:
    """What a question may mean, the likeliest first."""

    question: str
    named: tuple[Named, ...] = ()
    meanings: tuple[Meaning, ...] = ()
    none: float = 0.0
    """Log-probability that none of them is meant."""
    certainty: float = 0.0
    """How likely the first meaning is right."""
    is_english: bool = True
    words: tuple[Word, ...] = ()
    """The words that nothing was linked to."""
    unknown: tuple[UnknownName, ...] = ()
    """Names that the base does not have."""


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
    """The part of a question's telling words that its plan accounts for."""
    words = [token.text for token in tokenise(question) if token.text not in stop_words()]
    return 1 - len(unexplained(question, meaning).split()) / max(1, len(words))


def unexplained(question: str, meaning: Meaning) -> str:
    """The telling words of a question that neither name anything nor are among the words of the plan."""
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


def strange_words(question: str, meaning: Meaning) -> list[str]:
    """Words with a capital or a digit inside a question that no name, number or plan accounts for."""
    left = set(unexplained(question, meaning).split())
    words = [question[token.start : token.end] for token in tokenise(question)[1:]]
    is_shouted = question.isupper()
    return [word for word in words if word in left and not is_shouted and (word[0].isupper() or word[-1].isdecimal())]
