"""Let a model write questions: for each relation and attribute of a base, or complete questions in a conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from clew.core import trace
from clew.core.errors import ModelError
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, Prompt, TypedReply, ask, object_schema, read_json

PROMPT = Prompt.load("clew.answering.roles.prompts", "wordings")
QUESTIONS = 5
"""Number of questions per target."""
TOGETHER = 10
"""Number of targets per request."""
LONGEST = 300
"""Maximum length of a question, in characters."""
TOKENS = 160
"""Maximum tokens of a reply per target."""
NAME, VALUE = "[]", "#"
"""Placeholders for a name and for a value in a question."""
Way = Literal["reached", "value", "most", "compared", "true"]
"""Form of the question: the node that a name leads to, a value, the largest value, a comparison, a condition."""
MARK: dict[Way, str] = {"reached": NAME, "value": NAME, "compared": VALUE}


@dataclass(frozen=True, slots=True)
class WordingTarget:
    """A target of questions: its subject, the form of the question, and both as text."""

    about: str
    way: Way
    words: str


class _Asked(TypedReply):
    number: int
    questions: list[str]


class _AllAsked(TypedReply):
    asked: list[_Asked]


_TEXTS = {"type": "array", "items": {"type": "string"}}
SCHEMA = object_schema(
    {"asked": {"type": "array", "items": object_schema({"number": {"type": "integer"}, "questions": _TEXTS})}}
)


def word(
    model: LanguageModel, types: str, wanted: Sequence[WordingTarget], progress: Callable[[int, int], None]
) -> list[tuple[WordingTarget, tuple[str, ...]]]:
    """Return questions per target. Raise ModelError if no reply is usable.

    If only some replies are unusable, record a fallback. Their targets get no questions.
    """
    parts = [wanted[start : start + TOGETHER] for start in range(0, len(wanted), TOGETHER)]
    outcomes = ask(model, [_ask(types, part) for part in parts], role="wordings")
    if outcomes and all(outcome.value is None for outcome in outcomes):
        raise ModelError(f"{model.name} worded no question: {outcomes[0].problem or 'no reply'}")
    found: list[tuple[WordingTarget, tuple[str, ...]]] = []
    for outcome, part in zip(outcomes, parts, strict=True):
        if outcome.value is None:
            trace.fallback("wordings", outcome.problem or "no reply", f"no questions for {len(part)} things")
        told = outcome.value or {}
        found += [(one, usable(one.way, told.get(place, []))) for place, one in enumerate(part, 1)]
        progress(len(found), len(wanted))
    return found


def usable(way: Way, questions: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct questions that contain the required placeholder exactly once."""
    mark = MARK.get(way)
    told = (" ".join(question.split()) for question in questions)
    return tuple(dict.fromkeys(one for one in told if 0 < len(one) <= LONGEST and (not mark or one.count(mark) == 1)))


def _ask(types: str, part: Sequence[WordingTarget]) -> Ask[dict[int, list[str]]]:
    listed = "\n".join(f"{place}. {one.words}" for place, one in enumerate(part, 1))

    def read(completion: Completion) -> dict[int, list[str]]:
        return {one.number: one.questions for one in read_json(completion.text, _AllAsked).asked}

    filled = PROMPT.fill(types=types, many=QUESTIONS, wanted=listed)
    return Ask(filled, read, schema=SCHEMA, max_tokens=TOKENS * len(part))


REWRITE = Prompt.load("clew.answering.roles.prompts", "rewrite")
LONGEST_ANSWER = 300
"""Maximum characters of an earlier answer in the prompt."""
REWRITTEN = object_schema({"question": {"type": "string"}})


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer."""

    question: str
    answer: str


class _Rewritten(TypedReply):
    question: str = Field(min_length=1, max_length=1000)


def rewrite(model: LanguageModel, history: Sequence[Exchange], question: str) -> str | None:
    """Return the complete question. Return None and record a fallback if the reply cannot be used."""
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
        trace.fallback("rewrite", outcome.problem or "no reply", "asked unchanged")
    return outcome.value
