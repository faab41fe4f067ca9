"""Detection of a server model's capabilities, from the server, its name and one test request, cached for a week.

1. The list of models contains the context length (vLLM, OpenRouter, Groq, Mistral), or the type of server, whose own
   API contains it (Ollama, LM Studio, llama.cpp). This is free.
2. One short request shows whether replies follow a JSON schema, have log-probabilities, and contain reasoning.
   The first access to `capabilities` sends it. It counts against the budget, and batch and scripted mode skip it.
3. Unknown capabilities have cautious defaults.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clew.core import trace
from clew.core.disk import write_whole
from clew.core.errors import ModelError
from clew.models.chat_replies import Lenient, room_to_think
from clew.models.model_names import billions_in, is_reasoning, size_of
from clew.models.openai_chat import JsonMode, OpenAIChat
from clew.models.protocol import Capabilities, Completion, Message, Request, each
from clew.models.structured import object_schema
from clew.models.wrappers import Wrapping

LOCAL_CONTEXT = 4096
"""Context of a model that Ollama or LM Studio has not loaded yet. They silently truncate longer prompts."""


class _Meta(Lenient):
    n_params: float | None = None


class _Entry(Lenient):
    id: str = ""
    model: str = ""
    owned_by: str | None = None
    max_model_len: int | None = None
    context_length: int | None = None
    context_window: int | None = None
    loaded_context_length: int | None = None
    max_context_length: int | None = None
    state: str | None = None
    meta: _Meta | None = None
    details: dict[str, Any] = Field(default_factory=dict)

    def context(self) -> int | None:
        """Return the context length from the fields of vLLM, OpenRouter, Groq and Mistral."""
        lengths = (self.max_model_len, self.context_length, self.context_window, self.max_context_length)
        return next((length for length in lengths if length), None)


def ask_server(chat: OpenAIChat) -> tuple[int | None, float | None]:
    """Ask the server for context length and billions of parameters of its model, in up to three short requests."""
    entry = _entry(chat, "/models", "data")
    if entry is None:
        return None, None
    billions = entry.meta.n_params / 1e9 if entry.meta and entry.meta.n_params else None
    if entry.owned_by == "llamacpp":
        return _llama_cpp_context(chat), billions
    if entry.owned_by == "library":  # Ollama
        running, installed = _entry(chat, "/../api/ps", "models"), _entry(chat, "/../api/tags", "models")
        billions = billions_in(str(installed.details.get("parameter_size"))) if installed else None
        return (running.context_length if running else None) or LOCAL_CONTEXT, billions
    if entry.owned_by == "organization_owner":  # LM Studio
        loaded = _entry(chat, "/../api/v0/models", "data")
        known = loaded and loaded.state == "loaded" and (loaded.loaded_context_length or loaded.max_context_length)
        return known or LOCAL_CONTEXT, billions
    return entry.context(), billions


def _entry(chat: OpenAIChat, path: str, name: str) -> _Entry | None:
    """Return the model's entry in a list of models, or None."""
    try:
        entries = [_Entry.model_validate(row) for row in chat.get(path)[name]]
    except (ModelError, ValidationError, KeyError, TypeError):
        return None
    wanted = (chat.model, f"{chat.model}:latest")
    return next((entry for entry in entries if (entry.id or entry.model) in wanted), None)


def _llama_cpp_context(chat: OpenAIChat) -> int | None:
    try:
        return int(chat.get("/../props")["default_generation_settings"]["n_ctx"]) or None
    except (ModelError, KeyError, TypeError, ValueError):
        return None


KEPT_SECONDS = 7 * 86400.0
"""Seconds to cache capabilities, since servers may change their models and settings."""
PROBE = Request(
    (Message("user", "Is 7 a prime number?"),),
    max_tokens=32,
    schema=object_schema({"verdict": {"enum": ["yes", "no"]}}),
    top_logprobs=2,
)
"""Test request that does not mention JSON, so that a JSON reply proves that the server enforces the schema."""


CONSTRAINED: tuple[JsonMode, ...] = ("json_schema", "json_object with schema")


class Known(BaseModel):
    """Cached capabilities of a model. None means unknown."""

    model_config = ConfigDict(extra="forbid")
    name: str
    asked: float
    context_tokens: int | None = Field(default=None, gt=0)
    billions: float | None = None
    json_schema: bool | None = None
    logprobs: bool | None = None
    reasoning: bool | None = None
    json_mode: JsonMode = "json_schema"
    dropped: list[str] = Field(default_factory=list)
    renamed_max_tokens: bool = False

    def capabilities(self, context_given: int | None) -> Capabilities:
        """Return the capabilities, with cautious defaults for unknown values."""
        model = self.name.rpartition("@")[0] or self.name
        return Capabilities(
            context_tokens=context_given or self.context_tokens or Capabilities().context_tokens,
            json_schema=bool(self.json_schema),
            logprobs=bool(self.logprobs),
            reasoning=bool(self.reasoning) or is_reasoning(model),
            size=size_of(model, self.billions),
        )


@dataclass(frozen=True)
class Memory:
    """Cache of capabilities, one small file per model."""

    folder: Path
    clock: Callable[[], float] = field(default=time.time, repr=False)

    def recall(self, name: str) -> Known | None:
        """Return the cached capabilities, or None if they are missing, too old or unreadable."""
        try:
            known = Known.model_validate_json(self._file(name).read_bytes())
        except (OSError, ValidationError):
            return None
        return known if known.name == name and 0 <= self.clock() - known.asked < KEPT_SECONDS else None

    def keep(self, known: Known) -> None:
        """Cache the capabilities, unless the folder is not writable."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._file(known.name), known.model_dump_json().encode())

    def _file(self, name: str) -> Path:
        return self.folder / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.json"


@dataclass
class _Found:
    known: Known | None = None
    recalled: bool = False
    tried: bool = False
    lock: RLock = field(default_factory=RLock)


@dataclass(frozen=True)
class Probed(Wrapping):
    """Wrapper that detects the capabilities of its model on first access."""

    chat: OpenAIChat
    memory: Memory
    can_ask: Callable[[], bool]
    """Returns whether the server is available. Otherwise nothing is detected or cached."""
    context_given: int | None = None
    _found: _Found = field(default_factory=_Found, repr=False, compare=False)

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Return the inner model's completions, using the request format detected in earlier runs."""
        self._recall()
        return self.inner.complete(requests)

    def each(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Yield the inner model's completions as they finish."""
        self._recall()
        return each(self.inner, requests)

    @property
    def context_tokens(self) -> int:
        """Context length from the configuration or the server, without a request to the model."""
        return self.context_given or self._told().capabilities(None).context_tokens

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the model. The first access sends one short request, unless they are cached."""
        with self._found.lock:
            known = self._told()
            if known.json_schema is None and not self._found.tried and self.can_ask():
                known = self._tried(known)
            return known.capabilities(self.context_given)

    def _recall(self) -> Known | None:
        """Return the cached capabilities without any request."""
        with self._found.lock:
            if not self._found.recalled:
                self._found.recalled = True
                self._believe(self.memory.recall(self.name))
            return self._found.known

    def _told(self) -> Known:
        with self._found.lock:
            known = self._recall()
            if known is None:
                known = Known(name=self.name, asked=self.memory.clock())
                if self.can_ask():
                    context, billions = ask_server(self.chat)
                    known = known.model_copy(update={"context_tokens": context, "billions": billions})
                    self.memory.keep(known)
                    self._believe(known)
            return known

    def _tried(self, known: Known) -> Known:
        self._found.tried = True
        with trace.span("probe", model=self.name) as span:
            [done] = self.inner.complete([PROBE])
            span.note(error=done.error, tokens=done.usage.prompt_tokens + done.usage.completion_tokens)
        if done.error is not None:
            return known
        learnt = self.chat.refusals
        known = known.model_copy(
            update={
                "json_schema": learnt.json_mode in CONSTRAINED and _follows(done.text),
                "logprobs": bool(done.logprobs),
                "reasoning": learnt.thinks,
                "json_mode": learnt.json_mode,
                "dropped": sorted(learnt.dropped),
                "renamed_max_tokens": learnt.renamed_max_tokens,
            }
        )
        self.memory.keep(known)
        self._found.known = known
        return known

    def _believe(self, known: Known | None) -> None:
        """Apply known capabilities to the chat, so that it need not learn them again from rejected requests."""
        self._found.known = known
        known = known or Known(name=self.name, asked=0.0)
        learnt, found = self.chat.refusals, known.capabilities(self.context_given)
        if known.json_schema is not None:
            learnt.json_mode, learnt.renamed_max_tokens = known.json_mode, known.renamed_max_tokens
            learnt.dropped |= set(known.dropped)
        learnt.thinks |= found.reasoning
        learnt.thinking_tokens = room_to_think(found.context_tokens)


def _follows(text: str) -> bool:
    try:
        return json.loads(text).get("verdict") in ("yes", "no")
    except (ValueError, AttributeError):
        return False


def remembered(chat: OpenAIChat, memory: Memory, context_given: int | None = None) -> Capabilities:
    """Return the cached or default capabilities of a model without any request."""
    return (memory.recall(chat.name) or Known(name=chat.name, asked=0.0)).capabilities(context_given)
