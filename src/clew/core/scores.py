"""Rounding that makes scores equal on every machine.

CPUs, BLAS kernels and database servers add floats in different orders, so the last bits of a sum differ. Every score is
rounded once, where it is computed. Equal scores then stay equal, and ties are broken by node id.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SIGNIFICANT_DIGITS = 5
"""Precision of a score in a ranking. Float64 sums agree far beyond it, and float32 can represent it."""
NETWORK_DECIMALS = 3
"""Precision of a network's log-odds and log-probabilities, whose float32 sums differ in the sixth digit."""


def round_scores(scores: NDArray[Any]) -> NDArray[np.float32]:
    """Round to `SIGNIFICANT_DIGITS`, independent of magnitude."""
    values = np.asarray(scores, dtype=np.float64)
    size = np.where(np.isfinite(values) & (values != 0), np.abs(values), 1.0)
    units = 10.0 ** (np.floor(np.log10(size)) - SIGNIFICANT_DIGITS + 1)
    return np.asarray(np.rint(values / units) * units, dtype=np.float32)


def round_network(outputs: NDArray[Any] | float) -> NDArray[np.float32]:
    """Round outputs of a network to `NETWORK_DECIMALS`."""
    return np.asarray(np.round(outputs, NETWORK_DECIMALS), dtype=np.float32)


def cosines(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rounded inner products of unit vectors with a query vector."""
    return round_scores(np.asarray(vectors, dtype=np.float64) @ query.astype(np.float64))
