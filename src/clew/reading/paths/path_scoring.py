"""From the features of paths to their scores: a weight for each feature.

Linear on purpose: products of features were worth four points on one base and cost ten to thirty on bases that the
weights were not fitted on (docs/measurements.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.reading.paths.path_features import FEATURES

Doubles = NDArray[np.float64]
FURTHEST = 3.0
"""Spreads from the mean beyond which a feature says no more."""


@cache
def _shipped() -> Mapping[str, Any]:
    raw: Mapping[str, Any] = json.loads(files("clew.reading.paths").joinpath("path_weights.json").read_text("utf-8"))
    return raw


def learned_weights() -> Mapping[str, float]:
    """The weight of each feature, as `clew.training.path_ranker` learned it."""
    return dict(_shipped()["weights"])


@cache
def _usual() -> tuple[Doubles, Doubles]:
    means, spreads = (_shipped()[part] for part in ("mean", "spread"))
    return np.array([means[name] for name in FEATURES]), np.array([spreads[name] for name in FEATURES])


def standard(features: Doubles) -> Doubles:
    """One row per path, in spreads from the mean."""
    mean, spread = _usual()
    return np.clip((features - mean) / spread, -FURTHEST, FURTHEST)


def as_vector(weights: Mapping[str, float]) -> Doubles:
    """Weights in the order of the features; what is not named weighs nothing."""
    return np.array([weights.get(name, 0.0) for name in FEATURES])
