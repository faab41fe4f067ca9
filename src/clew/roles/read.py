"""Reads passages and answers from them: the best span without a model, a written answer with one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from clew.core import trace
from clew.core.errors import ReplyError
from clew.core.roles import Read, Reader, Reading, Source
from clew.models.prompts import Prompt
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, ask, read_json
from clew.models.tokens import count_tokens, cut_to_question
from clew.reading.extraction.asked import Asked
from clew.reading.extraction.clues import Candidate, Evidence
from clew.reading.extraction.comparing import compared


@lru_cache(maxsize=1)
def shipped_weights() -> Mapping[str, float]:
    """What each clue weighs: a conditional logit over the spans of a question, fitted by benchmarks/reader.py."""
    weights: dict[str, float] = json.loads(files("clew.reading.extraction").joinpath("weights.json").read_text("utf-8"))
    return weights


@dataclass(frozen=True)
class BestSpan:
    """Answers with a span of the best sources, with one of two things the question names, or with yes or no.

    Yes or no it tells only of two things that both have a source; otherwise it cites the best sources and leaves the
    answer open.
    """

    closely: int = 6
    """Sources, best first, whose every span is weighed; two things are looked for in all."""
    citations: int = 2
    weights: Mapping[str, float] = field(default_factory=shipped_weights, repr=False)

    def read(self, readings: Sequence[Reading]) -> list[Read]:
        """One answer per reading; the best sentence where no span fits."""
        return [self._read(reading) for reading in readings]

    def _read(self, reading: Reading) -> Read:
        asked = Asked(reading.question)
        evidence = Evidence(asked, reading.sources[: self.closely])
        sentences = sorted(evidence.sentences, key=lambda sentence: -evidence.share(sentence.meanings))
        if not any(evidence.covered):
            return Read(None)
        answer = compared(asked, reading.sources)
        if answer is not None:
            return answer
        if asked.kind == "yes or no":
            best = tuple(dict.fromkeys(sentence.source for sentence in sentences))[: self.citations]
            return Read(None, best, problem="yes or no needs a language model")
        chosen = best_candidate(list(evidence.candidates()), self.weights)
        if chosen is None:
            return Read(sentences[0].text, (sentences[0].source,))
        return Read(chosen.text, (chosen.source,))


def best_candidate(candidates: Sequence[Candidate], weights: Mapping[str, float]) -> Candidate | None:
    """The likeliest answer where it stands best: the same words in several places speak for each other."""
    if not candidates:
        return None
    scores = [sum(weights.get(clue, 0.0) * value for clue, value in found.clues.items()) for found in candidates]
    highest = max(scores)
    likely: dict[str, float] = {}
    for found, score in zip(candidates, scores, strict=True):
        likely[found.key] = likely.get(found.key, 0.0) + math.exp(score - highest)
    answer = max(likely, key=lambda key: likely[key])
    return max(
        (pair for pair in zip(candidates, scores, strict=True) if pair[0].key == answer), key=lambda pair: pair[1]
    )[0]


READ = Prompt.load("clew.roles.prompts", "read")
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
