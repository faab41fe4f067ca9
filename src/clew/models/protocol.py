"""Protocols of language models and embedders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from clew.core.texts import whole_text
from clew.core.trace import Failure

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Beams:
    """Diverse beam search (Vijayakumar et al. 2018). Each group of beams avoids the tokens of earlier groups."""

    width: int = 20
    groups: int = 1
    penalty: float = 0.0
    """Penalty of a token for each beam of an earlier group that has just taken it."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request with everything that determines the reply, so that it can serve as a cache key."""

    messages: tuple[Message, ...]
    max_tokens: int = 512
    temperature: float = 0.0
    schema: Mapping[str, Any] | None = None
    """JSON schema that the reply must follow, if the model supports it."""
    stop: tuple[str, ...] = ()
    seed: int | None = 0
    top_logprobs: int = 0
    """Number of alternatives to report for each reply token with log-probabilities, if the model supports it."""
    n: int = 1
    """Number of replies. The first reply becomes `text` of the completion, further replies become `others`."""
    beams: Beams | None = None
    """Beam search for the most likely replies, if the model supports it."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources used by a completion."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0
    seconds: float = 0.0
    cached: bool = False


Alternatives = Mapping[str, float]
"""Alternatives for one token of a reply: token → log-probability."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply. If the request failed, `error` contains the reason and `text` is empty."""

    text: str
    usage: Usage = Usage()
    error: str | None = None
    failure: Failure | None = None
    """Kind of failure, if the kind has a remedy."""
    retry_after: float | None = None
    """Seconds after which a retry may help. None if a retry is useless or the request succeeded."""
    cut: bool = False
    """Whether the reply was cut off at `max_tokens`."""
    thought: bool = False
    """Whether the model reasoned before its answer. The text does not contain the reasoning."""
    logprobs: tuple[Alternatives, ...] = ()
    """Alternatives of each reply token, if requested and supported."""
    others: tuple[str, ...] = ()
    """Further replies, best first, if the request asks for several. A server may send fewer."""

    def __post_init__(self) -> None:
        """Replace lone surrogates, which parsers reject."""
        object.__setattr__(self, "text", whole_text(self.text))
        object.__setattr__(self, "others", tuple(map(whole_text, self.others)))


Size = Literal["small", "medium", "large", "unknown"]
"""Size class: below 7 billion parameters, below 30 billion, or more."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Capabilities of a model. The defaults are safe for any model."""

    context_tokens: int = 8192
    json_schema: bool = False
    """Whether the server enforces the schema of a request."""
    logprobs: bool = False
    reasoning: bool = False
    """Whether the model reasons before its answer."""
    beams: bool = False
    """Whether the model supports beam search."""
    size: Size = "unknown"


class LanguageModel(Protocol):
    """A model that answers batches of requests in order. A failed request does not affect the other requests."""

    @property
    def name(self) -> str:
        """Identifier of the model in caches, traces and reports."""

    @property
    def context_tokens(self) -> int:
        """Maximum tokens of a prompt and its reply together."""

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities. The first access may send one short request."""

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Answer every request. Raise only `PendingError`, if replies come later, and `AccessError`."""


@runtime_checkable
class Streaming(Protocol):
    """A model that yields each completion when it is ready, with the index of its request."""

    def each(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Yield one completion per request, in any order. Take a request only when there is capacity for it."""


def each(model: LanguageModel, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
    """Yield completions as they finish if the model supports it, else all at the end."""
    if isinstance(model, Streaming):
        return model.each(requests)
    return iter(enumerate(model.complete(list(requests))))


def in_order(completions: Iterable[tuple[int, Completion]]) -> list[Completion]:
    """Sort completions by the index of their request."""
    return [completion for _, completion in sorted(completions, key=lambda pair: pair[0])]


class Embedder(Protocol):
    """A model that turns texts into unit vectors, in the same order."""

    @property
    def name(self) -> str:
        """Identifier of the embedder. Vectors of different embedders are not comparable."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def embed(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        """Return one unit vector per text."""
