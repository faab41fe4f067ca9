"""Encoder scores for a question and its parts: log-probabilities over the vocabulary of a schema."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


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
    denied: frozenset[tuple[int, str]] = frozenset()
    """The pairs in `categories` that the answer must not have: "not liquid"."""
    step: int = 0
    """1 if the question asks for the row after a row of a table, -1 for the row before."""
    differs: bool = False
    """Whether the question asks for the difference of two values."""
    groups: tuple[tuple[int, ...], ...] = ()
    """Mentions of one type that the question joins: "neither A nor B"."""
