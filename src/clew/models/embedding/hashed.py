"""A fake embedder: words hashed to signs, so that texts with common words are near, with no model at all."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray


class HashEmbedder:
    """Deterministic and instant, for tests and examples."""

    def __init__(self, dimension: int = 64, name: str | None = None) -> None:
        self.dimension = dimension
        self.name = name or f"hash-{dimension}"
        self.embedded = 0
        """How many texts were embedded so far: tests count the work with it."""

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:  # noqa: ARG002
        """One unit vector per text."""
        self.embedded += len(texts)
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            total = np.zeros(self.dimension)
            for word in text.casefold().split() or [""]:
                total += self._signs(word)
            length = float(np.linalg.norm(total))
            vectors[row] = total / length if length else self._signs("\0" + text) / np.sqrt(self.dimension)
        return vectors

    def _signs(self, word: str) -> NDArray[np.float64]:
        return _signs_of(self.name, self.dimension, word)


@lru_cache(maxsize=50_000)  # a seeded generator costs far more than a sum of signs
def _signs_of(name: str, dimension: int, word: str) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.blake2b(f"{name}\0{word}".encode(), digest_size=8).digest(), "little")
    return np.random.default_rng(seed).choice(np.array([-1.0, 1.0]), dimension)
