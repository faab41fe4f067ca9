"""Baselines for Knowledge Graph Prompting (its Tables 2 and 3), with the same budget and the same reader.

tf_idf              cosine of TF-IDF vectors
knn_passages        half by vector, half by edit distance, as the paper's KNN
dense_passages      only by vector
two_hop_dense       MDR: a beam over two hops, question and first passage embedded together, pairs by product
iterative_passages  IRCoT: a model thinks aloud after two examples, and each sentence is a search query
no_passages         only the model: the lower bound

The upper bound, the gold passages, is a part of the evaluation (`clew.lab.evaluation.benchmark`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz import fuzz, process

from clew.answering.methods.knowledge_graph_prompting.answer import READ, answer_from_passages
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import reader_for
from clew.answering.reading.documents.search import readable_nodes, text_of, tf_idf_ranking
from clew.answering.roles.write import ModelWriter
from clew.core import trace
from clew.core.errors import ReplyError
from clew.core.proper_names import sentences
from clew.core.roles import Source
from clew.core.types import Answer, NodeSet, Ranking
from clew.models.embedding.onnx import asking_on
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, Prompt, ask
from clew.models.tokens import count_tokens, cut_to_question
from clew.store.open_base import OpenBase


@dataclass(frozen=True)
class PassageBaseline(Method):
    """Base class of the baselines: they rank passages, and the same reader reads the best."""

    k: int = 30
    read: int = READ
    """Number of passages to read. The paper's readers get 30."""

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Answer from the best passages."""
        ranking = self.rank(question, tools)
        return answer_from_passages(tools.stored, question, ranking, reader_for(tools), read=self.read)

    @abstractmethod
    def rank(self, question: str, tools: OpenBase) -> Ranking:
        """Return the passages, best first."""


@dataclass(frozen=True)
class TfIdf(PassageBaseline):
    """TF-IDF cosine between the question and each passage."""

    name = "tf_idf"

    def rank(self, question: str, tools: OpenBase) -> Ranking:
        """Rank by cosine the passages that share most words with the question."""
        return tf_idf_ranking(tools.stored, tools.lexical, question, self.k)


@dataclass(frozen=True)
class KnnPassages(PassageBaseline):
    """Half of the passages by vector, half by edit distance to the question."""

    name = "knn_passages"

    def rank(self, question: str, tools: OpenBase) -> Ranking:
        """Return the passages with the nearest vectors, then those with the smallest edit distance."""
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

    def rank(self, question: str, tools: OpenBase) -> Ranking:
        """Rank by cosine."""
        return tools.vectors.search(question, self.k, among=readable_nodes(tools.stored))


@dataclass(frozen=True)
class TwoHopDense(PassageBaseline):
    """MDR's beam over two hops of dense retrieval. It equals the paper's with an encoder trained on hops."""

    name = "two_hop_dense"
    first: int = 15
    second: int = 3
    pairs: bool = False
    """Whether to read pairs of passages, best first, as the paper does."""

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Answer from the best passages or pairs of passages."""
        scored = self._pairs(question, tools)
        best = list(scored)[: self.read] if self.pairs else None
        return answer_from_passages(
            tools.stored, question, self._ranked(scored), reader_for(tools), read=self.read, pairs=best
        )

    def rank(self, question: str, tools: OpenBase) -> Ranking:
        """Rank passages by their best pair."""
        return self._ranked(self._pairs(question, tools))

    def _pairs(self, question: str, tools: OpenBase) -> dict[tuple[int, int], float]:
        """Return pairs by the product of the scores of their two hops, best first."""
        kb, vectors = tools.stored, tools.vectors
        passages = readable_nodes(kb)
        found: dict[tuple[int, int], float] = {}
        for node, score in vectors.search(question, self.first, among=passages):
            for other, more in vectors.search(asking_on(question, text_of(kb, node)), self.second + 1, among=passages):
                if other != node:
                    found[node, other] = max(score, 0.0) * max(more, 0.0)
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def _ranked(self, scored: Mapping[tuple[int, int], float]) -> Ranking:
        best: dict[int, float] = {}
        for pair, score in scored.items():
            for place, node in enumerate(pair):
                best[node] = max(best.get(node, 0.0), score * (1 - 1e-4 * place))  # after the passage that led to it
        return Ranking.of(list(best), list(best.values()), self.k)


@dataclass(frozen=True)
class IterativePassages(PassageBaseline):
    """IRCoT: the model thinks aloud. Each sentence is the next search query, until it has the answer."""

    name = "iterative_passages"
    needs_model = True
    each: int = 5
    rounds: int = 4

    def rank(self, question: str, tools: OpenBase) -> Ranking:
        """Return passages in the order in which they were found."""
        kb, model = tools.stored, tools.required_model(self.name)
        passages = readable_nodes(kb)
        found: dict[int, None] = {}
        thoughts: list[str] = []
        wanted = question
        for _ in range(self.rounds):
            found |= dict.fromkeys(tools.lexical.search(wanted, self.each, among=passages).nodes.tolist())
            if len(found) >= self.k:
                break
            shown = [Source(content.text, content.name) for content in map(kb.node, found)]
            thought = next_thought(model, question, shown, thoughts)
            if thought is None or thought in thoughts:
                break
            thoughts.append(thought)
            if has_answer(thought):
                break
            wanted = thought
        nodes = list(found)[: self.k]
        return Ranking.of(nodes, list(range(len(nodes), 0, -1)))


@dataclass(frozen=True)
class NoPassages(Method):
    """The model's answer without any passages."""

    name = "no_passages"
    needs_model = True

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return the model's first answer."""
        [written] = ModelWriter(tools.required_model(self.name)).answers([question], 1)
        return Answer(question, text=written.texts[0] if written.texts else None)


# IRCoT's reasoning step (Trivedi et al., ACL 2023): the next sentence of a chain of thought, after two examples. The
# examples are our own inventions. Each has the passages it needs and a distractor, as in the paper's
# `gold_with_2_distractors_context`.

THINK = Prompt.load("clew.answering.methods.knowledge_graph_prompting", "chain_of_thought")
CONCLUDED = "the answer is"
"""Phrase that ends the chains of the examples."""
LONGEST_THOUGHT = 120
"""Maximum tokens of a reply. Only its first sentence counts."""


def has_answer(thought: str) -> bool:
    """Check whether this sentence ends a chain of thought."""
    return CONCLUDED in thought.lower()


def next_thought(
    model: LanguageModel, question: str, passages: Sequence[Source], thoughts: Sequence[str]
) -> str | None:
    """Return the next sentence, or None if the reply cannot be used."""
    room = (model.context_tokens - LONGEST_THOUGHT - count_tokens(THINK.user)) // max(len(passages), 1)
    shown = "\n\n".join(
        f"Title: {passage.title}\n{cut_to_question(passage.text, question, room)}" for passage in passages
    )
    filled = THINK.fill(passages=shown, question=question, thoughts=" ".join(thoughts))
    [outcome] = ask(model, [Ask(filled, read_thought, max_tokens=LONGEST_THOUGHT)], role="write")
    if outcome.value is None:
        trace.fallback("write", outcome.problem or "no reply", "the passages found so far are read")
    return outcome.value


def read_thought(completion: Completion) -> str:
    """Return the first sentence of a reply."""
    found = sentences(completion.text.strip().removeprefix("A:").strip())
    if not found:
        raise ReplyError("the reply holds no sentence")
    return " ".join(found[0].split())
