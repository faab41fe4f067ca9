"""STaRK's retrievers over node documents, restricted to the answer types.

bm25                 words of the question against words of the documents (Robertson and Zaragoza, 2009)
vector_search        meaning of the question against meaning of the documents (STaRK's VSS)
multi_vector_search  the best by meaning, rescored chunk by chunk (STaRK's multi-VSS)
hybrid               words and meaning, by reciprocal rank fusion (Cormack et al., 2009)

Each shows for a node the sentence of its document that shares most with the question.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from clew.core.types import Answer
from clew.index.fusion import reciprocal_rank_fusion
from clew.index.vectors import Aggregation
from clew.methods.answering import answer_nodes, answer_with_passages
from clew.methods.protocol import Method
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class Bm25(Method):
    """Words of the question against words of the node documents, with no model at all."""

    name = "bm25"
    k: int = 20

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """Ranked nodes with the matching sentence of each."""
        ranking = tools.lexical.search(question, self.k, among=answer_nodes(tools.kb))
        return answer_with_passages(tools.kb, question, ranking)


@dataclass(frozen=True)
class VectorSearch(Method):
    """The meaning of the question against the meaning of the node documents."""

    name = "vector_search"
    k: int = 20

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """Ranked nodes with the matching sentence of each."""
        ranking = tools.vectors.search(question, self.k, among=answer_nodes(tools.kb))
        return answer_with_passages(tools.kb, question, ranking)


@dataclass(frozen=True)
class MultiVectorSearch(Method):
    """The meaning of the question against the meaning of each part of the node documents."""

    name = "multi_vector_search"
    k: int = 20
    pool: int = 50
    aggregation: Aggregation = "max"

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """Ranked nodes with the matching sentence of each."""
        index = replace(tools.multi_vectors, pool=self.pool, aggregation=self.aggregation)
        ranking = index.search(question, self.k, among=answer_nodes(tools.kb))
        return answer_with_passages(tools.kb, question, ranking)


@dataclass(frozen=True)
class Hybrid(Method):
    """Words and meaning together."""

    name = "hybrid"
    k: int = 20
    depth: int = 100

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """Ranked nodes with the matching sentence of each."""
        among = answer_nodes(tools.kb)
        rankings = [index.search(question, self.depth, among=among) for index in (tools.lexical, tools.vectors)]
        return answer_with_passages(tools.kb, question, reciprocal_rank_fusion(rankings).top(self.k))
