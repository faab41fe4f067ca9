"""Multi-vector similarity search (STaRK's Multi-VSS): the best nodes by vectors, rescored chunk by chunk.

1  rank the nodes of the answer types by cosine
2  rescore the best `pool` by their chunks: 256 characters, a fifth overlapping, the best chunk counts
3  show for each the sentence of its document that shares most with the question
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from clew.core.types import Answer
from clew.index.protocol import Index
from clew.index.vectors import Aggregation
from clew.kb.protocol import KnowledgeBase
from clew.steps.answering import answer_nodes, answer_with_passages
from clew.toolbox import Toolbox


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
