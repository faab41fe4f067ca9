"""Mention edges: a passage that names the title of a document, or what another passage is about."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clew.documents.graph.passage_edges import PassageEdges
from clew.steps.language.phrase_matcher import matcher
from clew.steps.language.proper_names import subject, title_forms

MOST_MEANINGS = 10
"""A form that stands for more titles than this points nowhere."""
USABLE = 0.2
"""The share of texts that write their own title where titles are the names of things."""


def mention_edges(
    texts: Sequence[str], owners: Sequence[Sequence[int]], titles: Sequence[tuple[str, int]]
) -> PassageEdges:
    """From passages to the targets whose title they write, other than the targets they belong to."""
    known = matcher((form, target) for title, target in titles for form in title_forms(title))
    heads: list[int] = []
    tails: list[int] = []
    because: list[str] = []
    for place, (text, own) in enumerate(zip(texts, owners, strict=True)):
        seen: dict[int, str] = {}
        for match in known.find(text, capitalised=True):
            if len(match.meanings) <= MOST_MEANINGS:
                for target in match.meanings:
                    if target not in own:
                        seen.setdefault(target, " ".join(text[match.start : match.end].split()))
        heads += [place] * len(seen)
        tails += seen.keys()
        because += seen.values()
    ends = np.array([heads, tails], dtype=np.int32).reshape(2, -1)
    return PassageEdges("mentions", ends[0], ends[1], np.ones(len(heads), dtype=np.float32), because)


def subjects(titles: Sequence[str], texts: Sequence[str]) -> list[tuple[str, int]]:
    """What each text is about by its first words, where titles are of no use because few texts write their own."""
    lower = [text.casefold() for text in texts]
    written = sum(
        any(form.casefold() in text for form in title_forms(title)) for title, text in zip(titles, lower, strict=True)
    )
    if written >= USABLE * len(texts):
        return []
    found = ((subject(text), place) for place, text in enumerate(texts))
    return [(name, place) for name, place in found if name is not None]
