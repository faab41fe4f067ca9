"""Two trained encoders of the reader: one embeds texts by meaning, one reads questions with plans and with schemas.

Both are fine-tuned from the embedder that ships with Clew. They use the word vectors from that embedder's file. They
run in the calling thread, without torch.
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
from clew.models.embedding.onnx import DIMENSION, FIRST_TOKEN, LAST_TOKEN, SharedWords, cut, embedders_tokenizer
from clew.models.model_card import shipped_card
from clew.models.onnx_runtime import open_session

Floats = NDArray[np.float32]
SHIPPED = Path(__file__).parent / "weights"
LONGEST = 96
"""Maximum length of a text, in tokens. The encoder cuts longer texts."""
LONGEST_QUESTION, LONGEST_OPTION = 64, 60
"""Maximum tokens of a question and of an option that are read together. Training uses the same limits."""
LEAST_PRIOR = -20.0
"""Lower limit of the earlier score of an option, as in training."""
UNKNOWN_TOKEN = 100
"""Id of [UNK] in the vocabulary of BERT, for a text without words."""
BEGINNING = 4
"""Number of word pieces at the start of a question. They often show its form."""
SCALE = ".scale"
"""Ending of the names of scales: one per row of an int8 matrix."""
WORD_PARTS = 3
"""Number of vectors that `word_features` concatenates."""


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    """A question encoded together with one option: its text, and a vector for each of its tokens."""

    text: str
    offsets: Sequence[tuple[int, int]]
    """Start and end offset of each token, in characters."""
    ids: Sequence[int]
    states: Floats


@dataclass(frozen=True)
class Encoders:
    """The encoders, opened at first use.

    `folder` contains meaning.onnx, choice.onnx, heads.npz, writer.npz and card.json.
    """

    folder: Path = SHIPPED

    @cached_property
    def version(self) -> str:
        """Version of the weights: the start of their digest."""
        return str(self._card["digest"])[:12]

    @cached_property
    def heads(self) -> dict[str, Floats]:
        """The small matrices on top of the encoders, by name."""
        return {name: one.astype(np.float32) for name, one in read_arrays(self.folder / "heads.npz").items()}

    def meaning(self, texts: Sequence[str]) -> Floats:
        """Return a vector for each text. `unit` normalises them to length 1.

        Encode one text at a time: activations are scaled together, so in a batch a vector would depend on the other
        texts.
        """
        if not texts:
            return np.zeros((0, DIMENSION), dtype=np.float32)
        tokens = [cut(found.ids, LONGEST) for found in self._tokenizer.encode_batch(list(texts))]
        return np.stack([self._encoded(self._meaning, ids)[0] for ids in tokens]).astype(np.float32)

    @property
    def reads_english(self) -> bool:
        """Whether words of a question can be compared with words of a schema."""
        return True

    def told(self, text: str) -> str:
        """Return a text of a question in English words."""
        return text

    def asked(self, texts: Sequence[str]) -> Floats:
        """Return a vector for each text of a question."""
        return self.meaning(texts)

    def choose(
        self,
        questions: Sequence[str],
        options: Sequence[str],
        priors: Sequence[float],
        shared: Sequence[tuple[float, float]],
        budget: int,
    ) -> Floats:
        """Return log-probabilities: first of no option, then of the options that fit into `budget` tokens."""
        return self.read_options(questions, options, priors, shared, budget)[0]

    def read_options(
        self,
        questions: Sequence[str],
        options: Sequence[str],
        priors: Sequence[float],
        shared: Sequence[tuple[float, float]],
        budget: int,
    ) -> tuple[Floats, list[ReadQuestion]]:
        """Return the log-probabilities of `choose`, and the question as encoded with each option.

        Encode each option together with its wording of the question. The score adds up the encoder's output, the
        earlier score (`priors`) and the shared words (`shared`).
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
            scores.append(read + float(known @ heads["option_known"]))
        none = float(heads["none"][0] + heads["none"][1] * max(max(priors, default=LEAST_PRIOR), LEAST_PRIOR))
        every = np.array([none, *scores], dtype=np.float32)
        return round_network(every - np.logaddexp.reduce(every)), read_as

    def states(self, ids: Sequence[int], second: int) -> Floats:
        """Return a vector for each token of a question with a schema, which starts at the index `second`."""
        return np.asarray(self._encoded(self._choice, ids, np.arange(len(ids)) >= second)[0], dtype=np.float32)

    @cached_property
    def writer(self) -> dict[str, Floats]:
        """The matrices of the decoder that writes queries, by name."""
        stored = read_arrays(self.folder / "writer.npz")
        scales = {name.removesuffix(SCALE): one for name, one in stored.items() if name.endswith(SCALE)}
        parts = {name: one.astype(np.float32) for name, one in stored.items() if not name.endswith(SCALE)}
        return {name: one * scales[name] if name in scales else one for name, one in parts.items()}

    def word_vectors(self, words: Sequence[str]) -> Floats:
        """Return a vector of length 1 for each word, without its context."""
        found = self._tokenizer.encode_batch(list(words))
        return unit(np.stack([self.pieces_vector(one.ids[1:-1]) for one in found]))

    def word_features(self, text: str) -> Floats:
        """Return the mean word vector of a text, the mean over its start, and the maximum of each dimension."""
        ids = self._tokenizer.encode(text).ids[1:-1][:LONGEST_QUESTION] or [UNKNOWN_TOKEN]
        vectors = self._words.vectors(ids)
        return np.concatenate((vectors.mean(axis=0), vectors[:BEGINNING].mean(axis=0), vectors.max(axis=0)))

    def pieces_vector(self, ids: Sequence[int]) -> Floats:
        """Return the mean vector of some word pieces."""
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
    """Scale vectors to length 1."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9), dtype=np.float32)
