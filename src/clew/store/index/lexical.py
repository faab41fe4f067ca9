"""BM25 over the documents of the nodes: Robertson & Zaragoza, "The Probabilistic Relevance Framework" (2009)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.core.scores import SIGNIFICANT_DIGITS
from clew.core.types import IntArray, NodeSet, Ranking, places_in
from clew.store.graph.adjacency import map_array
from clew.store.graph.tables import STRING
from clew.store.index.fusion import GroupedMembers, join_groups
from clew.store.index.strings import SortedStrings, sorted_codes
from clew.store.index.tokens import (
    ENGLISH,
    LONGEST,
    Texts,
    TokenLists,
    are_spaceless,
    language_of,
    stem_all,
    stop_words,
    terms,
    tokenise_column,
)


@dataclass(frozen=True, slots=True, eq=False)
class Portion:
    """Some documents: the words of each document, one entry per occurrence."""

    first: int
    sizes: IntArray
    """Number of words of each document."""
    words: IntArray
    vocabulary: pa.Array


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Documents of term t in ascending order: documents[offsets[t]:offsets[t + 1]], with their counts."""

    terms: pa.Array
    offsets: NDArray[np.int64]
    documents: IntArray
    counts: NDArray[np.float32]
    lengths: IntArray
    """The number of terms of every document."""


SAMPLED, SAMPLE = 200, 500
"""Number of documents to detect the language, and characters of each."""
RUNNING = 0.1
"""Minimum share of stop words to detect a language. Running text has a fifth or more, lists of names fewer."""


def sampled(count: int) -> pa.Array:
    """Return the indexes of the documents from which the language is detected."""
    return pa.array(np.unique(np.linspace(0, count - 1, min(SAMPLED, count)).astype(np.int64)))


def written_in(documents: pa.Array | pa.ChunkedArray) -> str:
    """Detect the language of documents from a sample."""
    texts = documents.take(sampled(len(documents))).to_pylist()
    return language_of(" ".join((text or "")[:SAMPLE] for text in texts), least=RUNNING)


def count_terms(texts: Texts, language: str = ENGLISH) -> Postings:
    """Tokenise, stem and count terms. Only distinct words are processed as strings."""
    portions = list(_portions(texts))
    terms, term_of_word = _terms(portions, language)
    pa.default_memory_pool().release_unused()  # the texts are not needed for the counts
    lengths: list[IntArray] = [np.empty(0, dtype=np.int32)]
    counted = []
    portions.reverse()
    for table in term_of_word:
        portion = portions.pop()  # its memory is free for the next counts
        found = table[portion.words]
        kept = found >= 0
        documents = np.repeat(np.arange(len(portion.sizes), dtype=np.int32), portion.sizes)[kept]
        lengths.append(np.bincount(documents, minlength=len(portion.sizes)).astype(np.int32))
        counted.append(_by_term(documents, found[kept], portion.first))
    # Later portions contain later documents, so the documents of each term are ascending.
    offsets, (documents, counts) = join_groups(counted, len(terms), (np.int32, np.float32))
    return Postings(terms, offsets, documents, counts, np.concatenate(lengths))


def _by_term(documents: IntArray, terms: IntArray, first: int) -> GroupedMembers:
    """Sort occurrences by term and document. Return the documents of each term, with their counts."""
    codes = terms.astype(np.int64)
    codes <<= 32
    codes |= documents
    codes.sort()
    pairs = GroupedMembers.of(codes)
    numbers = (pairs.groups & 0xFFFFFFFF).astype(np.int32) + np.int32(first)
    return GroupedMembers.of((pairs.groups >> 32).astype(np.int32), numbers, pairs.amounts.astype(np.float32))


def _portions(texts: Texts) -> Iterator[Portion]:
    first = 0
    for lists in tokenise_column(texts):
        encoded = lists.tokens.dictionary_encode()
        words, sizes = encoded.indices.to_numpy().astype(np.int32, copy=False), np.diff(lists.offsets).astype(np.int32)
        portion = _with_pairs(lists, Portion(first, sizes, words, encoded.dictionary))
        yield portion
        first += len(portion.sizes)


def _with_pairs(lists: TokenLists, portion: Portion) -> Portion:
    """Add every two adjacent characters of a script without spaces as a word."""
    single = are_spaceless(portion.vocabulary)
    if not single.any():
        return portion
    documents = np.repeat(np.arange(len(portion.sizes), dtype=np.int32), portion.sizes)
    here = single[portion.words]
    left = np.flatnonzero(here[:-1] & here[1:] & (documents[:-1] == documents[1:]))
    pairs = pc.binary_join_element_wise(lists.tokens.take(left), lists.tokens.take(left + 1), pa.scalar("", STRING))
    pairs = pairs.dictionary_encode()
    owners = np.concatenate((documents, documents[left]))
    words = np.concatenate((portion.words, pairs.indices.to_numpy().astype(np.int32) + len(portion.vocabulary)))
    return Portion(
        portion.first,
        np.bincount(owners, minlength=len(portion.sizes)).astype(np.int32),
        words[np.argsort(owners, kind="stable")],
        pa.concat_arrays([portion.vocabulary, pairs.dictionary]),
    )


def _terms(portions: list[Portion], language: str) -> tuple[pa.Array, list[IntArray]]:
    """Return all terms sorted by bytes, and the term of every word for each portion, -1 for stop words."""
    vocabularies = [portion.vocabulary for portion in portions]
    if not vocabularies:
        return pa.array([], STRING), []
    together = pa.concat_arrays(vocabularies).dictionary_encode()
    words = together.dictionary
    is_stop_word = pc.is_in(words, value_set=pa.array(sorted(stop_words(language)), STRING))
    stems = stem_all(pc.utf8_slice_codeunits(words, 0, LONGEST), language)
    terms, term_of_word = sorted_codes(pc.if_else(is_stop_word, pa.scalar(None, STRING), stems))
    everywhere = term_of_word[together.indices.to_numpy()]
    return terms, np.split(everywhere, np.cumsum([len(vocabulary) for vocabulary in vocabularies])[:-1])


K1, B = 1.2, 0.75
"""Usual parameters of BM25: saturation of repeated terms, and weight of a document's length."""
SPARSE = 4
"""Below one posting per this many documents, merging is faster than a dense accumulator."""
ROUNDING = 1 - 10.0 ** (1 - SIGNIFICANT_DIGITS)
"""Scores above this share of another score may tie with it after rounding."""
BLOCK = 1_000_000
"""Number of postings to weight at once."""
FEW = 16
"""Number of nodes to look up in the time of reading one posting."""


@dataclass(frozen=True, slots=True, eq=False)
class PostingList:
    """The documents of a query term with their BM25 weights, its maximum contribution to a score, and its factor."""

    documents: IntArray
    weights: NDArray[np.float32]
    most: float
    factor: float = 1.0

    def times(self, factor: float) -> PostingList:
        """Return the list for a term with a factor."""
        return replace(self, most=self.most * factor, factor=factor)


def idf(documents: int, having: int) -> float:
    """Return the inverse document frequency of a term: log(1 + (N - n + ½) / (n + ½))."""
    return math.log(1 + (documents - having + 0.5) / (having + 0.5))


@dataclass(eq=False, repr=False)
class LexicalIndex:
    """Postings with precomputed BM25 weights, so that a search only adds."""

    vocabulary: SortedStrings
    offsets: NDArray[np.int64]
    documents: IntArray
    weights: NDArray[np.float32]
    lengths: IntArray
    language: str = ENGLISH

    @staticmethod
    def write(folder: Path, documents: Texts, language: str = ENGLISH) -> None:
        """Index the documents. Document `i` belongs to node `i`."""
        postings = count_terms(documents, language)
        size, having = len(postings.lengths), np.diff(postings.offsets)
        idfs = np.log1p((size - having + 0.5) / (having + 0.5)).astype(np.float32)
        mean = float(postings.lengths.mean()) if postings.lengths.any() else 1.0
        saturation = (K1 * (1 - B + B * (postings.lengths / mean))).astype(np.float32)
        weights = postings.counts  # in place, since these are the largest arrays of a build
        for start in range(0, len(weights), BLOCK):
            block = slice(start, start + BLOCK)
            divisor = saturation[postings.documents[block]]
            divisor += weights[block]
            weights[block] *= K1 + 1
            weights[block] /= divisor
        weights *= np.repeat(idfs, having)
        folder.mkdir(parents=True, exist_ok=True)
        SortedStrings.write(folder, "terms", postings.terms)
        np.save(folder / "offsets.npy", postings.offsets)
        np.save(folder / "documents.npy", postings.documents)
        np.save(folder / "weights.npy", weights)
        np.save(folder / "lengths.npy", postings.lengths)

    @classmethod
    def open(cls, folder: Path, language: str = ENGLISH) -> LexicalIndex:
        """Map an index of documents in a language."""
        names = ("offsets", "documents", "weights", "lengths")
        offsets, documents, weights, lengths = (map_array(folder / f"{name}.npy") for name in names)
        return cls(SortedStrings.open(folder, "terms"), offsets, documents, weights, lengths, language)

    def terms(self, text: str) -> list[str]:
        """Return the indexed terms of a text."""
        return terms(text, self.language)

    def __len__(self) -> int:
        return len(self.lengths)

    def frequency(self, term: str) -> int:
        """Return the number of documents with a term, as returned by `terms`."""
        place = self.vocabulary.find(term.encode())
        return 0 if place is None else int(self.offsets[place + 1] - self.offsets[place])

    def idf(self, term: str) -> float:
        """Return the inverse document frequency of a term. Unknown terms have the highest value."""
        return idf(len(self), self.frequency(term))

    def weight(self, text: str) -> float:
        """Return the sum of the inverse document frequencies of the known terms of a text."""
        return sum(self.idf(term) for term in self.terms(text) if self.frequency(term))

    def having(self, term: str) -> NodeSet:
        """Return the nodes whose document contains a term."""
        place = self.vocabulary.find(term.encode())
        return NodeSet(self.documents[0:0] if place is None else self._postings(place).documents)

    def search(self, query: str, k: int, *, among: NodeSet | None = None) -> Ranking:
        """Return the k best nodes that share a term with the query."""
        return self.search_terms(Counter(self.terms(query)), k, among=among)

    def search_terms(self, weights: Mapping[str, float], k: int, *, among: NodeSet | None = None) -> Ranking:
        """Return the k best nodes for weighted terms, as returned by `terms`."""
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
        """Return the BM25 score of each given node, in order. 0 if no term is shared."""
        return _scores_of(nodes.array, self._found(Counter(self.terms(query)))).astype(np.float32)

    def _found(self, weights: Mapping[str, float]) -> list[PostingList]:
        places = ((self.vocabulary.find(term.encode()), weight) for term, weight in weights.items())
        return [self._postings(place).times(weight) for place, weight in places if place is not None]

    def _postings(self, place: int) -> PostingList:
        first, last = self.offsets[place], self.offsets[place + 1]
        return self._weighted(self.documents[first:last], self.weights[first:last])

    def _weighted(self, documents: IntArray, weights: NDArray[np.float32]) -> PostingList:
        return PostingList(documents, weights, (K1 + 1) * idf(len(self), len(documents)))

    def _contenders(self, found: list[PostingList], k: int, among: NodeSet | None) -> IntArray | None:
        """Return the nodes that may be among the best k by rare terms, or None if common terms may decide."""
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
            allowed = among.holds(nodes)
            nodes, scores = nodes[allowed], scores[allowed]
        rest = sum(list_.most for list_ in common)
        if len(nodes) <= k:
            return None if common else nodes
        least = float(np.partition(scores, len(scores) - k)[len(scores) - k])
        return nodes[scores + rest >= least * ROUNDING] if rest < least else None


def best(scores: NDArray[np.float64], k: int, nodes: IntArray | None = None) -> Ranking:
    """Return the k highest positive scores. Without `nodes`, score i belongs to node i."""
    if len(scores) > 4 * k:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        places = np.flatnonzero((scores >= least * ROUNDING) & (scores > 0))
    else:
        places = np.flatnonzero(scores > 0)
    return Ranking.of(places.astype(np.int32) if nodes is None else nodes[places], scores[places], k)


def _scores_of(nodes: IntArray, found: list[PostingList]) -> NDArray[np.float64]:
    """Compute the scores of nodes by binary search in every posting list."""
    scores = np.zeros(len(nodes))
    for list_ in found:
        places, here = places_in(list_.documents, nodes)
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
