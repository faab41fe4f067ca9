"""Entity edges: passages that name the same thing (in the paper's place of TAGME, whose service is remote)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from clew.documents.graph.passage_edges import PassageEdges
from clew.documents.graph.sharing import most_shared
from clew.steps.language.proper_names import acronyms, name_key, proper_names

MOST_PASSAGES = 50
"""A name in more passages than this says nothing about them."""
MOST_NEIGHBOURS = 20
OF_THE_DOCUMENT = re.compile(r"(tables?|figures?|fig|pages?|sections?|chapters?|equations?|appendix)( [a-z]?\d+)?$")
"""Capitalised, but the name of a part of the document."""


def entity_edges(
    texts: Sequence[str], documents: Sequence[int], *, passages: int = MOST_PASSAGES, neighbours: int = MOST_NEIGHBOURS
) -> PassageEdges:
    """Join passages by the rare names they share; `documents` tells in which document an acronym was explained."""
    surface: dict[str, Counter[str]] = {}
    places, names = [], []
    numbers: dict[str, int] = {}
    explained = _explained(texts, documents)
    for place, (text, document) in enumerate(zip(texts, documents, strict=True)):
        expansions = explained.get(document, {})
        for key, name in _named(text, expansions):
            surface.setdefault(key, Counter())[name] += 1
            places.append(place)
            names.append(numbers.setdefault(key, len(numbers)))
    columns = np.array([places, names], dtype=np.int32).reshape(2, -1)
    counts = np.bincount(columns[1], minlength=len(numbers))
    useful = (counts >= 2) & (counts <= passages)
    weights = np.where(useful, 1 / np.log1p(np.maximum(counts, 1)), 0).astype(np.float32)
    kept = useful[columns[1]]
    heads, tails, totals, because = most_shared(columns[0][kept], columns[1][kept], weights, len(texts), neighbours)
    written = [min(forms.items(), key=lambda form: (-form[1], form[0]))[0] for forms in surface.values()]
    return PassageEdges("entity", heads, tails, totals, [written[number] for number in because.tolist()])


def _named(text: str, expansions: dict[str, str]) -> Iterable[tuple[str, str]]:
    """Every name of a text once, as key and as written; acronyms under their expansion."""
    found: dict[str, str] = {}
    for name in proper_names(text):
        whole = expansions.get(name.text, name.text)
        key = name_key(whole)
        if len(key) > 2 and not OF_THE_DOCUMENT.match(key):
            found.setdefault(key, " ".join(whole.split()))
    return found.items()


def _explained(texts: Sequence[str], documents: Sequence[int]) -> dict[int, dict[str, str]]:
    explained: dict[int, dict[str, str]] = {}
    for text, document in zip(texts, documents, strict=True):
        if "(" in text and (found := acronyms(text)):
            explained.setdefault(document, {}).update(found)
    return explained
