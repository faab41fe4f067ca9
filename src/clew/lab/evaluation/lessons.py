"""Build training data from questions with gold answers, for a dense retriever and for the graph network."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from clew.answering.methods.answering import answer_nodes, nearest, vectors_of
from clew.answering.methods.retrievers import FORMAT, dense_vectors
from clew.answering.reading.graph_network import HopPlaces, masked_question
from clew.answering.reading.mentions import find_topics
from clew.answering.reading.vocabulary import Vocabulary
from clew.core.errors import InputError
from clew.core.schema import schema_of
from clew.core.texts import OPAQUE
from clew.core.version import __version__
from clew.lab.datasets.questions import Dataset, Question
from clew.lab.evaluation.benchmark import Benchmark
from clew.lab.evaluation.comparison import bootstrap, randomisation_test
from clew.lab.evaluation.metrics import hit, recall, reciprocal_rank
from clew.lab.training.dense_retriever import DenseSettings, Labelled, fit_dense
from clew.lab.training.labelled import names_of_fold, parse_fold
from clew.lab.training.qa_gnn import GraphBase, GraphLessons, GraphQuestion
from clew.models.model_card import write_card
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.index.vectors import VectorIndex
from clew.store.open_base import OpenBase

SEEN = 20
"""Number of ranks to evaluate."""
LICENCE = "start: Apache-2.0; what was learned: as the questions and the texts of the base allow"


@dataclass(frozen=True)
class Trial:
    """Data and settings to train a dense retriever."""

    tools: OpenBase
    dataset: Dataset
    settings: DenseSettings
    left_out: str = "0/5"
    """Fold of the questions held out for evaluation."""
    relations: bool = True
    say: Callable[[str], None] = print
    progress: Callable[[int, int], None] = lambda _done, _all: None


def train_dense(trial: Trial, out: Path, command: str = "") -> dict[str, Any]:
    """Train on most questions, evaluate on the rest against vector search, and write weights and card.

    Return the card.
    """
    tools, among = trial.tools, answer_nodes(trial.tools.kb)
    gold = _gold(trial)
    left = names_of_fold((question.id for question, _ in gold), *parse_fold(trial.left_out), trial.settings.seed)
    held = [(question, right) for question, right in gold if question.id in left]
    kept = [(question, right) for question, right in gold if question.id not in left]
    if not held or not kept:
        raise InputError(f"{trial.dataset.name} has only {len(gold)} questions with answers: add questions")
    deep = trial.settings.hard + max(len(right) for _, right in gold)

    def found(question: Question, count: int, vectors: VectorIndex | None = None) -> list[int]:
        near = nearest(tools, question.text, count, among, relations=trial.relations, vectors=vectors)
        return [node for node, _ in near]

    lessons = []
    for question, right in kept:
        wrong = [node for node in found(question, deep) if node not in right][: trial.settings.hard]
        lessons.append(Labelled(question.text, tuple(sorted(right)), tuple(wrong)))
        trial.progress(len(lessons), len(kept))
    types, relations = schema_of(tools.kb.schema)
    card = {
        "format": FORMAT,
        "clew": __version__,
        "command": command,
        "licence": LICENCE,
        "trained_on": {"dataset": trial.dataset.name, "portion": trial.dataset.portion, "questions": len(kept)},
        "left_out": trial.left_out,
        "node_types": types,
        "relations": relations,
        "with_relations": trial.relations,
        "usable": False,
    }
    text = partial(tools.kb.text, relations=trial.relations)
    card = fit_dense(lessons, text, out, trial.settings, card, trial.say)
    dense = dense_vectors(tools, out, trial.relations, judged=False)
    own = vectors_of(tools, trial.relations)
    searched_all = own.is_complete or own.size <= own.most
    if searched_all:
        dense.embed_all(trial.progress)
    before, after = ([found(question, SEEN, which) for question, _ in held] for which in (None, dense))
    figures = judged([right for _, right in held], before, after)
    where = f"all {dense.size:,} nodes" if searched_all else f"the {dense.pool} best by words of each question"
    card |= {"figures": {"questions": len(held), "searched": where, **figures}}
    card |= {"usable": figures["dense retriever"]["hit@1"][0] >= figures["vector search"]["hit@1"][0]}
    write_card(out, card)
    return card


def judged(
    gold: Sequence[frozenset[int]], before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """Compute the metrics of both rankings with 95 % intervals, and the p-value of the difference in Hit@1."""
    figures: dict[str, Any] = {}
    first = []
    for name, rankings in (("vector search", before), ("dense retriever", after)):
        rows = [_row(ranking, right) for ranking, right in zip(rankings, gold, strict=True)]
        first.append([row["hit@1"] for row in rows])
        figures[name] = {}
        for metric in rows[0]:
            values = [row[metric] for row in rows]
            between = bootstrap(values)
            figures[name][metric] = [float(np.mean(values)), between.low, between.high]
    return {**figures, "p of hit@1": randomisation_test(first[1], first[0])}


def _row(ranking: Sequence[int], right: frozenset[int]) -> Mapping[str, float]:
    found = [frozenset({node}) & right for node in ranking]
    return {
        "hit@1": hit(found, 1),
        "hit@5": hit(found, 5),
        "recall@20": recall(found, len(right), SEEN),
        "mrr": reciprocal_rank(found),
    }


def _gold(trial: Trial) -> list[tuple[Question, frozenset[int]]]:
    """Return the questions that are answered by nodes, with these nodes."""
    tools = trial.tools
    by_key = Benchmark(trial.dataset, given=tools).rule == "key"

    def nodes(question: Question) -> frozenset[int]:
        if by_key:
            return frozenset(tools.kb.find(key) for key in question.answers)
        links = (link for name in question.answers for link in tools.names.link(name) if link.how == "exact")
        return frozenset(link.node for link in links)

    found = [(question, nodes(question)) for question in trial.dataset.questions if question.value is None]
    return [(question, right) for question, right in found if right]


def graph_base(kb: ArrayKnowledgeBase, name: str) -> GraphBase:
    """Convert a whole base to the network's input."""
    vocabulary = Vocabulary(kb.schema)
    types = kb.types.astype(np.int64)
    edges = kb.edges(kb.nodes(), direction="out")
    heads, tails = edges.heads.astype(np.int64), edges.tails.astype(np.int64)
    hops = HopPlaces(vocabulary).of(edges.relations, types[heads], types[tails])
    known = hops >= 0
    heads, tails, hops = heads[known], tails[known], hops[known]
    return GraphBase(
        name,
        types,
        np.concatenate((heads, tails)),
        np.concatenate((tails, heads)),
        np.concatenate((hops, hops + 1)),
        vocabulary.hop_texts,
        vocabulary.type_texts,
        kb.named_like(OPAQUE.pattern).array.astype(np.int64),
    )


def graph_questions(tools: OpenBase, questions: Sequence[Question]) -> list[GraphQuestion]:
    """Convert the questions that mention a node and ask for other nodes."""
    kb, vocabulary = tools.kb, Vocabulary(tools.kb.schema)
    named: defaultdict[str, list[int]] = defaultdict(list)
    for ref in kb.refs(kb.nodes().array):
        for text in {ref.key, ref.name}:
            named[text].append(ref.id)
    made = []
    for question in questions:
        topics = find_topics(question.text, tools.names, question.topics).topics
        answers = {node for answer in question.answers for node in named.get(answer, ())}
        if not topics or not answers:
            continue
        kinds = [vocabulary.type_words(kb.refs([int(topic.nodes.array[0])])[0].type) for topic in topics]
        start = {int(node) for topic in topics for node in topic.nodes}
        if answers - start:
            text = masked_question(question.text, topics, kinds)
            made.append(GraphQuestion(text, tuple(sorted(start)), tuple(sorted(answers - start))))
    return made


def graph_lessons(tools: OpenBase, name: str, questions: Sequence[Question], kept: float, seed: int) -> GraphLessons:
    """Split a base's questions into training and validation. `kept` is the validation share."""
    made = graph_questions(tools, questions)
    random.Random(seed).shuffle(made)
    count = round(kept * len(made))
    return GraphLessons(graph_base(tools.local, name), made[count:], made[:count])
