"""What a model on a server can do: told by its server, seen from its name, tried out once, and remembered for a week.

1. The list of models says how long the context is (vLLM, OpenRouter, Groq, Mistral), or who serves the model; then its
   own API is asked (Ollama, LM Studio, llama.cpp). This costs nothing.
2. One short request shows whether replies keep to a JSON schema, come with log-probabilities, and are thought over.
   It is made when `capabilities` is first read, counts against the budget, and is never made in batch or scripted mode.
3. Where nothing is known, the cautious value stands.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
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
from clew.models.wrappers import Wrapping

LOCAL_CONTEXT = 4096
"""What Ollama and LM Studio give a model that is not loaded yet; they cut longer prompts without a word."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a server says about a model."""

    context_tokens: int | None = None
    billions: float | None = None


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
        """In the words of vLLM, OpenRouter, Groq and Mistral."""
        lengths = (self.max_model_len, self.context_length, self.context_window, self.max_context_length)
        return next((length for length in lengths if length), None)


def ask_server(chat: OpenAIChat) -> Told:
    """What the server says about its model, within a few short requests; nothing where it says nothing."""
    entry = _entry(chat, "/models", "data")
    if entry is None:
        return Told()
    billions = entry.meta.n_params / 1e9 if entry.meta and entry.meta.n_params else None
    if entry.owned_by == "llamacpp":
        return Told(_llama_cpp_context(chat), billions)
    if entry.owned_by == "library":  # Ollama
        running, installed = _entry(chat, "/../api/ps", "models"), _entry(chat, "/../api/tags", "models")
        billions = billions_in(str(installed.details.get("parameter_size"))) if installed else None
        return Told((running.context_length if running else None) or LOCAL_CONTEXT, billions)
    if entry.owned_by == "organization_owner":  # LM Studio
        loaded = _entry(chat, "/../api/v0/models", "data")
        known = loaded and loaded.state == "loaded" and (loaded.loaded_context_length or loaded.max_context_length)
        return Told(known or LOCAL_CONTEXT, billions)
    return Told(entry.context(), billions)


def _entry(chat: OpenAIChat, path: str, name: str) -> _Entry | None:
    """The model's own entry in a list of models."""
    try:
        listed = chat.get(path)[name]
        entries = [_Entry.model_validate(row) for row in listed]
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
"""How long what was found out is believed: servers are given other models and settings."""
PROBE = Request(
    (Message("user", "Is 7 a prime number?"),),
    max_tokens=32,
    schema={
        "type": "object",
        "properties": {"verdict": {"enum": ["yes", "no"]}},
        "required": ["verdict"],
        "additionalProperties": False,
    },
    top_logprobs=2,
)
"""Does not speak of JSON: a reply that is JSON was made to be by the server."""


CONSTRAINED: tuple[JsonMode, ...] = ("json_schema", "json_object with schema")


class Known(BaseModel):
    """What was found out about a model, as it is kept; None where it was not found out."""

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
        """With the cautious value for what is not known."""
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
    """What was found out about models, one small file each."""

    folder: Path
    clock: Callable[[], float] = field(default=time.time, repr=False)

    def recall(self, name: str) -> Known | None:
        """What is known of a model and not too old; a file that cannot be read is as good as none."""
        try:
            known = Known.model_validate_json(self._file(name).read_bytes())
        except (OSError, ValidationError):
            return None
        return known if known.name == name and 0 <= self.clock() - known.asked < KEPT_SECONDS else None

    def keep(self, known: Known) -> None:
        """Remember it; where the folder cannot be written, it is found out again next time."""
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
    """Finds out what its model can do when that is first asked."""

    chat: OpenAIChat
    memory: Memory
    can_ask: Callable[[], bool]
    """Whether the server answers; where it does not, nothing is found out and nothing is kept."""
    context_given: int | None = None
    _found: _Found = field(default_factory=_Found, repr=False, compare=False)

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """The inner model's completions, asked for in the way that earlier runs have learnt."""
        self._recall()
        return self.inner.complete(requests)

    def each(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """The same, as they come."""
        self._recall()
        return each(self.inner, requests)

    @property
    def context_tokens(self) -> int:
        """As configured, or as the server says; reading it asks the model nothing."""
        return self.context_given or self._told().capabilities(None).context_tokens

    @property
    def capabilities(self) -> Capabilities:
        """What the model can do; the first reading makes one short request, unless that is remembered."""
        with self._found.lock:
            known = self._told()
            if known.json_schema is None and not self._found.tried and self.can_ask():
                known = self._tried(known)
            return known.capabilities(self.context_given)

    def _recall(self) -> Known | None:
        """What is known already; nothing is asked."""
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
                    known = known.model_copy(update=asdict(ask_server(self.chat)))
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
        """Go by what is known: what earlier runs have learnt need not be learnt again from refusals."""
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
    """What is known of a model without asking anything."""
    known = memory.recall(chat.name) or Known(name=chat.name, asked=0.0)
    return known.capabilities(context_given)
