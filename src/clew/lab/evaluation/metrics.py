"""Metrics over ranked results, one function per formula, independent of data sets and models.

A ranking is given by `found`: for each rank, the matching gold answers, usually none or one. A gold answer counts once,
at the first rank that matches it. Gold answers without a match were not retrieved.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

Found = Sequence[frozenset[int]]
"""For each rank, the numbers of the matching gold answers."""


def hit(found: Found, k: int) -> float:
    """Compute Hit@k: 1 if any of the first k results matches a gold answer."""
    return float(any(found[:k]))


def recall(found: Found, gold: int, k: int) -> float:
    """Compute Recall@k over all gold answers, like STaRK's official evaluation."""
    return len(frozenset().union(*found[:k])) / gold if gold else 0.0


def capped_recall(found: Found, gold: int, k: int) -> float:
    """Compute Recall@k over min(k, gold), like 4StepFocus. The best possible ranking scores 1."""
    return len(frozenset().union(*found[:k])) / min(k, gold) if gold else 0.0


def reciprocal_rank(found: Found) -> float:
    """Compute 1 / the first matching rank, or 0 without a match. The mean is the MRR (Voorhees 1999)."""
    return next((1.0 / place for place, named in enumerate(found, 1) if named), 0.0)


def precision(found: Found) -> float:
    """Compute the share of results that match a gold answer, or 0 without results."""
    return sum(map(bool, found)) / len(found) if found else 0.0


def f1(found: Found, gold: int) -> float:
    """Compute the harmonic mean of precision and recall of an answer set."""
    correct, complete = precision(found), recall(found, gold, len(found))
    return 2 * correct * complete / (correct + complete) if correct and complete else 0.0


def exact(found: Found, gold: int) -> float:
    """Return 1 if an answer set contains every gold answer and nothing else."""
    return float(bool(gold) and precision(found) == 1.0 and recall(found, gold, len(found)) == 1.0)


def covered(found: Found, gold: int, k: int) -> float:
    """Compute SF-EM (supporting facts, exact): 1 if the first k results match every gold answer."""
    return float(bool(gold) and recall(found, gold, k) == 1.0)


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise_text(text: str) -> str:
    """Lower-case the text and remove punctuation, articles and extra spaces, like SQuAD (Rajpurkar et al. 2016).

    Deviation from SQuAD: a text of only articles and punctuation, such as the grade "A", is only lower-cased.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()) or text.strip().lower()


def text_exact(answer: str, gold: Iterable[str]) -> float:
    """Compute EM: 1 if the normalised answer equals an accepted answer."""
    ours = normalise_text(answer)
    return float(bool(ours) and ours in {normalise_text(accepted) for accepted in gold})


def text_f1(answer: str, gold: Iterable[str]) -> float:
    """Return the best token F1 over the accepted answers. Yes and no must match exactly (Yang et al. 2018)."""
    return max((_token_f1(normalise_text(answer), normalise_text(accepted)) for accepted in gold), default=0.0)


def _token_f1(answer: str, gold: str) -> float:
    if not answer or not gold:
        return 0.0
    if {answer, gold} & {"yes", "no", "noanswer"}:
        return float(answer == gold)
    ours, theirs = answer.split(), gold.split()
    common = (Counter(ours) & Counter(theirs)).total()
    return 2 * common / (len(ours) + len(theirs))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that is at least as large as this share of the values, or 0 without values."""
    return float(np.quantile(values, share, method="inverted_cdf")) if values else 0.0
