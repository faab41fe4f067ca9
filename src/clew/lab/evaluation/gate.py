"""A quality gate for pytest: every file `*.clew.toml` is a test of minimum `clew eval` metrics.

    kb = "medicine.kb"
    questions = "questions.jsonl"       # or a data set, as for `clew eval -q`
    method = "auto"                     # optional, like model, limit and seed
    least = { "hit@1" = 0.8 }

Paths are relative to the file. pytest loads this module by the entry point `pytest11`, so it imports the rest of Clew
only when such a test runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SUFFIX = ".clew.toml"
KNOWN = frozenset({"kb", "questions", "method", "options", "model", "limit", "seed", "least"})


class Missed(Exception):  # noqa: N818 - a test result, shown without a traceback
    """Raised if a metric is below its minimum."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a gate file."""
    return GateFile.from_parent(parent, path=file_path) if file_path.name.endswith(SUFFIX) else None


class GateFile(pytest.File):
    """A file with one gate."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the gate."""
        yield Gate.from_parent(self, name="clew eval")


class Gate(pytest.Item):
    """Runs the questions and compares each metric with its minimum."""

    def runtest(self) -> None:
        """Run the evaluation. Raise Missed if a metric is below its minimum."""
        import tomllib

        from clew.core.errors import InputError
        from clew.lab.datasets.load import load_dataset
        from clew.lab.evaluation.benchmark import Benchmark
        from clew.lab.evaluation.comparison import summarise
        from clew.lab.evaluation.report import worst_failures
        from clew.models.opening import open_model

        spec: dict[str, Any] = tomllib.loads(self.path.read_text("utf-8"))
        if wrong := (set(spec) - KNOWN) | ({"kb", "questions", "least"} - set(spec)):
            raise InputError(f"{self.path}: expected kb, questions and least; unknown or missing: {sorted(wrong)}")
        questions = str(spec["questions"])
        beside = self.path.parent / questions
        dataset = load_dataset(str(beside) if beside.exists() else questions)
        dataset = dataset.sample(spec.get("limit"), spec.get("seed", 0))
        base = Benchmark(dataset, self.path.parent / spec["kb"], model=open_model(spec.get("model", "none")))
        run = base.run(base.method(spec.get("method", "auto"), spec.get("options")))
        found = summarise(run).metrics
        if unknown := set(spec["least"]) - set(found):
            raise InputError(f"{self.path}: no metric {sorted(unknown)[0]!r}: use {', '.join(sorted(found))}")
        missed = {name: least for name, least in spec["least"].items() if found[name] < least}
        if missed:
            lines = [f"{name} is {found[name]:.3f}, required is {least}" for name, least in missed.items()]
            lines += [f"  wrong: {row.question}" for row in worst_failures(run, next(iter(missed)), 5)]
            raise Missed("\n".join(lines))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the missed metrics and the worst failures without a traceback."""
        return str(excinfo.value) if isinstance(excinfo.value, Missed) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the gate's location for the report."""
        return self.path, None, f"clew eval: {self.path.name}"
