"""Which passages share the most: a sparse product block by block; memory grows with passages, not with pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from clew.core.types import IntArray

BLOCK = 2000
"""Passages compared with all others at a time."""


def most_shared(
    passages: IntArray, features: IntArray, weights: NDArray[np.float32], count: int, most: int
) -> tuple[IntArray, IntArray, NDArray[np.float32], IntArray]:
    """For each passage the `most` others whose shared features weigh most; the union over all passages.

    `passages[i]` has `features[i]`; `weights` holds one weight per feature. Returns head < tail, the total weight of
    what they share, and the heaviest shared feature.
    """
    ones = np.ones(len(passages), dtype=np.float32)
    has = coo_array((ones, (passages, features)), shape=(count, len(weights))).tocsr()
    has.sum_duplicates()
    has.data[:] = 1
    weighed = csr_array((weights[has.indices], has.indices, has.indptr), shape=has.shape)
    turned = has.T.tocsr()
    kept = [np.empty(0, dtype=np.int64)]
    for first in range(0, count, BLOCK):
        kept.append(_strongest(weighed[first : first + BLOCK] @ turned, first, count, most))
    pairs = np.unique(np.concatenate(kept))
    heads, tails = (pairs // max(count, 1)).astype(np.int32), (pairs % max(count, 1)).astype(np.int32)
    return heads, tails, *_reasons(weighed, has, heads, tails)


def _strongest(shared: csr_array, first: int, count: int, most: int) -> NDArray[np.int64]:
    """The pairs of a block, as head * count + tail with head < tail, that are among the strongest of their row."""
    rows = np.repeat(np.arange(shared.shape[0], dtype=np.int64) + first, np.diff(shared.indptr))
    others = shared.indices.astype(np.int64)
    real = rows != others
    rows, others, values = rows[real], others[real], shared.data[real]
    order = np.lexsort((others, -values, rows))
    rows, others = rows[order], others[order]
    starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1])) if len(rows) else np.empty(0, dtype=np.int64)
    rank = np.arange(len(rows)) - np.repeat(starts, np.diff(np.append(starts, len(rows))))
    rows, others = rows[rank < most], others[rank < most]
    return np.asarray(np.minimum(rows, others) * count + np.maximum(rows, others))


def _reasons(
    weighed: csr_array, has: csr_array, heads: IntArray, tails: IntArray
) -> tuple[NDArray[np.float32], IntArray]:
    """The total and the heaviest of what each pair shares."""
    totals = np.zeros(len(heads), dtype=np.float32)
    heaviest = np.zeros(len(heads), dtype=np.int32)
    for first in range(0, len(heads), 10 * BLOCK):
        part = slice(first, first + 10 * BLOCK)
        both = weighed[heads[part]].multiply(has[tails[part]]).tocsr()
        both.sort_indices()
        totals[part] = np.asarray(both.sum(axis=1)).ravel()
        rows = np.repeat(np.arange(both.shape[0]), np.diff(both.indptr))
        order = np.lexsort((both.indices, -both.data, rows))
        leading = np.append(True, rows[1:] != rows[:-1]) if len(rows) else np.empty(0, dtype=np.bool_)
        heaviest[part][rows[leading]] = both.indices[order][leading]
    return totals, heaviest
