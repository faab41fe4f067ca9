"""Forms of names that are spelt like another: few typos, another order of words, or the beginning of a longer name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from clew.index.strings import SortedStrings
from clew.index.trigrams import TrigramIndex
from clew.types import IntArray

POOL = 50
"""So many forms of like spelling are compared letter by letter."""
CONTINUATIONS = 1000
"""So many longer names that begin with the wanted one are considered."""
MOST = 0.99
"""A form that is not the wanted one is never quite sure."""
Keep = Callable[[IntArray], NDArray[np.bool_]]


def like(
    form: str, forms: SortedStrings, trigrams: TrigramIndex, least: float, keep: Keep | None = None
) -> list[tuple[int, float]]:
    """The forms most like one with their similarity, best first."""
    (near,) = similar([form], trigrams.nearest(form, POOL, keep=keep), forms, least)
    found = dict(near)
    for place, score in continuations(form, forms, least, keep):
        found[place] = max(score, found.get(place, 0.0))
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))


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


def continuations(form: str, forms: SortedStrings, least: float, keep: Keep | None = None) -> list[tuple[int, float]]:
    """The shortest names that begin with all words of a form; the more is missing, the less sure."""
    prefix = form.encode() + b" "
    first = forms.place(prefix)
    last = forms.place(prefix[:-1] + b"!")  # the byte after a space
    places = np.arange(first, min(last, first + CONTINUATIONS), dtype=np.int32)
    if keep is not None and len(places):
        places = places[keep(places)]
    lengths = forms.offsets[places + 1] - forms.offsets[places]
    order = np.lexsort((places, lengths))[:POOL]
    scores = least + 0.15 * len(prefix) / lengths[order]
    return list(zip(places[order].tolist(), scores.tolist(), strict=True))
