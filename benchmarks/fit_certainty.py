"""Fits the certainty of the reader on bases that it was not trained on (reading/weights/combiner.json).

    python benchmarks/fit_certainty.py FOLDER … -o combiner.json [--databases DATA WORK --corpora CORPORA]
        [--tables DATA WORK --learned 4500] [--data-sets WORK FOLDER …]

Every FOLDER holds folders of a base each, as for answers.py. Of every question the features of its reading are kept,
and whether the answer is wholly right; those without an answer are wrong however they are read. With --databases the
questions of the left-out databases of Spider (CORPORA as reader_corpora.py writes it) are read over made-up rows, with
--tables questions of WikiTableQuestions that follow those that reader_answers.py took (--learned), with --data-sets
those of folders as for data_sets.py. The certainty is a
logistic regression over graphs whose sum is scaled, and shifted for tables, so that it holds over each kind of base
alike. A wrong answer counts more than a right one. The figures shown are for bases left out of it in five folds.
"""

import argparse
import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from fit_names import logistic

import clew
from clew.answering.reading.reader import Combiner
from clew.lab.datasets.load import load_dataset
from clew.lab.evaluation.judging import score

FOLDS = 5
PENALTY = 3.0
RIGHT, WRONG = 2, 3
"""How much an answer counts. A wrong one counts more, so that the certainty errs on the low side."""
TABLE = "one_table"
"""The feature that tells tables from graphs. It has no weight among graphs."""
TRIED = 0.9
"""Certainty of every reading while its answer is judged."""


@dataclass(frozen=True)
class Row:
    kind: str
    base: str
    features: dict[str, float]
    is_right: bool


class Watched:
    """Keeps the features of the last reading and lets its answer be put forward."""

    def __init__(self) -> None:
        self.features: dict[str, float] = {}

    def certainty(self, _combiner: Combiner, features: dict[str, float]) -> float:
        self.features = features
        return TRIED


def of_bases(folders: list[Path], watched: Watched) -> Iterator[Row]:
    for folder in folders:
        schema = folder / "schema.toml"
        with tempfile.TemporaryDirectory() as target:
            base = Path(target) / "base.kb"
            clew.build(
                [folder / "nodes.jsonl", folder / "edges.tsv"], base, schema=schema if schema.is_file() else None
            )
            opened = clew.open(base)
            for question in load_dataset(str(folder / "questions.jsonl")).questions:
                watched.features = {}
                answer = opened.ask(question.text)
                metrics = score(question, answer, "graph", "key", lambda _node: ()).metrics
                if watched.features and not answer.unknown:
                    has_answer = bool(question.answers) or question.value is not None
                    yield Row("graph", folder.name, watched.features, has_answer and metrics.get("exact", 0.0) == 1.0)


def of_databases(data: Path, work: Path, corpora: Path, count: int, watched: Watched) -> Iterator[Row]:
    from model_queries import judged, spider_cases

    schemas = (corpora / "spider_left_out" / "schemas.jsonl").read_text("utf-8").splitlines()
    left = {json.loads(line)["schema"].removeprefix("spider_") for line in schemas}
    for case in spider_cases(data, work, count, 0, left):
        base = clew.open(Path(case["base"]))
        watched.features = {}
        answer = base.ask(case["question"])
        if watched.features and not answer.unknown:
            is_right = judged(answer, case, base) in ("right", "right, with ties")
            yield Row("database", Path(case["base"]).stem, watched.features, is_right)


def of_tables(data: Path, work: Path, learned: int, count: int, watched: Watched) -> Iterator[Row]:
    import table_questions

    for case in table_questions.cases(data, work, trained=True)[learned : learned + count]:
        watched.features = {}
        judged = table_questions.ask(case, work / "bases", work / "tables", None)
        if watched.features:
            yield Row("table", case["table"], watched.features, judged["verdict"] == "right")


def of_data_sets(work: Path, folders: list[Path], watched: Watched) -> Iterator[Row]:
    import data_sets

    for folder in folders:
        base = data_sets.built(folder, work)
        for question in data_sets.questions(folder) if base else ():
            watched.features = {}
            result = data_sets.judged(base, question)
            if watched.features and not result["unknown"]:
                yield Row(
                    "data set",
                    folder.name,
                    watched.features,
                    bool(question["answers"]) and result["verdict"] == "right",
                )


def matrix(rows: list[Row], names: list[str]) -> tuple[Any, Any]:
    values = np.array([[row.features[name] for name in names] for row in rows])
    return values, np.array([row.is_right for row in rows], dtype=np.float64)


def weighted(rows: list[Row]) -> list[Row]:
    """Repeat rows so that graphs, databases and tables count about the same, and wrong ones more than right ones."""
    counts = Counter(row.kind for row in rows)
    return [
        row
        for row in rows
        for _ in range(round(max(counts.values()) / counts[row.kind]) * (RIGHT if row.is_right else WRONG))
    ]


def fitted(rows: list[Row], names: list[str]) -> tuple[Any, float]:
    """Fit the weights on graphs, then scale their sum and shift it for tables, so that it holds over all kinds."""
    graphs = [row for row in rows if row.kind == "graph"]
    weights, bias = logistic(*matrix(graphs or rows, names), PENALTY)
    values, labels = matrix(weighted(rows), names)
    tables = values[:, names.index(TABLE)]
    (scale, table), shift = logistic(np.column_stack((values @ weights + bias, tables)), labels, 0.0)
    return weights * scale + table * (np.array(names) == TABLE), bias * scale + shift


def report(rows: list[Row], names: list[str]) -> None:
    """Print how many are right by the certainty that bases left out of the fit get."""
    places = {base: place for place, base in enumerate(sorted({row.base for row in rows}))}
    values, labels = matrix(rows, names)
    fold = np.array([places[row.base] % FOLDS for row in rows])
    likely = np.zeros(len(rows))
    for one in range(FOLDS):
        weights, bias = fitted([row for row in rows if places[row.base] % FOLDS != one], names)
        likely[fold == one] = 1 / (1 + np.exp(-(values[fold == one] @ weights + bias)))
    print(f"{len(rows)} readings, {labels.mean():.3f} right")
    limits = (0, 0.1, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.01)
    kinds = np.array([row.kind for row in rows])
    for kind, (low, high) in itertools.product(sorted(set(kinds)), pairwise(limits)):
        some = (kinds == kind) & (likely >= low) & (likely < high)
        right = labels[some].mean() if some.any() else 0
        print(f"{kind}, {low:.1f} to {min(1, high):.1f}: n {some.sum()}, right {right:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--databases", type=Path, nargs=2, metavar=("DATA", "WORK"))
    parser.add_argument("--corpora", type=Path)
    parser.add_argument("--tables", type=Path, nargs=2, metavar=("DATA", "WORK"))
    parser.add_argument("--learned", type=int, default=4500, help="Questions over tables that the reader learned from.")
    parser.add_argument("--count", type=int, default=400, help="Questions over databases, and over tables.")
    parser.add_argument("--data-sets", type=Path, nargs="+", metavar="FOLDER", default=[])
    parser.add_argument("--rows", type=Path, help="Where the features are kept, or taken from if they are there.")
    given = parser.parse_args()
    if given.rows and given.rows.is_file():
        rows = [Row(**json.loads(line)) for line in given.rows.open()]
    else:
        watched = Watched()
        Combiner.certainty = lambda own, features: watched.certainty(own, features)  # type: ignore[method-assign]
        rows = list(of_bases([one for parent in given.folders for one in sorted(parent.iterdir())], watched))
        if given.databases:
            rows += of_databases(*given.databases, given.corpora, given.count, watched)
        if given.tables:
            rows += of_tables(*given.tables, given.learned, given.count, watched)
        if given.data_sets:
            rows += of_data_sets(given.data_sets[0], given.data_sets[1:], watched)
        if given.rows:
            given.rows.write_text("".join(json.dumps(row.__dict__) + "\n" for row in rows), "utf-8")
    names = sorted(rows[0].features)
    report(rows, names)
    weights, bias = fitted(rows, names)
    told = {"weights": dict(zip(names, weights.round(4).tolist(), strict=True)), "bias": round(bias, 4)}
    if given.out:
        given.out.write_text(json.dumps(told) + "\n", "utf-8")


if __name__ == "__main__":
    main()
