"""Vector similarity search (STaRK's VSS): cosine between the question and each node document.

1  embed the question and rank the nodes of the answer types by cosine
2  show for each the sentence of its document that shares most with the question
"""

from __future__ import annotations

from dataclasses import dataclass

from clew.core.types import Answer
from clew.index.protocol import Index
from clew.kb.protocol import KnowledgeBase
from clew.steps.answering import answer_nodes, answer_with_passages
from clew.toolbox import Toolbox


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
