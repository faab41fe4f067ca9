"""Network that reads a question with a passage, and scores its relevance and the words that answer the question.

The encoder has twelve layers and shares its word vectors with the bundled embedder. See ORIGIN.md in the folder of the
weights.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.array_files import read_arrays
from clew.core.scores import round_network
from clew.models.embedding.onnx import FIRST_TOKEN, LAST_TOKEN, SharedWords, open_tokenizer
from clew.models.model_card import shipped_card
from clew.models.onnx_runtime import open_session

Floats = NDArray[np.float32]
SHIPPED = Path(__file__).parent / "weights"
COLON = 1024
"""Id of ":" in the vocabulary of BERT."""
LONGEST_QUESTION, LONGEST_TITLE = 72, 48
"""Maximum tokens of the question and the title. Training uses the same limits."""
LONGEST = 384
"""Maximum tokens of question, title and text together. Longer texts are cut."""


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Scores of one passage."""

    relevance: float
    """Log-odds that the passage answers the question, or a part of it."""
    spans: NDArray[np.int32]
    """Start and end offset of each token of the text."""
    telling: Floats
    """Per token, log-odds that it belongs to an answering sentence."""
    starts: Floats
    """Per token, log-odds that a short answer starts there instead of nowhere. `ends` is the same for its end."""
    ends: Floats


@dataclass(frozen=True)
class PassageNetwork:
    """Network loaded on first use from a folder with encoder.onnx, heads.npz and card.json."""

    folder: Path = SHIPPED
    threads: int = min(4, os.cpu_count() or 1)

    def read(self, question: str, passages: Sequence[tuple[str, str]]) -> list[Seen]:
        """Score each (title, text) separately, so that passages do not influence each other."""
        first = [FIRST_TOKEN, *self._tokens(question, LONGEST_QUESTION)[0], LAST_TOKEN]
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(lambda passage: self._read(first, *passage), passages))

    def _read(self, first: list[int], title: str, text: str) -> Seen:
        titled = [*first, *self._tokens(title, LONGEST_TITLE)[0], COLON]
        own, spans = self._tokens(text, LONGEST - len(titled) - 1)
        ids = [*titled, *own, LAST_TOKEN]
        types = (np.arange(len(ids)) >= len(first)).astype(np.int64)
        fed = {"vectors": self._words.vectors(ids)[None], "types": types[None]}
        states: Floats = self._encoder.run(None, fed)[0][0]
        heads = self._heads
        no, related, answers = states[0] @ heads["classes"] + heads["classes_bias"]
        words = states @ heads["words"] + heads["words_bias"]
        words[:, 1:] -= words[0, 1:]  # the first token stands for "nowhere"
        telling, starts, ends = round_network(words[len(titled) : -1]).T
        places = np.array(spans, dtype=np.int32).reshape(-1, 2)
        return Seen(float(round_network(answers - np.logaddexp(no, related))), places, telling, starts, ends)

    def _tokens(self, text: str, most: int) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the first tokens of a text and their character spans."""
        found = self._tokenizer.encode(text, add_special_tokens=False)
        return found.ids[:most], found.offsets[:most]

    @cached_property
    def _card(self) -> dict[str, Any]:
        return shipped_card(self.folder)

    @cached_property
    def _heads(self) -> dict[str, Floats]:
        return {name: one.astype(np.float32) for name, one in read_arrays(self.folder / "heads.npz").items()}

    @cached_property
    def _words(self) -> SharedWords:
        return SharedWords(self._card["words"])

    @cached_property
    def _tokenizer(self) -> Any:
        return open_tokenizer()

    @cached_property
    def _encoder(self) -> Any:
        return open_session(self.folder / "encoder.onnx")
