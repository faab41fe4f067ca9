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
from pathlib import Path

import clew
from clew.datasets.load import load_dataset
from clew.evaluation.judging import score

QUESTIONS = Path(__file__).parent / "data" / "real_bases"


def judged(folder: Path, base: str, method: str) -> dict[str, list[tuple[float, float]]]:
    """(Hit@1, exact) of every question, by kind."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    sources = [folder / base / "nodes.jsonl", folder / base / "edges.tsv"]
    with tempfile.TemporaryDirectory() as target:
        schema = QUESTIONS / base / "schema.toml"
        clew.build(sources, Path(target) / "base.kb", schema=schema if schema.is_file() else None)
        opened = clew.open(Path(target) / "base.kb")
        for question in load_dataset(str(QUESTIONS / base / "questions.jsonl")).questions:
            answer = opened.ask(question.text, method=method)
            told = score(question, answer, "graph", "key", lambda _node: ()).metrics
            found[question.type or ""].append((told["hit@1"], told["exact"]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--method", default="auto")
    given = parser.parse_args()
    every: dict[str, list[tuple[float, float]]] = defaultdict(list)
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


def report(label: str, rows: list[tuple[float, float]]) -> None:
    hit, exact = (100 * sum(column) / len(rows) for column in zip(*rows, strict=True))
    print(json.dumps({"what": label, "n": len(rows), "hit@1": round(hit, 1), "exact": round(exact, 1)}))


if __name__ == "__main__":
    main()
