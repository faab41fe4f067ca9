"""Embedder that finds the passages that answer a question, and the passage that is still missing.

The encoder is fine-tuned from the bundled `minilm` and shares its word vectors. Questions and passages use the same
encoder: a question is close to its passage, and a question plus the text of one passage is close to the next passage
(MDR's two hops). `clew train next_passage` trains such weights, and ORIGIN.md describes the bundled weights. Weights
from `clew train dense_retriever` have a second encoder for questions (DPR).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import ModelError
from clew.models.embedding.onnx import BUNDLED, Card, OnnxEmbedder, read_settings
from clew.models.embedding.words import DIMENSION, SharedWords

SHIPPED_PASSAGES = Path(__file__).parent / "passages"
ENCODER, CARD = "encoder.onnx", "card.json"
QUESTIONS = "questions"
"""Name of the second encoder's file, and of its digest on the card."""
MOST_KNOWN = 220
"""Maximum characters of known text added to a question. The encoder was trained on one or two sentences."""


def asking_on(question: str, known: str) -> str:
    """Return the search text for the next passage: the question and the known text."""
    return f"{question} ; {known[:MOST_KNOWN]}"


class SharedWordsEmbedder(OnnxEmbedder):
    """An encoder over the bundled word vectors, whose file is checked against its digest on opening."""

    def __init__(self, card: Card, words: SharedWords, *, threads: int | None = None) -> None:
        super().__init__(card, threads=threads)
        self._words = words

    def _fed(self, encoding: Any) -> dict[str, Any]:
        return {"vectors": self._words.vectors(encoding.ids)[None], "types": np.zeros((1, len(encoding.ids)), np.int64)}

    @cached_property
    def _session(self) -> Any:
        self.card.check_digest()  # reads 11 MB once per process
        return super()._session


class PassageEmbedder(SharedWordsEmbedder):
    """Embedder from weights of `clew train`, with a second encoder for questions if the card has its digest."""

    def __init__(self, folder: Path = SHIPPED_PASSAGES, *, threads: int | None = None) -> None:
        """Open a folder with card.json, encoder.onnx and optionally questions.onnx."""
        told = read_settings(folder / CARD)
        digest, asking = told.get("digest"), told.get(QUESTIONS)
        if not isinstance(digest, str) or not isinstance(told.get("words"), dict):
            raise ModelError(f"{folder / CARD} lacks `digest` or `words`: expected a card written by `clew train`")
        name = f"passages-{digest[:12]}" if asking is None else f"dense-{digest[:12]}-{str(asking)[:12]}"
        words, tokenizer = SharedWords(told["words"]), BUNDLED / "tokenizer.json"
        super().__init__(Card(folder / ENCODER, tokenizer, name, DIMENSION, digest=digest), words, threads=threads)
        self._of_questions = None
        if asking is not None:
            card = Card(folder / f"{QUESTIONS}.onnx", tokenizer, name, DIMENSION, digest=str(asking))
            self._of_questions = SharedWordsEmbedder(card, words, threads=threads)

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """Return one unit vector per text, using the second encoder for questions if there is one."""
        if role == "query" and self._of_questions is not None:
            return self._of_questions.embed(texts, role=role)
        return super().embed(texts, role=role)
