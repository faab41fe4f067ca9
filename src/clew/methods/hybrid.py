"""Hybrid retrieval: reciprocal rank fusion (Cormack et al., 2009) of BM25 and vector search.

1  the best `depth` nodes by BM25 and the best `depth` by vectors
2  fuse: each list gives a node 1 / (60 + rank)
3  show for each the sentence of its document that shares most with the question
"""

from __future__ import annotations

from dataclasses import dataclass

from clew.core.types import Answer
from clew.index.fusion import reciprocal_rank_fusion
from clew.index.protocol import Index
from clew.kb.protocol import KnowledgeBase
from clew.steps.answering import answer_nodes, answer_with_passages
from clew.toolbox import Toolbox


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
