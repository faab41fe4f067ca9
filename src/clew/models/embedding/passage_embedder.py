"""Vectors by which a question finds the passages that answer it, and the passage that is still missing.

An encoder fine-tuned from the one that ships as `minilm`, whose word vectors it shares. Questions and passages have one
encoder: a question is near its passage, and a question with what one passage says is near the next (MDR's two hops).
`clew train next_passage` trains such weights; ORIGIN.md beside those that ship says where they come from.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from clew.core.errors import ModelError
from clew.models.embedding.onnx import BUNDLED, Card, OnnxEmbedder, read_settings
from clew.models.embedding.words import DIMENSION, SharedWords

SHIPPED_PASSAGES = Path(__file__).parent / "passages"
ENCODER, CARD = "encoder.onnx", "card.json"
MOST_KNOWN = 220
"""Characters of what is known that a question takes along; the encoder was trained on one or two sentences."""


def asking_on(question: str, known: str) -> str:
    """What to look for next: the question, and what is known already."""
    return f"{question} ; {known[:MOST_KNOWN]}"


class PassageEmbedder(OnnxEmbedder):
    """An encoder over shared word vectors; `clew embed KB --embedder FOLDER` uses weights trained elsewhere."""

    def __init__(self, folder: Path = SHIPPED_PASSAGES, *, threads: int | None = None) -> None:
        """`folder` holds encoder.onnx and its card.json."""
        told = read_settings(folder / CARD)
        if not isinstance(told.get("digest"), str) or not isinstance(told.get("words"), dict):
            raise ModelError(f"{folder / CARD} names no digest and no words: expected what `clew train` writes")
        name = f"passages-{told['digest'][:12]}"
        card = Card(folder / ENCODER, BUNDLED / "tokenizer.json", name, DIMENSION, digest=told["digest"])
        super().__init__(card, threads=threads)
        self._words = SharedWords(told["words"])

    def _fed(self, encoding: Any) -> dict[str, Any]:
        return {"vectors": self._words.vectors(encoding.ids)[None], "types": np.zeros((1, len(encoding.ids)), np.int64)}

    @cached_property
    def _session(self) -> Any:
        self.card.check_digest()  # reads eleven megabytes, once in a process
        return super()._session
