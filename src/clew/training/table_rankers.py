"""Linear, logistic and tree rankers over tables of features."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import MissingExtraError, ModelError
from clew.methods.subgraph_reranking.features import FloatArray
from clew.methods.subgraph_reranking.rankers import LinearModel, ObliviousTrees
from clew.training.descent import minimize
from clew.training.labelled import Table

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
    found = minimize(loss, start)
    return LinearModel(mean, scale, found[:-1], float(found[-1]), logistic=True)


def _standardised(rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    mean = rows.mean(axis=0)
    spread = rows.std(axis=0)
    scale = np.where(spread > SMALLEST_SPREAD, spread, 1.0)
    return mean, scale, (rows - mean) / scale


@dataclass(frozen=True)
class TreeSettings:
    """The grid that is searched; the trees with the least error on the validation questions win."""

    learning_rates: tuple[float, ...] = (0.03, 0.1, 0.3)
    depths: tuple[int, ...] = (4, 6, 8, 10)
    iterations: int = 4000
    patience: int = 50
    """Iterations without a better validation error before training stops."""
    borders: int = 64
    threads: int = 2
    seed: int = 0


@dataclass(frozen=True, eq=False)
class TreeFit:
    """The best trees, how they were found, and CatBoost's own importance of each column, in percent."""

    trees: ObliviousTrees
    settings: Mapping[str, float]
    importance: FloatArray


def fit_trees(train: Table, validation: Table, settings: TreeSettings = TreeSettings()) -> TreeFit:
    """Search the grid; every fit stops early by the validation questions."""
    try:
        import catboost
    except ImportError:
        raise MissingExtraError("catboost", "train") from None
    learning = catboost.Pool(train.rows, train.right.astype(np.float64))
    watching = catboost.Pool(validation.rows, validation.right.astype(np.float64))
    best: tuple[float, Any, dict[str, float]] | None = None
    for rate, depth in product(settings.learning_rates, settings.depths):
        model = catboost.CatBoostRegressor(
            loss_function="RMSE",
            learning_rate=rate,
            depth=depth,
            iterations=settings.iterations,
            early_stopping_rounds=settings.patience,
            border_count=settings.borders,
            thread_count=settings.threads,
            random_seed=settings.seed,
            allow_writing_files=False,
            verbose=False,
        )
        model.fit(learning, eval_set=watching)
        error = float(model.get_best_score()["validation"]["RMSE"])
        if best is None or error < best[0]:
            chosen = {"learning_rate": rate, "depth": depth, "trees": model.tree_count_, "validation_rmse": error}
            best = error, model, chosen
    if best is None:
        raise ModelError("the grid of tree settings is empty: give at least one learning rate and one depth")
    _, model, chosen = best
    return TreeFit(_as_arrays(model), chosen, np.asarray(model.get_feature_importance(), dtype=np.float64))


def _as_arrays(model: Any) -> ObliviousTrees:
    """CatBoost's JSON export as three arrays; shallow trees are filled up with questions that nobody answers yes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trees.json"
        model.save_model(str(file), format="json")
        told = json.loads(file.read_text("utf-8"))
    trees = told["oblivious_trees"]
    depth = max((len(tree["splits"] or ()) for tree in trees), default=0)
    features = np.zeros((len(trees), depth), dtype=np.int32)
    borders = np.full((len(trees), depth), np.inf)
    leaves = np.zeros((len(trees), 1 << depth))
    for row, tree in enumerate(trees):
        for level, split in enumerate(tree["splits"] or ()):
            features[row, level] = split["float_feature_index"]
            borders[row, level] = split["border"]
        leaves[row, : len(tree["leaf_values"])] = tree["leaf_values"]
    scale, [bias] = told["scale_and_bias"]
    return ObliviousTrees(features, borders, leaves, float(scale), float(bias))
