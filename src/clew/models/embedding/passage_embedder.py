"""Vectors by which a question finds the passages that answer it, and the passage that is still missing.

An encoder fine-tuned from the one that ships as `minilm`, whose word vectors it shares. Questions and passages have one
encoder: a question is near its passage, and a question with what one passage says is near the next (MDR's two hops).
`clew train next_passage` trains such weights; ORIGIN.md beside those that ship says where they come from. Those of
`clew train dense_retriever` have a second encoder for questions (DPR).
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
"""The encoder of questions, where they have one of their own: its file, and its digest on the card."""
MOST_KNOWN = 220
"""Characters of what is known that a question takes along; the encoder was trained on one or two sentences."""


def asking_on(question: str, known: str) -> str:
    """What to look for next: the question, and what is known already."""
    return f"{question} ; {known[:MOST_KNOWN]}"


class SharedWordsEmbedder(OnnxEmbedder):
    """An encoder over the word vectors that ship with Clew; its file is compared with its digest when it is opened."""

    def __init__(self, card: Card, words: SharedWords, *, threads: int | None = None) -> None:
        super().__init__(card, threads=threads)
        self._words = words

    def _fed(self, encoding: Any) -> dict[str, Any]:
        return {"vectors": self._words.vectors(encoding.ids)[None], "types": np.zeros((1, len(encoding.ids)), np.int64)}

    @cached_property
    def _session(self) -> Any:
        self.card.check_digest()  # reads eleven megabytes, once in a process
        return super()._session


class PassageEmbedder(SharedWordsEmbedder):
    """Weights that `clew train` wrote: one encoder, or a second one for questions where its card has a digest of it."""

    def __init__(self, folder: Path = SHIPPED_PASSAGES, *, threads: int | None = None) -> None:
        """`folder` holds encoder.onnx, perhaps questions.onnx, and their card.json."""
        told = read_settings(folder / CARD)
        digest, asking = told.get("digest"), told.get(QUESTIONS)
        if not isinstance(digest, str) or not isinstance(told.get("words"), dict):
            raise ModelError(f"{folder / CARD} names no digest and no words: expected what `clew train` writes")
        name = f"passages-{digest[:12]}" if asking is None else f"dense-{digest[:12]}-{str(asking)[:12]}"
        words, tokenizer = SharedWords(told["words"]), BUNDLED / "tokenizer.json"
        super().__init__(Card(folder / ENCODER, tokenizer, name, DIMENSION, digest=digest), words, threads=threads)
        self._of_questions = None
        if asking is not None:
            card = Card(folder / f"{QUESTIONS}.onnx", tokenizer, name, DIMENSION, digest=str(asking))
            self._of_questions = SharedWordsEmbedder(card, words, threads=threads)

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """One unit vector per text; questions by their own encoder where there is one."""
        if role == "query" and self._of_questions is not None:
            return self._of_questions.embed(texts, role=role)
        return super().embed(texts, role=role)
