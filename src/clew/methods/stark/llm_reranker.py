"""Vector search with a model as reranker (STaRK's VSS + LLM reranker).

1  the k best nodes by cosine of their documents, which hold relations (`with_relations=false`: which hold none)
2  rerank them: each scored 0..1 with its document and relations, plus 0.1 · (k - rank) / k for the earlier place;
   or as a list; or in pairs; or, without a model, by likeness
"""

from __future__ import annotations

from dataclasses import dataclass

from clew.core import trace
from clew.core.types import Answer
from clew.methods.answering import Found, answer_nodes, answer_placed, nearest, rerank_groups
from clew.methods.protocol import Method
from clew.methods.role_choice import reranker_for
from clew.roles.rerank import RerankerName
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class LlmReranker(Method):
    """Meaning finds the candidates, a model puts them in order; without one the order of the vectors stays."""

    name = "llm_reranker"
    k: int = 20
    reranker: RerankerName = "auto"
    with_relations: bool = True

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """Ranked nodes with their scores and places before and after."""
        reranker = reranker_for(tools, self.reranker)
        ranking = nearest(tools, question, self.k, answer_nodes(tools.kb), relations=self.with_relations)  # 1
        found = [Found(node, score, None, "by meaning") for node, score in ranking]
        with trace.span("rerank"):
            placed = rerank_groups(reranker, question, [found])  # 2
        return answer_placed(tools.kb, question, placed, reranker)
