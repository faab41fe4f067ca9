"""STaRK's retrievers over a part of the Human Phenotype Ontology: documents with relations embedded in minutes.

The candidates, the same for every method: all gold nodes of the questions, the ten best of BM25 for every question with
and without relations in the documents, and nodes drawn at random. Documents and relations are those of the whole base.

usage: python benchmarks/hpo_subset.py KB [--questions FILE] [--random 4000] [--multi 100]
"""

import argparse
import json
from pathlib import Path

import numpy as np

from clew.answering.methods import retrievers
from clew.answering.methods.catalog import create
from clew.core.types import NodeSet
from clew.lab.evaluation.comparison import bootstrap
from clew.store.open_base import OpenBase

QUESTIONS = Path(__file__).parent / "data" / "hpo_questions.jsonl"
METHODS = ("bm25", "vector_search", "hybrid", "multi_vector_search")


def candidates(tools, questions, drawn):
    gold = {tools.kb.find(key) for question in questions for key in question["answers"]}
    near = {
        node
        for question in questions
        for words in (tools.lexical_with_relations, tools.lexical)
        for node in words.search(question["question"], 10).nodes.tolist()
    }
    others = np.random.default_rng(0).choice(len(tools.kb), drawn, replace=False).tolist()
    return NodeSet.of(sorted(gold | near | set(others)))


def scores(answer, question):
    keys = [candidate.node.key for candidate in answer.candidates[:20]]
    gold = set(question["answers"])
    places = [place for place, key in enumerate(keys) if key in gold]
    first = places[0] if places else None
    return {
        "Hit@1": first == 0,
        "Hit@5": first is not None and first < 5,
        "Recall@20": len(places) / len(gold),
        "MRR": 0.0 if first is None else 1 / (first + 1),
    }


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("kb", type=Path)
    options.add_argument("--questions", type=Path, default=QUESTIONS)
    options.add_argument("--random", type=int, default=4000)
    options.add_argument("--multi", type=int, default=100, help="questions put to multi_vector_search")
    given = options.parse_args()
    tools = OpenBase.open(given.kb)
    questions = [json.loads(line) for line in given.questions.read_text().splitlines()]
    chosen = candidates(tools, questions, given.random)
    print(f"{len(chosen)} candidates of {len(tools.kb)} nodes", flush=True)
    for vectors in (tools.vectors, tools.vectors_with_relations):
        vectors.vectors(chosen.array)
        vectors.is_complete = True  # for these candidates, which are all that is searched
    retrievers.answer_nodes = lambda _: chosen
    sample = np.random.default_rng(1).permutation(len(questions))[: given.multi].tolist()
    for name in METHODS:
        asked = [questions[place] for place in sorted(sample)] if name == "multi_vector_search" else questions
        for relations in (True, False):
            method = create(name, {"with_relations": relations})
            rows = [scores(method.answer(question["question"], tools), question) for question in asked]
            for kind in ("relational", "textual"):
                own = [row for row, question in zip(rows, asked, strict=True)
                       if (question["type"] == "textual") == (kind == "textual")]  # fmt: skip
                between = bootstrap([float(row["Hit@1"]) for row in own])
                told = ", ".join(f"{key} {100 * np.mean([row[key] for row in own]):.1f}" for key in own[0])
                print(f"{name}, relations {relations}, {kind} (n {len(own)}): {told}, "
                      f"Hit@1 [{100 * between.low:.1f}, {100 * between.high:.1f}]", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
