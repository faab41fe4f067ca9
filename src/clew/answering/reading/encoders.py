"""The two trained encoders of the reader: one puts texts where their like are, one chooses among readings.

Both are fine-tuned from the embedder that ships with Clew and share its table of word vectors, which lies in that
embedder's file. They run in the calling thread, without torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.array_files import read_arrays
from clew.core.scores import round_network
from clew.models.embedding.words import DIMENSION, FIRST_TOKEN, LAST_TOKEN, SharedWords, cut, embedders_tokenizer
from clew.models.model_card import shipped_card
from clew.models.onnx_runtime import open_session

Floats = NDArray[np.float32]
SHIPPED = Path(__file__).parent / "weights"
LONGEST = 96
"""Tokens of a text that are read."""
LONGEST_QUESTION, LONGEST_OPTION = 64, 60
LEAST_PRIOR = -20.0
UNKNOWN_TOKEN = 100
BEGINNING = 4
"""Word pieces at the beginning of a question, which often tell its form."""
WORD_PARTS = 3
"""Vectors that `word_features` joins."""


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    """A question as it was read beside an option: its text, and a vector for each of its tokens."""

    text: str
    offsets: Sequence[tuple[int, int]]
    """First and last character of each token."""
    ids: Sequence[int]
    states: Floats


@dataclass(frozen=True)
class Encoders:
    """Opened at the first use; `folder` holds meaning.onnx, choice.onnx, heads.npz and card.json."""

    folder: Path = SHIPPED

    @cached_property
    def version(self) -> str:
        """What tells these weights from any other."""
        return str(self._card["digest"])[:12]

    @cached_property
    def heads(self) -> dict[str, Floats]:
        """The small matrices on top of the encoders, by name."""
        return {name: one.astype(np.float32) for name, one in read_arrays(self.folder / "heads.npz").items()}

    def meaning(self, texts: Sequence[str]) -> Floats:
        """A vector for every text; `unit` makes their lengths one.

        One at a time: in a batch a vector would depend on its neighbours, since activations are scaled together.
        """
        if not texts:
            return np.zeros((0, DIMENSION), dtype=np.float32)
        tokens = [cut(found.ids, LONGEST) for found in self._tokenizer.encode_batch(list(texts))]
        return np.stack([self._encoded(self._meaning, ids)[0] for ids in tokens]).astype(np.float32)

    @property
    def reads_english(self) -> bool:
        """Whether words of a question can be compared with those of a schema."""
        return True

    def told(self, text: str) -> str:
        """A text of a question in English words."""
        return text

    def asked(self, texts: Sequence[str]) -> Floats:
        """A vector for every text of a question."""
        return self.meaning(texts)

    def choose(
        self,
        questions: Sequence[str],
        options: Sequence[str],
        priors: Sequence[float],
        shared: Sequence[tuple[float, float]],
        budget: int,
        weight: float = 1.0,
    ) -> Floats:
        """Log-probabilities: first that none is right, then of as many options as `budget` tokens allow."""
        return self.read_options(questions, options, priors, shared, budget, weight)[0]

    def read_options(
        self,
        questions: Sequence[str],
        options: Sequence[str],
        priors: Sequence[float],
        shared: Sequence[tuple[float, float]],
        budget: int,
        weight: float = 1.0,
    ) -> tuple[Floats, list[ReadQuestion]]:
        """Log-probabilities as `choose` returns them, and the question as it was read beside each option.

        Each option is read beside the question as it is taken there; what that says is added to what was thought of it
        before (`priors`), and to the words that both have (`shared`). `weight` is what the reading counts.
        """
        asked = self._tokenizer.encode_batch(list(questions))
        found = [found.ids[1:-1][:LONGEST_OPTION] for found in self._tokenizer.encode_batch(list(options))]
        heads, spent = self.heads, 0
        scores: list[float] = []
        read_as: list[ReadQuestion] = []
        for text, tokens, option, prior, words in zip(questions, asked, found, priors, shared, strict=True):
            question = tokens.ids[1:-1][:LONGEST_QUESTION]
            ids = [FIRST_TOKEN, *question, LAST_TOKEN, *option, LAST_TOKEN]
            spent += len(ids)
            if scores and spent > budget:
                break
            states = self._encoded(self._choice, ids, np.arange(len(ids)) >= len(question) + 2)[0]
            last = len(question) + 1
            read_as.append(ReadQuestion(text, tokens.offsets[1:last], question, states[1:last]))
            read = float(states[0] @ heads["option"] + heads["option_bias"][0])
            known = np.array([max(prior, LEAST_PRIOR), *words], dtype=np.float32)
            scores.append(weight * read + float(known @ heads["option_known"]))
        none = float(heads["none"][0] + heads["none"][1] * max(max(priors, default=LEAST_PRIOR), LEAST_PRIOR))
        every = np.array([none, *scores], dtype=np.float32)
        return round_network(every - np.logaddexp.reduce(every)), read_as

    def word_vectors(self, words: Sequence[str]) -> Floats:
        """A vector of length one for every word by itself."""
        found = self._tokenizer.encode_batch(list(words))
        return unit(np.stack([self.pieces_vector(one.ids[1:-1]) for one in found]))

    def word_features(self, text: str) -> Floats:
        """Return the mean of the word vectors of a text, that of its beginning, and their greatest values."""
        ids = self._tokenizer.encode(text).ids[1:-1][:LONGEST_QUESTION] or [UNKNOWN_TOKEN]
        vectors = self._words.vectors(ids)
        return np.concatenate((vectors.mean(axis=0), vectors[:BEGINNING].mean(axis=0), vectors.max(axis=0)))

    def pieces_vector(self, ids: Sequence[int]) -> Floats:
        """The mean of the vectors of word pieces."""
        return np.asarray(self._words.vectors(ids or [UNKNOWN_TOKEN]).mean(axis=0))

    def _encoded(self, session: Any, ids: Sequence[int], second: NDArray[np.bool_] | None = None) -> Floats:
        types = np.zeros((1, len(ids)), dtype=np.int64) if second is None else second[None].astype(np.int64)
        found: Floats = session.run(None, {"vectors": self._words.vectors(ids)[None], "types": types})[0]
        return found

    @cached_property
    def _card(self) -> dict[str, Any]:
        return shipped_card(self.folder)

    @cached_property
    def _words(self) -> SharedWords:
        return SharedWords(self._card["words"])

    @cached_property
    def _tokenizer(self) -> Any:
        return embedders_tokenizer()

    @cached_property
    def _meaning(self) -> Any:
        return open_session(self.folder / "meaning.onnx")

    @cached_property
    def _choice(self) -> Any:
        return open_session(self.folder / "choice.onnx")


def unit(vectors: Floats) -> Floats:
    """The same directions with length one."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9), dtype=np.float32)
