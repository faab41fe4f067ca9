"""Train a ranker on labelled candidates: linear, logistic or CatBoost over feature tables, or neural."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.answering.methods.subgraph_reranking.features import FeaturePipeline, FloatArray
from clew.answering.methods.subgraph_reranking.graph_to_text import HIGHLIGHT
from clew.answering.methods.subgraph_reranking.ranker_file import Kind, RankerCard, RankerParts
from clew.answering.methods.subgraph_reranking.rankers import LinearModel, ObliviousTrees, TabularModel, neural_texts
from clew.core.errors import InputError, needing
from clew.core.schema import Schema, schema_of
from clew.lab.training.descent import minimize
from clew.lab.training.labelled import FeatureTable, Importance, LabelledPool, hit_at_1, permutation_importance
from clew.lab.training.neural_ranker import NeuralSettings, fit_encoder
from clew.models.protocol import Embedder

SMALLEST_SPREAD = 1e-9
"""Smallest spread of a feature, and share of a class, to divide by."""


def fit_linear(rows: FloatArray, right: NDArray[np.bool_], l2: float = 1.0) -> LinearModel:
    """Fit least squares on 0 and 1.

    Deviation from the paper: a small ridge, because hundreds of correlated embedding columns have no stable solution.
    """
    mean, scale, scaled = _standardised(rows)
    target = right - right.mean()
    weights = np.linalg.solve(scaled.T @ scaled + l2 * np.eye(scaled.shape[1]), scaled.T @ target)
    return LinearModel(mean, scale, weights, float(right.mean()))


def fit_logistic(rows: FloatArray, right: NDArray[np.bool_], l2: float = 1.0) -> LinearModel:
    """Minimise Σ w·log(1 + exp(-y·f)) + l2/2·|weights|² with balanced classes, like scikit-learn with C = 1/l2."""
    mean, scale, scaled = _standardised(rows)
    signs = np.where(right, 1.0, -1.0)
    share = max(right.mean(), SMALLEST_SPREAD), max(1 - right.mean(), SMALLEST_SPREAD)
    weight = np.where(right, 0.5 / share[0], 0.5 / share[1])

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        margins = signs * (scaled @ parameters[:-1] + parameters[-1])
        pull = -weight * signs / (1 + np.exp(np.clip(margins, -500, 500)))
        value = float(weight @ np.logaddexp(0, -margins) + l2 / 2 * parameters[:-1] @ parameters[:-1])
        return value, np.append(scaled.T @ pull + l2 * parameters[:-1], pull.sum())

    found = minimize(loss, np.zeros(scaled.shape[1] + 1))
    return LinearModel(mean, scale, found[:-1], float(found[-1]), logistic=True)


def _standardised(rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    mean = rows.mean(axis=0)
    spread = rows.std(axis=0)
    scale = np.where(spread > SMALLEST_SPREAD, spread, 1.0)
    return mean, scale, (rows - mean) / scale


@dataclass(frozen=True)
class TreeSettings:
    """The search grid. The trees with the smallest validation error win."""

    learning_rates: tuple[float, ...] = (0.03, 0.1, 0.3)
    depths: tuple[int, ...] = (4, 6, 8, 10)
    iterations: int = 4000
    patience: int = 50
    """Iterations without a better validation error before training stops."""
    borders: int = 64
    threads: int = 2
    seed: int = 0


@dataclass(frozen=True, eq=False)
class FittedTable:
    """A fitted model, the arrays and numbers to save, and facts about the fit."""

    model: TabularModel
    arrays: Mapping[str, FloatArray]
    numbers: Mapping[str, float]
    told: Mapping[str, Any]


def fit_trees(
    train: FeatureTable, validation: FeatureTable, columns: Sequence[str], settings: TreeSettings = TreeSettings()
) -> FittedTable:
    """Search the grid, with early stopping on the validation questions.

    The facts include CatBoost's importance of each feature in percent.
    """
    with needing("train", "catboost"):
        import catboost
    learning = catboost.Pool(train.rows, train.right.astype(np.float64))
    watching = catboost.Pool(validation.rows, validation.right.astype(np.float64))

    def fitted(rate: float, depth: int) -> tuple[Any, dict[str, float]]:
        """Return the model and its settings, with its validation error."""
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
        return model, {"learning_rate": rate, "depth": depth, "trees": model.tree_count_, "validation_rmse": error}

    grid = product(settings.learning_rates, settings.depths)
    model, chosen = min((fitted(*one) for one in grid), key=lambda one: one[1]["validation_rmse"])
    importance: dict[str, float] = {}
    for column, value in zip(columns, model.get_feature_importance(), strict=True):
        importance[column] = importance.get(column, 0.0) + float(value)
    trees = _as_arrays(model)
    arrays = {"features": trees.features.astype(np.float64), "borders": trees.borders, "leaves": trees.leaves}
    numbers = {"scale": trees.scale, "bias": trees.bias}
    return FittedTable(trees, arrays, numbers, {**chosen, "importance": importance})


def _as_arrays(model: Any) -> ObliviousTrees:
    """Convert CatBoost's JSON export to three arrays. Pad shallow trees with splits that are never true."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trees.json"
        model.save_model(str(file), format="json")
        exported = json.loads(file.read_text("utf-8"))
    trees = exported["oblivious_trees"]
    depth = max((len(tree["splits"] or ()) for tree in trees), default=0)
    features = np.zeros((len(trees), depth), dtype=np.int32)
    borders = np.full((len(trees), depth), np.inf)
    leaves = np.zeros((len(trees), 1 << depth))
    for row, tree in enumerate(trees):
        for level, split in enumerate(tree["splits"] or ()):
            features[row, level] = split["float_feature_index"]
            borders[row, level] = split["border"]
        leaves[row, : len(tree["leaf_values"])] = tree["leaf_values"]
    scale, [bias] = exported["scale_and_bias"]
    return ObliviousTrees(features, borders, leaves, float(scale), float(bias))


EMBEDDED = frozenset({"text", "g2t", "match"})
"""Feature groups that use vectors."""
NEURAL_FEATURES = ("text", "g2t", "highlight")


@dataclass(frozen=True)
class RankerSettings:
    """The kind of ranker, its features and training settings."""

    kind: Kind
    features: tuple[str, ...]
    penalties: tuple[float, ...] = (1.0, 10.0, 100.0, 1000.0)
    """L2 penalties of the linear rankers, selected on the validation questions."""
    trees: TreeSettings = field(default_factory=TreeSettings)
    neural: NeuralSettings = field(default_factory=NeuralSettings)
    seed: int = 0


@dataclass(frozen=True, eq=False)
class TrainedRanker:
    """The parts to save, and feature importances, most important first (none for the neural ranker)."""

    parts: RankerParts
    importance: tuple[Importance, ...] = ()
    own_importance: Mapping[str, float] = field(default_factory=dict)
    """CatBoost's importance in percent, by feature."""


def train_ranker(
    settings: RankerSettings,
    train: Sequence[LabelledPool],
    validation: Sequence[LabelledPool],
    schema: Schema,
    embedder: Embedder,
    data: Mapping[str, Any],
) -> TrainedRanker:
    """Train one ranker. Only the validation questions select its settings."""
    types, relations = schema_of(schema)
    card = RankerCard(
        kind=settings.kind, features=settings.features, embedder="", node_types=types, relations=relations
    )
    if settings.kind == "neural":
        return _train_neural(settings, train, validation, card, data)
    pipeline = FeaturePipeline(settings.features, embedder)
    table, watched = (
        FeatureTable.of([pipeline.matrix(pool.pool) for pool in pools], pools) for pools in (train, validation)
    )
    fitted = fit_table(settings, pipeline.columns, table, watched)
    importance = permutation_importance(watched, pipeline.columns, fitted.model.predict, seed=settings.seed)
    results = {
        **fitted.told,
        "validation_hit@1": hit_at_1(watched, fitted.model.predict(watched.rows)),
        "permutation_importance": {one.feature: round(one.loss, 6) for one in importance},
    }
    update = {
        "features": pipeline.groups,
        "embedder": embedder.name if EMBEDDED & set(pipeline.groups) else "",
        "numbers": fitted.numbers,
        "data": {**data, **results},
    }
    parts = RankerParts(card.model_copy(update=update), fitted.arrays)
    return TrainedRanker(parts, tuple(importance), fitted.told.get("importance", {}))


def fit_table(
    settings: RankerSettings, columns: Sequence[str], table: FeatureTable, watched: FeatureTable
) -> FittedTable:
    """Fit a linear, logistic or CatBoost ranker. `watched` rows select its settings."""
    if settings.kind == "catboost":
        return fit_trees(table, watched, columns, settings.trees)
    fit_model = fit_logistic if settings.kind == "logistic" else fit_linear
    models = {l2: fit_model(table.rows, table.right, l2) for l2 in sorted(settings.penalties, reverse=True)}
    penalty, model = max(models.items(), key=lambda one: hit_at_1(watched, one[1].predict(watched.rows)))
    weights = {"mean": model.mean, "scale": model.scale, "weights": model.weights}
    return FittedTable(model, weights, {"intercept": model.intercept}, {"l2": penalty})


def _train_neural(
    settings: RankerSettings,
    train: Sequence[LabelledPool],
    validation: Sequence[LabelledPool],
    card: RankerCard,
    data: Mapping[str, Any],
) -> TrainedRanker:
    unknown = [name for name in settings.features if name not in NEURAL_FEATURES]
    if unknown:
        raise InputError(f"the neural ranker has no {', '.join(unknown)}: use {', '.join(NEURAL_FEATURES)}")
    graph, marked = "g2t" in settings.features, "highlight" in settings.features
    pairs, watched = (
        [pair for pool in pools for pair in neural_texts(pool.pool, graph=graph, marked=marked)]
        for pools in (train, validation)
    )
    tables = [
        FeatureTable.of([np.empty((len(pool.right), 0)) for pool in pools], pools) for pools in (train, validation)
    ]
    fit = fit_encoder(pairs, tables[0], watched, tables[1], replace(settings.neural, marks=HIGHLIGHT))
    results = {
        "validation_hit@1": max(fit.validation),
        "epochs": list(fit.validation),
        "learning_rate": settings.neural.learning_rate,
        "batch": settings.neural.batch,
    }
    update = {"numbers": {"tokens": float(settings.neural.tokens)}, "data": {**data, **results}}
    return TrainedRanker(RankerParts(card.model_copy(update=update), files=fit.files()))
