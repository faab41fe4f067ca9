"""Sentence vectors from an ONNX encoder, without torch and without a model hub."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from clew.models.embedding.card import Card, bundled_card, folder_card
from clew.models.onnx_runtime import open_session

CHARACTERS_PER_TOKEN = 16  # far more than any language needs: tokenising 10 MB to keep 256 tokens would take seconds


class OnnxEmbedder:
    """Runs one text at a time, several in parallel threads.

    Batches are no faster on a processor, and they would make a vector depend on its neighbours: the scales of the
    dynamic int8 activations are taken over the whole batch. So a text has one vector, whatever it is embedded with.
    """

    def __init__(self, card: Card, *, threads: int | None = None) -> None:
        """`threads` defaults to the number of processors; the model is loaded at the first use."""
        self.card = card
        self.threads = threads or os.cpu_count() or 1

    @classmethod
    def bundled(cls, *, threads: int | None = None) -> OnnxEmbedder:
        """The embedder that ships in the package: all-MiniLM-L6-v2, int8."""
        return cls(bundled_card(), threads=threads)

    @classmethod
    def open(cls, folder: Path, *, threads: int | None = None) -> OnnxEmbedder:
        """An exported model in the layout of sentence-transformers."""
        return cls(folder_card(folder), threads=threads)

    @property
    def name(self) -> str:
        """What identifies the embedder; vectors of two names never mix."""
        return self.card.name

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return self.card.dimension

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """One unit vector per text; equal texts are computed once."""
        prompt = self.card.prompts.get(role, "")
        places: dict[str, list[int]] = {}
        for place, text in enumerate(texts):
            places.setdefault(prompt + text, []).append(place)
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        # Longest first, so that no thread is left alone with a long text at the end.
        distinct = sorted(places, key=len, reverse=True)
        if len(distinct) == 1 or self.threads == 1:
            found = [self._embed_one(text) for text in distinct]
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                found = list(pool.map(self._embed_one, distinct))
        for text, vector in zip(distinct, found, strict=True):
            vectors[places[text]] = vector
        return vectors

    def _embed_one(self, text: str) -> NDArray[np.float32]:
        encoding = self._tokenizer.encode(text[: self.card.max_tokens * CHARACTERS_PER_TOKEN])
        inputs = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        fed = {name: np.array([inputs[name]], dtype=np.int64) for name in self._input_names}
        states = self._session.run(None, fed)[0][0]
        if states.ndim == 2:
            states = states[0] if self.card.pooling == "cls" else states.mean(axis=0)
        return np.asarray(states / max(float(np.linalg.norm(states)), 1e-12), dtype=np.float32)

    @cached_property
    def _session(self) -> Any:
        self.card.check_size()
        return open_session(self.card.model)  # takes 0.2 s, and many commands need no vectors

    @cached_property
    def _input_names(self) -> tuple[str, ...]:
        return tuple(wanted.name for wanted in self._session.get_inputs())

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.card.tokenizer))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.card.max_tokens)
        return tokenizer
