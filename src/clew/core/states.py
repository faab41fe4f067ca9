"""The state of an answer, and the one table of words that every view has for it.

The page holds the same words in `web/src/texts`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

T = TypeVar("T")
State = Literal["found", "maybe", "not_found"]
FOUND_FROM = 0.75
"""Certainty from which an answer is found; below it, it may be right."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What is said of an answer in one state."""

    headline: str
    """Said before the answer, or in its place."""
    matches: str
    """Heading of what satisfies the query."""
    near: str
    """Heading of what does not."""
    quotes: str = ""
    """Headline of an answer from documents."""


RANKED = "Ranked by what is written, not checked"
"""Heading of candidates that nothing was checked of."""
UNKNOWN = "I do not know"
"""How an answer begins that names what the base does not have."""
SATISFIES, DOUBTED = "satisfies the query", "fits a reading that is not sure"
"""Why a candidate is listed: in an answer, and where nothing was found."""
WORDINGS: dict[State, Wording] = {
    "found": Wording("", "Matches", "Not matching, but near"),
    "maybe": Wording(
        "I am not sure.",
        "Possible matches",
        "Not matching, but near",
        "I am not sure. One of these may say it:",
    ),
    "not_found": Wording(
        "I did not find this.", "", "Nearest, but not an answer", "I did not find this in these documents."
    ),
}


def state_of(*, is_answer: bool, is_checked: bool, certainty: float | None) -> State:
    """The state of an answer that was put forward, checked against the base, and read as certainly as said."""
    if not is_answer:
        return "not_found"
    return "found" if is_checked and (certainty is None or certainty >= FOUND_FROM) else "maybe"


def is_refusal(text: str | None) -> bool:
    """Whether a text says that there is no answer."""
    return (text or "").startswith((WORDINGS["not_found"].headline.rstrip("."), UNKNOWN))


def headline(state: State, text: str | None) -> str:
    """What a view says before a text: nothing where the text itself begins so."""
    opening = WORDINGS[state].headline
    return "" if is_refusal(text) or (opening and (text or "").startswith(opening)) else opening


def percentage(state: State, certainty: float | None) -> int | None:
    """The certainty to show, in whole percent: none that would say something else than the state."""
    if certainty is None or state == "not_found" or (certainty >= FOUND_FROM) != (state == "found"):
        return None
    return int(100 * certainty + 1e-9)


def certainty_in_words(state: State, certainty: float | None) -> str:
    """ "82% sure", or nothing."""
    percent = percentage(state, certainty)
    return "" if percent is None else f"{percent}% sure"


def sections(
    state: State, items: Sequence[T], matches: int, limit: int, *, is_value: bool = False
) -> list[tuple[str, Sequence[T]]]:
    """The first items under the heading of their group; a heading says how many of how many follow.

    The first `matches` items satisfy the query. Where none does and no value was asked for, all are only ranked.
    """
    limit = min(limit, len(items))
    words, near = WORDINGS[state], items[matches:limit]
    is_ranked = state == "maybe" and not matches and not is_value
    more = f", {limit:,} of {matches:,}" if limit < matches else ""
    groups = [(f"{words.matches}{more}", items[: min(matches, limit)]), (RANKED if is_ranked else words.near, near)]
    return [(title, group) for title, group in groups if group]
