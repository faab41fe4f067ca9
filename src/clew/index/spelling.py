"""Forms of names that are spelt like another: few typos, or another order of words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rapidfuzz import fuzz, process

from clew.core.types import IntArray
from clew.index.strings import SortedStrings

POOL = 50
"""So many forms of like spelling are compared letter by letter."""
MOST = 0.99
"""A form that is not the wanted one is never quite sure."""


def similar(
    wanted: Sequence[str], places: IntArray, forms: SortedStrings, least: float
) -> list[list[tuple[int, float]]]:
    """For every wanted form those of the given ones that are at least so similar, best first, itself left out."""
    if not len(places):
        return [[] for _ in wanted]
    given = [forms[place].decode() for place in places.tolist()]
    straight = process.cdist(wanted, given, scorer=fuzz.ratio)
    in_any_order = process.cdist(wanted, given, scorer=fuzz.token_sort_ratio) - 1
    scores = np.minimum(np.maximum(straight, in_any_order) / 100, MOST)
    found = []
    for row, form in zip(scores, wanted, strict=True):
        order = np.lexsort((places, -row)).tolist()
        kept = [place for place in order if row[place] >= least and given[place] != form]
        found.append([(int(places[place]), float(row[place])) for place in kept])
    return found


def is_derived(word: str, other: str) -> bool:
    """Whether two words differ by common endings alone, as "invent" and "inventor" do: such a word is not misspelt."""
    return _root(word) == _root(other)


def _root(word: str) -> str:
    for ending in ("ing", "ers", "ors", "er", "or", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending).removesuffix("e")
    return word
