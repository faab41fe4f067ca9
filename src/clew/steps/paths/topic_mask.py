"""The part of a question that names its topic, masked, so that only what is asked about the topic is left to read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rapidfuzz import fuzz

from clew.index.terms import stop_words
from clew.steps.paths.topics import MARKED

MASK = "[]"
ENOUGH = 0.6
"""How alike a span and a name must be for the span to stand for the name."""
SURELY = 0.7
"""The same where the name is marked beside the span: what is marked needs no second mention."""
_WORD = re.compile(r"\w+")


def mask_topic(question: str, names: Sequence[str]) -> str:
    """The question with `[]` where its topic stands, and without the marks of other topics.

    A mark at the very end may have been added to a question that names its topic in other words, such as
    “where did Crabtree go to college [Michael Crabtree]”: then those words are masked.
    """
    marks = list(MARKED.finditer(question))
    if not marks:
        return _masked(question, names, ENOUGH)
    first = marks[0]
    if first.end() == len(question.rstrip()):
        rest = question[: first.start()].rstrip()
        masked = _masked(rest, [first[1], *names], SURELY)
        if MASK in masked:
            return masked
    whole = question[: first.start()] + MASK + MARKED.sub(r"\1", question[first.end() :])
    return whole.strip()


def _masked(question: str, names: Sequence[str], enough: float) -> str:
    words = [(found.start(), found.end(), found[0].lower()) for found in _WORD.finditer(question)]
    best, place = 0.0, (0, 0)
    for name in names:
        wanted = _WORD.findall(name.lower())
        for start in range(len(words)):
            for end in range(start + 1, min(start + len(wanted) + 2, len(words)) + 1):
                span = [word for *_, word in words[start:end]]
                if any(word in stop_words() and word not in wanted for word in (span[0], span[-1])):
                    continue
                score = _likeness(span, wanted)
                if score > best + 1e-9:
                    best, place = score, (words[start][0], words[end - 1][1])
    return question if best < enough else question[: place[0]] + MASK + question[place[1] :]


def _likeness(span: Sequence[str], wanted: Sequence[str]) -> float:
    """By letters in any order; a part of the name, or its short form, counts as well: “Ben Franklin”."""
    letters = fuzz.token_sort_ratio(" ".join(span), " ".join(wanted)) / 100
    known = all(any(_short_form(word, other) for other in wanted) for word in span)
    return max(letters, 0.9 * (0.6 + 0.4 * min(1.0, len(span) / max(len(wanted), 1))) if known else 0.0)


def _short_form(word: str, name: str) -> bool:
    short, long = sorted((word, name), key=len)
    return word == name or (len(short) > 2 and long.startswith(short))
