"""How well plain questions over bases from packages are answered: Hit@1, whole sets and values, by base and kind.

usage: python benchmarks/real_bases.py FOLDER [--method auto]

FOLDER holds for every base of benchmarks/data/real_bases a folder of its name with nodes.jsonl and edges.tsv, as its
make.py writes them; bases that are not there are skipped.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import clew
from clew.lab.datasets.load import load_dataset
from clew.lab.evaluation.judging import score

QUESTIONS = Path(__file__).parent / "data" / "real_bases"


@dataclass(frozen=True)
class Row:
    """How one question was answered."""

    hit: float
    exact: float
    answerable: bool
    found: bool
    certainty: float


def judged(folder: Path, base: str, method: str) -> dict[str, list[Row]]:
    """Every question, by kind."""
    rows: dict[str, list[Row]] = defaultdict(list)
    sources = [folder / base / "nodes.jsonl", folder / base / "edges.tsv"]
    with tempfile.TemporaryDirectory() as target:
        schema = QUESTIONS / base / "schema.toml"
        clew.build(sources, Path(target) / "base.kb", schema=schema if schema.is_file() else None)
        opened = clew.open(Path(target) / "base.kb")
        for question in load_dataset(str(QUESTIONS / base / "questions.jsonl")).questions:
            answer = opened.ask(question.text, method=method)
            told = score(question, answer, "graph", "key", lambda _node: ()).metrics
            answerable = question.value is not None or bool(question.answers)
            row = Row(told["hit@1"], told["exact"], answerable, answer.found, answer.certainty or 0.0)
            rows[question.type or ""].append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--method", default="auto")
    given = parser.parse_args()
    every: dict[str, list[Row]] = defaultdict(list)
    for base in sorted(
        path.name for path in QUESTIONS.iterdir() if (given.folder / path.name / "nodes.jsonl").is_file()
    ):
        found = judged(given.folder, base, given.method)
        for kind, rows in found.items():
            every[kind] += rows
        report(base, [row for rows in found.values() for row in rows])
    for kind, rows in sorted(every.items()):
        report(kind, rows)
    report("all", [row for rows in every.values() for row in rows])


def report(label: str, rows: list[Row]) -> None:
    """Hit@1 and exact in percent; refusals; and how many wrong answers were said with certainty."""
    answerable = [row for row in rows if row.answerable]
    without = [row for row in rows if not row.answerable]
    shown = {
        "what": label,
        "n": len(rows),
        "hit@1": round(100 * sum(row.hit for row in rows) / len(rows), 1),
        "exact": round(100 * sum(row.exact for row in rows) / len(rows), 1),
        "refused": f"{sum(not row.found for row in without)}/{len(without)}",
        "falsely refused": f"{sum(not row.found for row in answerable)}/{len(answerable)}",
        "wrong at 90 %": sum(row.found and row.certainty >= 0.9 and not row.hit for row in rows),
    }
    print(json.dumps(shown))


if __name__ == "__main__":
    main()
