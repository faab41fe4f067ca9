"""Whether two runs differ: the paired randomisation test over the questions both have answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from clew.evaluation.intervals import Interval, bootstrap, holm, randomisation_test
from clew.evaluation.runs import Run


@dataclass(frozen=True, slots=True)
class Comparison:
    """`difference` is the first run's mean minus the second's, over the `n` questions both answered."""

    first: str
    second: str
    metric: str
    n: int
    difference: float
    interval: Interval
    p: float
    corrected: float
    """The p-value corrected for the number of comparisons (Holm)."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "first": self.first,
            "second": self.second,
            "metric": self.metric,
            "n": self.n,
            "difference": round(self.difference, 6),
            "interval": [round(self.interval.low, 6), round(self.interval.high, 6)],
            "p": round(self.p, 6),
            "p_corrected": round(self.corrected, 6),
        }


def compare(runs: Sequence[tuple[str, Run]], metric: str, seed: int = 0) -> list[Comparison]:
    """Every pair of labelled runs; all runs must be over the same questions."""
    found = [
        pair for first, second in combinations(runs, 2) if (pair := _compare(first, second, metric, seed)) is not None
    ]
    corrected = holm([pair.p for pair in found])
    return [replace(pair, corrected=p) for pair, p in zip(found, corrected, strict=True)]


def _compare(first: tuple[str, Run], second: tuple[str, Run], metric: str, seed: int) -> Comparison | None:
    theirs = {row.id: row.metrics[metric] for row in second[1].rows if metric in row.metrics}
    pairs = [
        (row.metrics[metric], theirs[row.id]) for row in first[1].rows if metric in row.metrics and row.id in theirs
    ]
    if not pairs:
        return None
    differences = [ours - other for ours, other in pairs]
    p = randomisation_test([ours for ours, _ in pairs], [other for _, other in pairs], seed)
    mean = sum(differences) / len(differences)
    return Comparison(first[0], second[0], metric, len(pairs), mean, bootstrap(differences, seed), p, p)
