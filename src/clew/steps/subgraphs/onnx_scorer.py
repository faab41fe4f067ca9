"""A fine-tuned encoder with a regression head, run without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from clew.models.onnx_runtime import open_session
from clew.steps.subgraphs.ranking_features import FloatArray

CHARACTERS_PER_TOKEN = 16
"""Far more than any language needs: no time is lost on the end of a very long text."""


@dataclass(frozen=True)
class OnnxScorer:
    """Scores one text at a time: the scales of int8 activations would otherwise depend on the other texts."""

    model: Path
    tokenizer: Path
    tokens: int

    def score(self, texts: Sequence[tuple[str, str]]) -> FloatArray:
        """One number per pair of texts."""
        return np.array([self._one(*pair) for pair in texts], dtype=np.float64)

    def _one(self, first: str, second: str) -> float:
        most = self.tokens * CHARACTERS_PER_TOKEN
        encoding = self._tokenizer.encode(first[:most], second[:most] or None)
        fed = {"input_ids": [encoding.ids], "attention_mask": [encoding.attention_mask]}
        [scores] = self._session.run(None, {name: np.array(ids, dtype=np.int64) for name, ids in fed.items()})
        return float(np.ravel(scores)[0])

    @cached_property
    def _session(self) -> Any:
        return open_session(self.model)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.tokenizer))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.tokens)
        return tokenizer
