"""The weights of the extractive reader: fits them, and measures it on questions they were not fitted on.

    python benchmarks/reader.py DATASET:PATH …          five folds over each data set, the others joined to the training
    python benchmarks/reader.py DATASET:PATH … -o FILE  also fits on all of them and writes the weights

Passages are those that knowledge_graph_prompting ranks highest; embed the bases first (`clew embed`).
The reader shipped with Clew was fitted on 2WikiMultiHopQA (Apache-2.0) and MuSiQue (CC BY 4.0), not on HotpotQA.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from clew.answering.methods.knowledge_graph_prompting.method import KnowledgeGraphPrompting
from clew.answering.reading.extraction.asked import Asked
from clew.answering.reading.extraction.clues import CluedSpan, Evidence
from clew.answering.reading.extraction.comparing import compared
from clew.answering.roles.read import ANSWER, BestSpan, best_candidate, shipped_weights
from clew.core.roles import Reading, Source
from clew.lab.datasets.load import load_dataset
from clew.lab.evaluation.benchmark import Benchmark
from clew.lab.evaluation.metrics import text_exact, text_f1
from clew.store.open_base import OpenBase

FOLDS = 5
L2 = 1.0
LEAST = 0.05
"""Smaller weights are left out."""


@dataclass(frozen=True)
class Example:
    reading: Reading
    answers: tuple[str, ...]
    candidates: tuple[CluedSpan, ...]
    worth: np.ndarray
    """Of each candidate: 1 for the answer; where no span is the answer, the F1 of those that share half with it."""


def examples(spec: str) -> list[Example]:
    dataset = load_dataset(spec)
    tools = Benchmark(dataset).tools
    return [example(tools, question.text, question.answers) for question in dataset.questions]


def example(tools: OpenBase, question: str, answers: tuple[str, ...]) -> Example:
    method = KnowledgeGraphPrompting()
    nodes = [tools.kb.node(int(node)) for node in method.rank(question, tools).nodes[: method.read]]
    reading = Reading(question, tuple(Source(node.text, node.name) for node in nodes))
    asked = Asked(question)
    is_compared = asked.kind == "yes or no" or compared(asked, reading.sources) is not None
    candidates = () if is_compared else tuple(Evidence(asked, reading.sources[: BestSpan().closely]).candidates())
    exact = [text_exact(c.text, answers) for c in candidates]
    shared = [text_f1(c.text, answers) for c in candidates]
    worth = exact if any(exact) else [value if value >= 0.5 else 0.0 for value in shared]
    return Example(reading, answers, candidates, np.array(worth))


def fitted(train: Sequence[Example]) -> dict[str, float]:
    """Conditional logit: the probability that all spans of a question together give to its answers."""
    useful = [example for example in train if example.worth.any()]
    clues = {clue: None for example in useful for c in example.candidates for clue in c.clues}
    columns = {clue: place for place, clue in enumerate(clues)}
    rows = [c.clues for example in useful for c in example.candidates]
    starts = np.cumsum([0] + [len(row) for row in rows])
    matrix = csr_matrix(
        ([v for row in rows for v in row.values()], [columns[clue] for row in rows for clue in row], starts),
        shape=(len(rows), len(columns)),
    )
    borders = np.cumsum([0] + [len(example.candidates) for example in useful])

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores, slope, total = matrix @ weights, np.empty(matrix.shape[0]), 0.0
        for example, start, end in zip(useful, borders, borders[1:], strict=False):
            likely = np.exp(scores[start:end] - scores[start:end].max())
            likely /= likely.sum()
            right = likely * example.worth
            total -= np.log(right.sum() + 1e-12)
            slope[start:end] = likely - right / (right.sum() + 1e-12)
        return total + 0.5 * L2 * float(weights @ weights), matrix.T @ slope + L2 * weights

    found = minimize(loss, np.zeros(len(columns)), jac=True, method="L-BFGS-B", options={"maxiter": 300}).x
    return {clue: round(float(found[place]), 3) for clue, place in columns.items() if abs(found[place]) >= LEAST}


def scored(test: Sequence[Example], weights: dict[str, float]) -> list[tuple[float, float]]:
    results = []
    for example in test:
        if example.candidates:
            chosen = best_candidate(example.candidates, weights)
            text = "" if chosen is None else chosen.text
        else:
            text = BestSpan(weights=weights).read([example.reading])[0].text or ""
        results.append((text_exact(text, example.answers), text_f1(text, example.answers)))
    return results


def main(specs: list[str], out: Path | None) -> None:
    sets = [examples(spec) for spec in specs]
    for spec, own in zip(specs, sets, strict=True):
        others = [example for other in sets if other is not own for example in other]
        order = Random(0).sample(range(len(own)), len(own))
        results = []
        for fold in range(FOLDS):
            test = set(order[fold::FOLDS])
            weights = fitted([own[place] for place in order if place not in test] + others)
            results += scored([own[place] for place in sorted(test)], weights)
        exact, shared = 100 * np.array(results).mean(axis=0)
        print(f"{spec}: {FOLDS} folds, n {len(own)}: EM {exact:.1f}, F1 {shared:.1f}", flush=True)
        if others:
            exact, shared = 100 * np.array(scored(own, fitted(others))).mean(axis=0)
            print(f"  fitted on the other sets alone: EM {exact:.1f}, F1 {shared:.1f}", flush=True)
    if out is not None:
        weights = fitted([example for own in sets for example in own]) | {ANSWER: shipped_weights()[ANSWER]}
        out.write_text(json.dumps(dict(sorted(weights.items())), indent=1) + "\n")
        print(f"{out}: {len(weights)} weights")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    target = Path(arguments.pop(arguments.index("-o") + 1)) if "-o" in arguments else None
    main([argument for argument in arguments if argument != "-o"], target)
