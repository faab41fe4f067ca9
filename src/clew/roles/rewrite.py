"""A question inside a conversation, rewritten by a model so that it can be understood alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from clew.core import trace
from clew.models.prompts import Prompt
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, Reply, ask, object_schema, read_json

PROMPT = Prompt.load("clew.roles.prompts", "rewrite")
LONGEST_QUESTION = 1000
LONGEST_ANSWER = 300
"""Characters of an earlier answer that are shown."""
SCHEMA = object_schema({"question": {"type": "string"}})


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
        [Ask(PROMPT.fill(conversation=shown, question=question), read, schema=SCHEMA, max_tokens=200)],
        role="rewrite",
    )
    if outcome.value is None:
        trace.fallback("rewrite", outcome.problem or "no reply", "asked as it stands")
    return outcome.value
