"""Prompt files, and typed values from replies.

A prompt is a text file with `$placeholders`. Missing or unused placeholders raise an error. JSON in a reply is
validated against types, and requested again if it is invalid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Template
from typing import Any, Generic, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from clew.core import trace
from clew.core.errors import InputError, ReplyError
from clew.core.texts import what_is_wrong, whole_value
from clew.models.protocol import Beams, Completion, LanguageModel, Message, Request

SYSTEM_END = "\n---\n"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file: an optional system part, a line of three dashes, and the user part."""

    name: str
    system: str
    user: str

    @classmethod
    def load(cls, package: str, name: str) -> Prompt:
        """Read `name`.txt of a package, such as `clew.answering.roles.prompts`."""
        text = resources.files(package).joinpath(f"{name}.txt").read_text("utf-8").strip()
        system, mark, user = text.partition(SYSTEM_END)
        prompt = cls(name, system.strip() if mark else "", user.strip() if mark else text)
        for part in (prompt.system, prompt.user):
            if not Template(part).is_valid():
                raise InputError(f"prompt {name}: invalid placeholder: write $$ for a dollar sign")
        return prompt

    @property
    def holes(self) -> frozenset[str]:
        """Names of the placeholders."""
        return frozenset(Template(self.system).get_identifiers()) | frozenset(Template(self.user).get_identifiers())

    def fill(self, **values: object) -> tuple[Message, ...]:
        """Return the messages of the prompt. Raise InputError unless the values are exactly the placeholders."""
        missing, unused = self.holes - values.keys(), values.keys() - self.holes
        if missing or unused:
            wrong = [f"missing: {', '.join(sorted(missing))}"] if missing else []
            wrong += [f"unused: {', '.join(sorted(unused))}"] if unused else []
            raise InputError(f"prompt {self.name}: {'; '.join(wrong)}")
        system = (Message("system", Template(self.system).substitute(values)),) if self.system else ()
        return (*system, Message("user", Template(self.user).substitute(values)))


M = TypeVar("M", bound=BaseModel)
LONGEST = 200_000
"""Maximum characters of a reply to search for JSON."""
MOST_STARTS = 40
"""Maximum number of brackets to try as the start of JSON."""
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_START = re.compile(r"[{\[]")


class TypedReply(BaseModel):
    """Base class of typed replies: strict types, extra fields ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, strict=False)


def find_json(text: str) -> Iterator[Any]:
    """Yield every JSON object or array in a reply: the whole text, fenced blocks, then from each bracket."""
    text = text[:LONGEST].strip()
    seen = 0
    for part in (text, *(match[1].strip() for match in _FENCE.finditer(text))):
        value = _decode(part, 0)
        if value is not None and value[1] == len(part):
            yield value[0]
    end = 0
    for match in _START.finditer(text):
        if match.start() < end:  # inside a value that was already found
            continue
        if (seen := seen + 1) > MOST_STARTS:
            return
        value = _decode(text, match.start())
        if value is not None:
            end = value[1]
            yield value[0]


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def read_json(text: str, model: type[M]) -> M:
    """Return the first valid JSON value in a reply. Raise ReplyError with the mistakes if there is none."""
    if not text.strip():
        raise ReplyError("the reply is empty; expected a JSON object")
    wrong: str | None = None
    for value in find_json(text):
        try:
            return model.model_validate(value)
        except ValidationError as failure:
            wrong = wrong or what_is_wrong(failure, "the reply", 3)
    raise ReplyError(wrong or "the reply holds no JSON object, or an unfinished one")


def _decode(text: str, start: int) -> tuple[Any, int] | None:
    try:
        value, end = _DECODER.raw_decode(text, start)
        return whole_value(value), end
    except (ValueError, RecursionError):  # RecursionError: brackets nested thousands deep
        return None


T = TypeVar("T")
SHOWN_REPLY = 1500
"""Maximum characters of an invalid reply to show to the model again."""
AGAIN = "That reply cannot be used: {problem}. Reply again, with nothing but what was asked for."


@dataclass(frozen=True, slots=True)
class Ask(Generic[T]):
    """A request and the parser of its reply. `read` raises ReplyError for an invalid reply."""

    messages: tuple[Message, ...]
    read: Callable[[Completion], T]
    salvage: Callable[[Completion], T] | None = None
    """Extracts a value from a reply that was invalid twice, or raises ReplyError."""
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    top_logprobs: int = 0
    seed: int = 0
    n: int = 1
    beams: Beams | None = None

    def request(self, *further: Message) -> Request:
        """Return the request with further messages at the end."""
        return Request(
            (*self.messages, *further),
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            schema=self.schema,
            seed=self.seed,
            top_logprobs=self.top_logprobs,
            n=self.n,
            beams=self.beams,
        )


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The value of a reply, or the problem that remained after a second request."""

    value: T | None
    problem: str | None = None


def ask(model: LanguageModel, asks: Sequence[Ask[T]], *, role: str) -> list[Outcome[T]]:
    """Return one outcome per ask, in the same order. The caller records a fallback for each problem."""
    if not asks:
        return []
    with trace.span(role, asked=len(asks)) as span:
        completions = model.complete([one.request() for one in asks])
        outcomes = [_read(one, completion) for one, completion in zip(asks, completions, strict=True)]
        # Failed calls are not repeated here: a wrapper retries them, and a spent budget stays spent.
        wrong = [
            place
            for place, outcome in enumerate(outcomes)
            if outcome.problem is not None and completions[place].error is None
        ]
        if wrong:
            again = model.complete([_again(asks[place], completions[place], outcomes[place]) for place in wrong])
            for place, completion in zip(wrong, again, strict=True):
                outcomes[place] = _second(asks[place], completions[place], completion)
        span.note(asked_again=len(wrong), failed=sum(outcome.problem is not None for outcome in outcomes))
    return outcomes


def _read(one: Ask[T], completion: Completion) -> Outcome[T]:
    if completion.error is not None:
        return Outcome(None, completion.error)
    try:
        return Outcome(one.read(completion))
    except ReplyError as failure:
        cut = f" (the reply was cut off after {one.max_tokens} tokens)" if completion.cut else ""
        return Outcome(None, f"{failure}{cut}")


def _second(one: Ask[T], first: Completion, second: Completion) -> Outcome[T]:
    outcome = _read(one, second)
    if outcome.problem is None or one.salvage is None:
        return outcome
    for completion in (second, first):
        if completion.error is None:
            try:
                return Outcome(one.salvage(completion))
            except ReplyError:
                continue
    return outcome


def _again(one: Ask[T], completion: Completion, outcome: Outcome[T]) -> Request:
    said = Message("assistant", completion.text[:SHOWN_REPLY] or "(nothing)")
    return one.request(said, Message("user", AGAIN.format(problem=outcome.problem)))
