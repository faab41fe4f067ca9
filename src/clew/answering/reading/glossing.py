"""A question in another language, word by word in English, for encoders that read English alone.

1. Words and phrases that the lexicon knows (weights/words.json; where it comes from: weights/ORIGIN.md).
2. Other words by the nearest of common English words and of those of the base's schema, where a multilingual embedder
   is there; little words are left out.
3. The order of words as English would rather have it (word_order.py).

Scripts without spaces are cut into the longest words that the lexicon knows.
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
"""Marks a word of the lexicon that says something else where a question begins with it."""
LONGEST_WORD = 8
"""Tokens of a word or phrase: characters in a script without spaces."""
LEAST_ALIKE = 0.35
"""Words that are further apart than this cosine say different things."""
EXPECTED = 0.1
"""What words of the schema are ahead of others after "which", "how many" or "same"; chosen on invented schemas."""
CROWD = 10
"""Words that tell how crowded it is around one."""
ASKS = ("?", "？", "؟")
KANA = ("\u3040", "\u309f")
"""Endings and particles of Japanese: what the lexicon does not know of them is left out."""


@dataclass(frozen=True)
class Gloss:
    """Puts questions in one language into English words."""

    folder: Path
    language: str
    embedder: Embedder | None = None
    schema_words: tuple[str, ...] = ()
    """Those of the base that is asked."""

    def of(self, text: str) -> str:
        """The text in English words; what stands for names and numbers stays as it is."""
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
        """English words, their cosines with a word, and twice those less how near each is to all.

        Some words are near to everything (Lample et al., 2018).
        """
        words, vectors, crowded = self._english
        alike = vectors @ embedder.embed([word], role="query")[0]
        return words, alike, 2 * alike - crowded

    def _words(self, text: str) -> Iterator[tuple[str, str]]:
        """Each word, normalised and as it is spelled."""
        tokens, place = tokenise(text), 0
        while place < len(tokens):
            length = self._length(tokens[place : place + LONGEST_WORD])
            word = joined(tokens[place : place + length])
            if word in self._lexicon or not KANA[0] <= word[0] <= KANA[1]:
                yield word, text[tokens[place].start : tokens[place + length - 1].end]
            place += length

    def _length(self, tokens: list[Token]) -> int:
        """How many tokens make the next word: the most that the lexicon knows, or a run of one script."""
        run = next((count for count, one in enumerate(tokens) if not is_spaceless(one.text)), len(tokens))
        kinds = [KANA[0] <= token.text <= KANA[1] for token in tokens[:run]]
        whole = 1 if not run or kinds[0] else next((count for count, kana in enumerate(kinds) if kana), run)
        for count in range(len(tokens), 0, -1):
            is_part = count == 1 < whole  # one character of a longer word may say anything
            if not is_part and {joined(tokens[:count]), FIRST + joined(tokens[:count])} & self._lexicon.keys():
                return count
        return whole

    @cached_property
    def _lexicon(self) -> dict[str, str]:
        every: dict[str, dict[str, str]] = json.loads((self.folder / LEXICON).read_text("utf-8"))
        return every.get(self.language, {})

    @cached_property
    def _english(self) -> tuple[list[str], Floats, Floats]:
        """Common English words and those of the schema, their vectors, and how near each is to the nearest others."""
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
    """Words as the lexicon writes them: with spaces between, except in scripts without."""
    return " ".join("".join(t.text if is_spaceless(t.text) else f" {t.text} " for t in tokens).split())
