"""Language models in this process: GGUF files through llama.cpp, folders through transformers."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from clew.core.errors import MissingExtraError, NotFoundError, ReplyError, needing
from clew.models.batch_runner import LocalModel, holds_replies_to_schemas
from clew.models.chat_replies import read_chat_reply
from clew.models.generation import several_replies
from clew.models.model_card import CARD, check_card
from clew.models.model_names import capabilities_by_name
from clew.models.openai_chat import chat_body
from clew.models.protocol import Capabilities, Completion, Request


@dataclass(frozen=True)
class GgufModel:
    """Model in a GGUF file. Loads on first use, answers requests one by one, and has no log-probabilities."""

    file: Path
    context_tokens: int = 8192
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.file.is_file():
            raise NotFoundError(f"no file {self.file}: pass the path of a GGUF file after gguf:")

    @cached_property
    def name(self) -> str:
        """The file's name with a hash of its size and first megabyte, which contains names and shapes."""
        with self.file.open("rb") as opened:
            begin = opened.read(1 << 20)
        mark = hashlib.sha256(begin + str(self.file.stat().st_size).encode()).hexdigest()[:8]
        return f"gguf:{self.file.name}#{mark}"

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities guessed from the name. A grammar enforces schemas."""
        return capabilities_by_name(self.file.stem, self.context_tokens, json_schema=True)

    @cached_property
    def _llama(self) -> Any:
        with needing("local", "llama-cpp-python"):
            from llama_cpp import Llama
        return Llama(str(self.file), n_ctx=self.context_tokens, n_gpu_layers=-1, seed=0, verbose=False)

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Answer requests one by one, since parallel requests are no faster."""
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
        except (ValueError, RuntimeError, ReplyError) as failure:  # prompt too long, or schema not supported
            return Completion("", error=f"{self.file.name}: {failure}")
        return replace(completion, usage=replace(completion.usage, seconds=time.perf_counter() - begun))


@dataclass(frozen=True)
class HuggingFaceModel:
    """Model in a transformers folder, loaded on first use. Prompts contain the schema, llguidance may enforce it."""

    spec: str
    """FOLDER, or FOLDER#file.gguf."""
    context_tokens: int = 8192
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self._folder.is_dir():
            raise NotFoundError(f"no folder {self._folder}: pass a folder with a model after hf:")

    @property
    def _folder(self) -> Path:
        return Path(self.spec.partition("#")[0])

    @cached_property
    def name(self) -> str:
        """The folder's name with a hash of its file names and sizes, and of the card of a fine-tuned model."""
        files = sorted((file.name, file.stat().st_size) for file in self._folder.iterdir() if file.is_file())
        card = self._folder / CARD
        told = card.read_text("utf-8") if card.is_file() else ""
        mark = hashlib.sha256(repr((files, self.spec.partition("#")[2], told)).encode()).hexdigest()[:8]
        return f"hf:{self._folder.resolve().name}#{mark}"

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities guessed from the name, plus beam search."""
        called = f"{self._folder.resolve().name} {self.spec.partition('#')[2]}"  # either may state the size
        held = holds_replies_to_schemas()
        known = capabilities_by_name(called, self.context_tokens, logprobs=True, json_schema=held)
        return replace(known, beams=True)

    @cached_property
    def _model(self) -> LocalModel:
        check_card(self._folder)
        try:
            return LocalModel(self.spec)
        except ImportError as missing:
            raise MissingExtraError(missing.name or "transformers", "train") from missing

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Answer requests in batches of similar length, but one by one if they ask for several replies."""
        completions = [Completion("", error="not computed")] * len(requests)
        single = [place for place, request in enumerate(requests) if request.n == 1 and request.beams is None]
        with self._lock:
            for place in sorted(set(range(len(requests))) - set(single)):
                completions[place] = several_replies(self._model, requests[place])
            for order, reply in self._model.answer([chat_body(requests[place], self.name) for place in single]):
                completions[single[order]] = (
                    Completion("", error=reply) if isinstance(reply, str) else read_chat_reply(reply.body(self.name))
                )
        return completions
