"""Joins rankings into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.types import Ranking

CONSTANT = 60
"""What Cormack, Clarke and Büttcher add to every rank."""


def reciprocal_rank_fusion(rankings: Sequence[Ranking], *, k: int | None = None) -> Ranking:
    """Σ 1 / (CONSTANT + rank): Cormack, Clarke & Büttcher, "Reciprocal Rank Fusion outperforms Condorcet" (2009)."""
    parts = [1.0 / (CONSTANT + 1 + np.arange(len(ranking))) for ranking in rankings]
    return _summed(rankings, parts, k)


def min_max_sum(rankings: Sequence[Ranking], *, weights: Sequence[float] | None = None) -> Ranking:
    """The sum of scores stretched to 0..1 in each ranking; a node that a ranking lacks gets 0 from it."""
    return _summed(rankings, [min_max(ranking.scores) for ranking in rankings], None, weights)


def preferring(ranking: Ranking, others: Ranking, factor: float) -> Ranking:
    """A ranking with the nodes it lacks added from another one of the same length, their scores times a factor."""
    more = ~np.isin(others.nodes, ranking.nodes)
    nodes = np.concatenate([ranking.nodes, others.nodes[more]])
    scores = np.concatenate([ranking.scores, others.scores[more] * np.float32(factor)])
    return Ranking.of(nodes, scores, max(len(ranking), len(others)))


def min_max(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Scores stretched to 0..1; all 1 where they are equal."""
    if not len(scores):
        return np.empty(0)
    values = scores.astype(np.float64)
    spread = values.max() - values.min()
    return (values - values.min()) / spread if spread > 0 else np.ones(len(values))


def _summed(
    rankings: Sequence[Ranking],
    parts: Sequence[NDArray[np.float64]],
    k: int | None,
    weights: Sequence[float] | None = None,
) -> Ranking:
    if not any(len(ranking) for ranking in rankings):
        return Ranking.of([], [])
    factors = [1.0] * len(rankings) if weights is None else weights
    nodes, places = np.unique(np.concatenate([ranking.nodes for ranking in rankings]), return_inverse=True)
    added = np.concatenate([part * factor for part, factor in zip(parts, factors, strict=True)])
    return Ranking.of(nodes, np.bincount(places, added, minlength=len(nodes)), k)


LongArray = NDArray[np.int64]


def join_groups(
    offsets: Sequence[LongArray], members: Sequence[Sequence[NDArray[Any]]]
) -> tuple[LongArray, list[NDArray[Any]]]:
    """Where each group begins, and its members: first those of the first portion, then those of the second, …

    Portion p lists the members of group g at offsets[p][g] .. offsets[p][g + 1] in each of its parallel arrays
    members[p].
    """
    total: LongArray = np.sum(offsets, axis=0, dtype=np.int64)
    joined = [np.empty(total[-1], dtype=array.dtype) for array in members[0]]
    free = total[:-1].copy()
    for borders, arrays in zip(offsets, members, strict=True):
        amounts = np.diff(borders)
        places = np.repeat(free - borders[:-1], amounts) + np.arange(borders[-1])
        for target, array in zip(joined, arrays, strict=True):
            target[places] = array
        free += amounts
    return total, joined
