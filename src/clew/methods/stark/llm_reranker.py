"""Vector search with a model as reranker (STaRK's VSS + LLM reranker).

1  the k best nodes by cosine
2  rerank them: each scored 0..1 with its document and relations, plus 0.1 · (k - rank) / k for the earlier place;
   or as a list; or in pairs; or, without a model, by likeness
"""

from __future__ import annotations

from dataclasses import dataclass

from clew.core import trace
from clew.core.types import Answer
from clew.index.protocol import Index
from clew.kb.protocol import KnowledgeBase
from clew.methods.answering import answer_nodes
from clew.methods.focus.placing import Found, answer_placed, rerank_groups
from clew.methods.role_choice import reranker_for
from clew.roles.rerank import Reranker, RerankerName
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class LlmReranker:
    """Meaning finds the candidates, a model puts them in order."""

    kb: KnowledgeBase
    documents: Index
    reranker: Reranker
    k: int = 20
    model: str = "none"

    @classmethod
    def build(cls, toolbox: Toolbox, k: int = 20, reranker: RerankerName = "auto") -> LlmReranker:
        """Reranked by the toolbox's model; without one the order of the vector search stays."""
        name = toolbox.model_name
        return cls(toolbox.kb, toolbox.vectors, reranker_for(toolbox, reranker), k, name)

    def answer(self, question: str) -> Answer:
        """Ranked nodes with their scores and places before and after."""
        ranking = self.documents.search(question, self.k, among=answer_nodes(self.kb))  # 1
        found = [Found(node, score, None, "by meaning") for node, score in ranking]
        with trace.span("rerank"):
            placed = rerank_groups(self.reranker, question, [found])  # 2
        return answer_placed(self.kb, question, "llm_reranker", self.model, placed, self.reranker)
