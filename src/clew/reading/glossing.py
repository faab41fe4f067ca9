"""A question in another language, word by word in English, for encoders that read English alone.

1. Words that the lexicon knows (weights/words.json; where it comes from: weights/ORIGIN.md).
2. Other words by the nearest of common English words, where a multilingual embedder is there; little words are left
   out.
3. A question that has no word to ask by is one for yes or no.

The order of words stays. Scripts without spaces are cut into the longest words that the lexicon knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from clew.core.array_files import read_arrays
from clew.index.tokens import Token, is_spaceless, stop_words, tokenise
from clew.models.protocol import Embedder
from clew.reading.encoders import Floats

LEXICON, NEAREST = "words.json", "words.npz"
KEPT = re.compile(r"([§•][^§•]*[§•]|\b[A-Z] \( [^)]*\)|number \d+ \( [^)]*\))")
"""What stands for names and numbers."""
ASKING = frozenset(("how", "what", "when", "where", "which", "who", "whom", "whose", "why", "did"))
FIRST = "^"
"""Marks a word of the lexicon that says something else where a question begins with it."""
LONGEST_WORD = 8
"""Characters of a word in a script without spaces."""
LEAST_ALIKE = 0.35
"""Words that are further apart than this cosine say different things."""
ASKS = ("?", "？", "؟")
KANA = ("\u3040", "\u309f")
"""Endings and particles of Japanese: what the lexicon does not know of them is left out."""


@dataclass(frozen=True)
class Gloss:
    """Puts questions in one language into English words."""

    folder: Path
    language: str
    embedder: Embedder | None = None

    def of(self, text: str) -> str:
        """The text in English words; what stands for names and numbers stays as it is."""
        said: list[str] = []
        for place, part in enumerate(KEPT.split(text)):
            words = [part] if place % 2 else (self._translated(*word, begins=not said) for word in self._words(part))
            for word in words:
                if word and [word] != said[-1:]:
                    said.append(word)
        if text.rstrip().endswith(ASKS) and not ASKING.intersection(" ".join(said).split()):
            said.insert(0, "did")
        return " ".join(said)

    def _translated(self, word: str, spelled: str, *, begins: bool) -> str:
        if word.isdigit():
            return word
        known = (self._lexicon.get(FIRST + word) if begins else None) or self._lexicon.get(word)
        if known is not None:
            return known
        return "" if word in stop_words(self.language) else self._nearest(spelled)

    def _nearest(self, word: str) -> str:
        """By twice the cosine less how near a word is to all: some are near to everything (Lample et al., 2018)."""
        if self.embedder is None:
            return ""
        words, vectors, crowded = self._english
        alike = vectors @ self.embedder.embed([word], role="query")[0]
        best = int(np.argmax(2 * alike - crowded))
        return words[best] if alike[best] >= LEAST_ALIKE else ""

    def _words(self, text: str) -> Iterator[tuple[str, str]]:
        """Each word, normalised and as it is spelled."""
        tokens, place = tokenise(text), 0
        while place < len(tokens):
            length = self._length(tokens[place : place + LONGEST_WORD])
            word = "".join(token.text for token in tokens[place : place + length])
            if word in self._lexicon or not KANA[0] <= word[0] <= KANA[1]:
                yield word, text[tokens[place].start : tokens[place + length - 1].end]
            place += length

    def _length(self, tokens: list[Token]) -> int:
        """How many tokens make the next word: one, except in scripts without spaces."""
        run = next((count for count, one in enumerate(tokens) if not is_spaceless(one.text)), len(tokens))
        for count in range(run, 0, -1):
            if "".join(token.text for token in tokens[:count]) in self._lexicon:
                return count
        kinds = [KANA[0] <= token.text <= KANA[1] for token in tokens[:run]]
        return 1 if not run or kinds[0] else next((count for count, kana in enumerate(kinds) if kana), run)

    @cached_property
    def _lexicon(self) -> dict[str, str]:
        every: dict[str, dict[str, str]] = json.loads((self.folder / LEXICON).read_text("utf-8"))
        return every.get(self.language, {})

    @cached_property
    def _english(self) -> tuple[list[str], Floats, Floats]:
        """Common English words, their vectors, and how near each is to the ten nearest others."""
        stored = read_arrays(self.folder / NEAREST)
        vectors = stored["vectors"].astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        near = np.sort(vectors @ vectors.T, axis=1)[:, -11:-1].mean(axis=1)
        return bytes(stored["words"]).decode().split(), vectors, near
