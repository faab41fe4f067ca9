"""Answering a batch folder with any model: the other side of `batch:DIR`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from clew.errors import InputError
from clew.models import batch_runner
from clew.models.batch_runner import Reply, append_lines, reply_line, waiting
from clew.models.opening import open_model
from clew.models.protocol import Completion, LanguageModel, Message, Request, each


def answer_batch(folder: Path, spec: str, *, on_reply: Callable[[int, int], None] | None = None) -> int:
    """Answer all that waits in a folder with the model of a spec; returns how many replies were added."""
    if not (folder / "requests.jsonl").is_file():
        raise InputError(f"{folder} holds no requests.jsonl: run with --model batch:{folder} first")
    if spec.startswith("hf:"):
        return batch_runner.run(folder, spec)
    model = open_model(spec)
    if model is None or spec.startswith("batch:"):
        raise InputError(f"--model {spec}: expected a model that answers, such as http://127.0.0.1:8080/v1#qwen")
    lines = waiting(folder)
    return _answer(folder, lines, model, on_reply)


def _answer(
    folder: Path, lines: list[dict[str, Any]], model: LanguageModel, on_reply: Callable[[int, int], None] | None
) -> int:
    """Replies are written as they come; failures are not, so that the next run asks again."""
    done = 0
    for place, completion in each(model, [read_request(line["body"]) for line in lines]):
        if completion.error is None:
            line = reply_line(lines[place]["custom_id"], _reply(completion), model.name)
            append_lines(folder / "replies.jsonl", [line])
            done += 1
        if on_reply is not None:
            on_reply(done, len(lines))
    return done


def read_request(body: dict[str, Any]) -> Request:
    """The request behind a chat body."""
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


def _reply(completion: Completion) -> Reply:
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
    return Reply(completion.text, usage.prompt_tokens, usage.completion_tokens, completion.cut, usage.seconds, logprobs)
