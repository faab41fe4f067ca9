"""Phrases for the row before or after a row of a table ("the opponent after Japan"), and for differences."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Sequence
from functools import cache
from importlib.resources import files

from clew.store.index.tokens import Token

REACH = 2
"""Maximum distance of such a word from the name, in words."""


@cache
def _phrases(language: str = "en") -> tuple[dict[str, int], re.Pattern[str]]:
    """Return words for the next row (1) and the previous row (-1), and the phrases for differences."""
    raw = tomllib.loads(files("clew.answering.reading").joinpath(language, "phrases.toml").read_text("utf-8"))
    step_words = dict.fromkeys(raw["after"], 1) | dict.fromkeys(raw["before"], -1)
    return step_words, re.compile("|".join(raw["difference"]), re.IGNORECASE)


def asks_difference(question: str) -> bool:
    """Return whether a question asks for the difference of two values."""
    return _phrases()[1].search(question) is not None


def steps(tokens: Sequence[Token], outside: Collection[int], starts: Collection[int]) -> dict[str, int]:
    """Return the words before something, with their steps.

    `outside` lists the tokens outside names, and `starts` the first character of each thing that has neighbours.
    """
    first = {index for index, token in enumerate(tokens) if token.start in starts}
    near = (index for index in outside if not first.isdisjoint(range(index + 1, index + 1 + REACH)))
    return {tokens[index].text: step for index in near if (step := _phrases()[0].get(tokens[index].text))}
