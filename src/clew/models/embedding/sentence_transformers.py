"""Embedder for a sentence-transformers folder with torch weights, for models without an ONNX export."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from clew.core.disk import file_sha256
from clew.core.errors import ModelError, needing


class SentenceTransformersEmbedder:
    """Embedder that loads on first use, on the device that torch selects. The folder defines prompts by role."""

    def __init__(self, folder: Path, *, batch: int = 32) -> None:
        self.folder, self.batch = folder, batch
        self._lock = Lock()
        weights = next(iter(sorted(folder.glob("*.safetensors"))), None)
        if weights is None:
            raise ModelError(f"{folder} contains no embedder: expected model.onnx, or *.safetensors for torch")
        self.name = f"{folder.resolve().name}@{file_sha256(weights)[:12]}"

    @cached_property
    def dimension(self) -> int:
        """Length of a vector."""
        return len(self.embed(["dimension"], role="query")[0])

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """Return one unit vector per text."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        prompt = role if role in self._model.prompts else None
        with self._lock:
            vectors = self._model.encode(
                list(texts),
                prompt_name=prompt,
                batch_size=self.batch,
                normalize_embeddings=True,
                show_progress_bar=False,
            )
        return np.asarray(vectors, dtype=np.float32)

    @cached_property
    def _model(self) -> Any:
        with needing("train"):
            from sentence_transformers import SentenceTransformer
        return SentenceTransformer(str(self.folder))
