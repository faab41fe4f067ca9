"""Names as they are compared for duplicates: without case, punctuation, order and spelling habits."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import combinations

from rapidfuzz.distance import Levenshtein

_WORD = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+")
_EMPTY = frozenset({"the", "a", "an", "of", "and", "in", "with"})
_ORDERED = frozenset({"to", "from", "by", "into", "over", "under", "than", "before", "after", "versus", "vs"})
"""Words that make the order of the others matter, as a slash does: a right-to-left shunt is no left-to-right shunt."""
_HABITS = (("ae", "e"), ("oe", "e"), ("our", "or"), ("isation", "ization"), ("ise", "ize"))
WINDOW = 4
"""How far apart two names may stand in an alphabetical list to be compared letter by letter."""
LONG_ENOUGH = 6
"""Words of fewer letters are others when a letter differs."""


def words(name: str) -> tuple[str, ...]:
    """The words of a name in lower case; accents' encoding and punctuation do not matter."""
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", name).casefold()))


def form(name: str) -> str:
    """What names share that are the same but for order, plural, small words and British or American spelling."""
    found = words(name)
    folded = [_folded(word) for word in found if word not in _EMPTY or len(found) == 1]
    return " ".join(folded if "/" in name or _ORDERED & set(found) else sorted(folded))


def _folded(word: str) -> str:
    for habit, instead in _HABITS:
        word = word.replace(habit, instead)
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def misspelt(first: str, second: str) -> bool:
    """Whether two forms differ in one long word, by a letter that is missing inside it: `Alzheimer` and `Alzeimer`.

    Another letter instead, one at an end, or a short word tell things apart more often: `intra` and `infra`, `type 1`
    and `type 2`.
    """
    ours, theirs = first.split(), second.split()
    only_ours, only_theirs = set(ours) - set(theirs), set(theirs) - set(ours)
    if len(ours) != len(theirs) or len(only_ours) != 1 or len(only_theirs) != 1:
        return False
    short, long = sorted((*only_ours, *only_theirs), key=len)
    if len(short) < LONG_ENOUGH or len(long) != len(short) + 1 or not long.isalpha():
        return False
    return (short[0], short[-1]) == (long[0], long[-1]) and Levenshtein.distance(short, long) == 1


def close_forms(forms: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of forms that may be one misspelt, found among neighbours in alphabetical order from either end."""
    found = set()
    for ordered in (sorted(forms), sorted(forms, key=lambda form: form[::-1])):
        for place in range(len(ordered)):
            near = ordered[place : place + WINDOW]
            found |= {tuple(sorted(pair)) for pair in combinations(near, 2) if misspelt(*pair)}
    return sorted((first, second) for first, second in found)
