"""From labelled candidates to a ranker's files: one function for every kind of ranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from clew.core.errors import InputError
from clew.core.schema import Schema, schema_of
from clew.methods.subgraph_reranking.features import FeaturePipeline, FloatArray
from clew.methods.subgraph_reranking.graph_to_text import HIGHLIGHT
from clew.methods.subgraph_reranking.ranker_file import Kind, RankerCard, RankerParts
from clew.methods.subgraph_reranking.rankers import LinearModel, TabularModel, neural_texts
from clew.models.protocol import Embedder
from clew.training.labelled import Importance, LabelledPool, Table, hit_at_1, permutation_importance
from clew.training.neural_ranker import NeuralSettings, fit_encoder
from clew.training.table_rankers import TreeSettings, fit_linear, fit_logistic, fit_trees

EMBEDDED = frozenset({"text", "g2t", "match"})
"""Feature groups that read vectors."""
NEURAL_FEATURES = ("text", "g2t", "highlight")


@dataclass(frozen=True)
class RankerSettings:
    """Which ranker, on which features, and how it is trained."""

    kind: Kind
    features: tuple[str, ...]
    penalties: tuple[float, ...] = (1.0, 10.0, 100.0, 1000.0)
    """L2 penalties of the linear rankers; the validation questions choose among them."""
    trees: TreeSettings = field(default_factory=TreeSettings)
    neural: NeuralSettings = field(default_factory=NeuralSettings)
    seed: int = 0


@dataclass(frozen=True, eq=False)
class TrainedRanker:
    """The parts to save, and what each feature is worth, most important first (none for the neural ranker)."""

    parts: RankerParts
    importance: tuple[Importance, ...] = ()
    own_importance: Mapping[str, float] = field(default_factory=dict)
    """CatBoost's own measure, in percent, by feature."""


def train_ranker(
    settings: RankerSettings,
    train: Sequence[LabelledPool],
    validation: Sequence[LabelledPool],
    schema: Schema,
    embedder: Embedder,
    data: Mapping[str, Any],
) -> TrainedRanker:
    """Train one ranker; validation questions choose its settings, and nothing else is looked at."""
    types, relations = schema_of(schema)
    card = RankerCard(
        kind=settings.kind, features=settings.features, embedder="", node_types=types, relations=relations
    )
    if settings.kind == "neural":
        return _train_neural(settings, train, validation, card, data)
    pipeline = FeaturePipeline(settings.features, embedder)
    table, watched = (Table.of([pipeline.matrix(pool.pool) for pool in pools], pools) for pools in (train, validation))
    fitted = fit_table(settings, pipeline.columns, table, watched)
    importance = permutation_importance(watched, pipeline.columns, fitted.model.predict, seed=settings.seed)
    told = {
        **fitted.told,
        "validation_hit@1": hit_at_1(watched, fitted.model.predict(watched.rows)),
        "permutation_importance": {one.feature: round(one.loss, 6) for one in importance},
    }
    update = {
        "features": pipeline.groups,
        "embedder": embedder.name if EMBEDDED & set(pipeline.groups) else "",
        "numbers": fitted.numbers,
        "data": {**data, **told},
    }
    parts = RankerParts(card.model_copy(update=update), fitted.arrays)
    return TrainedRanker(parts, tuple(importance), fitted.own_importance)


@dataclass(frozen=True, eq=False)
class FittedTable:
    """A fitted model, its arrays and numbers as they are saved, and what is told about the fit."""

    model: TabularModel
    arrays: Mapping[str, FloatArray]
    numbers: Mapping[str, float]
    told: Mapping[str, Any]
    own_importance: Mapping[str, float] = field(default_factory=dict)


def fit_table(settings: RankerSettings, columns: Sequence[str], table: Table, watched: Table) -> FittedTable:
    """Fit a linear, logistic or CatBoost ranker; `watched` rows choose its settings."""
    if settings.kind == "catboost":
        fit = fit_trees(table, watched, settings.trees)
        trees = fit.trees
        own: dict[str, float] = {}
        for column, value in zip(columns, fit.importance.tolist(), strict=True):
            own[column] = own.get(column, 0.0) + value
        arrays = {"features": trees.features.astype(np.float64), "borders": trees.borders, "leaves": trees.leaves}
        numbers = {"scale": trees.scale, "bias": trees.bias}
        return FittedTable(trees, arrays, numbers, {**fit.settings, "importance": own}, own)
    best: tuple[float, float, LinearModel] | None = None
    for penalty in sorted(settings.penalties, reverse=True):
        fitted = (fit_logistic if settings.kind == "logistic" else fit_linear)(table.rows, table.right, penalty)
        score = hit_at_1(watched, fitted.predict(watched.rows))
        if best is None or score > best[0]:
            best = score, penalty, fitted
    if best is None:
        raise InputError("no penalty to choose from: give at least one")
    _, penalty, model = best
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
        raise InputError(f"the neural ranker reads {', '.join(NEURAL_FEATURES)}, not {', '.join(unknown)}")
    graph, marked = "g2t" in settings.features, "highlight" in settings.features
    pairs, watched = (
        [pair for pool in pools for pair in neural_texts(pool.pool, graph=graph, marked=marked)]
        for pools in (train, validation)
    )
    tables = [Table.of([np.empty((len(pool.right), 0)) for pool in pools], pools) for pools in (train, validation)]
    fit = fit_encoder(pairs, tables[0], watched, tables[1], replace(settings.neural, marks=HIGHLIGHT))
    told = {
        "validation_hit@1": max(fit.validation),
        "epochs": list(fit.validation),
        "learning_rate": settings.neural.learning_rate,
        "batch": settings.neural.batch,
    }
    update = {"numbers": {"tokens": float(settings.neural.tokens)}, "data": {**data, **told}}
    return TrainedRanker(RankerParts(card.model_copy(update=update), files=fit.files()))
