"""Prompts as files and replies as values.

A prompt is a text file with `$holes`; a missing or an unused hole raises, so that a prompt never silently lies. JSON is
found in a reply, checked against types, and asked for again where it is wrong.
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
from clew.core.texts import whole_value
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
                raise InputError(f"prompt {name}: a $ that opens no hole; write $$ for a dollar sign")
        return prompt

    @property
    def holes(self) -> frozenset[str]:
        """The names to be filled in."""
        return frozenset(Template(self.system).get_identifiers()) | frozenset(Template(self.user).get_identifiers())

    def fill(self, **values: object) -> tuple[Message, ...]:
        """The messages of the prompt; every hole must be given, and nothing else."""
        missing, unused = self.holes - values.keys(), values.keys() - self.holes
        if missing or unused:
            wrong = [f"missing: {', '.join(sorted(missing))}"] if missing else []
            wrong += [f"unused: {', '.join(sorted(unused))}"] if unused else []
            raise InputError(f"prompt {self.name}: {'; '.join(wrong)}")
        system = (Message("system", Template(self.system).substitute(values)),) if self.system else ()
        return (*system, Message("user", Template(self.user).substitute(values)))


M = TypeVar("M", bound=BaseModel)
LONGEST = 200_000
"""Characters of a reply that are looked at."""
MOST_STARTS = 40
"""Places where JSON might begin that are tried."""
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_START = re.compile(r"[{\[]")


class Reply(BaseModel):
    """What a reply holds: types are kept, and what was not asked for is passed over."""

    model_config = ConfigDict(extra="ignore", strict=True)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, strict=False)


def find_json(text: str) -> Iterator[Any]:
    """Every JSON object or array in a reply: the whole, what stands in fences, what begins at each bracket."""
    text = text[:LONGEST].strip()
    seen = 0
    for part in (text, *(match[1].strip() for match in _FENCE.finditer(text))):
        value = _decode(part, 0)
        if value is not None and value[1] == len(part):
            yield value[0]
    end = 0
    for match in _START.finditer(text):
        if match.start() < end:  # inside what was found already
            continue
        if (seen := seen + 1) > MOST_STARTS:
            return
        value = _decode(text, match.start())
        if value is not None:
            end = value[1]
            yield value[0]


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object with just these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def read_json(text: str, model: type[M]) -> M:
    """The first JSON value in a reply that is what was asked for; raises ReplyError with what was wrong otherwise."""
    if not text.strip():
        raise ReplyError("the reply is empty; expected a JSON object")
    wrong: str | None = None
    for value in find_json(text):
        try:
            return model.model_validate(value)
        except ValidationError as failure:
            wrong = wrong or in_words(failure)
    raise ReplyError(wrong or "the reply holds no JSON object, or an unfinished one")


def in_words(failure: ValidationError) -> str:
    """The first few things that are wrong, each with its place."""
    return "; ".join(
        f"{'.'.join(str(part) for part in error['loc']) or 'the reply'}: {error['msg']}"
        for error in failure.errors()[:3]
    )


def _decode(text: str, start: int) -> tuple[Any, int] | None:
    try:
        value, end = _DECODER.raw_decode(text, start)
        return whole_value(value), end
    except (ValueError, RecursionError):  # RecursionError: brackets nested thousands deep
        return None


T = TypeVar("T")
SHOWN_REPLY = 1500
"""Characters of a wrong reply that the model is shown again."""
AGAIN = "That reply cannot be used: {problem}. Reply again, with nothing but what was asked for."


@dataclass(frozen=True, slots=True)
class Ask(Generic[T]):
    """A request and how its reply is read; `read` raises ReplyError where the reply is not what was asked for."""

    messages: tuple[Message, ...]
    read: Callable[[Completion], T]
    salvage: Callable[[Completion], T] | None = None
    """Makes what it can of a reply that was wrong twice; raises ReplyError where that is nothing."""
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    top_logprobs: int = 0
    seed: int = 0
    n: int = 1
    beams: Beams | None = None

    def request(self, *further: Message) -> Request:
        """The request, with further messages after its own."""
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
    """What a reply said, or the problem that remained after asking again."""

    value: T | None
    problem: str | None = None


def ask(model: LanguageModel, asks: Sequence[Ask[T]], *, role: str) -> list[Outcome[T]]:
    """One outcome per ask, in the same order; the caller states its fallback for those that have a problem."""
    if not asks:
        return []
    with trace.span(role, asked=len(asks)) as span:
        completions = model.complete([one.request() for one in asks])
        outcomes = [_read(one, completion) for one, completion in zip(asks, completions, strict=True)]
        # A call that failed is not asked again: retrying is a wrapper's work, and a spent budget stays spent.
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
