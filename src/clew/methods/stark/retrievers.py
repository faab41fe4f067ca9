"""STaRK's retrievers: BM25, vectors, chunked vectors, and words fused with meaning, restricted to the answer types."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clew.core.types import Answer
from clew.index.fusion import reciprocal_rank_fusion
from clew.index.protocol import Index
from clew.index.vectors import Aggregation
from clew.kb.protocol import KnowledgeBase
from clew.methods.answering import answer_nodes, answer_with_passages
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class Bm25:
    """Words of the question against words of the node documents, with no model at all."""

    kb: KnowledgeBase
    documents: Index
    k: int = 20

    @classmethod
    def build(cls, toolbox: Toolbox, k: int = 20) -> Bm25:
        """Over the lexical index of the base."""
        return cls(toolbox.kb, toolbox.lexical, k)

    def answer(self, question: str) -> Answer:
        """Ranked nodes with the matching sentence of each."""
        ranking = self.documents.search(question, self.k, among=answer_nodes(self.kb))  # 1
        return answer_with_passages(self.kb, question, "bm25", ranking)  # 2


@dataclass(frozen=True)
class VectorSearch:
    """The meaning of the question against the meaning of the node documents."""

    kb: KnowledgeBase
    documents: Index
    k: int = 20

    @classmethod
    def build(cls, toolbox: Toolbox, k: int = 20) -> VectorSearch:
        """Over the vector index of the base."""
        return cls(toolbox.kb, toolbox.vectors, k)

    def answer(self, question: str) -> Answer:
        """Ranked nodes with the matching sentence of each."""
        ranking = self.documents.search(question, self.k, among=answer_nodes(self.kb))  # 1
        return answer_with_passages(self.kb, question, "vector_search", ranking)  # 2


@dataclass(frozen=True)
class MultiVectorSearch:
    """The meaning of the question against the meaning of each part of the node documents."""

    kb: KnowledgeBase
    documents: Index
    k: int = 20

    @classmethod
    def build(
        cls, toolbox: Toolbox, k: int = 20, pool: int = 50, aggregation: Aggregation = "max"
    ) -> MultiVectorSearch:
        """Over the vectors of the base and of its chunks."""
        return cls(toolbox.kb, replace(toolbox.multi_vectors, pool=pool, aggregation=aggregation), k)

    def answer(self, question: str) -> Answer:
        """Ranked nodes with the matching sentence of each."""
        ranking = self.documents.search(question, self.k, among=answer_nodes(self.kb))  # 1, 2
        return answer_with_passages(self.kb, question, "multi_vector_search", ranking)  # 3


@dataclass(frozen=True)
class Hybrid:
    """Words and meaning together."""

    kb: KnowledgeBase
    lexical: Index
    vectors: Index
    k: int = 20
    depth: int = 100

    @classmethod
    def build(cls, toolbox: Toolbox, k: int = 20, depth: int = 100) -> Hybrid:
        """Over the lexical and the vector index of the base."""
        return cls(toolbox.kb, toolbox.lexical, toolbox.vectors, k, depth)

    def answer(self, question: str) -> Answer:
        """Ranked nodes with the matching sentence of each."""
        among = answer_nodes(self.kb)
        rankings = [index.search(question, self.depth, among=among) for index in (self.lexical, self.vectors)]  # 1
        ranking = reciprocal_rank_fusion(rankings).top(self.k)  # 2
        return answer_with_passages(self.kb, question, "hybrid", ranking)  # 3
