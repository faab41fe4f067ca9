"""Translate a question word by word into English, for encoders that read only English.

1. Look up words and phrases in the lexicon (weights/words.json; its source: weights/ORIGIN.md).
2. Replace other words by the most similar common English word or schema word, if there is a multilingual embedder.
   Leave out stop words.
3. Move words into an order closer to English (word_order.py).

Text in scripts without spaces is cut into the longest words of the lexicon.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from clew.answering.reading.encoders import Floats
from clew.answering.reading.word_order import BEFORE_NOUNS, KEPT, in_english_order
from clew.core.array_files import read_arrays
from clew.models.protocol import Embedder
from clew.store.index.tokens import Token, is_spaceless, stop_words, tokenise

LEXICON, NEAREST = "words.json", "words.npz"
FIRST = "^"
"""Marks a word of the lexicon that has another translation at the start of a question."""
LONGEST_WORD = 8
"""Maximum length of a word or phrase, in tokens. In scripts without spaces a token is a character."""
LEAST_ALIKE = 0.35
"""Minimum cosine of a word and its translation."""
EXPECTED = 0.1
"""Bonus for schema words after "which", "how many" or "same". Tuned on invented schemas."""
CROWD = 10
"""Number of nearest words that measure how crowded the surroundings of a word are."""
ASKS = ("?", "？", "؟")
KANA = ("\u3040", "\u309f")
"""First and last character of Hiragana, for Japanese endings and particles. Unknown particles are left out."""


@dataclass(frozen=True)
class Gloss:
    """Translates questions in one language into English words."""

    folder: Path
    language: str
    embedder: Embedder | None = None
    schema_words: tuple[str, ...] = ()
    """Words of the schema of the base."""

    def of(self, text: str) -> str:
        """Return the text in English words. Placeholders for names and numbers stay unchanged."""
        said: list[str] = []
        for place, part in enumerate(KEPT.split(text)):
            words = [part] if place % 2 else (self._translated(*word, said) for word in self._words(part))
            for word in words:
                if word and [word] != said[-1:]:
                    said.append(word)
        return " ".join(in_english_order(said, self.language, is_question=text.rstrip().endswith(ASKS)))

    def _translated(self, word: str, spelled: str, before: Sequence[str]) -> str:
        if word.isdigit():
            return word
        keys = (spelled.casefold(), word) if before else (FIRST + word, spelled.casefold(), word)
        known = next((self._lexicon[key] for key in keys if key in self._lexicon), None)
        if known is not None or self.embedder is None or word in stop_words(self.language):
            return known or ""
        words, alike, scores = self._compared(spelled, self.embedder)
        if before and before[-1] in BEFORE_NOUNS:
            scores = scores + EXPECTED * np.isin(words, self.schema_words)
        best = int(np.argmax(scores))
        return words[best] if alike[best] >= LEAST_ALIKE else ""

    def _compared(self, word: str, embedder: Embedder) -> tuple[list[str], Floats, Floats]:
        """Return English words, their cosines with a word, and scores.

        A score is twice the cosine minus the word's mean similarity to its nearest words. This corrects for words that
        are close to everything (Lample et al., 2018).
        """
        words, vectors, crowded = self._english
        alike = vectors @ embedder.embed([word], role="query")[0]
        return words, alike, 2 * alike - crowded

    def _words(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield each word, normalised and as spelled."""
        tokens, place = tokenise(text), 0
        while place < len(tokens):
            length = self._length(tokens[place : place + LONGEST_WORD])
            word = joined(tokens[place : place + length])
            if word in self._lexicon or not KANA[0] <= word[0] <= KANA[1]:
                yield word, text[tokens[place].start : tokens[place + length - 1].end]
            place += length

    def _length(self, tokens: list[Token]) -> int:
        """Return the number of tokens of the next word: its longest match in the lexicon, or a run of one script."""
        run = next((count for count, one in enumerate(tokens) if not is_spaceless(one.text)), len(tokens))
        kinds = [KANA[0] <= token.text <= KANA[1] for token in tokens[:run]]
        whole = 1 if not run or kinds[0] else next((count for count, kana in enumerate(kinds) if kana), run)
        for count in range(len(tokens), 0, -1):
            is_part = count == 1 < whole  # a single character of a longer word is too ambiguous
            if not is_part and {joined(tokens[:count]), FIRST + joined(tokens[:count])} & self._lexicon.keys():
                return count
        return whole

    @cached_property
    def _lexicon(self) -> dict[str, str]:
        every: dict[str, dict[str, str]] = json.loads((self.folder / LEXICON).read_text("utf-8"))
        return every.get(self.language, {})

    @cached_property
    def _english(self) -> tuple[list[str], Floats, Floats]:
        """Common English words and schema words, their vectors, and their mean similarity to their nearest words."""
        stored = read_arrays(self.folder / NEAREST)
        words, vectors = bytes(stored["words"]).decode().split(), stored["vectors"].astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        crowded = np.sort(vectors @ vectors.T, axis=1)[:, -CROWD - 1 : -1].mean(axis=1)
        more = [one for one in self.schema_words if one not in set(words)]
        if more and self.embedder is not None:
            own = self.embedder.embed(more, role="query")
            crowd = np.sort(own @ vectors.T, axis=1)[:, -CROWD:].mean(axis=1)
            words, vectors, crowded = [*words, *more], np.r_[vectors, own], np.r_[crowded, crowd]
        return words, vectors, crowded


def joined(tokens: Sequence[Token]) -> str:
    """Join tokens as the lexicon writes them: with spaces, except in scripts without spaces."""
    return " ".join("".join(t.text if is_spaceless(t.text) else f" {t.text} " for t in tokens).split())
