"""Rescoring by parts: the best nodes of a vector search are compared with the question chunk by chunk (STaRK, §4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clew.core import trace
from clew.core.types import NodeSet, Ranking
from clew.index.protocol import Index
from clew.index.vector_store import VectorStore, hashes_of
from clew.models.protocol import Embedder

Aggregation = Literal["max", "mean", "top_k_mean"]


def chunks(text: str, size: int = 256, overlap: int = 51) -> list[str]:
    """Pieces of `size` characters, each beginning `overlap` before the end of the last; at least one."""
    step = size - overlap
    return [text[start : start + size] for start in range(0, max(len(text) - overlap, 1), step)]


def aggregate(scores: NDArray[np.float32], how: Aggregation, top: int = 3) -> float:
    """One score for a document from those of its chunks."""
    if how == "max":
        return float(scores.max())
    return float(scores.mean() if how == "mean" else np.sort(scores)[-top:].mean())


@dataclass(frozen=True)
class MultiVectorIndex:
    """Chunk vectors of the documents that a vector search puts first; kept by content like all others."""

    vectors: Index
    text: Callable[[int], str]
    embedder: Embedder
    store: VectorStore
    pool: int = 50
    size: int = 256
    overlap: int = 51
    aggregation: Aggregation = "max"
    top: int = 3

    def search(self, query: str, k: int, *, among: NodeSet | None = None) -> Ranking:
        """The k best of the pool by their chunks; beyond the pool the order of the vector search stays."""
        first = self.vectors.search(query, max(k, self.pool), among=among)
        if not len(first):
            return first
        with trace.span("chunk vectors") as span:
            pooled = first.top(self.pool)
            pieces = [chunks(self.text(node), self.size, self.overlap) for node in pooled.nodes.tolist()]
            vector = self.embedder.embed([query], role="query")[0]
            scores = self._chunk_vectors([piece for document in pieces for piece in document]) @ vector
            borders = np.cumsum([len(document) for document in pieces])[:-1]
            ranked = [aggregate(part, self.aggregation, self.top) for part in np.split(scores, borders)]
            span.note(documents=len(pooled), chunks=len(scores))
        rescored = Ranking.of(pooled.nodes, ranked, k)
        if k <= len(rescored):
            return rescored
        rest = Ranking(first.nodes[self.pool : k], first.scores[self.pool : k])
        lowest = rescored.scores.min() if len(rescored) else 0.0
        ceiling = rest.scores.max() if len(rest) else 0.0
        below = rest.scores - max(0.0, float(ceiling - lowest))  # keeps scores descending across the border
        return Ranking(np.concatenate((rescored.nodes, rest.nodes)), np.concatenate((rescored.scores, below)))

    def _chunk_vectors(self, pieces: Sequence[str]) -> NDArray[np.float32]:
        hashes = hashes_of(pieces)
        rows = self.store.rows(hashes)
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            computed = self.embedder.embed([pieces[place] for place in missing.tolist()], role="document")
            rows[missing] = self.store.add(hashes[missing], computed)
        return self.store.gather(rows)
