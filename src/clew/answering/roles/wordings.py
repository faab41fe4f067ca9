"""Questions that a model words: for each relation and attribute of a base, and anew within a conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from clew.core import trace
from clew.core.errors import ModelError
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, Prompt, Reply, ask, object_schema, read_json

PROMPT = Prompt.load("clew.answering.roles.prompts", "wordings")
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


REWRITE = Prompt.load("clew.answering.roles.prompts", "rewrite")
LONGEST_QUESTION = 1000
LONGEST_ANSWER = 300
"""Characters of an earlier answer that are shown."""
REWRITTEN = object_schema({"question": {"type": "string"}})


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and what was answered."""

    question: str
    answer: str


class _Rewritten(Reply):
    question: str = Field(min_length=1, max_length=LONGEST_QUESTION)


def rewrite(model: LanguageModel, history: Sequence[Exchange], question: str) -> str | None:
    """The whole question; None where the model's reply cannot be used, which the trace says."""
    shown = "\n".join(
        f"Question: {one.question}\nAnswer: {' '.join(one.answer.split())[:LONGEST_ANSWER]}" for one in history
    )

    def read(completion: Completion) -> str:
        return " ".join(read_json(completion.text, _Rewritten).question.split())

    [outcome] = ask(
        model,
        [Ask(REWRITE.fill(conversation=shown, question=question), read, schema=REWRITTEN, max_tokens=200)],
        role="rewrite",
    )
    if outcome.value is None:
        trace.fallback("rewrite", outcome.problem or "no reply", "asked as it stands")
    return outcome.value
