"""TF-IDF edges (section 3.1 of the paper): passages that share a keyword of their documents or a document title."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.core.types import IntArray
from clew.documents.graph.edges import EdgeOptions, PassageEdges, most_shared, places_in_groups
from clew.store.index.tokens import stem_all, stop_words, tokenise_column

LONGEST = 4
"""Maximum number of words in a keyword."""


@dataclass(frozen=True, eq=False)
class _WordSequence:
    """All passages as one sequence of words: form, stem, passage, and whether it may start or end a keyword."""

    vocabulary: pa.Array
    written: IntArray
    stems: IntArray
    passages: IntArray
    telling: NDArray[np.bool_]


def tfidf_edges(texts: pa.Array, documents: IntArray, options: EdgeOptions) -> PassageEdges:
    """Connect passages by the best keywords of their documents, which have one to four words."""
    words = _read(texts)
    owners: list[IntArray] = []
    grams: list[NDArray[np.int64]] = []
    examples: list[NDArray[np.int64]] = []
    hashed = words.stems.astype(np.int64)
    codes = hashed.copy()
    for length in range(1, LONGEST + 1):
        if length > 1:
            codes = _mixed(codes[:-1], hashed[length - 1 :])
        last = length - 1
        whole = words.passages[: len(codes)] == words.passages[last:]
        places = np.flatnonzero(whole & words.telling[: len(codes)] & words.telling[last:])
        shared = _shared(codes[places], options.most_passages, words.passages[places])
        owners.append(words.passages[places[shared]])
        grams.append(codes[places[shared]])
        examples.append(places[shared] * (LONGEST + 1) + length)
    owner, gram, example = np.concatenate(owners), np.concatenate(grams), np.concatenate(examples)
    _, first, feature = np.unique(gram, return_index=True, return_inverse=True)
    count = len(texts)
    kept, weights = _keywords(owner, feature, documents, len(first), options.keywords)
    heads, tails, totals, because = most_shared(
        owner[kept], feature[kept].astype(np.int32), weights, count, options.neighbours
    )
    return PassageEdges("tfidf", heads, tails, totals, _written(words, example[first][because]))


def _read(texts: pa.Array) -> _WordSequence:
    words, passages, vocabularies = [], [], []
    first, offset = 0, 0
    for lists in tokenise_column(texts):
        encoded = lists.tokens.dictionary_encode()
        words.append(encoded.indices.to_numpy().astype(np.int32) + offset)
        counts = np.diff(lists.offsets)
        passages.append(np.repeat(np.arange(first, first + len(counts), dtype=np.int32), counts))
        vocabularies.append(encoded.dictionary)
        first, offset = first + len(counts), offset + len(encoded.dictionary)
    if not words:
        nothing = np.empty(0, dtype=np.int32)
        return _WordSequence(pa.array([], pa.large_string()), nothing, nothing, nothing, np.empty(0, dtype=np.bool_))
    vocabulary = pa.concat_arrays(vocabularies)
    stems = stem_all(vocabulary).dictionary_encode()
    stop = pc.is_in(vocabulary, value_set=pa.array(sorted(stop_words()), vocabulary.type)).to_numpy(False)
    telling = ~stop & (pc.binary_length(vocabulary).to_numpy() > 1)
    places = np.concatenate(words)
    stem_of = stems.indices.to_numpy().astype(np.int32)
    return _WordSequence(vocabulary, places, stem_of[places], np.concatenate(passages), telling[places])


def _mixed(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Hash a sequence of words. With 64 bits, collisions stay below one in a million at a billion n-grams."""
    mixed = left[: len(right)].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + right.astype(np.uint64)
    return np.asarray((mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)).view(np.int64)


def _shared(codes: NDArray[np.int64], most: int, passages: IntArray) -> NDArray[np.int64]:
    """Return the indexes of n-grams in two to `most` passages, once per passage."""
    if not len(codes):
        return np.empty(0, dtype=np.int64)
    order = np.lexsort((passages, codes))
    ordered, owner = codes[order], passages[order]
    new_gram = np.append(True, ordered[1:] != ordered[:-1])
    new_pair = new_gram | np.append(True, owner[1:] != owner[:-1])
    group = np.cumsum(new_gram) - 1
    having = np.bincount(group[new_pair])
    return np.asarray(order[new_pair & (having[group] >= 2) & (having[group] <= most)])


def _keywords(
    owner: IntArray, feature: NDArray[np.int64], documents: IntArray, features: int, most: int
) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
    """Return which passage–keyword pairs are among the best keywords of their document, and the idf of each keyword."""
    pairs, place = np.unique(documents[owner].astype(np.int64) * max(features, 1) + feature, return_inverse=True)
    document, key = pairs // max(features, 1), pairs % max(features, 1)
    amount = len(np.unique(documents))
    idf = np.log1p(amount / np.maximum(np.bincount(key, minlength=features), 1)).astype(np.float32)
    score = np.bincount(place, minlength=len(pairs)) * idf[key]
    order = np.lexsort((key, -score, document))
    best = np.zeros(len(pairs), dtype=np.bool_)
    best[order] = places_in_groups(document[order]) < most
    return best[place], idf


def _written(words: _WordSequence, examples: NDArray[np.int64]) -> list[str]:
    """Return keywords as written in an example of each."""
    places, lengths = examples // (LONGEST + 1), examples % (LONGEST + 1)
    vocabulary = words.vocabulary.to_pylist()
    return [
        " ".join(vocabulary[word] for word in words.written[place : place + length].tolist())
        for place, length in zip(places.tolist(), lengths.tolist(), strict=True)
    ]
