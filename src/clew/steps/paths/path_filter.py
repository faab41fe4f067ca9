"""The pre-filter of Tournament on Path: which of many relation paths a judge gets to see."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np

from clew.core.types import Ranking
from clew.index.fusion import reciprocal_rank_fusion
from clew.index.tokens import stem
from clew.steps.language.phrase_matching import PhraseVectors
from clew.steps.language.relation_words import words
from clew.steps.paths.relation_paths import RelationPath

Filter = Literal["aligned", "lexical", "semantic", "rrf", "random", "none"]


def prefilter(
    question: str,
    paths: Sequence[RelationPath],
    kept: int,
    how: Filter,
    vectors: PhraseVectors,
    seed: int = 0,
) -> list[RelationPath]:
    """The `kept` paths most like the question, best first; "aligned" and "none" keep the order in which they come."""
    if how == "random":
        return random.Random(seed).sample(list(paths), min(kept, len(paths)))
    if how in ("aligned", "none") or not paths:
        return list(paths[: kept if how == "aligned" else None])
    rankings = []
    if how in ("lexical", "rrf"):
        rankings.append(Ranking.of(range(len(paths)), lexical(question, [_text(path) for path in paths])))
    if how in ("semantic", "rrf"):
        vector = vectors.of([question])[0]
        hops = {" ".join(words(move.relation)) for path in paths for move in path.moves}
        near = dict(zip(hops, (vectors.of(list(hops)) @ vector).tolist(), strict=True))
        means = [float(np.mean([near[" ".join(words(move.relation))] for move in path.moves])) for path in paths]
        rankings.append(Ranking.of(range(len(paths)), means))
    return [paths[place] for place, _ in reciprocal_rank_fusion(rankings, k=kept)]


def lexical(question: str, documents: Sequence[str], k1: float = 1.2, b: float = 0.75) -> list[float]:
    """BM25 of a question over a few short texts."""
    bags = [Counter(stem(word) for word in document.split()) for document in documents]
    terms = [stem(word) for word in re.findall(r"\w+", question.lower())]
    usual = max(sum(map(len, bags)) / max(len(bags), 1), 1e-9)
    seen = Counter(term for bag in bags for term in bag)
    scores = []
    for bag in bags:
        weight = k1 * (1 - b + b * bag.total() / usual)
        scores.append(
            sum(
                np.log(1 + (len(bags) - seen[term] + 0.5) / (seen[term] + 0.5))
                * bag[term]
                * (k1 + 1)
                / (bag[term] + weight)
                for term in terms
                if bag[term]
            )
        )
    return [float(score) for score in scores]


def _text(path: RelationPath) -> str:
    return " ".join(" ".join(words(move.relation)) for move in path.moves)
