"""What Knowledge Graph Prompting is compared with (its Tables 2 and 3), under the same budget and the same reader.

tf_idf              cosine of TF-IDF vectors
knn_passages        half by vector, half by edit distance, as the paper's KNN
dense_passages      by vector alone
two_hop_dense       MDR: a beam over two hops, question and first passage embedded together, paths by summed products
iterative_passages  IRCoT: a model writes what is missing, search adds to the evidence, until the budget or enough
no_passages         the model alone: the floor

The ceiling, the gold passages themselves, is a part of the evaluation (`clew.evaluation.golden_passages`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass
from math import sqrt

import numpy as np
from rapidfuzz import fuzz, process

from clew.core.roles import Draft
from clew.core.types import Answer, NodeSet, Ranking
from clew.index.tokens import terms
from clew.kb.stored import StoredKnowledgeBase
from clew.methods.knowledge_graph_prompting.answer import answer_from_passages
from clew.methods.knowledge_graph_prompting.passages import readable_nodes
from clew.methods.protocol import Method
from clew.methods.role_choice import reader_for
from clew.models.embedding.passage_embedder import asking_on
from clew.roles.write import ModelWriter
from clew.toolbox import Toolbox

LEXICAL_POOL = 300


def text_of(kb: StoredKnowledgeBase, node: int) -> str:
    """A passage with its title."""
    content = kb.node(node)
    return f"{content.name}. {content.text}"


@dataclass(frozen=True)
class PassageBaseline(Method):
    """What the baselines share: they rank passages, and the same reader reads the best."""

    k: int = 30

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """The best passages, read."""
        return answer_from_passages(tools.stored, question, self.rank(question, tools), reader_for(tools))

    @abstractmethod
    def rank(self, question: str, tools: Toolbox) -> Ranking:
        """The passages, best first."""


@dataclass(frozen=True)
class TfIdf(PassageBaseline):
    """TF-IDF cosine between the question and each passage."""

    name = "tf_idf"

    def rank(self, question: str, tools: Toolbox) -> Ranking:
        """By cosine, among those that share most words with the question."""
        kb, lexical = tools.stored, tools.lexical
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

    def rank(self, question: str, tools: Toolbox) -> Ranking:
        """Nearest vectors first, then the fewest edits."""
        kb, half = tools.stored, self.k // 2
        passages = readable_nodes(kb)
        near = tools.vectors.search(question, half, among=passages)
        others = (passages - NodeSet.of(near.nodes)).array
        texts = kb.columns()["text"].take(others).to_pylist()
        edits = process.extract(question, texts, scorer=fuzz.ratio, limit=self.k - half)
        nodes = np.concatenate((near.nodes, np.array([others[place] for _, _, place in edits], dtype=np.int32)))
        return Ranking.of(nodes, np.arange(len(nodes), 0, -1))


@dataclass(frozen=True)
class DensePassages(PassageBaseline):
    """The nearest passages by vector, read."""

    name = "dense_passages"

    def rank(self, question: str, tools: Toolbox) -> Ranking:
        """By cosine."""
        return tools.vectors.search(question, self.k, among=readable_nodes(tools.stored))


@dataclass(frozen=True)
class TwoHopDense(PassageBaseline):
    """MDR's beam over two hops of dense retrieval; an encoder trained on hops makes it the paper's."""

    name = "two_hop_dense"
    first: int = 15
    second: int = 3

    def rank(self, question: str, tools: Toolbox) -> Ranking:
        """Passages by the best path they are on."""
        kb, vectors = tools.stored, tools.vectors
        passages = readable_nodes(kb)
        best: dict[int, float] = {}
        for node, score in vectors.search(question, self.first, among=passages):
            for other, more in vectors.search(asking_on(question, text_of(kb, node)), self.second + 1, among=passages):
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

    def rank(self, question: str, tools: Toolbox) -> Ranking:
        """Passages in the order in which they were found."""
        kb, writer = tools.stored, ModelWriter(tools.required_model(self.name))
        passages = readable_nodes(kb)
        found: dict[int, None] = {}
        wanted = question
        for _ in range(self.rounds):
            found |= dict.fromkeys(tools.lexical.search(wanted, self.each, among=passages).nodes.tolist())
            [written] = writer.next_evidence([Draft(question, tuple(text_of(kb, node) for node in found))])
            if not written.texts or len(found) >= self.k:
                break
            wanted = written.texts[0]
        nodes = list(found)[: self.k]
        return Ranking.of(nodes, list(range(len(nodes), 0, -1)))


@dataclass(frozen=True)
class NoPassages(Method):
    """What the model says with nothing to read."""

    name = "no_passages"

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """The model's first answer."""
        [written] = ModelWriter(tools.required_model(self.name)).answers([question], 1)
        return Answer(question, text=written.texts[0] if written.texts else None)
