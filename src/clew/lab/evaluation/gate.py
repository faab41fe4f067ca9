"""A quality gate for pytest: every file `*.clew.toml` is a test that `clew eval` reaches what it asks for.

    kb = "medicine.kb"
    questions = "questions.jsonl"       # or a data set, as for `clew eval -q`
    method = "auto"                     # may be left out, as may model, limit and seed
    least = { "hit@1" = 0.8 }

Paths are relative to the file. pytest finds this by the entry point `pytest11`; nothing else of Clew is imported until
such a test runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SUFFIX = ".clew.toml"
KNOWN = frozenset({"kb", "questions", "method", "options", "model", "limit", "seed", "least"})


class Missed(Exception):  # noqa: N818 - a result, told without a traceback
    """What was not reached."""


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The gates of a folder."""
    return GateFile.from_parent(parent, path=file_path) if file_path.name.endswith(SUFFIX) else None


class GateFile(pytest.File):
    """A file with one gate."""

    def collect(self) -> Iterator[pytest.Item]:
        """The gate itself."""
        yield Gate.from_parent(self, name="clew eval")


class Gate(pytest.Item):
    """Asks the questions and compares each metric with the least that it may be."""

    def runtest(self) -> None:
        """Fails where a metric is below what is asked for."""
        import tomllib

        from clew.core.errors import InputError
        from clew.lab.datasets.load import load_dataset
        from clew.lab.evaluation.benchmark import Benchmark
        from clew.lab.evaluation.comparison import summarise
        from clew.lab.evaluation.report import worst_failures
        from clew.models.opening import open_model

        told: dict[str, Any] = tomllib.loads(self.path.read_text("utf-8"))
        if wrong := (set(told) - KNOWN) | ({"kb", "questions", "least"} - set(told)):
            raise InputError(f"{self.path}: expected kb, questions and least; unknown or missing: {sorted(wrong)}")
        questions = str(told["questions"])
        beside = self.path.parent / questions
        dataset = load_dataset(str(beside) if beside.exists() else questions)
        dataset = dataset.sample(told.get("limit"), told.get("seed", 0))
        base = Benchmark(dataset, self.path.parent / told["kb"], model=open_model(told.get("model", "none")))
        run = base.run(base.method(told.get("method", "auto"), told.get("options")))
        found = summarise(run).metrics
        if unknown := set(told["least"]) - set(found):
            raise InputError(f"{self.path}: no metric {sorted(unknown)[0]!r}; there are: {', '.join(sorted(found))}")
        missed = {name: least for name, least in told["least"].items() if found[name] < least}
        if missed:
            lines = [f"{name} is {found[name]:.3f}, asked for is {least}" for name, least in missed.items()]
            lines += [f"  wrong: {row.question}" for row in worst_failures(run, next(iter(missed)), 5)]
            raise Missed("\n".join(lines))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """A gate that is missed says by how much, and which questions failed worst."""
        return str(excinfo.value) if isinstance(excinfo.value, Missed) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where it stands."""
        return self.path, None, f"clew eval: {self.path.name}"
