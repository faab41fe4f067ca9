"""Language models and embedders as every layer above sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """A whole request: everything that decides the reply, so that it can serve as a cache key."""

    messages: tuple[Message, ...]
    max_tokens: int = 512
    temperature: float = 0.0
    schema: Mapping[str, Any] | None = None
    """A JSON schema the reply must follow, where the model can be constrained."""
    stop: tuple[str, ...] = ()
    seed: int | None = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a completion consumed."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0
    seconds: float = 0.0
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply; where the request failed for good, `error` says why and `text` is empty."""

    text: str
    usage: Usage = Usage()
    error: str | None = None


class LanguageModel(Protocol):
    """Batch in, same order out; one failed request never spoils the others."""

    @property
    def name(self) -> str:
        """What identifies the model in caches, traces and reports."""
        ...

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Answer every request."""
        ...


class Embedder(Protocol):
    """Texts in, unit vectors out, in the same order."""

    @property
    def name(self) -> str:
        """What identifies the embedder; vectors of two names never mix."""
        ...

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        ...

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """One unit vector per text."""
        ...
