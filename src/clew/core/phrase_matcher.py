"""Phrase search in texts: word by word, longest match first, in time linear in the text."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Match(Generic[T]):
    """The span of a phrase in a text, and all its meanings."""

    start: int
    end: int
    meanings: tuple[T, ...]


@dataclass
class PhraseMatcher(Generic[T]):
    """Case-insensitive matcher for phrases. `add` all phrases before calling `find`."""

    _meanings: dict[tuple[str, ...], dict[T, None]] = field(default_factory=dict)
    _lengths: dict[str, list[int]] = field(default_factory=dict)
    """First word → lengths of the phrases that start with it, longest first."""

    def add(self, phrase: str, meaning: T) -> None:
        """Add a meaning to a phrase, which may have several."""
        words = tuple(word.lower() for word in WORD.findall(phrase))
        if not words:
            return
        self._meanings.setdefault(words, {})[meaning] = None
        lengths = self._lengths.setdefault(words[0], [])
        if len(words) not in lengths:
            lengths.append(len(words))
            lengths.sort(reverse=True)

    def find(self, text: str, *, capitalised: bool = False) -> Iterator[Match[T]]:
        """Yield non-overlapping matches from left to right. `capitalised` skips phrases that start in lower case."""
        words = [(found.group(), found.start(), found.end()) for found in WORD.finditer(text)]
        lower = [word.lower() for word, _, _ in words]
        place = 0
        while place < len(words):
            taken = 1
            if not capitalised or not words[place][0][0].islower():
                for length in self._lengths.get(lower[place], ()):
                    meanings = self._meanings.get(tuple(lower[place : place + length]))
                    if meanings is not None and place + length <= len(words):
                        yield Match(words[place][1], words[place + length - 1][2], tuple(meanings))
                        taken = length
                        break
            place += taken

    def __len__(self) -> int:
        return len(self._meanings)


def matcher(phrases: Iterable[tuple[str, T]]) -> PhraseMatcher[T]:
    """Build a matcher from pairs of phrase and meaning."""
    built: PhraseMatcher[T] = PhraseMatcher()
    for phrase, meaning in phrases:
        built.add(phrase, meaning)
    return built
