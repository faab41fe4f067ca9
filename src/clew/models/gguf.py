"""A local GGUF file through llama.cpp (extra `local`), replies constrained by a grammar from the JSON schema."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from clew.errors import MissingExtraError, NotFoundError, ReplyError
from clew.models.chat_body import read_chat_reply
from clew.models.protocol import Completion, Request


@dataclass(frozen=True)
class GgufModel:
    """Loads on first use and answers one request after another; log-probabilities are not offered."""

    file: Path
    context_tokens: int = 8192
    threads: int | None = None
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.file.is_file():
            raise NotFoundError(f"no file {self.file}: gguf: needs the path of a GGUF file")

    @cached_property
    def name(self) -> str:
        """The file's name and a hash of its size and its first megabyte, which holds names and shapes."""
        with self.file.open("rb") as opened:
            begin = opened.read(1 << 20)
        mark = hashlib.sha256(begin + str(self.file.stat().st_size).encode()).hexdigest()[:8]
        return f"gguf:{self.file.name}#{mark}"

    @cached_property
    def _llama(self) -> Any:
        try:
            from llama_cpp import Llama
        except ImportError as missing:
            raise MissingExtraError("llama-cpp-python", "local") from missing
        return Llama(
            str(self.file), n_ctx=self.context_tokens, n_gpu_layers=-1, n_threads=self.threads, seed=0, verbose=False
        )

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """One after another: a local model gains nothing from two at once."""
        with self._lock:
            return [self._complete(request) for request in requests]

    def _complete(self, request: Request) -> Completion:
        begun = time.perf_counter()
        options: dict[str, Any] = {}
        if request.schema is not None:
            options["response_format"] = {"type": "json_object", "schema": request.schema}
        try:
            reply = self._llama.create_chat_completion(
                [{"role": message.role, "content": message.content} for message in request.messages],
                max_tokens=request.max_tokens,
                temperature=request.temperature,
                stop=list(request.stop),
                seed=request.seed,
                **options,
            )
            completion = read_chat_reply(reply)
        except (ValueError, RuntimeError, ReplyError) as failure:  # a prompt that is too long, a schema it cannot hold
            return Completion("", error=f"{self.file.name}: {failure}")
        return replace(completion, usage=replace(completion.usage, seconds=time.perf_counter() - begun))
