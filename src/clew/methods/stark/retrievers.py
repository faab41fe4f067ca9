"""STaRK's retrievers over node documents, restricted to the answer types.

bm25                 words of the question against words of the documents (Robertson and Zaragoza, 2009)
vector_search        meaning of the question against meaning of the documents (STaRK's VSS); with `weights`, as two
                     trained encoders tell it (STaRK's Dense Retriever)
multi_vector_search  the best by meaning, rescored chunk by chunk (STaRK's multi-VSS)
hybrid               words and meaning, by reciprocal rank fusion (Cormack et al., 2009)

A document holds what is written about a node and what it is joined to, as in the paper; `with_relations=false` leaves
the latter out. Each retriever shows for a node the sentence of its document that shares most with the question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from clew.core.disk import file_sha256
from clew.core.types import Answer
from clew.index.fusion import reciprocal_rank_fusion
from clew.index.vectors import Aggregation, MultiVectorIndex
from clew.methods.answering import answer_nodes, answer_with_passages, nearest, vectors_of, words_of
from clew.methods.protocol import Method
from clew.methods.stark.dense_retriever import dense_vectors
from clew.models.embedding.passage_embedder import CARD
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class Bm25(Method):
    """Words of the question against words of the node documents, with no model at all."""

    name = "bm25"
    k: int = 20
    with_relations: bool = True

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """Ranked nodes with the matching sentence of each."""
        words = words_of(tools, self.with_relations)
        ranking = words.search(question, self.k, among=answer_nodes(tools.kb))
        return answer_with_passages(tools.kb, question, ranking, relations=self.with_relations)


@dataclass(frozen=True)
class VectorSearch(Method):
    """The meaning of the question against the meaning of the node documents."""

    name = "vector_search"
    k: int = 20
    with_relations: bool = True
    weights: str = ""
    """A folder of `clew train dense_retriever`: its encoders search in place of the base's embedder."""

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """Ranked nodes with the matching sentence of each."""
        relations, dense = self.with_relations, None
        if self.weights:
            opening = partial(dense_vectors, tools, Path(self.weights), relations)
            dense = tools.keep(("dense retriever", self.weights, relations), opening)
        ranking = nearest(tools, question, self.k, answer_nodes(tools.kb), relations=relations, vectors=dense)
        return answer_with_passages(tools.kb, question, ranking, relations=relations)

    def learned(self, tools: Toolbox) -> Mapping[str, Any]:  # noqa: ARG002 - weights lie beside the base
        """The digest of the card of trained encoders, which names theirs."""
        return {"weights": file_sha256(Path(self.weights) / CARD)} if self.weights else {}


@dataclass(frozen=True)
class MultiVectorSearch(Method):
    """The meaning of the question against the meaning of each part of the node documents."""

    name = "multi_vector_search"
    k: int = 20
    pool: int = 50
    aggregation: Aggregation = "max"
    with_relations: bool = True

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """Ranked nodes with the matching sentence of each."""
        among = answer_nodes(tools.kb)
        first = nearest(tools, question, max(self.k, self.pool), among, relations=self.with_relations)
        vectors = vectors_of(tools, self.with_relations)
        chunks = MultiVectorIndex(vectors.text, tools.embedder, vectors.store, self.pool, aggregation=self.aggregation)
        ranking = chunks.rescored(question, first, self.k)
        return answer_with_passages(tools.kb, question, ranking, relations=self.with_relations)


@dataclass(frozen=True)
class Hybrid(Method):
    """Words and meaning together."""

    name = "hybrid"
    k: int = 20
    depth: int = 100
    with_relations: bool = True

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """Ranked nodes with the matching sentence of each."""
        among = answer_nodes(tools.kb)
        words = words_of(tools, self.with_relations).search(question, self.depth, among=among)
        meaning = nearest(tools, question, self.depth, among, relations=self.with_relations)
        ranking = reciprocal_rank_fusion([words, meaning]).top(self.k)
        return answer_with_passages(tools.kb, question, ranking, relations=self.with_relations)
