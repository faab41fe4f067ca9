"""The state of an answer, and its wording in every view.

`web/src/texts` contains the same words for the page, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

T = TypeVar("T")
State = Literal["found", "maybe", "not_found"]
FOUND_FROM = 0.8
"""Minimum certainty of a found answer. Below it, the state is "maybe"."""


@dataclass(frozen=True, slots=True)
class StateTexts:
    """Texts for an answer in one state."""

    headline: str
    """Shown before the answer, or instead of it."""
    matches: str
    """Heading of the candidates that satisfy the query."""
    near: str
    """Heading of the candidates that do not."""
    quotes: str = ""
    """Headline of an answer from documents."""


RANKED = "Ranked by what is written, not checked"
"""Heading of ranked candidates that were not checked."""
UNKNOWN = "I do not know"
"""Start of an answer about a name that the base does not have."""
SATISFIES, DOUBTED = "satisfies the query", "fits a reading that is not sure"
"""Reasons to list a candidate: in an answer, and if no answer was found."""
WORDINGS: dict[State, StateTexts] = {
    "found": StateTexts("", "Matches", "Not matching, but near"),
    "maybe": StateTexts(
        "I am not sure.",
        "Possible matches",
        "Not matching, but near",
        "I am not sure. One of these may say it:",
    ),
    "not_found": StateTexts(
        "I did not find this.", "", "Nearest, but not an answer", "I did not find this in these documents."
    ),
}


def state_of(*, is_answer: bool, is_checked: bool, certainty: float | None) -> State:
    """Return the state of an answer."""
    if not is_answer:
        return "not_found"
    return "found" if is_checked and (certainty is None or certainty >= FOUND_FROM) else "maybe"


def is_refusal(text: str | None) -> bool:
    """Return whether a text states that there is no answer."""
    return (text or "").startswith((WORDINGS["not_found"].headline.rstrip("."), UNKNOWN))


def headline(state: State, text: str | None) -> str:
    """Return the line to show before a text. Empty if the text already starts with it."""
    opening = WORDINGS[state].headline
    return "" if is_refusal(text) or (opening and (text or "").startswith(opening)) else opening


def percentage(state: State, certainty: float | None) -> int | None:
    """Return the certainty in whole percent, or None if it would contradict the state."""
    if certainty is None or state == "not_found" or (certainty >= FOUND_FROM) != (state == "found"):
        return None
    return int(100 * certainty + 1e-9)


def certainty_in_words(state: State, certainty: float | None) -> str:
    """Return text such as "82% sure", or an empty text if there is no percentage to show."""
    percent = percentage(state, certainty)
    return "" if percent is None else f"{percent}% sure"


def sections(
    state: State, items: Sequence[T], matches: int, limit: int, *, is_value: bool = False
) -> list[tuple[str, Sequence[T]]]:
    """Group the first `limit` items under headings, which also give the number of matches if some are cut off.

    The first `matches` items satisfy the query. Without matches and without a value, the items are only ranked.
    """
    limit = min(limit, len(items))
    words, near = WORDINGS[state], items[matches:limit]
    is_ranked = state == "maybe" and not matches and not is_value
    more = f", {limit:,} of {matches:,}" if limit < matches else ""
    groups = [(f"{words.matches}{more}", items[: min(matches, limit)]), (RANKED if is_ranked else words.near, near)]
    return [(title, group) for title, group in groups if group]
