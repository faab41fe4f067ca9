"""Score the candidates of a question. All rankers run without torch and without CatBoost.

Untrained: the order of the source, a random order, cosines with the answer or with the relations to it. Trained: linear
models and CatBoost's trees over features, and a fine-tuned encoder that reads the texts (ONNX).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clew.answering.methods.subgraph_reranking.features import SEPARATOR, CandidatePool, FeaturePipeline, FloatArray
from clew.answering.methods.subgraph_reranking.graph_to_text import highlight
from clew.core.scores import round_scores
from clew.models.embedding.onnx import CHARACTERS_PER_TOKEN, tokenizer_of
from clew.models.onnx_runtime import open_session
from clew.models.protocol import Embedder


@dataclass(frozen=True)
class OnnxScorer:
    """Scores one text at a time. In a batch, the scales of int8 activations would depend on the other texts."""

    model: Path
    tokenizer: Path
    tokens: int

    def score(self, texts: Sequence[tuple[str, str]]) -> FloatArray:
        """Return one score per pair of texts."""
        return np.array([self._one(*pair) for pair in texts], dtype=np.float64)

    def _one(self, first: str, second: str) -> float:
        most = self.tokens * CHARACTERS_PER_TOKEN
        encoding = self._tokenizer.encode(first[:most], second[:most] or None)
        fed = {"input_ids": [encoding.ids], "attention_mask": [encoding.attention_mask]}
        [scores] = self._session.run(None, {name: np.array(ids, dtype=np.int64) for name, ids in fed.items()})
        return float(np.ravel(scores)[0])

    @cached_property
    def _session(self) -> Any:
        return open_session(self.model)

    @cached_property
    def _tokenizer(self) -> Any:
        return tokenizer_of(self.tokenizer, self.tokens)


MOST_QUESTIONS = 4_000_000
"""Maximum number of comparisons of rows with borders in memory."""


class Ranker(Protocol):
    """Scores the candidates of a question. Higher is better."""

    @property
    def name(self) -> str:
        """Name in evidence and tables."""
        ...

    def scores(self, pool: CandidatePool) -> FloatArray:
        """Return one score per candidate, in the order of the pool."""
        ...


def ranked(scores: FloatArray) -> list[int]:
    """Return the indices from best to worst. Ties stay in the order of the source."""
    return [int(place) for place in np.argsort(-round_scores(scores), kind="stable")]


@dataclass(frozen=True)
class SourceOrder:
    """Leaves the order of the candidates unchanged: the baseline for all other rankers."""

    name: str = "none"

    def scores(self, pool: CandidatePool) -> FloatArray:
        """Return scores that decrease from 1."""
        return 1.0 / np.arange(1, len(pool) + 1)


@dataclass(frozen=True)
class RandomOrder:
    """Shuffles the candidates, in the same way for the same question."""

    seed: int = 0
    name: str = "random"

    def scores(self, pool: CandidatePool) -> FloatArray:
        """Return uniform random numbers."""
        digest = hashlib.sha256(f"{self.seed}\n{pool.question}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8], "little")).random(len(pool))


@dataclass(frozen=True)
class SemanticRanker:
    """Cosine of question and answer."""

    embedder: Embedder
    name: str = "semantic"

    def texts(self, pool: CandidatePool) -> Sequence[str]:
        """Return the texts to compare with the question."""
        return pool.names

    def scores(self, pool: CandidatePool) -> FloatArray:
        """Return the cosines."""
        if not len(pool):
            return np.empty(0)
        question = self.embedder.embed([pool.question], role="query")[0]
        return np.asarray(self.embedder.embed(self.texts(pool), role="document") @ question, dtype=np.float64)


@dataclass(frozen=True)
class MatchRanker(SemanticRanker):
    """Cosine of the question and the relations to the candidate. Needs no training."""

    name: str = "match"

    def texts(self, pool: CandidatePool) -> Sequence[str]:
        """Return the relations of the first path to each candidate."""
        return pool.path_texts


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Weights over standardized columns, including their scaling."""

    mean: FloatArray
    scale: FloatArray
    weights: FloatArray
    intercept: float
    logistic: bool = False

    def predict(self, rows: FloatArray) -> FloatArray:
        """Return the weighted sum, or its probability."""
        values = (rows - self.mean) / self.scale @ self.weights + self.intercept
        return 1 / (1 + np.exp(-np.clip(values, -500, 500))) if self.logistic else values


@dataclass(frozen=True, eq=False)
class ObliviousTrees:
    """CatBoost's trees: each level of a tree compares one column, and the results form the number of a leaf."""

    features: NDArray[np.int32]
    """Trees by levels: the column to compare. Unused levels of a shallow tree compare column 0 with infinity."""
    borders: FloatArray
    """Trees by levels: the border that the column is compared with."""
    leaves: FloatArray
    """Trees by leaves: the value of each leaf."""
    scale: float = 1.0
    bias: float = 0.0

    def predict(self, rows: FloatArray) -> FloatArray:
        """Return the sum of one leaf per tree. CatBoost compares in single precision."""
        if not len(self.features):
            return np.full(len(rows), self.bias)
        at_once = max(1, MOST_QUESTIONS // self.features.size)
        parts = [self._sums(rows[first : first + at_once]) for first in range(0, len(rows), at_once)]
        return np.concatenate([np.empty(0), *parts]) * self.scale + self.bias

    def _sums(self, rows: FloatArray) -> FloatArray:
        asked = rows.astype(np.float32)[:, self.features] > self.borders.astype(np.float32)
        numbers = asked @ (1 << np.arange(self.features.shape[1]))
        chosen: FloatArray = self.leaves[np.arange(len(self.leaves)), numbers]
        return np.asarray(chosen.sum(axis=1), dtype=np.float64)


TabularModel = LinearModel | ObliviousTrees


@dataclass(frozen=True)
class FeatureRanker:
    """A learned function of selected feature groups."""

    name: str
    pipeline: FeaturePipeline
    model: TabularModel

    def scores(self, pool: CandidatePool) -> FloatArray:
        """Return the predictions for each candidate."""
        return self.model.predict(self.pipeline.matrix(pool))


@dataclass(frozen=True)
class NeuralRanker:
    """Reads question and candidate. `graph` adds the subgraph as text, `marked` marks the candidate."""

    name: str
    scorer: OnnxScorer
    graph: bool = True
    marked: bool = True

    def scores(self, pool: CandidatePool) -> FloatArray:
        """Return the scores of the encoder."""
        return self.scorer.score(neural_texts(pool, graph=self.graph, marked=self.marked))


def neural_texts(pool: CandidatePool, *, graph: bool, marked: bool) -> list[tuple[str, str]]:
    """Return the neural ranker's input for each candidate: the question, then candidate or subgraph (section 4.4)."""
    if not graph:
        return [(f"{pool.question}{SEPARATOR}{name}", "") for name in pool.names]
    texts = [highlight(text, name) if marked else text for text, name in zip(pool.graph_texts, pool.names, strict=True)]
    return [(pool.question, text) for text in texts]
