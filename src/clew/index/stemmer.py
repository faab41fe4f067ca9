"""A light English stemmer: a few suffix rules, applied to a whole vocabulary in Arrow's C++ or to one word.

Full Porter stemming in Python manages 9,000 words a second, a minute and more for a large vocabulary.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

SHORTEST = 4
"""Shorter words stay as they are."""
RULES: tuple[tuple[str, str, str], ...] = (
    ("s", r"^(.+)(ss|x|ch|sh)es$", r"\1\2"),  # classes
    ("s", r"^(..+)ies$", r"\1y"),  # anomalies
    ("s", r"^(.+[^sui])s$", r"\1"),  # genes, but not mass, virus, dermatitis
    ("s", r"^(.{3,}s)is$", r"\1"),  # diagnosis, diagnoses
    ("dgy", r"^(.*[aeiouy].*[^e])(?:ed|ing)(?:ly)?$", r"\1"),  # affected, affecting
    ("bdgmnprt", r"^(.*[aeiouy].*)(?:(b)b|(d)d|(g)g|(m)m|(n)n|(p)p|(r)r|(t)t)$", r"\1\2\3\4\5\6\7\8\9"),  # stopp(ed)
    ("n", r"^(.{2,}[st])ion$", r"\1"),  # dislocation, infection
    ("sy", r"^(.{3,})(?:ally|ity|ness|ly)$", r"\1"),  # abnormality
    ("eiy", r"^(.{3,}?)[eiy]+$", r"\1"),  # dislocate, movie
)
"""The last letters of the words a rule may concern, its pattern and its replacement; applied one after another."""
_COMPILED = tuple((letters, re.compile(pattern), replacement) for letters, pattern, replacement in RULES)
_WORD = "^[a-z]+$"


def stem_all(words: pa.Array) -> pa.Array:
    """The stem of every word; words with digits or of another script stay."""
    english = pc.and_(pc.match_substring_regex(words, _WORD), pc.greater_equal(pc.binary_length(words), SHORTEST))
    stems = words.filter(english)
    for letters, pattern, replacement in RULES:
        last = pc.utf8_slice_codeunits(stems, -1, None)
        concerned = pc.is_in(last, value_set=pa.array(list(letters), stems.type))
        changed = pc.replace_substring_regex(stems.filter(concerned), pattern, replacement)
        stems = pc.replace_with_mask(stems, concerned, changed)
    return pc.replace_with_mask(words, english, stems)


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The stem of one word."""
    if len(word) < SHORTEST or not (word.isascii() and word.isalpha() and word.islower()):
        return word
    for letters, pattern, replacement in _COMPILED:
        if word[-1] in letters:
            word = pattern.sub(replacement, word)
    return word
