"""Language models and embedders as every layer above sees them."""

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
    """Diverse beam search (Vijayakumar et al. 2018): beams in groups, each kept from the words of the groups before."""

    width: int = 20
    groups: int = 1
    penalty: float = 0.0
    """What a token costs for every beam of an earlier group that has just taken it."""


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
    top_logprobs: int = 0
    """How many alternatives of each reply token to report with their log-probabilities, where the model can."""
    n: int = 1
    """How many replies are wanted; the first is the text of the completion, the rest are its others."""
    beams: Beams | None = None
    """How to search for the most likely replies, where the model can."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a completion consumed."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0
    seconds: float = 0.0
    cached: bool = False


Alternatives = Mapping[str, float]
"""What could have stood at one place of a reply: token → log-probability."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply; where the request failed, `error` says why and `text` is empty."""

    text: str
    usage: Usage = Usage()
    error: str | None = None
    failure: Failure | None = None
    """What kind of failure it was, where there is a remedy for its kind."""
    retry_after: float | None = None
    """Seconds after which asking again may help; None where it never will, or nothing failed."""
    cut: bool = False
    """Whether the reply reached `max_tokens` before its end."""
    thought: bool = False
    """Whether the model thought before it answered; its thoughts are not part of the text."""
    logprobs: tuple[Alternatives, ...] = ()
    """For each token of the reply its alternatives, where the request asked for them and the model has them."""
    others: tuple[str, ...] = ()
    """Further replies where the request wants several, best first; a server may give fewer than were asked for."""

    def __post_init__(self) -> None:
        """Whoever made the reply: halves of surrogate pairs, which no parser takes, are replaced here."""
        object.__setattr__(self, "text", whole_text(self.text))
        object.__setattr__(self, "others", tuple(map(whole_text, self.others)))


Size = Literal["small", "medium", "large", "unknown"]
"""Below 7 billion parameters, below 30 billion, more."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can do, as far as it was found out; by default what any model can."""

    context_tokens: int = 8192
    json_schema: bool = False
    """Whether replies keep to the schema of a request because the server makes them."""
    logprobs: bool = False
    reasoning: bool = False
    """Whether it thinks before it answers."""
    beams: bool = False
    """Whether it can search for its most likely replies by beams."""
    size: Size = "unknown"


class LanguageModel(Protocol):
    """Batch in, same order out; one failed request never spoils the others."""

    @property
    def name(self) -> str:
        """What identifies the model in caches, traces and reports."""
        ...

    @property
    def context_tokens(self) -> int:
        """How many tokens a prompt and its reply may have together."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can do; reading this may ask the model one short question, once."""
        ...

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Answer every request; raises only `PendingError`, where replies come later, and `AccessError`."""
        ...


@runtime_checkable
class Streaming(Protocol):
    """A model that hands out each completion as soon as it has it, with the position of its request."""

    def each(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Every request's completion once, in any order; requests are drawn only when there is room for them."""
        ...


def each(model: LanguageModel, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
    """Completions as they come where the model can, and all at the end where it cannot."""
    if isinstance(model, Streaming):
        return model.each(requests)
    return iter(enumerate(model.complete(list(requests))))


def in_order(completions: Iterable[tuple[int, Completion]]) -> list[Completion]:
    """Completions by the position of their request."""
    return [completion for _, completion in sorted(completions, key=lambda pair: pair[0])]


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
