"""Where phrases of one text stand in another, by words and by vectors."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from clew.models.protocol import Embedder
from clew.reading.language.relation_words import Variant, content, likeness, says_something, word_likeness, words

Scores = NDArray[np.float32]
CLEAR = 0.7
"""A phrase that matches some label this well by its letters is not embedded: meaning would add nothing."""
MOST_EMBEDDED = 6
"""So many variants of a label are embedded, the most telling ones."""
TELLING = 0.75
"""Variants below this weight, such as words of a description, are matched by their letters only."""
UNRELATED = 0.3
"""The cosine of two short phrases that have nothing to do with each other, roughly."""
ALIKE = 0.5
"""How far above that two phrases that mean the same are, roughly."""
MOST_MEANT = 0.9
"""A match by meaning alone never counts as much as the name itself."""
CACHED = 50_000


class PhraseVectors:
    """Vectors of short phrases, each computed once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, NDArray[np.float32]] = {}
        self._lock = Lock()

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self._embedder.dimension

    def of(self, phrases: Sequence[str]) -> NDArray[np.float32]:
        """One unit vector per phrase."""
        with self._lock:
            missing = [phrase for phrase in dict.fromkeys(phrases) if phrase not in self._known]
            if missing:
                if len(self._known) > CACHED:
                    self._known.clear()
                    missing = list(dict.fromkeys(phrases))
                vectors = self._embedder.embed(missing, role="query")
                self._known.update(zip(missing, vectors, strict=True))
            return np.stack([self._known[phrase] for phrase in phrases])


class PhraseMatcher:
    """Scores phrases against labels, each given by its variants."""

    def __init__(self, labels: Sequence[tuple[Variant, ...]], vectors: PhraseVectors | None = None) -> None:
        """Without vectors only letters count."""
        self.labels = labels
        self._vectors = vectors
        self._by_word: dict[str, list[tuple[int, Variant, tuple[str, ...]]]] = {}
        for label, variants in enumerate(labels):
            for variant in variants:
                parts = content(words(variant.text))
                for part in parts:
                    self._by_word.setdefault(part, []).append((label, variant, parts))
        self._near: dict[str, list[str]] = {}
        self._matrix: tuple[NDArray[np.float32], NDArray[np.int64]] | None = None

    def scores(self, phrases: Sequence[str]) -> Scores:
        """One row per phrase, one column per label; 0 means no match, 1 the label's own name."""
        found = self.by_letters(phrases)
        unclear = [row for row in range(len(phrases)) if found[row].max(initial=0.0) < CLEAR]
        if self._vectors is not None and unclear and self.labels:
            meant = self._by_meaning([phrases[row] for row in unclear])
            found[unclear] = np.maximum(found[unclear], meant)
        return found

    def by_letters(self, phrases: Sequence[str]) -> Scores:
        """The scores without regard to meaning."""
        found = np.zeros((len(phrases), len(self.labels)), dtype=np.float32)
        for row, phrase in enumerate(phrases):
            self._by_letters(phrase, found[row])
        return found

    def _by_letters(self, phrase: str, row: Scores) -> None:
        parts = content(words(phrase))
        seen: set[tuple[int, str]] = set()
        for part in parts:
            for near in self._words_near(part):
                for label, variant, variant_parts in self._by_word[near]:
                    if (label, variant.text) not in seen:
                        seen.add((label, variant.text))
                        row[label] = max(row[label], variant.weight * likeness(parts, variant_parts, variant.shared))

    def _words_near(self, word: str) -> list[str]:
        known = self._near.get(word)
        if known is None:
            known = [other for other in self._by_word if word_likeness(word, other) > 0.0]
            self._near[word] = known
        return known

    def _by_meaning(self, phrases: Sequence[str]) -> Scores:
        """Cosine with the best variant of each label, above the mean over all labels."""
        assert self._vectors is not None
        variants, owners = self._variant_matrix(self._vectors)
        cosines = self._vectors.of(phrases) @ variants.T
        best = np.full((len(phrases), len(self.labels)), -1.0, dtype=np.float32)
        for column, owner in enumerate(owners.tolist()):
            np.maximum(best[:, owner], cosines[:, column], out=best[:, owner])
        named = sorted(set(owners.tolist()))
        common = best[:, named].mean(axis=1, keepdims=True) if len(named) > 2 else np.float32(UNRELATED)
        above: Scores = np.clip((best - np.maximum(common, np.float32(0.15))) / ALIKE, 0.0, MOST_MEANT)
        return above

    def _variant_matrix(self, vectors: PhraseVectors) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        if self._matrix is None:
            chosen = [
                (label, variant.text)
                for label, variants in enumerate(self.labels)
                for variant in [v for v in variants if v.weight >= TELLING and says_something(v.text)][:MOST_EMBEDDED]
            ]
            owners = np.array([label for label, _ in chosen], dtype=np.int64)
            texts = [text for _, text in chosen]
            self._matrix = vectors.of(texts) if texts else np.empty((0, vectors.dimension), dtype=np.float32), owners
        return self._matrix
