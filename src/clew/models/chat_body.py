"""The body of a chat request and of its reply, in the form that OpenAI-compatible servers and batch files share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clew.errors import ReplyError
from clew.models.batch_runner import with_schema_in_words
from clew.models.protocol import Completion, Request, Usage

JsonMode = Literal["json_schema", "json_object with schema", "json_object", "prompt"]
"""How a server is told what JSON to write: constrained by the schema, in OpenAI's words or in llama.cpp's; constrained
to JSON; or only asked to."""


def chat_body(request: Request, model: str, *, json_mode: JsonMode = "json_schema") -> dict[str, Any]:
    """The request as the body of POST /chat/completions."""
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    body: dict[str, Any] = {"model": model, "messages": messages, "max_tokens": request.max_tokens}
    body["temperature"] = request.temperature
    if request.seed is not None:
        body["seed"] = request.seed
    if request.stop:
        body["stop"] = list(request.stop)
    if request.top_logprobs:
        body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
    if request.schema is not None:
        if json_mode == "json_schema":
            described = {"name": "reply", "strict": True, "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": described}
        elif json_mode == "json_object with schema":
            body["response_format"] = {"type": "json_object", "schema": request.schema}
        else:
            body["messages"] = with_schema_in_words(messages, request.schema)
            if json_mode == "json_object":
                body["response_format"] = {"type": "json_object"}
    return body


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Candidate(_Lenient):
    token: str
    logprob: float


class _Token(_Candidate):
    top_logprobs: list[_Candidate] = Field(default_factory=list)


class _Logprobs(_Lenient):
    content: list[_Token] | None = None


class _ReplyMessage(_Lenient):
    content: str | None = None
    refusal: str | None = None


class _Choice(_Lenient):
    message: _ReplyMessage
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Usage(_Lenient):
    prompt_tokens: int = Field(0, ge=0)
    completion_tokens: int = Field(0, ge=0)
    seconds: float = Field(0.0, ge=0)
    """Said by our own batch runner."""


class _ChatReply(_Lenient):
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None


def read_chat_reply(body: bytes | str | Mapping[str, Any]) -> Completion:
    """The completion in the body of a reply; raises ReplyError where it is no such body."""
    try:
        if isinstance(body, bytes | str):
            reply = _ChatReply.model_validate_json(body)
        else:
            reply = _ChatReply.model_validate(body)
    except ValidationError as failure:
        first = failure.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the body"
        raise ReplyError(f"the server's reply is no chat completion: {place}: {first['msg']}") from failure
    choice = reply.choices[0]
    usage = reply.usage or _Usage(prompt_tokens=0, completion_tokens=0, seconds=0.0)
    spent = Usage(usage.prompt_tokens, usage.completion_tokens, seconds=usage.seconds)
    if choice.message.content is None:
        return Completion("", spent, error=f"the model refused: {choice.message.refusal or 'no content'}")
    tokens = choice.logprobs.content if choice.logprobs and choice.logprobs.content else []
    return Completion(
        choice.message.content,
        spent,
        cut=choice.finish_reason == "length",
        logprobs=tuple(
            {one.token: one.logprob for one in (token, *token.top_logprobs) if math.isfinite(one.logprob)}
            for token in tokens
        ),
    )
