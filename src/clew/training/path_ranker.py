"""Weights for the features of relation paths, learned from questions with known answers; numpy and scipy only.

For each question a softmax over its paths gives every path a probability; what is maximised is the probability mass on
paths that lead to the answers, each path counting by its F1. A question that no reading explains has little influence,
since the logarithm is taken of the mass plus a constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from clew.core.errors import InputError

Doubles = NDArray[np.float64]
TOLERANCE = 0.15
"""The mass that even a hopeless question is granted."""


@dataclass(frozen=True)
class PathExample:
    """The features of a question's paths, one row each, and how right each path is, 0..1."""

    features: Doubles
    right: Doubles
    weight: float = 1.0


def fit_path_weights(
    examples: Sequence[PathExample],
    names: Sequence[str],
    l2: float = 0.0007,
    start: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """A weight for each feature; with `start`, the weights stay close to those it gives."""
    useful = [example for example in examples if example.right.max(initial=0.0) > 0]
    if not useful:
        raise InputError("no question has a path that leads to its answer: nothing can be learned")
    rows = np.concatenate([example.features for example in useful])
    spread = rows.std(axis=0)
    scale = np.where(spread > 1e-9, spread, 1.0)
    anchor = np.array([0.0 if start is None else start.get(name, 0.0) for name in names]) * scale
    padded, right, there = _padded(useful, scale)
    weight = np.array([example.weight for example in useful])
    weight /= weight.sum()

    def loss(parameters: Doubles, grant: float) -> tuple[float, Doubles]:
        values = np.where(there, padded @ parameters, -np.inf)
        shares = np.exp(values - values.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        mass = (shares * right).sum(axis=1)
        pull = (shares * right - shares * mass[:, None]) / (mass + grant)[:, None] * weight[:, None]
        away = parameters - anchor
        value = -float(weight @ np.log(mass + grant)) + l2 * float(away @ away)
        return value, 2 * l2 * away - np.einsum("qp,qpf->f", pull, padded)

    found = anchor
    for grant in (1e-6, TOLERANCE):
        found = minimize(loss, found, args=(grant,), jac=True, method="L-BFGS-B").x
    return {name: round(float(value), 4) for name, value in zip(names, found / scale, strict=True)}


def _padded(examples: Sequence[PathExample], scale: Doubles) -> tuple[Doubles, Doubles, NDArray[np.bool_]]:
    most = max(len(example.right) for example in examples)
    features = np.zeros((len(examples), most, len(scale)))
    right = np.zeros((len(examples), most))
    there = np.zeros((len(examples), most), dtype=np.bool_)
    for place, example in enumerate(examples):
        count = len(example.right)
        features[place, :count] = example.features / scale
        right[place, :count] = example.right
        there[place, :count] = True
    return features, right, there
