"""Reports over runs: one section per question set, with summaries, paired comparisons and the worst failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.core.errors import InputError
from clew.lab.evaluation.comparison import RunComparison, Summary, by_type, compare, metric_values, summarise
from clew.lab.evaluation.judging import PRIMARY
from clew.lab.evaluation.run_folder import QuestionRow, Setup, TraceLine, find_runs, read_rows, read_setup
from clew.lab.evaluation.runs import Run


@dataclass(frozen=True)
class ReportSection:
    """Runs over one question set. Full, sampled and human sets have separate sections."""

    title: str
    runs: tuple[tuple[str, Run], ...]
    """Each run with a unique label."""
    summaries: tuple[Summary, ...]
    comparisons: tuple[RunComparison, ...]
    metric: str
    """Metric used to compare runs, to break down types and to sort failures."""


def load_runs(folders: Sequence[Path]) -> list[Run]:
    """Load all complete and incomplete runs at or below these folders, with rows sorted by question id."""
    return [
        Run(read_setup(folder), tuple(sorted(read_rows(folder), key=lambda row: row.id)))
        for folder in find_runs(folders)
    ]


def make_report(runs: Sequence[Run], metric: str | None = None) -> list[ReportSection]:
    """Build one section per question set. `metric` defaults to the main metric of the data set's kind."""
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        setup = run.setup
        group = setup.dataset, setup.split, setup.portion, setup.questions, setup.match, setup.per_question
        groups.setdefault(group, []).append(run)
    return [_section(group, metric) for group in groups.values()]


def _section(runs: list[Run], metric: str | None) -> ReportSection:
    setup = runs[0].setup
    chosen = metric or PRIMARY[setup.kind]
    available = dict.fromkeys(name for run in runs for row in run.rows for name in row.metrics)
    if available and chosen not in available:
        raise InputError(f"no metric {chosen!r} in the runs over {setup.dataset}: use {', '.join(available)}")
    labelled = tuple(zip(label_runs([run.setup for run in runs]), runs, strict=True))
    summaries = tuple(map(summarise, runs))
    return ReportSection(section_title(setup), labelled, summaries, tuple(compare(labelled, chosen)), chosen)


def section_title(setup: Setup) -> str:
    """Return the data set, split, portion and, unless it is by key, the matching rule."""
    name = setup.dataset if setup.split is None else f"{setup.dataset} {setup.split}"
    matched = "" if setup.match == "key" else f", {setup.match} match"
    setting = ", one corpus per question" if setup.per_question else ""
    return f"{name} ({setup.portion}, n = {setup.n:,}{matched}{setting})"


def label_runs(setups: Sequence[Setup]) -> list[str]:
    """Return labels of method and model. If labels repeat, add the parameters that differ."""
    labels = [setup.method if setup.model == "none" else f"{setup.method} + {setup.model}" for setup in setups]
    flat = [dict(_flat(setup.parameters)) for setup in setups]
    unique = []
    for label, own in zip(labels, flat, strict=True):
        twins = [other for twin, other in zip(labels, flat, strict=True) if twin == label]
        names = [name for name in own if any(other.get(name) != own[name] for other in twins)]
        unique.append(f"{label} ({', '.join(f'{name} = {own[name]}' for name in names)})" if names else label)
    return unique


def _flat(value: Any, name: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [pair for key, part in value.items() for pair in _flat(part, f"{name}.{key}".strip("."))]
    return [(name, value)]


def worst_failures(run: Run, metric: str, count: int) -> list[QuestionRow]:
    """Return errors first, then the lowest metric, then the lowest-ranked gold answers."""
    wrong = [row for row in run.rows if row.metrics.get(metric, 1.0) < 1]
    return sorted(wrong, key=lambda row: _badness(row, metric))[:count]


def _badness(row: QuestionRow, metric: str) -> tuple[bool, float, float]:
    nearest = 1 / row.places[0] if row.places else 0.0
    return row.error is None, row.metrics[metric], nearest


def report_json(sections: Sequence[ReportSection], failures: int = 10) -> dict[str, Any]:
    """Convert the whole report to JSON values."""
    return {
        "runs": [summary.to_json() for section in sections for summary in section.summaries],
        "comparisons": [
            {"set": section.title, **pair.to_json()} for section in sections for pair in section.comparisons
        ],
        "types": [entry for section in sections for entry in _types_json(section)],
        "failures": [
            {"set": section.title, "run": label, **failure_json(row)}
            for section in sections
            for label, run in section.runs
            for row in worst_failures(run, section.metric, failures)
        ],
    }


def types_of(section: ReportSection) -> list[tuple[str, int, list[float | None]]]:
    """Return each question type with its count and every run's mean of the section's metric."""
    groups = by_type(list({row.id: row for _, run in section.runs for row in run.rows}.values()))
    kind = section.runs[0][1].setup.kind
    found = []
    for name, asked in groups.items():
        columns = [
            metric_values([row for row in run.rows if row.type == name], kind).get(section.metric)
            for _, run in section.runs
        ]
        found.append((name, len(asked), [sum(values) / len(values) if values else None for values in columns]))
    return found


def _types_json(section: ReportSection) -> list[dict[str, Any]]:
    labels = [label for label, _ in section.runs]
    return [
        {"set": section.title, "type": name, "n": n, section.metric: dict(zip(labels, means, strict=True))}
        for name, n, means in types_of(section)
    ]


def failure_json(row: QuestionRow) -> dict[str, Any]:
    """Convert a failed question with its results and trace to JSON values."""
    return {
        "id": row.id,
        "question": row.question,
        "gold": list(row.gold),
        "found": [entry.name for entry in row.ranking[:5]],
        "places": list(row.places),
        "metrics": dict(row.metrics),
        "error": row.error,
        "fallbacks": [f"{f.step}: {f.reason}; {f.instead}" for f in row.fallbacks],
        "trace": list(map(trace_text, row.trace)),
    }


def trace_text(line: TraceLine) -> str:
    """Format a trace line, indented by its depth."""
    time = "" if line.seconds is None else f" {1000 * line.seconds:.1f} ms"
    wrong = "" if line.error is None else f" ! {line.error}"
    return "  " * line.depth + line.name + time + (f" — {line.details}" if line.details else "") + wrong
