"""Word vectors and tokenizer of the bundled embedder, shared by other trained encoders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.models.embedding.onnx import BUNDLED, bundled_card, kept_tokenizer, tokenizer_of

DIMENSION = 384
"""Length of the bundled embedder's word vectors, which the networks share."""
FIRST_TOKEN, LAST_TOKEN = 101, 102
"""Ids of [CLS] and [SEP] in the vocabulary of BERT."""


@dataclass(frozen=True)
class SharedWords:
    """The table of word vectors inside the embedder's file. `told` contains its offset, size and scale."""

    told: Mapping[str, Any]

    def vectors(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """Return one row per token."""
        found = (self._table[np.asarray(ids)].astype(np.float32) - self.told["zero"]) * np.float32(self.told["scale"])
        return np.asarray(found, dtype=np.float32)

    @cached_property
    def _table(self) -> NDArray[np.uint8]:
        return np.memmap(BUNDLED / "model.onnx", np.uint8, "r", self.told["offset"], (self.told["rows"], DIMENSION))


def embedders_tokenizer() -> Any:
    """Return the embedder's cached tokenizer, which truncates texts to the embedder's limit."""
    card = bundled_card()
    return kept_tokenizer(card.tokenizer, card.max_tokens)


def cut(ids: Sequence[int], longest: int) -> Sequence[int]:
    """Truncate a text to `longest` tokens, including the end token."""
    return ids if len(ids) <= longest else [*ids[: longest - 1], LAST_TOKEN]


def open_tokenizer(longest: int | None = None) -> Any:
    """Open the embedder's tokenizer without padding, and truncate to `longest` tokens if it is given."""
    return tokenizer_of(BUNDLED / "tokenizer.json", longest)
