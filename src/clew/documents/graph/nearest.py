"""Edges to nearest neighbours (section 3.2 of the paper): `knn` with any embedder, `mdr` with one trained on hops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clew.documents.graph.passage_edges import PassageEdges

NEIGHBOURS = 10
BLOCK_VALUES = 16_000_000
"""Similarities held at a time."""


def nearest_edges(vectors: NDArray[np.float32], relation: str = "knn", *, neighbours: int = NEIGHBOURS) -> PassageEdges:
    """Join each passage with the others whose unit vectors are nearest; each pair once, head < tail."""
    count = len(vectors)
    wanted = min(neighbours, count - 1)
    if wanted < 1:
        nothing = np.empty(0, dtype=np.int32)
        return PassageEdges(relation, nothing, nothing, np.empty(0, dtype=np.float32))
    block = max(1, BLOCK_VALUES // count)
    pairs = []
    for first in range(0, count, block):
        near = vectors[first : first + block] @ vectors.T
        rows = np.arange(len(near))
        near[rows, rows + first] = -np.inf
        best = np.argpartition(-near, wanted - 1, axis=1)[:, :wanted]
        ends = np.repeat(rows + first, wanted).astype(np.int64), best.ravel().astype(np.int64)
        pairs.append(np.minimum(*ends) * count + np.maximum(*ends))
    chosen = np.unique(np.concatenate(pairs))
    heads, tails = chosen // count, chosen % count
    weights = np.concatenate(
        [
            np.einsum("ij,ij->i", vectors[heads[part : part + 100_000]], vectors[tails[part : part + 100_000]])
            for part in range(0, len(chosen), 100_000)
        ]
    )
    return PassageEdges(relation, heads.astype(np.int32), tails.astype(np.int32), weights.astype(np.float32))
