"""Bootstrap intervals and the paired randomisation test, both exact in distribution and fast on few distinct values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval."""

    low: float
    high: float


def bootstrap(values: Sequence[float], seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """The percentile bootstrap of the mean (Efron 1979).

    Resampling n values with replacement draws how often each distinct value occurs from a multinomial distribution:
    the same distribution of means, without drawing every question.
    """
    if not values:
        return Interval(0.0, 0.0)
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    if len(distinct) == 1:
        return Interval(float(distinct[0]), float(distinct[0]))
    drawn = np.random.default_rng(seed).multinomial(len(values), counts / len(values), size=resamples)
    low, high = np.percentile(drawn @ distinct / len(values), (2.5, 97.5))
    return Interval(float(low), float(high))


def randomisation_test(
    ours: Sequence[float], theirs: Sequence[float], seed: int = 0, resamples: int = RESAMPLES
) -> float:
    """The two-sided p-value of a paired difference in means, the two systems swapped at random for each question.

    Fisher 1935; recommended for retrieval by Smucker, Allan and Carterette 2007.
    """
    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    if not len(sizes):
        return 1.0
    # Of c differences of one size, those that keep their sign are binomial: no question needs a coin of its own.
    kept = np.random.default_rng(seed).binomial(counts, 0.5, size=(resamples, len(counts)))
    sums = (2 * kept - counts) @ sizes
    observed = abs(float(differences.sum()))
    as_extreme = int(np.count_nonzero(np.abs(sums) >= observed - 1e-9))
    return (as_extreme + 1) / (resamples + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """The same p-values corrected for their number (Holm 1979), in the same order."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for done, place in enumerate(order):
        highest = max(highest, min(1.0, p_values[place] * (len(p_values) - done)))
        corrected[place] = highest
    return corrected
