"""What the encoder says about a question and its parts: log-probabilities over the vocabulary of a schema."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class MentionScores:
    """What the encoder says about a mention: log-probabilities and raw scores over the vocabulary."""

    type: int
    paths: Floats
    """6 × hops: first of one; first and second of two; first, second and third of three."""
    negated: float
    """How likely what is said about it is denied."""
    denied: Floats
    """Over hops: what is denied."""
    values: Floats
    """Over attributes: which of its own is asked for."""
    lengths: Floats
    """What is added for paths of one, two and three hops from it."""
    first: frozenset[int] | None = None
    """The hops that really start at it; None: all that start at its type."""


@dataclass(frozen=True, eq=False)
class QuantityScores:
    """What the encoder says about a number or date."""

    operators: Floats
    """Log-probabilities over `OPERATORS`."""
    compared: Floats
    """Over attributes, then hops whose ends are counted: which one it is compared with."""


@dataclass(frozen=True, eq=False)
class Scores:
    """What the encoder says about a question."""

    forms: Floats
    """Log-probabilities over `FORMS`."""
    types: Floats
    """Log-probabilities over node types."""
    lacking: float
    """How likely the answer is to lack a relation altogether."""
    lacked: Floats
    """Over hops that end at the answer: which one it lacks."""
    related: float
    """How likely the answer is related to something that the question does not name."""
    relating: Floats
    """Over hops that end at the answer: by which one."""
    valued: float
    """How likely an attribute of what is the most is asked for."""
    either: float
    """How likely one of several requirements suffices."""
    counted: Floats
    """Over hops: what is counted for most and fewest."""
    values: Floats
    """Over attributes: which one of the answer is asked for."""
    extremes: Floats
    """Over attributes: by which one is compared."""
    switches: Floats
    """Log-probabilities over no boolean attribute, then each attribute."""
    positive: float
    """How likely a boolean attribute is to be true."""
    mentions: tuple[MentionScores, ...] = ()
    quantities: tuple[QuantityScores, ...] = ()
    categories: tuple[tuple[int, str], ...] = ()
    """Attributes with a value that stands in the question."""
    denied: frozenset[tuple[int, str]] = frozenset()
    """Those of them that the answer must not have: "not liquid"."""
    groups: tuple[tuple[int, ...], ...] = ()
    """Mentions of one type that the question joins: "neither A nor B"."""
