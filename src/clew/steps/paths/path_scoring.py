"""From the features of paths to their scores: a weight for each feature, and one for each product of two.

Products let one feature say how much another counts: a hop without a word is worse where the question has words left.
Only features that vary over every kind of base have products: what one base alone teaches does not carry over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.steps.paths.path_features import FEATURES, SAME_FOR_ALL

Doubles = NDArray[np.float64]
ONE_KIND_OF_BASE = frozenset(("domain", "nameless", "around_kind", "around_focus", "types"))
"""Features that say nothing on bases without dotted names, nameless nodes or types."""
FURTHEST = 3.0
"""Spreads from the mean beyond which a feature says no more."""
_ALONE = tuple(place for place, name in enumerate(FEATURES) if name not in SAME_FOR_ALL)
_PAIRS = tuple(
    (first, second)
    for first, second in combinations_with_replacement(range(len(FEATURES)), 2)
    if not {FEATURES[first], FEATURES[second]} & ONE_KIND_OF_BASE
    and not {FEATURES[first], FEATURES[second]} <= SAME_FOR_ALL
)
TERMS = (*(FEATURES[place] for place in _ALONE), *(f"{FEATURES[a]}*{FEATURES[b]}" for a, b in _PAIRS))


@cache
def _shipped() -> Mapping[str, Any]:
    raw: Mapping[str, Any] = json.loads(files("clew.steps.paths").joinpath("path_weights.json").read_text("utf-8"))
    return raw


def learned_weights() -> Mapping[str, float]:
    """The weight of each term, as `clew.training.path_ranker` learned it."""
    return dict(_shipped()["weights"])


@cache
def _usual() -> tuple[Doubles, Doubles]:
    means, spreads = (_shipped()[part] for part in ("mean", "spread"))
    return np.array([means[name] for name in FEATURES]), np.array([spreads[name] for name in FEATURES])


def terms(features: Doubles, usual: tuple[Doubles, Doubles] | None = None) -> Doubles:
    """One row per path, one column per term; `usual` is the mean and the spread of each feature."""
    mean, spread = _usual() if usual is None else usual
    standard = np.clip((features - mean) / spread, -FURTHEST, FURTHEST)
    firsts, seconds = (list(places) for places in zip(*_PAIRS, strict=True))
    return np.concatenate((standard[:, list(_ALONE)], standard[:, firsts] * standard[:, seconds]), axis=1)


def as_vector(weights: Mapping[str, float]) -> Doubles:
    """Weights in the order of the terms; what is not named weighs nothing."""
    return np.array([weights.get(name, 0.0) for name in TERMS])
