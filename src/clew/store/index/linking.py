"""Probability that a similarly spelled name is meant. Similar meaning is not sufficient."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rapidfuzz.distance import OSA

from clew.store.index.names import form_of
from clew.store.index.protocol import Link

LINKED = 0.5
"""Minimum probability of a link. Less likely names count as unknown."""
WEIGHTS = {
    "errors": -25.28, "shortness": 0.56, "is part": -5.87, "covered": 4.98, "same initial": 1.33,
    "other digits": -6.18, "lead": 0.4, "rivals": -0.83,
}  # fmt: skip
BIAS = 4.01
"""Fitted by `benchmarks/fit_links.py`: misspelled, reordered and shortened names against names of other bases."""
REORDERED, JOINED = 0.5, 0.3
"""Error counts for reordered words and for different spaces."""
MAX_LEAD, MAX_RIVALS, FAR = 4.0, 3, 9.0
"""Limits of the features "lead" and "rivals", and of the distance to the second name. `WEIGHTS` are fitted to them."""


def link_probability(text: str, links: Sequence[Link]) -> float:
    """Return the probability that a name refers to the first of `links`, which are the result of `Names.link`."""
    if not links or links[0].how == "vector":
        return 0.0
    if links[0].how == "exact":
        return 1.0
    features = link_features(text, [link.alias for link in links if link.how != "vector"])
    total = BIAS + sum(WEIGHTS[name] * value for name, value in features.items())
    return float(1 / (1 + np.exp(-total)))


def link_features(text: str, aliases: Sequence[str]) -> dict[str, float]:
    """Return the features of the probability of the first alias, with the other aliases as competitors."""
    form, best, *others = map(form_of, (text, *aliases))
    size, errors, in_words = max(len(form), len(best), 1), _errors(form, best), _errors_in_words(form, best)
    apart = {other for other in others if not set(best.split()) <= set(other.split())}
    rivals = [other for other in apart if _errors_in_words(form, other) is not None]
    second = next((other for other in others if other != best), None)
    lead = (FAR if second is None else min(OSA.distance(form, second), FAR)) - errors
    is_part = in_words is not None
    return {
        "errors": errors / size if in_words is None else in_words / len(form),
        "shortness": 1 / size,
        "is part": float(is_part),
        "covered": is_part * len(form) / size,
        "same initial": float(form[:1] == best[:1]),
        "other digits": float(_digits(form) != _digits(best) and not is_part),
        "lead": 0.0 if is_part else min(max(lead, 0.0), MAX_LEAD),
        "rivals": float(min(len(rivals), MAX_RIVALS)) if is_part else 0.0,
    }


def _errors_in_words(form: str, longer: str) -> int | None:
    """Count typing errors of a name that lacks words of a longer name. Return None if it has additional words."""
    words, known = form.split(), longer.split()
    if len(words) >= len(known):
        return None
    errors = [min(OSA.distance(word, other) for other in known) for word in words]
    return sum(errors) if all(error <= len(word) // 4 for error, word in zip(errors, words, strict=True)) else None


def _errors(form: str, other: str) -> float:
    """Count typing errors between two names, ignoring word order and spaces."""
    sorted_form, sorted_other = (" ".join(sorted(one.split())) for one in (form, other))
    joined = OSA.distance(form.replace(" ", ""), other.replace(" ", ""))
    return min(float(OSA.distance(form, other)), OSA.distance(sorted_form, sorted_other) + REORDERED, joined + JOINED)


def _digits(form: str) -> str:
    return "".join(filter(str.isdecimal, form))
