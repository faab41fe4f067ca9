"""What it costs that no altered file is used: opening and asking with and without the checks, in one run; prints JSON.

usage: python benchmarks/checks.py nodes.jsonl.gz edges.tsv.gz [--questions 20] [--times 7]

Each time is the processor time of a new process, in milliseconds; processes with and without checks take turns, and the
median is reported. "first" is what a process pays once, imports aside: opening, then the first question of each method,
which maps and compares the files it needs. "asked" is the mean of the questions after that. Vectors are those of the
hash embedder: comparing them costs the same as comparing real ones.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import clew
from clew.lab.synthesis.benchmark import BenchmarkOptions, make_benchmark
from clew.store.building import build
from clew.store.graph import adjacency, arrays
from clew.store.index.vector_store import VectorStore
from clew.store.open_base import OpenBase
from clew.store.sources.files import SourceOptions
from clew.store.sources.read import read_sources

METHODS = ("bm25", "focus_plus", "vector_search")
MOST_MILLISECONDS, MOST_SLOWER = 60, 0.03


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("sources", type=Path, nargs="*")
    asked.add_argument("--questions", type=int, default=20)
    asked.add_argument("--times", type=int, default=7)
    asked.add_argument("--base", type=Path)
    asked.add_argument("--once", choices=("checked", "unchecked"))
    given = asked.parse_args()
    if given.once:
        questions = json.loads(sys.stdin.read())
        json.dump(once(given.base, questions, checked=given.once == "checked"), sys.stdout)
        return
    with tempfile.TemporaryDirectory() as scratch:
        base = given.base or Path(scratch) / "base.kb"
        if given.base is None:
            build(read_sources(given.sources, SourceOptions()), base)
            OpenBase.switch_embedder(base, "hash")
        if not base.with_name("tiny.kb").exists():
            build(clew.from_tables([{"id": "a", "type": "thing", "name": "a name"}]), base.with_name("tiny.kb"))
        made = make_benchmark(
            OpenBase.open(base), Path(scratch) / "questions", BenchmarkOptions(given.questions, seed=7)
        )
        questions = [str(row["question"]) for row in made.rows]
        print(json.dumps(measured(base, questions, given.times), indent=1))


def measured(base: Path, questions: list[str], times: int) -> dict[str, object]:
    """The median of each time with and without checks, and how much slower checks make it."""
    rows: dict[str, list[dict[str, float]]] = {"checked": [], "unchecked": []}
    for _ in range(times):
        for how, kept in rows.items():
            command = [sys.executable, __file__, "--base", str(base), "--once", how]
            told = subprocess.run(command, input=json.dumps(questions), check=True, capture_output=True, text=True)
            kept.append(json.loads(told.stdout))
    medians = {how: {name: _median(kept, name) for name in kept[0]} for how, kept in rows.items()}
    slower = {name: round(value / medians["unchecked"][name] - 1, 4) for name, value in medians["checked"].items()}
    worst = max(share for name, share in slower.items() if name.startswith("asked"))
    size = sum(file.stat().st_size for file in base.rglob("*") if file.is_file())
    return {
        "megabytes": round(size / 1e6, 1),
        "questions": len(questions),
        "times": times,
        **medians,
        "slower": slower,
        "opening holds": medians["checked"]["open, first"] <= MOST_MILLISECONDS,
        "asking holds": worst <= MOST_SLOWER,
    }


def _median(rows: list[dict[str, float]], name: str) -> float:
    return round(statistics.median(row[name] for row in rows), 2)


def once(folder: Path, questions: list[str], *, checked: bool) -> dict[str, float]:
    """The times of one process."""
    if not checked:
        adjacency.check_sealed = arrays.check_sealed = lambda _file: None
        VectorStore._check = lambda _store, _rows: None
    clew.open(folder.with_name("tiny.kb")).ask("a name", "bm25")  # imports are paid here
    clock = _Clock()
    base = clew.open(folder)
    times = {"open, first": clock.milliseconds()}
    clew.open(folder)
    times["open, again"] = clock.milliseconds()
    for method in METHODS:
        base.ask(questions[0], method)
        times[f"{method}, first"] = clock.milliseconds()
        for question in questions[1:]:
            base.ask(question, method)
        times[f"asked by {method}"] = clock.milliseconds() / max(1, len(questions) - 1)
    return times


class _Clock:
    def __init__(self) -> None:
        self.at = time.process_time()

    def milliseconds(self) -> float:
        """Since it was last asked."""
        before, self.at = self.at, time.process_time()
        return (self.at - before) * 1000


if __name__ == "__main__":
    main()
