"""The pre-filter of Tournament on Path: which of many candidates a judge gets to see."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np

from clew.core.schema import words_of
from clew.core.types import Ranking
from clew.index.fusion import reciprocal_rank_fusion
from clew.index.tokens import stem
from clew.methods.paths.judges import best_places
from clew.models.protocol import Embedder
from clew.queries.relation_paths import RelationPath

MOST_EMBEDDED = 300
"""Of more candidates only so many are embedded, those that share most words with the question: a hub has thousands."""
K1, B = 1.2, 0.75
"""The usual constants of BM25."""
Filter = Literal["aligned", "lexical", "semantic", "rrf", "random", "none"]


def path_text(path: RelationPath) -> str:
    """A path as one text to embed or to search: the words of its relations, in order."""
    return " ".join(words_of(move.relation) for move in path.moves)


def prefilter(
    question: str, texts: Sequence[str], kept: int, how: Filter, embedder: Embedder, seed: int = 0
) -> list[int]:
    """The positions of the `kept` texts most like the question, best first; each text is embedded as a whole.

    "aligned" and "none" keep the order in which they come, and "none" keeps them all.
    """
    if how in ("semantic", "rrf") and len(texts) > MOST_EMBEDDED:
        first = sorted(best_places(lexical(question, texts), MOST_EMBEDDED))
        kept_of = prefilter(question, [texts[place] for place in first], kept, how, embedder, seed)
        return [first[place] for place in kept_of]
    places = range(len(texts))
    if how == "random":
        return random.Random(seed).sample(places, min(kept, len(texts)))
    if how in ("aligned", "none") or not texts:
        return list(places[: kept if how == "aligned" else None])
    rankings = []
    if how in ("lexical", "rrf"):
        rankings.append(Ranking.of(places, lexical(question, texts)))
    if how in ("semantic", "rrf"):
        cosines = embedder.embed(texts, role="query") @ embedder.embed([question], role="query")[0]
        rankings.append(Ranking.of(places, cosines.tolist()))
    return [place for place, _ in reciprocal_rank_fusion(rankings, k=kept)]


def lexical(question: str, documents: Sequence[str]) -> list[float]:
    """BM25 of a question over a few short texts."""
    bags = [Counter(stem(word) for word in document.split()) for document in documents]
    terms = [stem(word) for word in re.findall(r"\w+", question.lower())]
    usual = max(sum(map(len, bags)) / max(len(bags), 1), 1e-9)
    seen = Counter(term for bag in bags for term in bag)
    scores = []
    for bag in bags:
        weight = K1 * (1 - B + B * bag.total() / usual)
        known = [term for term in terms if bag[term]]
        rarity = [np.log(1 + (len(bags) - seen[term] + 0.5) / (seen[term] + 0.5)) for term in known]
        parts = [rare * bag[term] * (K1 + 1) / (bag[term] + weight) for term, rare in zip(known, rarity, strict=True)]
        scores.append(float(sum(parts)))
    return scores
