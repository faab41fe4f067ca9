"""Nodes near given ones, ranked by short random walks: near and little connected first, hubs last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clew.core.types import NodeSet, Ranking
from clew.kb.protocol import KnowledgeBase

FloatArray = NDArray[np.float64]
WIDEST = 500
"""Nodes from which a walk goes on at each step, the most likely ones."""


def nearby(kb: KnowledgeBase, start: Sequence[int], k: int, *, steps: int = 3, among: NodeSet | None = None) -> Ranking:
    """The k nodes most likely to be reached from `start` in 1, 2 or more steps along edges of either direction.

    Of a node the best of its chances for the different numbers of steps counts, each relative to the most likely node
    at that number: otherwise nearer nodes would always come before farther ones.
    """
    at = NodeSet.of(list(start))
    chances: FloatArray = np.full(len(at), 1.0 / max(len(at), 1))
    own = at
    best: dict[int, float] = {}
    for _ in range(steps):
        if not len(at):
            break
        at, chances = _step(kb, at, chances)
        allowed = np.ones(len(at), dtype=np.bool_) if among is None else np.isin(at.array, among.array)
        counted = allowed & ~np.isin(at.array, own.array)
        highest = float(chances[counted].max(initial=0.0))
        for node, chance in zip(at.array[counted].tolist(), chances[counted].tolist(), strict=True):
            best[node] = max(best.get(node, 0.0), chance / highest)
        widest = np.argsort(-chances, kind="stable")[:WIDEST]
        order = np.sort(widest)
        at, chances = NodeSet(at.array[order]), chances[order]
    return Ranking.of(list(best), list(best.values()), k)


def _step(kb: KnowledgeBase, at: NodeSet, chances: FloatArray) -> tuple[NodeSet, FloatArray]:
    """Go along one edge chosen at random."""
    edges = kb.edges(at)
    sources, targets = np.append(edges.heads, edges.tails), np.append(edges.tails, edges.heads)
    leaving = np.isin(sources, at.array)
    owners = at.array.searchsorted(sources[leaving])
    degrees = np.bincount(owners, minlength=len(at))
    reached, places = np.unique(targets[leaving], return_inverse=True)
    flows = np.bincount(places, weights=chances[owners] / degrees[owners], minlength=len(reached))
    return NodeSet(reached.astype(np.int32)), flows.astype(np.float64)
