"""A run in numbers: metrics with intervals, latency, calls, tokens, cost, fallbacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clew.datasets.questions import Kind
from clew.evaluation.comparison import Interval, bootstrap
from clew.evaluation.judging import READING
from clew.evaluation.metrics import percentile
from clew.evaluation.rows import Row
from clew.evaluation.run_folder import Setup
from clew.evaluation.runs import Run


@dataclass(frozen=True)
class Summary:
    """What a table shows of a run."""

    setup: Setup
    n: int
    """Questions answered, failed ones included."""
    waiting: int
    failed: int
    """Questions that ended in an error and scored 0."""
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
        """One entry of `runs`."""
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


def summarise(run: Run, seed: int = 0) -> Summary:
    """All numbers of a run."""
    values = metric_values(run.rows, run.setup.kind)
    latencies = [row.seconds * 1000 for row in run.rows]
    steps = Counter(fallback.step for row in run.rows for fallback in row.fallbacks)
    return Summary(
        setup=run.setup,
        n=len(run.rows),
        waiting=run.waiting,
        failed=sum(row.error is not None for row in run.rows),
        metrics={name: sum(column) / len(column) for name, column in values.items()},
        intervals={name: bootstrap(column, seed) for name, column in values.items()},
        p50_ms=percentile(latencies, 0.5),
        p95_ms=percentile(latencies, 0.95),
        calls=sum(row.calls for row in run.rows),
        cached=sum(row.cached for row in run.rows),
        tokens=sum(row.tokens for row in run.rows),
        cost=sum(row.cost for row in run.rows),
        fallbacks=steps.total(),
        fallback_steps=dict(sorted(steps.items())),
    )


def metric_values(rows: Sequence[Row], kind: Kind) -> dict[str, list[float]]:
    """The values of each metric over the questions it applies to; reading is left out where nothing was written."""
    values: dict[str, list[float]] = {}
    unwritten = READING if kind == "documents" and all(row.text is None for row in rows) else ()
    for row in rows:
        for name, value in row.metrics.items():
            if name not in unwritten:
                values.setdefault(name, []).append(value)
    return values


def by_type(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each question type, most frequent first; empty where no question has a type."""
    counts = Counter(row.type for row in rows if row.type)
    return {name: [row for row in rows if row.type == name] for name, _ in counts.most_common()}
