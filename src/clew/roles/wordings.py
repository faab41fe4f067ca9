"""How people ask for what a base holds: a model words questions for each relation and attribute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from clew.core import trace
from clew.core.errors import ModelError
from clew.models.prompts import Prompt
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, Reply, ask, object_schema, read_json

PROMPT = Prompt.load("clew.roles.prompts", "wordings")
QUESTIONS = 5
"""For each that people can ask for."""
TOGETHER = 10
"""How many of them a model is asked about at once."""
LONGEST = 300
"""Characters of a question."""
TOKENS = 160
"""Of a reply, for each that was asked about."""
NAME, VALUE = "[]", "#"
"""What stands in a question for a name and for a value."""
Way = Literal["reached", "value", "most", "compared", "true"]
"""How something is asked for: as what a name leads to, as a value, by comparing, as what holds."""
MARK: dict[Way, str] = {"reached": NAME, "value": NAME, "compared": VALUE}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Something that people can ask a base for: what it is about, how it is asked for, and both in words."""

    about: str
    way: Way
    words: str


class _Asked(Reply):
    number: int
    questions: list[str]


class _AllAsked(Reply):
    asked: list[_Asked]


_TEXTS = {"type": "array", "items": {"type": "string"}}
SCHEMA = object_schema(
    {"asked": {"type": "array", "items": object_schema({"number": {"type": "integer"}, "questions": _TEXTS})}}
)


def word(
    model: LanguageModel, types: str, wanted: Sequence[Wanted], progress: Callable[[int, int], None]
) -> list[tuple[Wanted, tuple[str, ...]]]:
    """Questions for each; none for those whose reply cannot be used, which the trace says; no reply at all raises."""
    parts = [wanted[start : start + TOGETHER] for start in range(0, len(wanted), TOGETHER)]
    outcomes = ask(model, [_ask(types, part) for part in parts], role="wordings")
    if outcomes and all(outcome.value is None for outcome in outcomes):
        raise ModelError(f"{model.name} worded no question: {outcomes[0].problem or 'no reply'}")
    found: list[tuple[Wanted, tuple[str, ...]]] = []
    for outcome, part in zip(outcomes, parts, strict=True):
        if outcome.value is None:
            trace.fallback("wordings", outcome.problem or "no reply", f"no questions for {len(part)} things")
        told = outcome.value or {}
        found += [(one, usable(one.way, told.get(place, []))) for place, one in enumerate(part, 1)]
        progress(len(found), len(wanted))
    return found


def usable(way: Way, questions: Sequence[str]) -> tuple[str, ...]:
    """The questions that have the name or the value where it belongs, each once."""
    mark = MARK.get(way)
    told = (" ".join(question.split()) for question in questions)
    return tuple(dict.fromkeys(one for one in told if 0 < len(one) <= LONGEST and (not mark or one.count(mark) == 1)))


def _ask(types: str, part: Sequence[Wanted]) -> Ask[dict[int, list[str]]]:
    listed = "\n".join(f"{place}. {one.words}" for place, one in enumerate(part, 1))

    def read(completion: Completion) -> dict[int, list[str]]:
        return {one.number: one.questions for one in read_json(completion.text, _AllAsked).asked}

    filled = PROMPT.fill(types=types, many=QUESTIONS, wanted=listed)
    return Ask(filled, read, schema=SCHEMA, max_tokens=TOKENS * len(part))
