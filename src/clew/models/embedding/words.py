"""The word vectors and the tokenizer of the embedder that ships with Clew; other trained encoders share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.models.embedding.onnx import BUNDLED, bundled_card, kept_tokenizer, tokenizer_of

DIMENSION = 384
FIRST_TOKEN, LAST_TOKEN = 101, 102


@dataclass(frozen=True)
class SharedWords:
    """The table of word vectors inside the embedder's file; `told` says where it lies and how it is scaled."""

    told: Mapping[str, Any]

    def vectors(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """One row per token."""
        found = (self._table[np.asarray(ids)].astype(np.float32) - self.told["zero"]) * np.float32(self.told["scale"])
        return np.asarray(found, dtype=np.float32)

    @cached_property
    def _table(self) -> NDArray[np.uint8]:
        rows = (self.told["rows"], DIMENSION)
        return np.memmap(BUNDLED / "model.onnx", np.uint8, "r", self.told["offset"], rows)


def embedders_tokenizer() -> Any:
    """The one that the embedder itself uses, which cuts texts at its length."""
    card = bundled_card()
    return kept_tokenizer(card.tokenizer, card.max_tokens)


def cut(ids: Sequence[int], longest: int) -> Sequence[int]:
    """The first tokens of a text, and the one that ends it."""
    return ids if len(ids) <= longest else [*ids[: longest - 1], LAST_TOKEN]


def open_tokenizer(longest: int | None = None) -> Any:
    """The tokenizer of the embedder, without padding."""
    return tokenizer_of(BUNDLED / "tokenizer.json", longest)
