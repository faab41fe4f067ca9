"""Parsing of chat completions from OpenAI-compatible servers."""

from __future__ import annotations

import codecs
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from clew.core.errors import ReplyError
from clew.core.texts import what_is_wrong
from clew.models.protocol import Completion, Request, Usage
from clew.models.tokens import count_request_tokens, count_tokens


class Lenient(BaseModel):
    """Base class of server replies. Ignores unknown fields."""

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
    """A model's message, or a part of it."""

    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    """Reasoning, if the server separates it from the reply."""

    def said(self) -> str | None:
        """Return the text of the reply, which some servers send in parts."""
        if not isinstance(self.content, list):
            return self.content
        return "".join(part.text for part in self.content)


class _Choice(Lenient):
    message: ReplyMessage
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class TokenUsage(Lenient):
    """Token counts reported by the server."""

    prompt_tokens: int = Field(0, ge=0)
    completion_tokens: int = Field(0, ge=0)
    seconds: float = Field(0.0, ge=0)
    """Reported only by Clew's batch runner."""


class _Trouble(Lenient):
    message: str = ""
    code: str | int | None = None


class _ChatReply(Lenient):
    choices: list[_Choice] = Field(min_length=1)
    usage: TokenUsage | None = None


class _Excuse(Lenient):
    error: _Trouble | str


def read_chat_reply(body: bytes | str | Mapping[str, Any]) -> Completion:
    """Parse the body of a reply. Raise ReplyError if it is not a chat completion."""
    try:
        reply = _validated(_ChatReply, body)
    except ValidationError as failure:
        wrong = _excuse(body) or invalid_body(failure, body)
        raise ReplyError(f"the server's reply is not a chat completion: {wrong}") from None
    choice = reply.choices[0]
    usage = reply.usage or TokenUsage(prompt_tokens=0, completion_tokens=0, seconds=0.0)
    spent = Usage(usage.prompt_tokens, usage.completion_tokens, seconds=usage.seconds)
    cut, said = choice.finish_reason == "length", choice.message.said()
    thought = bool(choice.message.reasoning_content or choice.message.reasoning)
    if said is None and not (thought and cut):
        return Completion("", spent, error=f"the model refused: {choice.message.refusal or 'no content'}")
    text = without_thoughts(said or "")
    others = tuple(without_thoughts(more.message.said() or "") for more in reply.choices[1:])
    tokens = choice.logprobs.content if choice.logprobs and text == said else None  # else they include the reasoning
    logprobs = tuple(
        {one.token: one.logprob for one in (token, *token.top_logprobs) if math.isfinite(one.logprob)}
        for token in tokens or ()
    )
    return Completion(text, spent, cut=cut, thought=thought or text != said, logprobs=logprobs, others=others)


B = TypeVar("B", bound=BaseModel)


def _validated(kind: type[B], body: bytes | str | Mapping[str, Any]) -> B:
    return kind.model_validate_json(body) if isinstance(body, bytes | str) else kind.model_validate(body)


def _excuse(body: bytes | str | Mapping[str, Any]) -> str | None:
    """Return the message of an error sent with status 200, or None."""
    try:
        error = _validated(_Excuse, body).error
    except ValidationError:
        return None
    return error if isinstance(error, str) else f"{error.message or 'an error'} ({error.code})"


def invalid_body(failure: ValidationError, body: bytes | str | Mapping[str, Any]) -> str:
    """Describe an invalid body in a short phrase."""
    text = bytes(body[:200], "utf-8") if isinstance(body, str) else body[:200] if isinstance(body, bytes) else b"{"
    if not text.strip():
        return "it is empty"
    if text.lstrip()[:1] == b"<":
        return "it is an HTML page: check the address, most end in /v1"
    return what_is_wrong(failure, "the body", 1)


def error_in_words(message: str) -> str:
    """Return the message of an error object, or else the text without tags, on one line."""
    try:
        found = _Excuse.model_validate_json(message).error
    except ValidationError:
        return " ".join(re.sub(r"<[^>]*>", " ", message).split()) or "nothing"
    return found if isinstance(found, str) else found.message


THINKING_TOKENS = 8192
"""Maximum tokens for reasoning, in addition to the tokens of the answer."""
_CLOSED = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_ENDED = re.compile(r"\A.*</(think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_UNFINISHED = re.compile(r"\A\s*<(think|thinking|reasoning)>.*\Z", re.DOTALL | re.IGNORECASE)


def room_to_think(context_tokens: int) -> int:
    """Return the tokens for reasoning: half the context, at most `THINKING_TOKENS`."""
    return min(THINKING_TOKENS, context_tokens // 2)


def without_thoughts(text: str) -> str:
    """Remove the reasoning from a reply. Return an empty text if the reply ends within the reasoning.

    A chat template may put the opening tag into the prompt. Then all text up to the closing tag is reasoning.
    """
    if "<" not in text:
        return text
    answered = _UNFINISHED.sub("", _ENDED.sub("", _CLOSED.sub("", text)))
    return answered if answered == text else answered.strip()


SECONDS_APART = 0.05
"""Minimum seconds between two updates of the live display."""
_LINE_END = re.compile("\r\n|\n|\r")


class EventReader:
    """Incremental parser of server-sent events (HTML standard, section 9.2).

    Ignores types and ids of events, which chat servers do not use.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._line: list[str] = []
        self._data: list[str] = []
        self._after_return = False

    def feed(self, piece: bytes, *, last: bool = False) -> Iterator[str]:
        """Yield the data of each event that this piece completes. The `last` piece also completes an unfinished event.

        The standard drops unfinished events, but some servers omit the line end after their last event.
        """
        text = self._decoder.decode(piece, last)
        if text and self._after_return:
            text, self._after_return = text.removeprefix("\n"), False
        if text:
            self._after_return = text.endswith("\r")
        *ends, rest = _LINE_END.split(text)
        for end in ends:
            line, self._line = "".join((*self._line, end)), []
            yield from self._read(line)
        self._line.append(rest)
        if last:
            yield from self._read("".join(self._line))
            yield from self._read("")

    def _read(self, line: str) -> Iterator[str]:
        if line:
            name, _, value = line.partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
        elif self._data:
            data, self._data = "\n".join(self._data), []
            yield data


class _ChunkChoice(Lenient):
    delta: ReplyMessage | None = Field(None, validation_alias=AliasChoices("delta", "message"))
    index: int = 0
    finish_reason: str | None = None


class _Chunk(Lenient):
    choices: list[_ChunkChoice] = Field(default_factory=list)
    usage: TokenUsage | None = None
    error: Any = None


class StreamedReply:
    """Assembler of a streamed reply. Raises ReplyError at the first invalid event."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """Create an empty reply. `tell` gets the whole text so far, without reasoning."""
        self.has_events = False
        """Whether an event has arrived. Otherwise the server may have replied in one piece."""
        self.is_over = False
        """Whether the server has marked the end of the reply."""
        self._events = EventReader()
        self._tell = tell
        self._told_at = -SECONDS_APART
        self._said: list[str] = []
        self._thought: list[str] = []
        self._refusal: list[str] = []
        self._choices = 0
        self._finish: str | None = None
        self._usage: TokenUsage | None = None

    def hear(self, piece: bytes, *, last: bool = False) -> None:
        """Parse a piece of the body."""
        said = len(self._said)
        for data in self._events.feed(piece, last=last):
            if data.strip() and not self.is_over:
                self.has_events = True
                self._take(data)
        is_due = time.monotonic() >= self._told_at + SECONDS_APART
        if (is_due and len(self._said) > said) or self.is_over or last:
            self._told_at = time.monotonic()
            self._tell(without_thoughts("".join(self._said)))

    def completion(self, request: Request) -> Completion:
        """Return the completion. Estimate its tokens if the server did not report them."""
        if self._finish is None and not self.is_over:
            raise ReplyError("the server's reply is incomplete")
        said, thought, refusal = "".join(self._said), "".join(self._thought), "".join(self._refusal)
        content = said if said or (self._said and not refusal) else None
        usage = self._usage or TokenUsage(
            prompt_tokens=count_request_tokens(request), completion_tokens=count_tokens(thought + said), seconds=0.0
        )
        message = {"content": content, "refusal": refusal or None, "reasoning": thought or None}
        choices = [{"message": message, "finish_reason": self._finish}] if self._choices else []
        return read_chat_reply({"choices": choices, "usage": usage.model_dump()})

    def _take(self, data: str) -> None:
        if data.strip() == "[DONE]":
            self.is_over = True
            return
        try:
            chunk = _Chunk.model_validate_json(data)
        except ValidationError as failure:
            wrong = invalid_body(failure, data)
            raise ReplyError(f"an event of the server's reply is not part of a chat completion: {wrong}") from None
        if chunk.error is not None:
            read_chat_reply({"error": chunk.error})  # raises the same error as for a reply in one piece
        self._usage = chunk.usage or self._usage
        for choice in chunk.choices:
            if choice.index == 0:
                self._choices += 1
                self._finish = choice.finish_reason or self._finish
                self._add(choice.delta or ReplyMessage())

    def _add(self, delta: ReplyMessage) -> None:
        said = delta.said()
        if said is not None:
            self._said.append(said)
        self._thought.append(delta.reasoning_content or delta.reasoning or "")
        self._refusal.append(delta.refusal or "")
