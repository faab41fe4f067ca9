"""Reading passages and answering in a few words with citations, by a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from clew.core import trace
from clew.core.errors import ReplyError
from clew.models.prompts import Prompt
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, ask, read_json
from clew.models.tokens import count_tokens, cut_to_question
from clew.steps.roles.extracting import BestSpan
from clew.steps.roles.protocol import Read, Reader, Reading, Source

READ = Prompt.load("clew.steps.roles.prompts", "read")
NO_ANSWER = frozenset({"", "unknown", "none", "n/a", "not found", "no answer", "not mentioned", "not provided"})
LONGEST_ANSWER = 400


class _Read(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)
    answer: str | int | float
    passages: list[StrictInt] = Field(default_factory=list)


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "passages": {"type": "array", "items": {"type": "integer"}}},
    "required": ["answer", "passages"],
    "additionalProperties": False,
}


def read_answer(completion: Completion, sources: int) -> Read:
    """The answer with the positions it cites; raises ReplyError where it cites a passage that was not shown."""
    reply = read_json(completion.text, _Read)
    wrong = [number for number in reply.passages if not 1 <= number <= sources]
    if wrong:
        raise ReplyError(f"there is no passage {wrong[0]}; the passages are 1 to {sources}")
    return _read(reply, reply.passages)


def salvage_answer(completion: Completion, sources: int) -> Read:
    """The answer without the citations that point nowhere."""
    reply = read_json(completion.text, _Read)
    return _read(reply, [number for number in reply.passages if 1 <= number <= sources])


def _read(reply: _Read, numbers: Sequence[int]) -> Read:
    text = " ".join(str(reply.answer).split()).strip(" .")
    if re.sub(r"[^\w/ ]", "", text).lower().strip() in NO_ANSWER:
        return Read(None)
    if len(text) > LONGEST_ANSWER:
        raise ReplyError("the answer is not short")
    return Read(text, tuple(dict.fromkeys(number - 1 for number in numbers)))


@dataclass(frozen=True)
class ModelReader:
    """Asks a model; passages that do not fit into its context are cut to what the question needs."""

    model: LanguageModel
    words: int = 6
    """How long an answer may be; the paper's "under six words" for benchmarks."""
    fallback: Reader = field(default_factory=BestSpan)

    def read(self, readings: Sequence[Reading]) -> list[Read]:
        """One answer per reading; nothing to read means no answer, without asking."""
        filled = [place for place, reading in enumerate(readings) if reading.sources]
        outcomes = ask(self.model, [self._ask(readings[place]) for place in filled], role="read")
        answers = [Read(None)] * len(readings)
        for place, outcome in zip(filled, outcomes, strict=True):
            if outcome.value is not None:
                answers[place] = outcome.value
                continue
            trace.fallback("read", outcome.problem or "no reply", f"read by {type(self.fallback).__name__}")
            [instead] = self.fallback.read([readings[place]])
            answers[place] = replace(instead, problem=outcome.problem)
        return answers

    def _ask(self, reading: Reading) -> Ask[Read]:
        shown = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(self._cut(reading), 1))
        count = len(reading.sources)
        return Ask(
            READ.fill(passages=shown, question=reading.question, words=self.words),
            lambda completion: read_answer(completion, count),
            salvage=lambda completion: salvage_answer(completion, count),
            schema=SCHEMA,
            max_tokens=120,
        )

    def _cut(self, reading: Reading) -> list[str]:
        """Each source's fair share of the room: short ones leave theirs to the longer."""
        texts = [_shown(source) for source in reading.sources]
        sizes = [count_tokens(text) for text in texts]
        room = self.model.context_tokens - 500 - count_tokens(reading.question)
        share, left = room, len(texts)
        for size in sorted(sizes):
            share = room // left
            if size > share:
                break
            room, left = room - size, left - 1
        return [
            text if size <= share else cut_to_question(text, reading.question, max(8, share))
            for text, size in zip(texts, sizes, strict=True)
        ]


def _shown(source: Source) -> str:
    return f"{source.title}: {source.text}" if source.title else source.text
