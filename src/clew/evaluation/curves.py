"""The plots of a report: how deep the gold answers lie, and how long answers take."""

from __future__ import annotations

from collections.abc import Sequence

from clew.evaluation.plots import Axis, Series, line_plot
from clew.evaluation.report import Section
from clew.evaluation.rows import Row

CURVE = 20


def curve_plot(section: Section) -> str:
    """Hit@k against k; for documents Recall@k."""
    recall = section.runs[0][1].setup.kind == "documents"
    series = [
        Series(label, tuple((k, 100 * _at(run.rows, k, recall)) for k in range(1, CURVE + 1)))
        for label, run in section.runs
        if run.rows
    ]
    name = "Recall@k" if recall else "Hit@k"
    return line_plot(f"{name}, percent", series, Axis("k", low=1), Axis(name, low=0, high=100))


def _at(rows: Sequence[Row], k: int, recall: bool) -> float:
    if recall:
        shares = [sum(place <= k for place in row.places) / row.gold_count if row.gold_count else 0.0 for row in rows]
        return sum(shares) / len(rows)
    return sum(bool(row.places) and row.places[0] <= k for row in rows) / len(rows)


def latency_plot(section: Section) -> str:
    """The share of questions answered within a time."""
    series = []
    for label, run in section.runs:
        times = sorted(max(row.seconds * 1000, 0.01) for row in run.rows)
        if times:
            shares = range(0, 101, 2)
            ranks = [max(0, -(-len(times) * share // 100) - 1) for share in shares]
            series.append(Series(label, tuple((times[r], float(s)) for r, s in zip(ranks, shares, strict=True))))
    return line_plot(
        "Questions answered within a time, percent",
        series,
        Axis("milliseconds", logarithmic=True),
        Axis("questions", low=0, high=100),
    )
