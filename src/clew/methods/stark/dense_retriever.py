"""STaRK's Dense Retriever at question time: the vectors of two trained encoders beside those that the base uses."""

from __future__ import annotations

from pathlib import Path

from clew.core.errors import InputError, NotFoundError
from clew.core.schema import refuse_other_schema
from clew.index.build import index_vectors, vector_folder
from clew.index.vector_store import VectorStore
from clew.index.vectors import VectorIndex
from clew.models.embedding.onnx import read_settings
from clew.models.embedding.opening import CachedEmbedder
from clew.models.embedding.passage_embedder import CARD, QUESTIONS, PassageEmbedder
from clew.toolbox import Toolbox

FORMAT = 1
TRAIN = "`clew train dense_retriever` trains weights for a base"


def dense_vectors(tools: Toolbox, weights: Path, relations: bool, *, judged: bool = True) -> VectorIndex:
    """The node documents as trained encoders see them, once their card fits the base and says that they are of use.

    Those that did worse than vector search on questions held apart are refused, unless they are about to be `judged`.
    """
    card = read_settings(weights / CARD)
    if not isinstance(card.get(QUESTIONS), str):
        raise NotFoundError(f"{weights} holds no dense retriever (no {CARD} of one): {TRAIN}")
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
    store = VectorStore.beside(vector_folder(tools.local.folder), embedder, spec=str(weights))
    words = tools.lexical_with_relations if relations else tools.lexical
    return index_vectors(tools.local, embedder, store, words, relations=relations)
