"""Remembers the vectors of queries: several steps of a method embed the same question or the same relation names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clew.models.protocol import Embedder


class CachedEmbedder:
    """Keeps the most recently used query vectors in memory; documents pass through, since vector indexes keep those."""

    def __init__(self, embedder: Embedder, size: int = 10_000) -> None:
        self.embedder = embedder
        self.size = size
        self._kept: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._lock = Lock()

    @property
    def name(self) -> str:
        """The name of the wrapped embedder."""
        return self.embedder.name

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self.embedder.dimension

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """One unit vector per text, computed only where it is not remembered."""
        if role == "document":
            return self.embedder.embed(texts, role=role)
        with self._lock:
            known = {text: self._kept[text] for text in texts if text in self._kept}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known.update(zip(missing, self.embedder.embed(missing, role=role), strict=True))
        with self._lock:
            for text in dict.fromkeys(texts):
                self._kept[text] = known[text]
                self._kept.move_to_end(text)
            while len(self._kept) > self.size:
                self._kept.popitem(last=False)
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        return np.stack([known[text] for text in texts])
