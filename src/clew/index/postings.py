"""Counts the terms of all documents: for every term its documents, and how often each has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.core.types import IntArray
from clew.index.grouping import join_groups
from clew.index.stemmer import stem_all
from clew.index.terms import LONGEST, stop_words
from clew.index.tokens import TokenLists, are_spaceless, tokenise_column

STRING = pa.large_string()


@dataclass(frozen=True, slots=True, eq=False)
class Portion:
    """Some documents: which of the portion's words stands in which document, one entry an occurrence."""

    first: int
    count: int
    documents: IntArray
    words: IntArray
    vocabulary: pa.Array


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The documents of term t, ascending, are documents[offsets[t]:offsets[t + 1]], beside how often each has it."""

    terms: pa.Array
    offsets: NDArray[np.int64]
    documents: IntArray
    counts: NDArray[np.float32]
    lengths: IntArray
    """The number of terms of every document."""


def count_terms(texts: pa.Array | pa.ChunkedArray) -> Postings:
    """Tokenise, stem and count; only distinct words are ever handled as strings."""
    portions = list(_portions(texts))
    size = sum(portion.count for portion in portions)
    terms, term_of_word = _terms(portions)
    from scipy.sparse import coo_array  # only a build needs it, and importing it takes as long as answering

    lengths = np.zeros(size, dtype=np.int32)
    borders, counted = [np.zeros(len(terms) + 1, dtype=np.int64)], [(np.empty(0, np.int32), np.empty(0, np.float32))]
    for portion, table in zip(portions, term_of_word, strict=True):
        found = table[portion.words]
        kept = found >= 0
        documents, found = portion.documents[kept], found[kept]
        lengths[portion.first : portion.first + portion.count] = np.bincount(documents, minlength=portion.count)
        ones = np.ones(len(found), dtype=np.float32)
        by_term = coo_array((ones, (documents, found)), shape=(portion.count, len(terms))).tocsc()
        by_term.sum_duplicates()
        borders.append(by_term.indptr.astype(np.int64))
        counted.append((by_term.indices.astype(np.int32, copy=False) + np.int32(portion.first), by_term.data))
    portions.clear()
    # Later portions hold later documents, so every term's documents come out ascending.
    offsets, (documents, counts) = join_groups(borders, counted)
    return Postings(terms, offsets, documents, counts, lengths)


def _portions(texts: pa.Array | pa.ChunkedArray) -> Iterator[Portion]:
    first = 0
    for lists in tokenise_column(texts):
        count = len(lists.offsets) - 1
        encoded = lists.tokens.dictionary_encode()
        words = encoded.indices.to_numpy().astype(np.int32, copy=False)
        documents = np.repeat(np.arange(count, dtype=np.int32), np.diff(lists.offsets))
        vocabulary = encoded.dictionary
        documents, words, vocabulary = _with_pairs(lists, documents, words, vocabulary)
        yield Portion(first, count, documents, words, vocabulary)
        first += count


def _with_pairs(
    lists: TokenLists, documents: IntArray, words: IntArray, vocabulary: pa.Array
) -> tuple[IntArray, IntArray, pa.Array]:
    """Add every two neighbouring characters of a script without spaces as a word."""
    single = are_spaceless(vocabulary)
    if not single.any():
        return documents, words, vocabulary
    here = single[words]
    left = np.flatnonzero(here[:-1] & here[1:] & (documents[:-1] == documents[1:]))
    nothing = pa.scalar("", STRING)
    pairs = pc.binary_join_element_wise(lists.tokens.take(left), lists.tokens.take(left + 1), nothing)
    pairs = pairs.dictionary_encode()
    return (
        np.concatenate((documents, documents[left])),
        np.concatenate((words, pairs.indices.to_numpy().astype(np.int32) + len(vocabulary))),
        pa.concat_arrays([vocabulary, pairs.dictionary]),
    )


def _terms(portions: list[Portion]) -> tuple[pa.Array, list[IntArray]]:
    """All terms sorted by their bytes, and for each portion the term of every word, -1 for a stop word."""
    vocabularies = [portion.vocabulary for portion in portions]
    if not vocabularies:
        return pa.array([], STRING), []
    together = pa.concat_arrays(vocabularies).dictionary_encode()
    words = together.dictionary
    dropped = pc.is_in(words, value_set=pa.array(sorted(stop_words()), STRING)).to_numpy(zero_copy_only=False)
    stems = stem_all(pc.utf8_slice_codeunits(words, 0, LONGEST))
    terms = pc.unique(stems.filter(pa.array(~dropped)))
    terms = terms.take(pc.sort_indices(terms))
    term_of_word = pc.fill_null(pc.index_in(stems, value_set=terms), -1).to_numpy().astype(np.int32)
    term_of_word[dropped] = -1
    everywhere = term_of_word[together.indices.to_numpy()]
    return terms, np.split(everywhere, np.cumsum([len(vocabulary) for vocabulary in vocabularies])[:-1])
