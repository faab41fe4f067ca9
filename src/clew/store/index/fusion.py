"""Fusion of rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.types import Ranking

CONSTANT = 60
"""Constant that Cormack, Clarke and Büttcher add to every rank."""


def reciprocal_rank_fusion(rankings: Sequence[Ranking], *, k: int | None = None) -> Ranking:
    """Sum 1 / (CONSTANT + rank): Cormack, Clarke & Büttcher, "Reciprocal Rank Fusion outperforms Condorcet" (2009)."""
    parts = [1.0 / (CONSTANT + 1 + np.arange(len(ranking))) for ranking in rankings]
    return _summed(rankings, parts, k)


def min_max_sum(rankings: Sequence[Ranking], *, weights: Sequence[float] | None = None) -> Ranking:
    """Sum the scores scaled to 0..1 per ranking. Missing nodes get 0."""
    return _summed(rankings, [min_max(ranking.scores) for ranking in rankings], None, weights)


def preferring(ranking: Ranking, others: Ranking, factor: float) -> Ranking:
    """Append missing nodes from another ranking of the same length, with their scores multiplied by a factor."""
    more = ~np.isin(others.nodes, ranking.nodes)
    nodes = np.concatenate([ranking.nodes, others.nodes[more]])
    scores = np.concatenate([ranking.scores, others.scores[more] * np.float32(factor)])
    return Ranking.of(nodes, scores, max(len(ranking), len(others)))


def min_max(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Scale scores to 0..1. Return ones if they are equal."""
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


@dataclass(frozen=True, slots=True, eq=False)
class GroupedMembers:
    """Members of the groups of one portion, in the order of the groups. Groups without members are left out."""

    groups: NDArray[Any]
    amounts: NDArray[np.int32]
    """Number of members of each group."""
    members: Sequence[NDArray[Any]]
    """Parallel arrays."""

    @classmethod
    def of(cls, sorted_groups: NDArray[Any], *members: NDArray[Any]) -> GroupedMembers:
        """Create from the group of each member."""
        begins = np.flatnonzero(np.append(len(sorted_groups) > 0, sorted_groups[1:] != sorted_groups[:-1]))
        return cls(sorted_groups[begins], np.diff(begins, append=len(sorted_groups)).astype(np.int32), members)


def join_groups(
    portions: list[GroupedMembers], count: int, kinds: Sequence[type]
) -> tuple[LongArray, list[NDArray[Any]]]:
    """Concatenate the members of each group over all portions. Return the group offsets and the members.

    The list is emptied meanwhile, so that most members are in memory once.
    """
    offsets = np.zeros(count + 1, dtype=np.int64)
    for portion in portions:
        offsets[1:][portion.groups] += portion.amounts
    np.cumsum(offsets, out=offsets)
    joined = [np.empty(offsets[-1], dtype=kind) for kind in kinds]
    free = offsets[:-1].copy()
    portions.reverse()
    while portions:
        portion = portions.pop()
        groups, amounts = portion.groups, portion.amounts
        places = np.repeat(free[groups] - np.cumsum(amounts) + amounts, amounts) + np.arange(amounts.sum())
        for target, array in zip(joined, portion.members, strict=True):
            target[places] = array
        free[groups] += amounts
    return offsets, joined
