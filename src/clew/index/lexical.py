"""BM25 over the documents of the nodes: Robertson & Zaragoza, "The Probabilistic Relevance Framework" (2009)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from clew.core.types import IntArray, NodeSet, Ranking
from clew.index.postings import count_terms
from clew.index.strings import SortedStrings
from clew.index.terms import terms
from clew.kb.adjacency import map_array

K1, B = 1.2, 0.75
SPARSE = 4
"""With fewer postings than one per this many documents, merging them beats an accumulator over all documents."""
ROUNDING = 1 - 1e-9
"""Sums in another order differ by less than this."""
FEW = 16
"""Looking so many nodes up takes as long as reading one posting for each."""


@dataclass(frozen=True, slots=True, eq=False)
class PostingList:
    """The documents of one query term with their BM25 weights, its factor, and the most it can add to a score."""

    documents: IntArray
    weights: NDArray[np.float32]
    factor: float
    most: float


def idf(documents: int, having: int) -> float:
    """How telling a term is: log(1 + (N - n + ½) / (n + ½))."""
    return math.log(1 + (documents - having + 0.5) / (having + 0.5))


class LexicalIndex:
    """Postings with their BM25 weights worked out at build, so that a search only adds."""

    def __init__(
        self,
        vocabulary: SortedStrings,
        offsets: NDArray[np.int64],
        documents: IntArray,
        weights: NDArray[np.float32],
        lengths: IntArray,
    ) -> None:
        """Use `LexicalIndex.open`."""
        self.vocabulary, self.offsets = vocabulary, offsets
        self.documents, self.weights, self.lengths = documents, weights, lengths

    @staticmethod
    def write(folder: Path, documents: pa.Array | pa.ChunkedArray) -> None:
        """Index documents; the place of a document is its node id."""
        postings = count_terms(documents)
        size, having = len(postings.lengths), np.diff(postings.offsets)
        idfs = np.log1p((size - having + 0.5) / (having + 0.5)).astype(np.float32)
        mean = float(postings.lengths.mean()) if postings.lengths.any() else 1.0
        saturation = (K1 * (1 - B + B * (postings.lengths / mean))).astype(np.float32)
        weights = postings.counts  # in place: these are the largest arrays of a build
        divisor = saturation[postings.documents]
        divisor += weights
        weights *= K1 + 1
        weights /= divisor
        weights *= np.repeat(idfs, having)
        folder.mkdir(parents=True, exist_ok=True)
        SortedStrings.write(folder, "terms", postings.terms)
        np.save(folder / "offsets.npy", postings.offsets)
        np.save(folder / "documents.npy", postings.documents)
        np.save(folder / "weights.npy", weights)
        np.save(folder / "lengths.npy", postings.lengths)

    @classmethod
    def open(cls, folder: Path) -> LexicalIndex:
        """Map an index."""
        arrays = (map_array(folder / f"{name}.npy") for name in ("offsets", "documents", "weights", "lengths"))
        return cls(SortedStrings.open(folder, "terms"), *arrays)

    def __len__(self) -> int:
        return len(self.lengths)

    def frequency(self, term: str) -> int:
        """How many documents have a term, written as `clew.index.terms.terms` writes it."""
        place = self.vocabulary.find(term.encode())
        return 0 if place is None else int(self.offsets[place + 1] - self.offsets[place])

    def idf(self, term: str) -> float:
        """How telling a term is; one that no document has tells most."""
        return idf(len(self), self.frequency(term))

    def weight(self, text: str) -> float:
        """How much a text tells: the idf of its terms, of those that some document has."""
        return sum(self.idf(term) for term in terms(text) if self.frequency(term))

    def having(self, term: str) -> NodeSet:
        """The nodes whose document has a term."""
        place = self.vocabulary.find(term.encode())
        return NodeSet(self.documents[0:0] if place is None else self._postings(place).documents)

    def search(self, query: str, k: int, *, among: NodeSet | None = None) -> Ranking:
        """The k best nodes that share a term with the query."""
        return self.search_terms(Counter(terms(query)), k, among=among)

    def search_terms(self, weights: Mapping[str, float], k: int, *, among: NodeSet | None = None) -> Ranking:
        """The same for terms with a weight each, as `clew.index.terms.terms` writes them."""
        found = self._found(weights)
        if k <= 0 or not found or (among is not None and not len(among)):
            return Ranking.of([], [])
        if among is not None and len(among) * FEW < sum(len(list_.documents) for list_ in found):
            return best(_scores_of(among.array, found), k, among.array)
        nodes = self._contenders(found, k, among)
        if nodes is not None:
            return best(_scores_of(nodes, found), k, nodes)
        scores = _sum_dense(found, len(self))
        return best(scores, k) if among is None else best(scores[among.array], k, among.array)

    def scores(self, query: str, nodes: NodeSet) -> NDArray[np.float32]:
        """The BM25 score of each of the given nodes, in their order; 0 where no term is shared."""
        return _scores_of(nodes.array, self._found(Counter(terms(query)))).astype(np.float32)

    def _found(self, weights: Mapping[str, float]) -> list[PostingList]:
        places = ((self.vocabulary.find(term.encode()), weight) for term, weight in weights.items())
        return [self._postings(place, weight) for place, weight in places if place is not None]

    def _postings(self, place: int, factor: float = 1.0) -> PostingList:
        first, last = self.offsets[place], self.offsets[place + 1]
        most = (K1 + 1) * idf(len(self), int(last - first)) * factor
        return PostingList(self.documents[first:last], self.weights[first:last], factor, most)

    def _contenders(self, found: list[PostingList], k: int, among: NodeSet | None) -> IntArray | None:
        """The nodes that may be among the best k, judged by the rare terms; None where common terms may decide."""
        few: list[PostingList] = []
        common = sorted(found, key=lambda list_: -list_.most)
        postings = 0
        while common and (postings + len(common[0].documents)) * SPARSE < len(self):
            few.append(common.pop(0))
            postings += len(few[-1].documents)
        if not few:
            return None
        nodes, scores = _sum_sparse(few)
        if among is not None:
            allowed = among.array[np.minimum(among.array.searchsorted(nodes), len(among) - 1)] == nodes
            nodes, scores = nodes[allowed], scores[allowed]
        rest = sum(list_.most for list_ in common)
        if len(nodes) <= k:
            return None if common else nodes
        least = float(np.partition(scores, len(scores) - k)[len(scores) - k])
        return nodes[scores + rest >= least * ROUNDING] if rest < least else None


def best(scores: NDArray[np.float64], k: int, nodes: IntArray | None = None) -> Ranking:
    """The k highest positive scores; `nodes` None means that score i belongs to node i."""
    if len(scores) > 4 * k:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        places = np.flatnonzero((scores >= least) & (scores > 0))
    else:
        places = np.flatnonzero(scores > 0)
    return Ranking.of(places.astype(np.int32) if nodes is None else nodes[places], scores[places], k)


def _scores_of(nodes: IntArray, found: list[PostingList]) -> NDArray[np.float64]:
    """Binary search of the nodes in every posting list."""
    scores = np.zeros(len(nodes))
    for list_ in found:
        places = list_.documents.searchsorted(nodes)
        places[places == len(list_.documents)] = 0
        here = list_.documents[places] == nodes
        scores[here] += list_.weights[places[here]].astype(np.float64) * list_.factor
    return scores


def _sum_sparse(found: list[PostingList]) -> tuple[IntArray, NDArray[np.float64]]:
    documents = np.concatenate([list_.documents for list_ in found])
    weights = np.concatenate([list_.weights.astype(np.float64) * list_.factor for list_ in found])
    order = np.argsort(documents, kind="stable")  # merges the sorted lists
    documents = documents[order]
    first = np.flatnonzero(np.diff(documents, prepend=-1))
    return documents[first], np.add.reduceat(weights[order], first)


def _sum_dense(found: list[PostingList], size: int) -> NDArray[np.float64]:
    scores = np.zeros(size)
    for list_ in found:
        scores[list_.documents] += list_.weights.astype(np.float64) * list_.factor
    return scores
