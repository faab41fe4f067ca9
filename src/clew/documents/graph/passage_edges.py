"""Edges between passages as arrays, and how they become a piece of the tables of a base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.core.types import IntArray


@dataclass(frozen=True, eq=False)
class PassageEdges:
    """Edge i joins heads[i] and tails[i], positions in the list of passages, because of because[i]."""

    relation: str
    heads: IntArray
    tails: IntArray
    weights: NDArray[np.float32]
    because: Sequence[str] | None = None
    """What the two share, in words; None where vectors alone are near."""

    def __len__(self) -> int:
        return len(self.heads)

    def table(self, keys: pa.Array, tail_keys: pa.Array | None = None) -> pa.Table:
        """Head, relation, tail, weight and what is shared; tails may be positions in another list of keys."""
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
    """Edges over all pairs of passages, as the paper's Table 4 counts it."""
    return 2 * edges / (passages * (passages - 1)) if passages > 1 else 0.0
