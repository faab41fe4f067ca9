"""BM25 over node documents (Robertson and Zaragoza, 2009), restricted to the answer types: STaRK's lexical baseline.

1  rank the nodes of the answer types by BM25 against the question
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
