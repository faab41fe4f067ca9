"""Words for the row before or after a row of a table: "the opponent after Japan", "who is listed before Ann?"."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Sequence
from functools import cache
from importlib.resources import files

from clew.store.index.tokens import Token

REACH = 2
"""Maximum distance of such a word from the name, in words."""


@cache
def _steps(language: str = "en") -> dict[str, int]:
    """Return the words, with 1 for the next row and -1 for the previous row."""
    raw = tomllib.loads(files("clew.answering.reading").joinpath(language, "order.toml").read_text("utf-8"))
    return dict.fromkeys(raw["after"], 1) | dict.fromkeys(raw["before"], -1)


def steps(tokens: Sequence[Token], outside: Collection[int], starts: Collection[int]) -> dict[str, int]:
    """Return the words before something, with their steps.

    `outside` lists the tokens outside names, and `starts` the first character of each thing that has neighbours.
    """
    first = {index for index, token in enumerate(tokens) if token.start in starts}
    near = (index for index in outside if not first.isdisjoint(range(index + 1, index + 1 + REACH)))
    return {tokens[index].text: step for index in near if (step := _steps().get(tokens[index].text))}
