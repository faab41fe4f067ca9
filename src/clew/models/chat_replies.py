"""The body of a chat completion, as OpenAI and whoever speaks like it sends it, read as a completion."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clew.core.errors import ReplyError
from clew.models.protocol import Completion, Usage
from clew.models.thoughts import without_thoughts


class Lenient(BaseModel):
    """What a server sends; what is not asked for is passed over."""

    model_config = ConfigDict(extra="ignore")


class _Candidate(Lenient):
    token: str
    logprob: float


class _Token(_Candidate):
    top_logprobs: list[_Candidate] = Field(default_factory=list)


class _Logprobs(Lenient):
    content: list[_Token] | None = None


class _Part(Lenient):
    text: str = ""


class ReplyMessage(Lenient):
    """What a model said, or a piece of it."""

    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    """What the model thought, where the server parts it from the reply."""

    def said(self) -> str | None:
        """The text of the reply; some servers send it in parts, thoughts among them."""
        if not isinstance(self.content, list):
            return self.content
        return "".join(part.text for part in self.content)


class _Choice(Lenient):
    message: ReplyMessage
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class TokenUsage(Lenient):
    """What a reply consumed, by the server's count."""

    prompt_tokens: int = Field(0, ge=0)
    completion_tokens: int = Field(0, ge=0)
    seconds: float = Field(0.0, ge=0)
    """Said by our own batch runner."""


class _Trouble(Lenient):
    message: str = ""
    code: str | int | None = None


class _ChatReply(Lenient):
    choices: list[_Choice] = Field(min_length=1)
    usage: TokenUsage | None = None


class _Excuse(Lenient):
    error: _Trouble | str


def read_chat_reply(body: bytes | str | Mapping[str, Any]) -> Completion:
    """The completion in the body of a reply; raises ReplyError where it is no such body."""
    try:
        reply = _validated(_ChatReply, body)
    except ValidationError as failure:
        wrong = _excuse(body) or what_is_wrong(failure, body)
        raise ReplyError(f"the server's reply is no chat completion: {wrong}") from None
    choice = reply.choices[0]
    usage = reply.usage or TokenUsage(prompt_tokens=0, completion_tokens=0, seconds=0.0)
    spent = Usage(usage.prompt_tokens, usage.completion_tokens, seconds=usage.seconds)
    cut, said = choice.finish_reason == "length", choice.message.said()
    thought = bool(choice.message.reasoning_content or choice.message.reasoning)
    if said is None and not (thought and cut):
        return Completion("", spent, error=f"the model refused: {choice.message.refusal or 'no content'}")
    text = without_thoughts(said or "")
    others = tuple(without_thoughts(more.message.said() or "") for more in reply.choices[1:])
    if text != said:  # the alternatives of its thoughts would be taken for those of its answer
        return Completion(text, spent, cut=cut, thought=True, others=others)
    tokens = choice.logprobs.content if choice.logprobs and choice.logprobs.content else []
    return Completion(
        text,
        spent,
        cut=cut,
        thought=thought,
        logprobs=tuple(
            {one.token: one.logprob for one in (token, *token.top_logprobs) if math.isfinite(one.logprob)}
            for token in tokens
        ),
        others=others,
    )


B = TypeVar("B", bound=BaseModel)


def _validated(kind: type[B], body: bytes | str | Mapping[str, Any]) -> B:
    return kind.model_validate_json(body) if isinstance(body, bytes | str) else kind.model_validate(body)


def _excuse(body: bytes | str | Mapping[str, Any]) -> str | None:
    """What a server says that answers 200 and means an error."""
    try:
        error = _validated(_Excuse, body).error
    except ValidationError:
        return None
    return error if isinstance(error, str) else f"{error.message or 'an error'} ({error.code})"


def what_is_wrong(failure: ValidationError, body: bytes | str | Mapping[str, Any]) -> str:
    """What arrived instead, in few words."""
    text = bytes(body[:200], "utf-8") if isinstance(body, str) else body[:200] if isinstance(body, bytes) else b"{"
    if not text.strip():
        return "it is empty"
    if text.lstrip()[:1] == b"<":
        return "it is a page of HTML; is the address right? Most end in /v1"
    first = failure.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'the body'}: {first['msg']}"


def error_in_words(message: str) -> str:
    """The message inside an error object, or what was sent instead, in one line."""
    try:
        found = _Excuse.model_validate_json(message).error
    except ValidationError:
        return " ".join(re.sub(r"<[^>]*>", " ", message).split()) or "nothing"
    return found if isinstance(found, str) else found.message
