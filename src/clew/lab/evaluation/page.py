"""Render a report as one self-contained HTML page without scripts, fonts or network access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from clew.core.errors import needing
from clew.core.notebook import framed
from clew.core.plots import Axis, Series, line_plot
from clew.core.version import __version__
from clew.lab.evaluation.comparison import summarise
from clew.lab.evaluation.report import ReportSection, make_report, trace_text, types_of, worst_failures
from clew.lab.evaluation.run_folder import QuestionRow
from clew.lab.evaluation.runs import Run

LABELS = {
    "hit@1": "Hit@1",
    "hit@5": "Hit@5",
    "recall@2": "Recall@2",
    "recall@5": "Recall@5",
    "recall@20": "Recall@20",
    "recall@20/min": "Recall@20/min",
    "mrr": "MRR",
    "f1": "F1",
    "exact": "exact set",
    "sf-em": "SF-EM",
    "precision": "precision",
    "em": "EM",
    "struct-em": "Struct-EM",
}
"""Display names of the metrics. Hits@1 equals Hit@1 and is not shown."""

MAX_TYPES = 30
"""Maximum number of question types in a table."""


@dataclass(frozen=True)
class PageTable:
    """A titled table of formatted cells."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def metric_name(metric: str) -> str:
    """Return the display name of a metric."""
    return LABELS.get(metric, metric)


def overview(section: ReportSection) -> PageTable:
    """Build a table with one row per run: metrics in percent with 95 % intervals."""
    metrics = [name for name in LABELS if any(name in summary.metrics for summary in section.summaries)]
    rows = []
    for (label, run), summary in zip(section.runs, section.summaries, strict=True):
        done = f"{summary.n:,}" if run.complete else f"{summary.n:,} of {run.setup.n:,}"
        cells = [label, done]
        for name in metrics:
            if name in summary.metrics:
                interval = summary.intervals[name]
                cells.append(f"{percent(summary.metrics[name])} [{percent(interval.low)}–{percent(interval.high)}]")
            else:
                cells.append("–")
        rows.append(tuple(cells))
    note = "In percent, with bootstrap 95 % intervals. Failed questions score 0 and are included."
    if "recall@20/min" in metrics:
        note += " Recall@20 divides by all gold answers, Recall@20/min by at most 20."
    return PageTable(section.title, ("method", "n", *(LABELS[name] for name in metrics)), tuple(rows), note)


def costs(section: ReportSection) -> PageTable:
    """Build a table with one row per run: latency, calls, tokens and cost."""
    columns = ("method", "p50 ms", "p95 ms", "calls", "from cache", "tokens", "cost", "fallbacks", "failed")
    rows = tuple(
        (
            label,
            f"{summary.p50_ms:,.1f}",
            f"{summary.p95_ms:,.1f}",
            f"{summary.calls:,}",
            f"{summary.cached:,}",
            f"{summary.tokens:,}",
            f"${summary.cost:,.4f}",
            f"{summary.fallbacks:,}",
            f"{summary.failed:,}",
        )
        for (label, _), summary in zip(section.runs, section.summaries, strict=True)
    )
    return PageTable("Time and cost", columns, rows)


def comparison_table(section: ReportSection) -> PageTable:
    """Build a table that compares every pair of runs on their common questions."""
    rows = tuple(
        (
            pair.first,
            pair.second,
            f"{pair.n:,}",
            f"{100 * pair.difference:+.1f} [{100 * pair.interval.low:+.1f}, {100 * pair.interval.high:+.1f}]",
            _p(pair.p),
            _p(pair.corrected),
        )
        for pair in section.comparisons
    )
    columns = ("method", "against", "n", f"difference in {metric_name(section.metric)}", "p", "p corrected")
    note = "Paired randomisation test, two-sided, with Holm's correction for the number of pairs."
    return PageTable("Paired comparison", columns, rows, note)


def type_table(section: ReportSection) -> PageTable:
    """Build a table of the section's metric by question type, most frequent first."""
    types = types_of(section)
    rows = tuple(
        (name, f"{n:,}", *("–" if mean is None else percent(mean) for mean in means))
        for name, n, means in types[:MAX_TYPES]
    )
    note = f"Top {MAX_TYPES} of {len(types)} types." if len(types) > MAX_TYPES else ""
    columns = ("type", "n", *(label for label, _ in section.runs))
    return PageTable(f"{metric_name(section.metric)} by type", columns, rows, note)


def percent(value: float) -> str:
    """Format a share as percent with one decimal."""
    return f"{100 * value:.1f}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


SHOWN_FOUND = 5
"""Number of top answers shown for a question."""


def report_page(sections: Sequence[ReportSection], failures: int = 10) -> str:
    """Render the page."""
    body = "".join(_page_section(section, failures) for section in sections)
    return _template().substitute(body=body, version=__version__)


@dataclass(frozen=True)
class Evaluation:
    """Runs of one or more methods on the same questions, with text and notebook output."""

    runs: tuple[Run, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return every run with its metrics and intervals."""
        return {"runs": [summarise(run).to_json() for run in self.runs]}

    def to_frame(self) -> Any:
        """Return a pandas table with one row per question and method: metrics, seconds and results."""
        with needing("pandas", "pandas"):
            import pandas
        return pandas.DataFrame(
            {
                "method": run.setup.method,
                "id": row.id,
                "question": row.question,
                "found": [entry.name for entry in row.ranking[:SHOWN_FOUND]],
                "seconds": row.seconds,
                "error": row.error,
                **row.metrics,
            }
            for run in self.runs
            for row in run.rows
        )

    def __str__(self) -> str:
        lines = []
        for section in make_report(list(self.runs)):
            table = overview(section)
            lines += [section.title, "  ".join(table.columns), *("  ".join(row) for row in table.rows)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return framed(report_page(make_report(list(self.runs))))


def curve_plot(section: ReportSection) -> str:
    """Plot Hit@k, or Recall@k for documents, against k up to 20."""
    recall = section.runs[0][1].setup.kind == "documents"
    series = [
        Series(label, tuple((k, 100 * _at(run.rows, k, recall)) for k in range(1, 21)))
        for label, run in section.runs
        if run.rows
    ]
    name = "Recall@k" if recall else "Hit@k"
    return line_plot(f"{name}, percent", series, Axis("k", low=1), Axis(name, low=0, high=100))


def _at(rows: Sequence[QuestionRow], k: int, recall: bool) -> float:
    if recall:
        shares = [sum(place <= k for place in row.places) / row.gold_count if row.gold_count else 0.0 for row in rows]
        return sum(shares) / len(rows)
    return sum(bool(row.places) and row.places[0] <= k for row in rows) / len(rows)


def latency_plot(section: ReportSection) -> str:
    """Plot the share of questions answered within a given time."""
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


@cache
def _template() -> Template:
    return Template((files("clew.lab.evaluation") / "report.html").read_text("utf-8"))


def _page_section(section: ReportSection, failures: int) -> str:
    parts = [f"<section><h2>{escape(section.title)}</h2>", _table(overview(section), titled=False)]
    parts.append(_table(costs(section)))
    if any(run.rows for _, run in section.runs):
        parts.append(f'<div class="plots">{curve_plot(section)}{latency_plot(section)}</div>')
    parts += [_table(table) for table in (comparison_table(section), type_table(section)) if table.rows]
    for label, run in section.runs:
        rows = worst_failures(run, section.metric, failures)
        if rows:
            parts.append(f"<h3>Worst failures of {escape(label)}, by {escape(metric_name(section.metric))}</h3>")
            parts += [_failure(row) for row in rows]
    return "".join(parts) + "</section>"


def _table(table: PageTable, *, titled: bool = True) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row).replace("<td>", '<td class="name">', 1) + "</tr>"
        for row in table.rows
    )
    title = f"<h3>{escape(table.title)}</h3>" if titled else ""
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return f'{title}<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}'


def _failure(row: QuestionRow) -> str:
    places = f"gold at {', '.join(map(str, row.places[:10]))}" if row.places else "gold not found"
    more = f" and {row.gold_count - len(row.gold)} more" if row.gold_count > len(row.gold) else ""
    facts = [
        ("gold", "; ".join(row.gold) + more),
        ("found", "; ".join(e.name for e in row.ranking[:SHOWN_FOUND]) or "–"),
    ]
    if row.text is not None:
        facts.append(("written", row.text))
    facts += [("evidence", piece) for entry in row.ranking[:1] for piece in entry.evidence]
    facts += [("fallback", f"{f.step}: {f.reason}; {f.instead}") for f in row.fallbacks]
    if row.error:
        facts.append(("error", row.error))
    shown = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    trace = f"<pre>{escape(chr(10).join(map(trace_text, row.trace)))}</pre>" if row.trace else ""
    kind = f" · {row.type}" if row.type else ""
    return (
        f"<details><summary><b>{escape(row.question)}</b> <small>{escape(row.id + kind)} · {escape(places)}</small>"
        f"</summary><dl>{shown}</dl>{trace}</details>"
    )
