"""Summarise runs: metrics with intervals, latency, calls, tokens, cost, fallbacks and paired tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations
from typing import Any

import numpy as np

from clew.lab.datasets.questions import Kind
from clew.lab.evaluation.judging import READING
from clew.lab.evaluation.metrics import percentile
from clew.lab.evaluation.run_folder import QuestionRow, Setup
from clew.lab.evaluation.runs import Run

RESAMPLES = 10_000
"""Number of samples of the bootstrap and the randomisation test. The smallest p is about one over this number."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % confidence interval."""

    low: float
    high: float


def bootstrap(values: Sequence[float], seed: int = 0) -> Interval:
    """Compute the percentile bootstrap of the mean (Efron 1979).

    Resampling n values with replacement gives multinomial counts of the distinct values. Drawing these counts gives the
    same distribution of means and is faster than drawing every question.
    """
    if not values:
        return Interval(0.0, 0.0)
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    if len(distinct) == 1:
        return Interval(float(distinct[0]), float(distinct[0]))
    drawn = np.random.default_rng(seed).multinomial(len(values), counts / len(values), size=RESAMPLES)
    low, high = np.percentile(drawn @ distinct / len(values), (2.5, 97.5))
    return Interval(float(low), float(high))


def randomisation_test(ours: Sequence[float], theirs: Sequence[float], seed: int = 0) -> float:
    """Return the two-sided p-value of a paired difference in means, by randomly swapping the systems per question.

    Fisher 1935. Recommended for retrieval by Smucker, Allan and Carterette 2007.
    """
    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    if not len(sizes):
        return 1.0
    # The number of unchanged signs among c differences of one size is binomial, so draw it at once.
    kept = np.random.default_rng(seed).binomial(counts, 0.5, size=(RESAMPLES, len(counts)))
    sums = (2 * kept - counts) @ sizes
    observed = abs(float(differences.sum()))
    as_extreme = int(np.count_nonzero(np.abs(sums) >= observed - 1e-9))
    return (as_extreme + 1) / (RESAMPLES + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct the p-values for multiple comparisons (Holm 1979), in the same order."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    scaled = [min(1.0, p_values[place] * (len(order) - done)) for done, place in enumerate(order)]
    corrected = dict(zip(order, accumulate(scaled, max), strict=True))
    return [corrected[place] for place in range(len(order))]


@dataclass(frozen=True, slots=True)
class RunComparison:
    """A paired comparison: mean of the first run minus mean of the second, over the `n` questions of both."""

    first: str
    second: str
    metric: str
    n: int
    difference: float
    interval: Interval
    p: float
    corrected: float
    """Holm-corrected p-value."""

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON values."""
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


def compare(runs: Sequence[tuple[str, Run]], metric: str) -> list[RunComparison]:
    """Compare every pair of labelled runs. All runs must be over the same questions."""
    compared = [_compare(first, second, metric) for first, second in combinations(runs, 2)]
    pairs = [pair for pair in compared if pair is not None]
    corrected = holm([pair.p for pair in pairs])
    return [replace(pair, corrected=p) for pair, p in zip(pairs, corrected, strict=True)]


def _compare(first: tuple[str, Run], second: tuple[str, Run], metric: str) -> RunComparison | None:
    theirs = {row.id: row.metrics[metric] for row in second[1].rows if metric in row.metrics}
    pairs = [
        (row.metrics[metric], theirs[row.id]) for row in first[1].rows if metric in row.metrics and row.id in theirs
    ]
    if not pairs:
        return None
    differences = [ours - other for ours, other in pairs]
    p = randomisation_test([ours for ours, _ in pairs], [other for _, other in pairs])
    mean = sum(differences) / len(differences)
    return RunComparison(first[0], second[0], metric, len(pairs), mean, bootstrap(differences), p, p)


@dataclass(frozen=True)
class Summary:
    """The figures of a run for reports."""

    setup: Setup
    n: int
    """Number of answered questions, including failed ones."""
    waiting: int
    failed: int
    """Number of questions that raised an error and scored 0."""
    metrics: Mapping[str, float]
    intervals: Mapping[str, Interval]
    p50_ms: float
    p95_ms: float
    calls: int
    cached: int
    tokens: int
    cost: float
    fallbacks: int
    fallback_steps: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return one entry of `runs`."""
        setup = self.setup
        return {
            "dataset": setup.dataset,
            "split": setup.split,
            "method": setup.method,
            "model": setup.model,
            "n": self.n,
            "metrics": {name: round(value, 6) for name, value in self.metrics.items()},
            "latency_ms": {"p50": round(self.p50_ms, 3), "p95": round(self.p95_ms, 3)},
            "calls": self.calls,
            "tokens": self.tokens,
            "cost": round(self.cost, 6),
            "fallbacks": self.fallbacks,
            "portion": setup.portion,
            "of": setup.n,
            "match": setup.match,
            "per_question": setup.per_question,
            "intervals": {name: [round(i.low, 6), round(i.high, 6)] for name, i in self.intervals.items()},
            "cached_calls": self.cached,
            "failed": self.failed,
            "waiting": self.waiting,
            "fallback_steps": dict(self.fallback_steps),
            "parameters": setup.parameters,
        }


def summarise(run: Run) -> Summary:
    """Compute all figures of a run."""
    values = metric_values(run.rows, run.setup.kind)
    latencies = [row.seconds * 1000 for row in run.rows]
    steps = Counter(fallback.step for row in run.rows for fallback in row.fallbacks)
    return Summary(
        setup=run.setup,
        n=len(run.rows),
        waiting=run.waiting,
        failed=sum(row.error is not None for row in run.rows),
        metrics={name: sum(column) / len(column) for name, column in values.items()},
        intervals={name: bootstrap(column) for name, column in values.items()},
        p50_ms=percentile(latencies, 0.5),
        p95_ms=percentile(latencies, 0.95),
        calls=sum(row.calls for row in run.rows),
        cached=sum(row.cached for row in run.rows),
        tokens=sum(row.tokens for row in run.rows),
        cost=sum(row.cost for row in run.rows),
        fallbacks=steps.total(),
        fallback_steps=dict(sorted(steps.items())),
    )


def metric_values(rows: Sequence[QuestionRow], kind: Kind) -> dict[str, list[float]]:
    """Collect the values of each metric. Omit reading metrics if no answer text was written."""
    values: dict[str, list[float]] = {}
    unwritten = READING if kind == "documents" and all(row.text is None for row in rows) else ()
    for row in rows:
        for name, value in row.metrics.items():
            if name not in unwritten:
                values.setdefault(name, []).append(value)
    return values


def by_type(rows: Sequence[QuestionRow]) -> dict[str, list[QuestionRow]]:
    """Group the rows by question type, most frequent first. Empty if no question has a type."""
    counts = Counter(row.type for row in rows if row.type)
    return {name: [row for row in rows if row.type == name] for name, _ in counts.most_common()}
