"""Rerun published tables: Clew's methods on a data set, next to published figures."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from clew.core.errors import InputError, NotFoundError
from clew.lab.datasets.load import load_dataset
from clew.lab.datasets.questions import Dataset
from clew.lab.evaluation.benchmark import Benchmark
from clew.lab.evaluation.comparison import summarise
from clew.lab.evaluation.page import metric_name, percent, report_page
from clew.lab.evaluation.report import make_report
from clew.lab.evaluation.run_folder import QuestionRow
from clew.lab.evaluation.runs import Run

Watching = Callable[[str, Dataset], AbstractContextManager[Callable[[QuestionRow], None]]]
"""Receives the method and questions. Returns a context manager with the callback for each row."""


@dataclass(frozen=True)
class Published:
    """A table: the path of its questions below the data folder, the methods, and published figures."""

    name: str
    questions: str
    methods: tuple[str, ...]
    metric: str
    setting: str
    peers: Mapping[str, float]


@cache
def published_tables() -> Mapping[str, Published]:
    """Return all tables by name."""
    tables = tomllib.loads(files("clew.lab.evaluation").joinpath("published.toml").read_text("utf-8"))
    return {
        name: Published(name, row["questions"], tuple(row["methods"]), row["metric"], row["setting"], row["peers"])
        for name, row in tables.items()
    }


@dataclass(frozen=True)
class Reproduced:
    """A table with Clew's runs."""

    table: Published
    runs: tuple[Run, ...]

    def to_markdown(self) -> str:
        """Format quality, tokens and seconds of every method, followed by published figures."""
        lines = [f"## {self.table.name}", "", self.table.setting[:1].upper() + self.table.setting[1:] + ".", ""]
        lines += [f"| method | {metric_name(self.table.metric)} | n | tokens a question | seconds a question |"]
        lines += ["| --- | --- | --- | --- | --- |"]
        for run in self.runs:
            summary = summarise(run)
            mean, interval = summary.metrics.get(self.table.metric), summary.intervals.get(self.table.metric)
            shown = f"{percent(mean)} [{percent(interval.low)}, {percent(interval.high)}]" if mean and interval else "–"
            cost = f"{summary.tokens / max(1, summary.n):,.0f} | {summary.p50_ms / 1000:.2f}"
            lines.append(f"| {run.setup.method} | {shown} | {summary.n:,} | {cost} |")
        lines += [f"| {peer}, as published | {value:.1f} | – | – | – |" for peer, value in self.table.peers.items()]
        return "\n".join(lines) + "\n"


def chosen_tables(names: Sequence[str]) -> list[Published]:
    """Return the named tables, or all tables if no names are given."""
    tables = published_tables()
    if unknown := [name for name in names if name not in tables]:
        raise InputError(f"no table {unknown[0]!r}: use {', '.join(tables)}")
    return [tables[name] for name in names] or list(tables.values())


def reproduce(
    table: Published,
    data: Path,
    out: Path,
    watching: Watching,
    *,
    methods: Sequence[str] = (),
    limit: int | None = None,
    seed: int = 0,
) -> Reproduced:
    """Run a table. Reuse the answers already stored in `out`."""
    kind, _, place = table.questions.partition(":")
    dataset = load_dataset(f"{kind}:{data / place}").sample(limit, seed)
    benchmark = Benchmark(dataset)
    runs = []
    for name in methods or table.methods:
        with watching(name, dataset) as on_row:
            runs.append(benchmark.run(benchmark.method(name), out=out / table.name, on_row=on_row))
    return Reproduced(table, tuple(runs))


def write_report(done: Sequence[Reproduced], missing: Mapping[str, str], out: Path) -> tuple[Path, Path]:
    """Write the tables as Markdown, and the HTML page with plots, comparisons and failures."""
    if not done:
        raise NotFoundError("; ".join(f"{name}: {why}" for name, why in missing.items()))
    text, page = out / "report.md", out / "report.html"
    left_out = [f"- {name}: {why}" for name, why in missing.items()]
    parts = ["# Reproduced tables\n", "Percent, with bootstrap 95 % intervals; seconds are medians.\n"]
    parts += [one.to_markdown() for one in done]
    parts += ["## Not run\n", "\n".join(left_out) + "\n"] if left_out else []
    text.write_text("\n".join(parts), "utf-8")
    page.write_text(report_page(make_report([run for one in done for run in one.runs if run.rows])), "utf-8")
    return text, page
