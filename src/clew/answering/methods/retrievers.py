"""STaRK's retrievers over node documents, restricted to the answer types.

bm25                 words of the question against words of the documents (Robertson and Zaragoza, 2009)
vector_search        meaning of the question against meaning of the documents (STaRK's VSS), or with `weights` by two
                     trained encoders (STaRK's Dense Retriever)
multi_vector_search  the best by meaning, rescored chunk by chunk (STaRK's multi-VSS)
hybrid               words and meaning, by reciprocal rank fusion (Cormack et al., 2009)
llm_reranker         the best by meaning, reranked by a model (STaRK's VSS + LLM reranker)

A document contains the texts and relations of a node, as in the paper. `with_relations=false` omits the relations. Each
result shows the sentence of its document that shares most words with the question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from clew.answering.methods.answering import (
    RetrievedNode,
    answer_nodes,
    answer_placed,
    answer_with_passages,
    nearest,
    rerank_groups,
    vectors_of,
    words_of,
)
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import reranker_for
from clew.answering.roles.rerank import RerankerName
from clew.core import trace
from clew.core.disk import file_sha256
from clew.core.errors import InputError, NotFoundError
from clew.core.schema import refuse_other_schema
from clew.core.types import Answer
from clew.models.embedding.onnx import CARD, QUESTIONS, PassageEmbedder, read_settings
from clew.models.embedding.opening import CachedEmbedder
from clew.store.index.build import index_vectors, vector_folder
from clew.store.index.fusion import reciprocal_rank_fusion
from clew.store.index.vector_store import VectorStore
from clew.store.index.vectors import Aggregation, MultiVectorIndex, VectorIndex
from clew.store.open_base import OpenBase


@dataclass(frozen=True)
class Bm25(Method):
    """Words of the question against words of the node documents, without any model."""

    name = "bm25"
    k: int = 20
    with_relations: bool = True

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return ranked nodes with the matching sentence of each."""
        ranking = words_of(tools, self.with_relations).search(question, self.k, among=answer_nodes(tools.kb))
        return answer_with_passages(tools.kb, question, ranking, relations=self.with_relations)


@dataclass(frozen=True)
class VectorSearch(Method):
    """The meaning of the question against the meaning of the node documents."""

    name = "vector_search"
    k: int = 20
    with_relations: bool = True
    weights: str = ""
    """A folder of `clew train dense_retriever`: its encoders replace the base's embedder."""

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return ranked nodes with the matching sentence of each."""
        relations, dense = self.with_relations, None
        if self.weights:
            opening = partial(dense_vectors, tools, Path(self.weights), relations)
            dense = tools.get_or_create(("dense retriever", self.weights, relations), opening)
        ranking = nearest(tools, question, self.k, answer_nodes(tools.kb), relations=relations, vectors=dense)
        return answer_with_passages(tools.kb, question, ranking, relations=relations)

    def learned(self, tools: OpenBase) -> Mapping[str, Any]:  # noqa: ARG002 - the weights are outside the base
        """Return the digest of the card of trained encoders, which names their digests."""
        return {"weights": file_sha256(Path(self.weights) / CARD)} if self.weights else {}


@dataclass(frozen=True)
class MultiVectorSearch(Method):
    """The meaning of the question against the meaning of each part of the node documents."""

    name = "multi_vector_search"
    k: int = 20
    pool: int = 50
    aggregation: Aggregation = "max"
    with_relations: bool = True

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return ranked nodes with the matching sentence of each."""
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

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return ranked nodes with the matching sentence of each."""
        among = answer_nodes(tools.kb)
        words = words_of(tools, self.with_relations).search(question, self.depth, among=among)
        meaning = nearest(tools, question, self.depth, among, relations=self.with_relations)
        ranking = reciprocal_rank_fusion([words, meaning]).top(self.k)
        return answer_with_passages(tools.kb, question, ranking, relations=self.with_relations)


@dataclass(frozen=True)
class LlmReranker(Method):
    """Meaning finds the candidates, a model reranks them. Without a model the order of the vectors stays.

    1  the k best nodes by cosine of their documents
    2  rerank them: each scored 0..1 with its document and relations, plus 0.1 · (k - rank) / k for the earlier rank,
       or as a list, or in pairs, or without a model by similarity
    """

    name = "llm_reranker"
    k: int = 20
    reranker: RerankerName = "auto"
    with_relations: bool = True

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return ranked nodes with their scores, and their ranks before and after."""
        reranker = reranker_for(tools, self.reranker)
        ranking = nearest(tools, question, self.k, answer_nodes(tools.kb), relations=self.with_relations)  # 1
        found = [RetrievedNode(node, score, None, "by meaning") for node, score in ranking]
        with trace.span("rerank"):
            placed = rerank_groups(reranker, question, [found])  # 2
        return answer_placed(tools.kb, question, placed, reranker)


FORMAT = 1
"""Version of the trained files. Other versions are rejected."""
TRAIN = "`clew train dense_retriever` trains weights for a base"


def dense_vectors(tools: OpenBase, weights: Path, relations: bool, *, judged: bool = True) -> VectorIndex:
    """Return the vector index of trained encoders, after checking that their card fits the base.

    With `judged`, reject encoders that did worse than vector search on held-out questions.
    """
    card = read_settings(weights / CARD)
    if not isinstance(card.get(QUESTIONS), str):
        raise NotFoundError(f"{weights} does not contain a dense retriever (no {CARD} of one): {TRAIN}")
    if card.get("format") != FORMAT:
        raise InputError(f"{weights} has format {card.get('format')}, this version reads {FORMAT}: train it again")
    if judged and not card.get("usable"):
        raise InputError(
            f"the dense retriever in {weights} found held-out answers less often than vector search: train it on more "
            "questions, or leave weights out"
        )
    if card.get("with_relations") != relations:
        trained = f"was trained on documents {'without' if relations else 'with'} relations"
        raise InputError(f"the dense retriever in {weights} {trained}: set with_relations={str(not relations).lower()}")
    signatures = [(name, head, tail) for name, head, tail in card.get("relations", ())]
    refuse_other_schema(
        f"the dense retriever in {weights}", card.get("node_types", ()), signatures, tools.kb.schema, TRAIN
    )
    embedder = CachedEmbedder(PassageEmbedder(weights))
    store = VectorStore.open(vector_folder(tools.local.folder), embedder, spec=str(weights), in_use=False)
    return index_vectors(tools.local, embedder, store, words_of(tools, relations), relations=relations)
