"""How well questions over graphs are answered: right, wrong and refused, by base, by kind of question and by certainty.

usage: python benchmarks/answers.py FOLDER … [--method auto] [--out ROWS.jsonl] [--before ROWS.jsonl]

Every FOLDER holds folders of a base each: nodes.jsonl, edges.tsv, questions.jsonl and perhaps schema.toml. Those of
benchmarks/data/real_bases are made by their make.py. --before compares with the rows of an earlier run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import clew
from clew.lab.datasets.load import load_dataset
from clew.lab.evaluation.judging import score


def rows_of(folder: Path, method: str) -> Iterator[dict[str, object]]:
    """Each question with how it was answered."""
    schema = folder / "schema.toml"
    with tempfile.TemporaryDirectory() as target:
        base = Path(target) / "base.kb"
        clew.build([folder / "nodes.jsonl", folder / "edges.tsv"], base, schema=schema if schema.is_file() else None)
        opened = clew.open(base)
        for question in load_dataset(str(folder / "questions.jsonl")).questions:
            begun = time.perf_counter()
            answer = opened.ask(question.text, method=method)
            seconds = time.perf_counter() - begun
            metrics = score(question, answer, "graph", "key", lambda _node: ()).metrics
            yield {
                "base": folder.name,
                "id": question.id,
                "kind": question.type or "",
                "question": question.text,
                "answerable": question.value is not None or bool(question.answers),
                "hit": metrics["hit@1"],
                "exact": metrics["exact"],
                "state": answer.state,
                "certainty": round(answer.certainty or 0.0, 3),
                "query": str((answer.query or {}).get("query", "")),
                "text": answer.text,
                "seconds": round(seconds, 4),
            }


def report(label: str, rows: list[dict[str, object]]) -> None:
    """Percent of the questions answered rightly, and of what was put forward the part that was wrong."""

    def wrong(chosen: list[dict[str, object]]) -> str:
        return f"{sum(not row['exact'] for row in chosen)}/{len(chosen)}"

    answerable = [row for row in rows if row["answerable"]]
    without = [row for row in rows if not row["answerable"]]
    forward = [row for row in rows if row["state"] != "not_found"]
    shown = {
        "what": label,
        "n": len(rows),
        "right": round(
            100
            * sum(row["state"] != "not_found" and bool(row["exact"]) for row in answerable)
            / max(1, len(answerable)),
            1,
        ),
        "hit@1": round(
            100 * sum(row["state"] != "not_found" and bool(row["hit"]) for row in answerable) / max(1, len(answerable)),
            1,
        ),
        "refused wrongly": f"{sum(row['state'] == 'not_found' for row in answerable)}/{len(answerable)}",
        "refused rightly": f"{sum(row['state'] == 'not_found' for row in without)}/{len(without)}",
        "found wrong": wrong([row for row in forward if row["state"] == "found"]),
        "wrong at 0.7": wrong([row for row in forward if float(str(row["certainty"])) >= 0.7]),
        "median seconds": round(median(float(str(row["seconds"])) for row in rows), 3),
    }
    print(json.dumps(shown))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--method", default="auto")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--before", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, object]] = []
    for folder in (path for parent in given.folders for path in sorted(parent.iterdir())):
        if (folder / "nodes.jsonl").is_file():
            found = list(rows_of(folder, given.method))
            report(folder.name, found)
            rows += found
            if given.out:
                given.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for kind in sorted({str(row["kind"]) for row in rows}):
        report(kind, [row for row in rows if row["kind"] == kind])
    report("all", rows)
    if given.before:
        earlier = {(row["base"], row["question"]): row for row in map(json.loads, given.before.open())}
        for row in rows:
            old = earlier.get((row["base"], row["question"]))
            if old and (old["exact"], old["state"]) != (row["exact"], row["state"]):
                print(json.dumps({"question": row["question"], "before": old, "after": row}))


if __name__ == "__main__":
    main()
