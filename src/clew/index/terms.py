"""From tokens to the terms of the lexical index: stems without stop words, and pairs in scripts without spaces."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from itertools import pairwise

from clew.index.stemmer import stem
from clew.index.tokens import is_spaceless, tokenise

LONGEST = 64
"""Longer words are cut: nobody searches for them, and encoded blobs must not fill the vocabulary."""


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """English words that say nothing about a text."""
    return frozenset(files("clew.index").joinpath("stop_words.txt").read_text("utf-8").split())


def terms(text: str) -> list[str]:
    """The terms of a text in reading order, repeated where they repeat."""
    tokens = tokenise(text)
    found = [stem(token.text[:LONGEST]) for token in tokens if token.text not in stop_words()]
    for first, second in pairwise(tokens):
        if is_spaceless(first.text) and is_spaceless(second.text):
            found.append(first.text + second.text)
    return found
