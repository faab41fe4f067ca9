"""A chat completion that comes in server-sent events: what is written is told while it comes, then read as a whole."""

from __future__ import annotations

import codecs
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import AliasChoices, Field, ValidationError

from clew.core.errors import ReplyError
from clew.models.chat_replies import Lenient, ReplyMessage, TokenUsage, read_chat_reply, what_is_wrong
from clew.models.protocol import Completion, Request
from clew.models.thoughts import without_thoughts
from clew.models.tokens import count_request_tokens, count_tokens

SECONDS_APART = 0.05
"""How often what is written so far is told at most: nobody reads faster."""
_LINE_END = re.compile("\r\n|\n|\r")


class EventReader:
    """The data of server-sent events from bytes, however they are cut: the format of the HTML standard, section 9.2.

    Kinds and ids of events are passed over, as chat servers do not use them.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._line: list[str] = []
        self._data: list[str] = []
        self._after_return = False

    def feed(self, piece: bytes, *, last: bool = False) -> Iterator[str]:
        """The data of each event that this piece completes; after the `last` piece also of one without its empty line.

        The standard drops that one; servers that forget the line end after their last event are understood so.
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
    """Puts the pieces of a reply together; raises ReplyError at the first event that is none of them."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """`tell` gets what is written so far, whole each time and without thoughts."""
        self.has_events = False
        """Whether an event has come; else the server may have answered in one piece."""
        self.is_over = False
        """Whether the server has said that nothing follows."""
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
        """Read a piece of the body."""
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
        """The reply as though it had come in one piece; its tokens are counted here where the server did not."""
        if self._finish is None and not self.is_over:
            raise ReplyError("the server's reply broke off before its end")
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
            wrong = what_is_wrong(failure, data)
            raise ReplyError(f"an event of the server's reply is no piece of a chat completion: {wrong}") from None
        if chunk.error is not None:
            read_chat_reply({"error": chunk.error})  # raises, in the words for an error that is sent in one piece
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
