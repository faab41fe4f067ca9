"""Kinds of edges between passages, and the search for the strongest and nearest edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.core.errors import InputError
from clew.core.types import IntArray
from clew.store.graph.adjacency import positions

KINDS = ("tfidf", "entity", "mentions", "knn", "mdr")
DEFAULT_KINDS = ("tfidf", "entity", "mentions")


@dataclass(frozen=True, slots=True)
class EdgeOptions:
    """Kinds of edges to build, and their density."""

    kinds: tuple[str, ...] = DEFAULT_KINDS
    neighbours: int = 20
    """Number of neighbours to search for each passage, by shared keywords or names."""
    nearest: int = 10
    """Number of neighbours to search for each passage, by vector."""
    keywords: int = 50
    """Keywords per document, 50 as in the paper."""
    most_passages: int = 50
    """Maximum number of passages with a keyword or name. More frequent ones create no edges."""

    def __post_init__(self) -> None:
        """Raise InputError for unknown kinds."""
        for kind in self.kinds:
            if kind not in KINDS:
                raise InputError(f"unknown kind of edges {kind!r}: use {', '.join(KINDS)}")


@dataclass(frozen=True, eq=False)
class PassageEdges:
    """Edge i connects the passages heads[i] and tails[i] for the reason because[i]."""

    relation: str
    heads: IntArray
    tails: IntArray
    weights: NDArray[np.float32]
    because: Sequence[str] | None = None
    """Text that both passages share. None for similar vectors."""

    def __len__(self) -> int:
        return len(self.heads)

    def table(self, keys: pa.Array, tail_keys: pa.Array | None = None) -> pa.Table:
        """Return a table of edges. Tails are indexes of `tail_keys` if given, else of `keys`."""
        string = pa.large_string()
        because = pa.nulls(len(self), string) if self.because is None else pa.array(self.because, string)
        return pa.table(
            {
                "head": keys.take(pa.array(self.heads)),
                "relation": pa.repeat(pa.scalar(self.relation, string), len(self)),
                "tail": (keys if tail_keys is None else tail_keys).take(pa.array(self.tails)),
                "weight": pa.array(np.round(self.weights.astype(np.float64), 4)),
                "keyword": because,
            }
        )


def density(edges: int, passages: int) -> float:
    """Return edges divided by all pairs of passages, as in the paper's Table 4."""
    return 2 * edges / (passages * (passages - 1)) if passages > 1 else 0.0


BLOCK = 2000
"""Number of passages to compare with all other passages at once."""


def most_shared(
    passages: IntArray, features: IntArray, weights: NDArray[np.float32], count: int, most: int
) -> tuple[IntArray, IntArray, NDArray[np.float32], IntArray]:
    """Find for each passage the `most` passages whose shared features weigh most, and return the union.

    `passages[i]` has `features[i]`, and `weights` has one weight per feature. Return heads < tails, the total weight of
    the shared features, and the heaviest shared feature.
    """
    size = max(len(weights), 1)
    held = np.unique(passages.astype(np.int64) * size + features)
    by_passage = _Grouped.of(held // size, held % size, count)
    turned = np.sort((held % size) * max(count, 1) + held // size)
    by_feature = _Grouped.of(turned // max(count, 1), turned % max(count, 1), size)
    selected = [np.empty(0, dtype=np.int64)]
    for first in range(0, count, BLOCK):
        places, shared = by_passage.expand(np.arange(first, min(first + BLOCK, count)))
        rows = places + first
        repeated, others = by_feature.expand(shared)
        selected.append(_strongest(rows[repeated], others, weights[shared[repeated]], count, most))
    pairs = np.unique(np.concatenate(selected))
    heads, tails = (pairs // max(count, 1)).astype(np.int32), (pairs % max(count, 1)).astype(np.int32)
    return heads, tails, *_reasons(by_passage, held, heads, tails, weights)


@dataclass(frozen=True, eq=False)
class _Grouped:
    """Values in groups: values[starts[g]:starts[g + 1]] belong to group g."""

    starts: NDArray[np.int64]
    values: NDArray[np.int64]

    @classmethod
    def of(cls, groups: NDArray[np.int64], values: NDArray[np.int64], count: int) -> _Grouped:
        """Create from values sorted by group."""
        return cls(groups.searchsorted(np.arange(count + 1)), values)

    def expand(self, groups: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the concatenated values of some groups, each with the index of its group in `groups`."""
        places, lengths = positions(self.starts[groups], self.starts[groups + 1])
        return np.repeat(np.arange(len(groups)), lengths), self.values[places]


def _strongest(
    rows: NDArray[np.int64], others: NDArray[np.int64], weights: NDArray[np.float32], count: int, most: int
) -> NDArray[np.int64]:
    """Return the strongest pairs of each row, as head * count + tail with head < tail."""
    real = rows != others
    pairs, place = np.unique(rows[real] * count + others[real], return_inverse=True)
    values = np.bincount(place, weights[real], minlength=len(pairs)).astype(np.float32)  # ties survive rounding
    rows, others = pairs // count, pairs % count
    order = np.lexsort((others, -values, rows))
    rows, others = rows[order], others[order]
    best = places_in_groups(rows) < most
    rows, others = rows[best], others[best]
    return np.asarray(np.minimum(rows, others) * count + np.maximum(rows, others))


def places_in_groups(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each of some sorted numbers the count of equal numbers before it."""
    return np.arange(len(groups)) - groups.searchsorted(groups)


def _reasons(
    by_passage: _Grouped, held: NDArray[np.int64], heads: IntArray, tails: IntArray, weights: NDArray[np.float32]
) -> tuple[NDArray[np.float32], IntArray]:
    """Return the total weight and the heaviest feature that each pair shares."""
    size = max(len(weights), 1)
    totals = np.zeros(len(heads), dtype=np.float32)
    heaviest = np.zeros(len(heads), dtype=np.int32)
    for first in range(0, len(heads), 10 * BLOCK):
        part = slice(first, first + 10 * BLOCK)
        rows, features = by_passage.expand(heads[part])
        wanted = tails[part].astype(np.int64)[rows] * size + features
        places = np.minimum(held.searchsorted(wanted), len(held) - 1)
        both = held[places] == wanted
        rows, features = rows[both], features[both]
        totals[part] = np.bincount(rows, weights[features], minlength=len(totals[part]))
        order = np.lexsort((features, -weights[features], rows))
        leading = np.append(True, rows[1:] != rows[:-1]) if len(rows) else np.empty(0, dtype=np.bool_)
        heaviest[part][rows[leading]] = features[order][leading]
    return totals, heaviest


BLOCK_VALUES = 16_000_000
"""Maximum number of similarities in memory."""


def nearest_edges(
    vectors: NDArray[np.float32], relation: str, neighbours: int, asking: NDArray[np.float32] | None = None
) -> PassageEdges:
    """Connect each passage with the passages of the nearest unit vectors. Each pair occurs once, with head < tail.

    `asking` are separate query vectors, if they differ from the document vectors.
    """
    count = len(vectors)
    wanted = min(neighbours, count - 1)
    if wanted < 1:
        nothing = np.empty(0, dtype=np.int32)
        return PassageEdges(relation, nothing, nothing, np.empty(0, dtype=np.float32))
    block = max(1, BLOCK_VALUES // count)
    pairs = []
    for first in range(0, count, block):
        near = (vectors if asking is None else asking)[first : first + block] @ vectors.T
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
