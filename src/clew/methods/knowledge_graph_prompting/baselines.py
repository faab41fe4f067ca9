"""What Knowledge Graph Prompting is compared with (its Tables 2 and 3), under the same budget and the same reader.

tf_idf              cosine of TF-IDF vectors
knn_passages        half by vector, half by edit distance, as the paper's KNN
dense_passages      by vector alone
two_hop_dense       MDR: a beam over two hops, question and first passage embedded together, paths by summed products
iterative_passages  IRCoT: a model writes what is missing, search adds to the evidence, until the budget or enough
golden_passages     the gold passages of a file: the ceiling of any retrieval
no_passages         the model alone: the floor
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from rapidfuzz import fuzz, process

from clew.core.errors import InputError
from clew.core.roles import Draft, Reader
from clew.core.types import Answer, NodeSet, Ranking
from clew.index.tokens import terms
from clew.kb.arrays import ArrayKnowledgeBase
from clew.methods.knowledge_graph_prompting.answer import answer_from_passages
from clew.methods.knowledge_graph_prompting.passages import readable_nodes
from clew.roles.read import BestSpan, ModelReader
from clew.roles.write import ModelWriter
from clew.toolbox import Toolbox

LEXICAL_POOL = 300


def reader_of(toolbox: Toolbox) -> Reader:
    """The same reader for every method: the model's, or the extractive one."""
    return BestSpan() if toolbox.model is None else ModelReader(toolbox.model)


def text_of(kb: ArrayKnowledgeBase, node: int) -> str:
    """A passage with its title."""
    content = kb.node(node)
    return f"{content.name}. {content.text}"


@dataclass(frozen=True)
class PassageBaseline(ABC):
    """What the baselines share: they rank passages, and the same reader reads the best."""

    tools: Toolbox
    k: int = 30
    name: ClassVar[str]

    @classmethod
    def build(cls, toolbox: Toolbox, k: int = 30) -> Self:
        """Over the passages of a base."""
        return cls(toolbox, k)

    def answer(self, question: str) -> Answer:
        """The best passages, read."""
        return answer_from_passages(self.tools.local, question, self.name, self.rank(question), reader_of(self.tools))

    @abstractmethod
    def rank(self, question: str) -> Ranking:
        """The passages, best first."""


@dataclass(frozen=True)
class TfIdf(PassageBaseline):
    """TF-IDF cosine between the question and each passage."""

    name = "tf_idf"

    def rank(self, question: str) -> Ranking:
        """By cosine, among those that share most words with the question."""
        kb, lexical = self.tools.local, self.tools.lexical
        pool = lexical.search(question, LEXICAL_POOL, among=readable_nodes(kb)).nodes
        asked = {term: count * lexical.idf(term) for term, count in Counter(terms(question)).items()}
        scores = []
        for node in pool.tolist():
            own = {term: count * lexical.idf(term) for term, count in Counter(terms(text_of(kb, node))).items()}
            length = sqrt(sum(weight**2 for weight in own.values())) or 1.0
            scores.append(sum(weight * own.get(term, 0.0) for term, weight in asked.items()) / length)
        return Ranking.of(pool, scores, self.k)


@dataclass(frozen=True)
class KnnPassages(PassageBaseline):
    """Half of the passages by vector, half by edit distance to the question."""

    name = "knn_passages"

    def rank(self, question: str) -> Ranking:
        """Nearest vectors first, then the fewest edits."""
        kb, half = self.tools.local, self.k // 2
        passages = readable_nodes(kb)
        near = self.tools.vectors.search(question, half, among=passages)
        others = (passages - NodeSet.of(near.nodes)).array
        texts = kb.columns()["text"].take(others).to_pylist()
        edits = process.extract(question, texts, scorer=fuzz.ratio, limit=self.k - half)
        nodes = np.concatenate((near.nodes, np.array([others[place] for _, _, place in edits], dtype=np.int32)))
        return Ranking.of(nodes, np.arange(len(nodes), 0, -1))


@dataclass(frozen=True)
class DensePassages(PassageBaseline):
    """The nearest passages by vector, read."""

    name = "dense_passages"

    def rank(self, question: str) -> Ranking:
        """By cosine."""
        return self.tools.vectors.search(question, self.k, among=readable_nodes(self.tools.local))


@dataclass(frozen=True)
class TwoHopDense(PassageBaseline):
    """MDR's beam over two hops of dense retrieval; an encoder trained on hops makes it the paper's."""

    name = "two_hop_dense"
    first: int = 15
    second: int = 3

    @classmethod
    def build(cls, toolbox: Toolbox, k: int = 30, first: int = 15, second: int = 3) -> TwoHopDense:
        """`first` passages of the first hop, `second` after each."""
        return cls(toolbox, k, first, second)

    def rank(self, question: str) -> Ranking:
        """Passages by the best path they are on."""
        kb, vectors = self.tools.local, self.tools.vectors
        passages = readable_nodes(kb)
        best: dict[int, float] = {}
        for node, score in vectors.search(question, self.first, among=passages):
            for other, more in vectors.search(f"{question} {text_of(kb, node)}", self.second + 1, among=passages):
                if other != node:
                    best[node] = max(best.get(node, 0.0), score + more)
                    best[other] = max(best.get(other, 0.0), more + score - 1e-6)  # after the passage it came from
        return Ranking.of(list(best), list(best.values()), self.k)


@dataclass(frozen=True)
class IterativePassages(PassageBaseline):
    """IRCoT: the model writes the next evidence to look for, search adds passages, until it has enough."""

    name = "iterative_passages"
    each: int = 5
    rounds: int = 4

    @classmethod
    def build(cls, toolbox: Toolbox, k: int = 30, each: int = 5, rounds: int = 4) -> IterativePassages:
        """Needs a model."""
        if toolbox.model is None:
            raise InputError("iterative_passages needs a model: name one with --model")
        return cls(toolbox, k, each, rounds)

    def rank(self, question: str) -> Ranking:
        """Passages in the order in which they were found."""
        assert self.tools.model is not None
        kb, writer = self.tools.local, ModelWriter(self.tools.model)
        passages = readable_nodes(kb)
        found: dict[int, None] = {}
        wanted = question
        for _ in range(self.rounds):
            found |= dict.fromkeys(self.tools.lexical.search(wanted, self.each, among=passages).nodes.tolist())
            [written] = writer.next_evidence([Draft(question, tuple(text_of(kb, node) for node in found))])
            if not written.texts or len(found) >= self.k:
                break
            wanted = written.texts[0]
        nodes = list(found)[: self.k]
        return Ranking.of(nodes, list(range(len(nodes), 0, -1)))


@dataclass(frozen=True)
class GoldenPassages:
    """The gold passages of each question, from a file: what a perfect retrieval would give the reader."""

    tools: Toolbox
    gold: dict[str, list[str]]

    @classmethod
    def build(cls, toolbox: Toolbox, gold: str = "") -> GoldenPassages:
        """`gold` names a JSONL file with `question` and `passages` (keys); `clew eval` gives those of its data set."""
        rows = map(json.loads, Path(gold).read_text("utf-8").splitlines() if gold else ())
        return cls(toolbox, {row["question"]: row["passages"] for row in rows})

    def answer(self, question: str) -> Answer:
        """Nothing for a question whose gold is not known."""
        if not self.gold:
            raise InputError("golden_passages needs -O gold=FILE: JSON lines with question and passages (keys)")
        kb = self.tools.local
        nodes = [kb.find(key) for key in self.gold.get(question, [])]
        ranking = Ranking.of(nodes, list(range(len(nodes), 0, -1)))
        return answer_from_passages(kb, question, "golden_passages", ranking, reader_of(self.tools))


@dataclass(frozen=True)
class NoPassages:
    """What the model says with nothing to read."""

    tools: Toolbox

    @classmethod
    def build(cls, toolbox: Toolbox) -> NoPassages:
        """Needs a model."""
        if toolbox.model is None:
            raise InputError("no_passages needs a model: name one with --model")
        return cls(toolbox)

    def answer(self, question: str) -> Answer:
        """The model's first answer."""
        assert self.tools.model is not None
        [written] = ModelWriter(self.tools.model).answers([question], 1)
        return Answer(question, "no_passages", (), text=written.texts[0] if written.texts else None)
