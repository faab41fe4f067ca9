"""Linear and logistic regression with L2 penalty on standardised columns, without a machine-learning library."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from clew.steps.subgraphs.rankers import LinearModel
from clew.steps.subgraphs.ranking_features import FloatArray

SMALLEST_SPREAD = 1e-9


def fit_linear(rows: FloatArray, right: NDArray[np.bool_], l2: float = 1.0) -> LinearModel:
    """Least squares on 0 and 1.

    Deviation from the paper: a small ridge, since hundreds of correlated embedding columns have no stable solution.
    """
    mean, scale, scaled = _standardised(rows)
    target = right - right.mean()
    weights = np.linalg.solve(scaled.T @ scaled + l2 * np.eye(scaled.shape[1]), scaled.T @ target)
    return LinearModel(mean, scale, weights, float(right.mean()))


def fit_logistic(rows: FloatArray, right: NDArray[np.bool_], l2: float = 1.0) -> LinearModel:
    """Classes weigh the same; minimises Σ w·log(1 + exp(-y·f)) + l2/2·|weights|², as scikit-learn with C = 1/l2."""
    mean, scale, scaled = _standardised(rows)
    signs = np.where(right, 1.0, -1.0)
    share = max(right.mean(), SMALLEST_SPREAD), max(1 - right.mean(), SMALLEST_SPREAD)
    weight = np.where(right, 0.5 / share[0], 0.5 / share[1])

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        margins = signs * (scaled @ parameters[:-1] + parameters[-1])
        pull = -weight * signs / (1 + np.exp(np.clip(margins, -500, 500)))
        value = float(weight @ np.logaddexp(0, -margins) + l2 / 2 * parameters[:-1] @ parameters[:-1])
        return value, np.append(scaled.T @ pull + l2 * parameters[:-1], pull.sum())

    start = np.zeros(scaled.shape[1] + 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-10})
    return LinearModel(mean, scale, found.x[:-1], float(found.x[-1]), logistic=True)


def _standardised(rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    mean = rows.mean(axis=0)
    spread = rows.std(axis=0)
    scale = np.where(spread > SMALLEST_SPREAD, spread, 1.0)
    return mean, scale, (rows - mean) / scale
