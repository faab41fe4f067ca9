"""Batch mode: Clew collects requests in a folder, and reads the replies that another program adds later.

DIR/requests.jsonl   pending requests as OpenAI batch lines. custom_id is the hash of the request and the model's name
DIR/replies.jsonl    OpenAI batch output lines, in any order, from any round

A rerun adds only requests without a reply, so that runs continue round by round.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from clew.core.disk import write_whole
from clew.core.errors import InputError, PendingError, ReplyError
from clew.models.batch_runner import ModelReply, append_lines, parse_lines, read_lines, reply_line, waiting
from clew.models.chat_replies import read_chat_reply
from clew.models.model_names import capabilities_by_name
from clew.models.openai_chat import chat_body
from clew.models.prices import FREE, Price
from clew.models.protocol import Capabilities, Completion, LanguageModel, Message, Request, each
from clew.models.reply_store import digest


class BatchFolder:
    """A model that reads its replies from a folder."""

    def __init__(self, folder: Path, model: str = "local", *, price: Price = FREE, context_tokens: int = 8192) -> None:
        """Open or create the folder, and remove answered requests from the queue."""
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is not a folder: pass a folder after batch:")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.model, self.price, self.context_tokens = folder, model, price, context_tokens
        self._lock = Lock()
        self._replies: dict[str, Completion] = {}
        self._read_until = 0
        self._refresh()
        waiting = {line["custom_id"]: line for line in read_lines(self.requests_file)}
        self._waiting = {key: line for key, line in waiting.items() if key not in self._replies}
        if len(self._waiting) < len(waiting):
            write_whole(
                self.requests_file, b"".join(json.dumps(line).encode() + b"\n" for line in self._waiting.values())
            )

    @property
    def name(self) -> str:
        """Name of the model that should answer the requests."""
        return f"batch:{self.model}"

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities guessed from the model's name."""
        return capabilities_by_name(self.model, self.context_tokens)

    @property
    def requests_file(self) -> Path:
        """File of pending requests."""
        return self.folder / "requests.jsonl"

    @property
    def replies_file(self) -> Path:
        """File of replies."""
        return self.folder / "replies.jsonl"

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Return the replies. If any are missing, queue their requests and raise PendingError."""
        keys = [digest(request, self.name) for request in requests]
        with self._lock:
            if any(key not in self._replies for key in keys):
                self._refresh()
            missing = {key: one for key, one in zip(keys, requests, strict=True) if key not in self._replies}
            self._queue(missing)
            if missing:
                raise PendingError(
                    f"{len(missing)} of {len(keys)} requests wait for a reply ({len(self._waiting):,} in "
                    f"{self.requests_file}): answer them with `clew batch run {self.folder} --model …` and run again"
                )
            return [self._replies[key] for key in keys]

    def _queue(self, missing: Mapping[str, Request]) -> None:
        fresh = {
            key: {
                "custom_id": key,
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": chat_body(request, self.model),
            }
            for key, request in missing.items()
            if key not in self._waiting
        }
        if fresh:
            append_lines(self.requests_file, fresh.values())
            self._waiting.update(fresh)

    def _refresh(self) -> None:
        """Read new replies. A failed request counts as answered, with its error."""
        if not self.replies_file.is_file():
            return
        if self.replies_file.stat().st_size < self._read_until:  # the file was replaced
            self._replies, self._read_until = {}, 0
        with self.replies_file.open("rb") as file:
            file.seek(self._read_until)
            text = file.read()
        for line in parse_lines(text):
            key = line["custom_id"]
            completion = self._completion(line)
            if completion.error is None or key not in self._replies:
                self._replies[key] = completion
        self._read_until += text.rfind(b"\n") + 1  # an unfinished last line is read again next time

    def _completion(self, line: Mapping[str, Any]) -> Completion:
        response, error = line.get("response"), line.get("error")
        if error or not isinstance(response, Mapping) or response.get("status_code") != 200:
            return Completion("", error=f"the batch failed for this request: {error or response}"[:500])
        try:
            completion = read_chat_reply(response.get("body") or {})
        except ReplyError as failure:
            return Completion("", error=str(failure))
        usage = completion.usage
        dollars = self.price.dollars(usage.prompt_tokens, usage.completion_tokens)
        return replace(completion, usage=replace(usage, dollars=dollars))


def answer_batch(
    folder: Path, model: LanguageModel, *, on_reply: Callable[[int, int], None] = lambda _done, _total: None
) -> int:
    """Answer all pending requests of a folder. Return the number of added replies.

    Replies are written as they finish. Failures are not written, so that the next run retries them.
    """
    lines = waiting(folder)
    done = 0
    for place, completion in each(model, [read_request(line["body"]) for line in lines]):
        if completion.error is None:
            line = reply_line(lines[place]["custom_id"], _reply(completion), model.name)
            append_lines(folder / "replies.jsonl", [line])
            done += 1
        on_reply(done, len(lines))
    return done


def read_request(body: dict[str, Any]) -> Request:
    """Convert a chat body to a request."""
    described = (body.get("response_format") or {}).get("json_schema") or {}
    return Request(
        tuple(Message(message["role"], message["content"]) for message in body["messages"]),
        max_tokens=int(body.get("max_tokens", 512)),
        temperature=float(body.get("temperature", 0.0)),
        schema=described.get("schema"),
        stop=tuple(body.get("stop", ())),
        seed=body.get("seed"),
        top_logprobs=int(body.get("top_logprobs", 0)),
    )


def _reply(completion: Completion) -> ModelReply:
    usage = completion.usage
    logprobs = [
        {
            "token": max(alternatives, key=lambda token: alternatives[token]),
            "logprob": max(alternatives.values()),
            "top_logprobs": [{"token": token, "logprob": value} for token, value in alternatives.items()],
        }
        for alternatives in completion.logprobs
        if alternatives
    ]
    return ModelReply(
        completion.text, usage.prompt_tokens, usage.completion_tokens, completion.cut, usage.seconds, logprobs
    )
