"""Mask the topic of a question, so that only the words about the topic remain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from rapidfuzz import fuzz

from clew.answering.reading.mentions import MARKED
from clew.store.index.tokens import stop_words

MASK = "[]"
ENOUGH = 0.6
"""Minimum similarity of a span and a name to mask the span."""
SURELY = 0.7
"""Minimum similarity if the name is also marked in the question. A marked name needs no second mention."""
_WORD = re.compile(r"\w+")


def mask_topic(question: str, names: Sequence[str]) -> str:
    """Replace the topic of a question by `[]`, and remove the marks of other topics.

    Marks at the very end may have been added to a question that names its topics in other words, such as “where did
    Crabtree go to college [Michael Crabtree]”. Then those words are masked.
    """
    marks = list(MARKED.finditer(question))
    if not marks:
        return _masked(question, names, ENOUGH)
    wanted = {name.casefold() for name in names}
    own = next((mark for mark in marks if mark[1].casefold() in wanted), marks[0])
    added = _added(question, marks)
    text = question[: min((mark.start() for mark in added), default=len(question))].rstrip()
    if own in added or own.end() == len(text):
        before = _plain(text if own in added else text[: own.start()]).rstrip()
        masked = _masked(before, [own[1], *names], SURELY)
        return masked if MASK in masked else f"{before} {MASK}".strip()
    return (_plain(text[: own.start()]) + MASK + _plain(text[own.end() :])).strip()


def mask_topics(question: str, names: Sequence[tuple[str, str]]) -> str:
    """Replace every mention of each name by its replacement, and remove all marks."""
    for name, instead in names:
        question = mask_topic(question, [name]).replace(MASK, instead)
        question = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", instead, question, flags=re.IGNORECASE)
    return _plain(question)


@cache
def _leading_words(language: str = "en") -> frozenset[str]:
    """Return words that lead up to a name. A name after one of them is part of the question."""
    return frozenset(files("clew.answering.reading").joinpath(language, "before_names.txt").read_text("utf-8").split())


def _plain(text: str) -> str:
    return MARKED.sub(r"\1", text)


def _added(question: str, marks: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """Return the marks at the end that no word leads up to: not “by [Ang Lee]”, but “now [Peru]”."""
    added: list[re.Match[str]] = []
    end = len(question.rstrip())
    for mark in reversed(marks):
        before = question[: mark.start()].split()
        if mark.end() != end or not before or (not added and before[-1].lower() in _leading_words()):
            break
        added.append(mark)
        end = len(question[: mark.start()].rstrip())
    return added


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
    """Return the similarity of a span to a name, 0..1, by letters in any order.

    A part of the name, or its short form, also counts: “Ben Franklin”.
    """
    telling = [[word for word in words if word not in stop_words()] for words in (span, wanted)]
    if telling[1] and not telling[0]:
        return 0.0  # “the” is not the film “The Mask”
    letters = fuzz.token_sort_ratio(" ".join(span), " ".join(wanted))
    if telling[1]:
        letters = min(letters, fuzz.token_sort_ratio(" ".join(telling[0]), " ".join(telling[1])) + 10)
    known = all(any(_short_form(word, other) for other in wanted) for word in span)
    part = 0.9 * (0.6 + 0.4 * min(1.0, len(span) / max(len(wanted), 1))) if known else 0.0
    return max(letters / 100, part)


def _short_form(word: str, name: str) -> bool:
    short, long = sorted((word, name), key=len)
    return word == name or (len(short) > 2 and long.startswith(short))
