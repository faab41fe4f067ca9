"""The metrics, one formula per function, over relevance in ranked order; nothing here knows a data set or a model.

A ranking is judged by `found`: for every place of the ranking, the gold answers it names (usually none or one). A gold
answer counts once, at the first place that names it; one that is never named was not retrieved, whatever its score.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

Found = Sequence[frozenset[int]]
"""For each place, the numbers of the gold answers found there."""


def hit(found: Found, k: int) -> float:
    """Hit@k: 1 where any of the first k places names a gold answer."""
    return float(any(found[:k]))


def recall(found: Found, gold: int, k: int) -> float:
    """Recall@k over all gold answers, as in STaRK's official evaluation."""
    return len(frozenset().union(*found[:k])) / gold if gold else 0.0


def capped_recall(found: Found, gold: int, k: int) -> float:
    """Recall@k over min(k, gold), as in 4StepFocus: the best possible ranking scores 1."""
    return len(frozenset().union(*found[:k])) / min(k, gold) if gold else 0.0


def reciprocal_rank(found: Found) -> float:
    """1 / the first place that names a gold answer, 0 where none does; its mean is the MRR (Voorhees 1999)."""
    return next((1.0 / place for place, named in enumerate(found, 1) if named), 0.0)


def precision(found: Found) -> float:
    """The share of places that name a gold answer, 0 where there are none."""
    return sum(map(bool, found)) / len(found) if found else 0.0


def f1(found: Found, gold: int) -> float:
    """The harmonic mean of precision and recall of an answer set."""
    correct, complete = precision(found), recall(found, gold, len(found))
    return 2 * correct * complete / (correct + complete) if correct and complete else 0.0


def exact(found: Found, gold: int) -> float:
    """1 where an answer set names every gold answer and nothing else."""
    return float(bool(gold) and precision(found) == 1.0 and recall(found, gold, len(found)) == 1.0)


def covered(found: Found, gold: int, k: int) -> float:
    """SF-EM (supporting facts, exact): 1 where the first k places name every gold answer."""
    return float(bool(gold) and recall(found, gold, k) == 1.0)


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise_text(text: str) -> str:
    """Lower case, no punctuation, no articles, single spaces: the rule of SQuAD (Rajpurkar et al. 2016).

    Deviation from SQuAD: a text that is nothing but articles and punctuation, such as the grade "A", stays as it is.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()) or text.strip().lower()


def text_exact(answer: str, gold: Iterable[str]) -> float:
    """EM: 1 where the normalised answer is one of the accepted ones."""
    ours = normalise_text(answer)
    return float(bool(ours) and ours in {normalise_text(accepted) for accepted in gold})


def text_f1(answer: str, gold: Iterable[str]) -> float:
    """The best token F1 against an accepted answer; yes and no are right or wrong as a whole (Yang et al. 2018)."""
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
    """The smallest value that at least this share of the values does not exceed; 0 where there are none."""
    return float(np.quantile(values, share, method="inverted_cdf")) if values else 0.0
