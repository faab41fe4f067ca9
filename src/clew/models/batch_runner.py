"""Answer a batch folder with a local model: python batch_runner.py DIR --model hf:FOLDER

This file needs only torch and transformers, so that you can copy it to a machine with a GPU. It reads
DIR/requests.jsonl and appends to DIR/replies.jsonl (OpenAI's batch formats). After a kill, start it again to continue.
`hf:FOLDER#file.gguf` loads a GGUF file through transformers, dequantised (needs the packages `gguf` and `accelerate`).
If the package `llguidance` is installed, it enforces the schema of a request.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SCHEMA_REQUEST = "Reply with JSON only, no other text, following this JSON schema:\n"
TOKENS_AT_ONCE = {"cuda": 400_000, "cpu": 4_000}
"""Maximum prompt and reply tokens of one batch, including padding."""


def log(message: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(message + "\n")
    sys.stderr.flush()


def with_schema_in_words(messages: Sequence[Mapping[str, str]], schema: Any) -> list[dict[str, str]]:
    """Append the schema to the last message, unless the messages mention JSON already."""
    spoken = [dict(message) for message in messages]
    if schema and not any("JSON" in message["content"] for message in spoken):
        spoken[-1]["content"] += "\n\n" + SCHEMA_REQUEST + json.dumps(schema, ensure_ascii=False)
    return spoken


def has_whole_json(text: str) -> bool:
    """Return whether the text contains a complete JSON object from its first brace on."""
    start = text.find("{")
    if start < 0:
        return False
    try:
        json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return False
    return True


@dataclass(frozen=True)
class TokenisedRequest:
    """A tokenised request."""

    place: int
    tokens: list[int]
    max_tokens: int
    temperature: float
    top_logprobs: int
    wants_json: bool
    stop: tuple[str, ...] = ()
    schema: Any = None

    @property
    def group(self) -> tuple[float, int]:
        """Requests with equal groups can be computed together."""
        return self.temperature, self.top_logprobs


@dataclass
class ModelReply:
    """A reply of the model."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    cut: bool
    seconds: float
    """Share of the batch's duration."""
    logprobs: list[dict[str, Any]] = field(default_factory=list)

    def body(self, model: str) -> dict[str, Any]:
        """Return the body of a chat completion."""
        choice: dict[str, Any] = {
            "index": 0,
            "message": {"role": "assistant", "content": self.text},
            "finish_reason": "length" if self.cut else "stop",
            "logprobs": {"content": self.logprobs} if self.logprobs else None,
        }
        usage = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "seconds": self.seconds,
        }
        return {"id": "local", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}


class LocalModel:
    """A transformers model that answers requests in batches of similar length."""

    def __init__(self, spec: str, *, tokens_at_once: int | None = None) -> None:
        """Load `FOLDER` or `FOLDER#file.gguf`, on a GPU if available."""
        import torch
        import transformers
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

        folder, _, file = spec.removeprefix("hf:").partition("#")
        options: dict[str, Any] = {"gguf_file": file} if file else {}
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        dtype = torch.bfloat16 if self.device == "cuda" else torch.float32
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, padding_side="left", **options)
        self.is_seq2seq = bool(AutoConfig.from_pretrained(folder, **options).is_encoder_decoder)
        kind: Any = AutoModelForSeq2SeqLM if self.is_seq2seq else AutoModelForCausalLM
        if file and hasattr(transformers, "GgufConfig"):  # newer versions keep the weights packed by default
            options["quantization_config"] = transformers.GgufConfig(dequantize=True)
        self.model: Any = kind.from_pretrained(folder, dtype=dtype, **options).to(self.device).eval()
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self.context_tokens = int(getattr(self.model.config, "max_position_embeddings", 8192))
        self.tokens_at_once = tokens_at_once or TOKENS_AT_ONCE[self.device]

    def answer(self, bodies: Sequence[dict[str, Any]]) -> Iterator[tuple[int, ModelReply | str]]:
        """Yield the index and the reply or error for every chat body, batch by batch."""
        jobs = []
        for place, body in enumerate(bodies):
            job = self._job(place, body)
            if len(job.tokens) + job.max_tokens > self.context_tokens:
                yield place, f"{len(job.tokens)} prompt tokens do not fit into a context of {self.context_tokens}"
            else:
                jobs.append(job)
        for batch in self._batches(jobs):
            yield from self._answer_smaller(batch)

    def _job(self, place: int, body: dict[str, Any]) -> TokenisedRequest:
        schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
        messages = with_schema_in_words(body["messages"], schema)  # even if a grammar enforces it
        text = self.prompt(messages)
        stop = body.get("stop") or ()
        return TokenisedRequest(
            place,
            self.tokenizer(text, add_special_tokens=self.is_seq2seq)["input_ids"],
            max_tokens=int(body.get("max_tokens") or body.get("max_completion_tokens") or 512),
            temperature=float(body.get("temperature") or 0.0),
            top_logprobs=int(body.get("top_logprobs") or 0) if body.get("logprobs") else 0,
            wants_json="response_format" in body,
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
            schema=schema,
        )

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Apply the chat template. Without a template, as with T5, return only the last message."""
        if self.tokenizer.chat_template is None:
            return messages[-1]["content"]
        text: str = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return text

    def _batches(self, jobs: list[TokenisedRequest]) -> Iterator[list[TokenisedRequest]]:
        """Yield batches with the longest requests first, so that memory runs out early or not at all."""
        batch: list[TokenisedRequest] = []
        widest = 0
        for job in sorted(jobs, key=lambda job: (job.group, -len(job.tokens) - job.max_tokens, job.place)):
            width = max(widest, len(job.tokens) + job.max_tokens)
            if batch and (job.group != batch[0].group or width * (len(batch) + 1) > self.tokens_at_once):
                yield batch
                batch, width = [], len(job.tokens) + job.max_tokens
            batch.append(job)
            widest = width
        if batch:
            yield batch

    def _answer_smaller(self, batch: list[TokenisedRequest]) -> Iterator[tuple[int, ModelReply | str]]:
        """Answer the batch, or its halves if memory runs out."""
        import torch

        try:
            replies = self._generate(batch)
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            if len(batch) == 1:
                yield batch[0].place, "out of memory"
                return
            self.tokens_at_once //= 2
            middle = len(batch) // 2
            yield from self._answer_smaller(batch[:middle])
            yield from self._answer_smaller(batch[middle:])
            return
        yield from zip((job.place for job in batch), replies, strict=True)

    def _generate(self, batch: list[TokenisedRequest]) -> list[ModelReply]:
        import torch

        begun = time.perf_counter()
        with torch.inference_mode():
            width = max(len(job.tokens) for job in batch)
            before = 1 if self.is_seq2seq else width  # tokens before the reply: a start token, or the prompt
            pad = self.tokenizer.pad_token_id
            rows = [[pad] * (width - len(job.tokens)) + job.tokens for job in batch]
            mask = [[0] * (width - len(job.tokens)) + [1] * len(job.tokens) for job in batch]
            record = _Logprobs(batch[0].top_logprobs)
            holding = [_Held(self._grammar_tokens, batch, before)] if self._holds(batch) else []
            temperature = batch[0].temperature
            sampling = {"do_sample": True, "temperature": temperature} if temperature else _GREEDY
            torch.manual_seed(0)
            output = self.model.generate(
                input_ids=torch.tensor(rows, device=self.device),
                attention_mask=torch.tensor(mask, device=self.device),
                max_new_tokens=max(job.max_tokens for job in batch),
                pad_token_id=pad,
                stopping_criteria=[_Finished(self.tokenizer, batch, before)],
                logits_processor=[*holding, record] if record.count else holding,
                **sampling,
            )
        written = output[:, before:].tolist()
        seconds = (time.perf_counter() - begun) / len(batch)
        return [self._reply(job, written[row], record, row, seconds) for row, job in enumerate(batch)]

    def _holds(self, batch: Sequence[TokenisedRequest]) -> bool:
        return holds_replies_to_schemas() and not self.is_seq2seq and any(job.schema for job in batch)

    @cached_property
    def _grammar_tokens(self) -> Any:
        """Tokenizer in the form that llguidance needs."""
        from llguidance.hf import from_tokenizer

        return from_tokenizer(self.tokenizer, n_vocab=self.model.config.vocab_size)

    def _reply(
        self, job: TokenisedRequest, tokens: list[int], record: _Logprobs, row: int, seconds: float
    ) -> ModelReply:
        ends = set(end_tokens(self.model, self.tokenizer))
        length = next((place for place, token in enumerate(tokens) if token in ends), len(tokens))
        kept = tokens[: min(length, job.max_tokens)]
        text = self.tokenizer.decode(kept, skip_special_tokens=True)
        stopped = [text.find(stop) for stop in job.stop if stop in text]
        text = text[: min(stopped)] if stopped else text
        cut = length >= job.max_tokens and not stopped and not (job.wants_json and has_whole_json(text))
        return ModelReply(text, len(job.tokens), len(kept), cut, seconds, record.of(row, kept, self.tokenizer))


def holds_replies_to_schemas() -> bool:
    """Return whether llguidance is installed, which enforces schemas by masking tokens."""
    return find_spec("llguidance") is not None


_GREEDY: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}


def end_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Return the tokens that end a reply."""
    ends = model.generation_config.eos_token_id
    found = ends if isinstance(ends, list) else [ends]
    return [int(token) for token in (*found, tokenizer.eos_token_id) if token is not None]


class _Finished:
    """Stopping criterion: a complete JSON object, a stop word, or the maximum number of tokens."""

    def __init__(self, tokenizer: Any, batch: list[TokenisedRequest], width: int) -> None:
        self.tokenizer, self.batch, self.width = tokenizer, batch, width
        self.done = [False] * len(batch)
        self.pieces: dict[int, bool] = {}

    def __call__(self, ids: Any, _scores: Any, **_: Any) -> Any:
        import torch

        written = ids.shape[1] - self.width
        last = ids[:, -1].tolist()
        for row, job in enumerate(self.batch):
            if not self.done[row]:
                self.done[row] = written >= job.max_tokens or self._ends(job, ids[row], last[row])
        return torch.tensor(self.done, device=ids.device)

    def _ends(self, job: TokenisedRequest, row: Any, last: int) -> bool:
        if not job.wants_json and not job.stop:
            return False
        if job.wants_json and not job.stop and not self._closes(last):
            return False
        text = self.tokenizer.decode(row[self.width :].tolist(), skip_special_tokens=True)
        return (job.wants_json and has_whole_json(text)) or any(stop in text for stop in job.stop)

    def _closes(self, token: int) -> bool:
        if token not in self.pieces:
            self.pieces[token] = "}" in self.tokenizer.decode([token])
        return self.pieces[token]


class _Held:
    """Logits processor that enforces schemas. Schemas that llguidance does not support are ignored."""

    def __init__(self, tokens: Any, batch: Sequence[TokenisedRequest], width: int) -> None:
        import torch
        from llguidance import LLExecutor, LLMatcher

        self.width = width
        self.executor = LLExecutor()
        self.matchers: dict[int, Any] = {}
        grammars: dict[str, str] = {}
        for row, job in enumerate(batch):
            if job.schema:
                told = json.dumps(job.schema)
                if told not in grammars:  # limit whitespace, or small models write nothing else
                    overrides = {"whitespace_pattern": r"[ \n]?"}
                    grammars[told] = LLMatcher.grammar_from_json_schema(told, overrides=overrides)
                matcher = LLMatcher(tokens, grammars[told])
                if not matcher.is_error():
                    self.matchers[row] = matcher
        self.allowed = torch.full((len(batch), (tokens.vocab_size + 31) // 32), -1, dtype=torch.int32)
        self.bits = torch.arange(32, dtype=torch.int32)

    def __call__(self, ids: Any, scores: Any) -> Any:
        if ids.shape[1] > self.width:
            for row, token in enumerate(ids[:, -1].tolist()):
                matcher = self.matchers.get(row)
                if matcher is not None and (matcher.is_stopped() or not matcher.consume_token(token)):
                    del self.matchers[row]  # complete, only padding follows
                    self.allowed[row] = -1
        if self.matchers:
            rows = [(matcher, row) for row, matcher in self.matchers.items()]
            size, count = self.allowed.shape[1] * 4, len(self.allowed)
            self.executor.unsafe_compute_mask_ptr(rows, self.allowed.data_ptr(), size, count)
        bits = (self.allowed.to(scores.device).unsqueeze(2) >> self.bits.to(scores.device)) & 1
        allowed = bits.reshape(len(scores), -1)[:, : scores.shape[1]].bool()
        return scores.masked_fill(~allowed, float("-inf"))


class _Logprobs:
    """Record of the most probable tokens of each step, since whole distributions would fill the memory."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.steps: list[tuple[Any, Any]] = []

    def __call__(self, _ids: Any, scores: Any) -> Any:
        import torch

        best = torch.topk(torch.log_softmax(scores.float(), dim=-1), self.count, dim=-1)
        self.steps.append((best.values.cpu(), best.indices.cpu()))
        return scores

    def of(self, row: int, tokens: list[int], tokenizer: Any) -> list[dict[str, Any]]:
        """Return one entry per reply token, in OpenAI's format."""
        entries = []
        for token, (values, indices) in zip(tokens, self.steps, strict=False):
            pairs = list(zip(indices[row].tolist(), values[row].tolist(), strict=True))
            top = [{"token": tokenizer.decode([index]), "logprob": value} for index, value in pairs]
            own = next((value for index, value in pairs if index == token), pairs[-1][1])
            entries.append({"token": tokenizer.decode([token]), "logprob": own, "top_logprobs": top})
        return entries


def parse_lines(text: bytes) -> Iterator[dict[str, Any]]:
    """Yield the valid lines of a batch file. Skip a partial line left by a killed run."""
    for raw in text.split(b"\n"):
        try:
            line = json.loads(raw)
        except ValueError:
            continue
        if isinstance(line, dict) and isinstance(line.get("custom_id"), str):
            yield line


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a batch file, or nothing if it does not exist."""
    return parse_lines(file.read_bytes() if file.is_file() else b"")


def append_lines(file: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Append lines in one write, after completing a partial line left by a killed run."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    with file.open("ab+") as opened:
        if opened.tell():
            opened.seek(-1, 2)
            if opened.read(1) != b"\n":
                text = "\n" + text
        opened.write(text.encode("ascii"))


def waiting(folder: Path) -> list[dict[str, Any]]:
    """Return the distinct requests of a batch folder without a reply."""
    answered = {line["custom_id"] for line in read_lines(folder / "replies.jsonl")}
    lines = {line["custom_id"]: line for line in read_lines(folder / "requests.jsonl")}
    return [line for key, line in lines.items() if key not in answered]


def reply_line(custom_id: str, reply: ModelReply | str, model: str) -> dict[str, Any]:
    """Return a line of OpenAI's batch output."""
    if isinstance(reply, str):
        return {"custom_id": custom_id, "response": None, "error": {"code": "failed", "message": reply}}
    return {"custom_id": custom_id, "response": {"status_code": 200, "body": reply.body(model)}, "error": None}


def run(folder: Path, spec: str, *, tokens_at_once: int | None = None) -> int:
    """Answer all pending requests of a folder. Return the number of added replies."""
    lines = waiting(folder)
    if not lines:
        return 0
    log(f"{len(lines):,} pending requests, loading {spec}")
    model = LocalModel(spec, tokens_at_once=tokens_at_once)
    name = spec.rstrip("/").rpartition("/")[2]
    begun, done, written = time.time(), 0, 0
    for place, reply in model.answer([line["body"] for line in lines]):
        append_lines(folder / "replies.jsonl", [reply_line(lines[place]["custom_id"], reply, name)])
        done, written = done + 1, written + (0 if isinstance(reply, str) else reply.completion_tokens)
        if done % 200 == 0 or done == len(lines):
            seconds = time.time() - begun
            speed = f"{written / seconds:,.0f} reply tokens/s on {model.device}"
            log(f"{done:,}/{len(lines):,} in {seconds:.0f} s, {speed}")
    return done


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Answer a batch folder with a local model.")
    parser.add_argument("folder", type=Path, help="the folder with requests.jsonl")
    parser.add_argument("--model", required=True, help="hf:FOLDER, or hf:FOLDER#file.gguf")
    parser.add_argument("--tokens-at-once", type=int, help="maximum tokens of one batch, including padding")
    options = parser.parse_args()
    log(f"{run(options.folder, options.model, tokens_at_once=options.tokens_at_once):,} replies added")


if __name__ == "__main__":
    main()
