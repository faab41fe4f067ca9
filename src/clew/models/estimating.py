"""What a run would cost: a model that pays nothing, gives typical replies and counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from clew.models.identity import digest
from clew.models.prices import FREE, Price
from clew.models.protocol import Completion, Request, Usage
from clew.models.reply_store import ReplyStore
from clew.models.tokens import count_request_tokens, count_tokens

TYPICAL_WORDS = "a few words as a typical reply"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Calls a run would make, with their tokens and price; a guess, as replies decide what is asked next."""

    calls: int = 0
    cached: int = 0
    """Calls whose reply is known already and costs nothing."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0

    def in_words(self) -> str:
        """One line for people."""
        known = f", {self.cached:,} of them known already" if self.cached else ""
        tokens = f"about {self.prompt_tokens:,} prompt and {self.completion_tokens:,} reply tokens"
        return f"{self.calls:,} model calls{known}; {tokens}; ${self.dollars:.4f}"


@dataclass
class EstimatingModel:
    """Stands in for a model: replies from the cache where known, elsewhere typical ones that follow the schema."""

    name: str
    price: Price = FREE
    context_tokens: int = 8192
    store: ReplyStore | None = None
    _usages: dict[str, Usage] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Replies that cost nothing; equal requests count once, as the cache would have it."""
        keys = [digest(request, self.name) for request in requests]
        known = self.store.get(keys) if self.store is not None else {}
        completions = [
            known[key] if key in known else self._typical(request) for key, request in zip(keys, requests, strict=True)
        ]
        with self._lock:
            self._usages.update((key, done.usage) for key, done in zip(keys, completions, strict=True))
        return completions

    def estimate(self) -> Estimate:
        """The sum over all different requests so far."""
        with self._lock:
            usages = list(self._usages.values())
        fresh = [usage for usage in usages if not usage.cached]
        return Estimate(
            calls=len(usages),
            cached=len(usages) - len(fresh),
            prompt_tokens=sum(usage.prompt_tokens for usage in fresh),
            completion_tokens=sum(usage.completion_tokens for usage in fresh),
            dollars=sum(usage.dollars for usage in fresh),
        )

    def _typical(self, request: Request) -> Completion:
        text = TYPICAL_WORDS if request.schema is None else json.dumps(example(request.schema), ensure_ascii=False)
        prompt, reply = count_request_tokens(request), min(count_tokens(text), request.max_tokens)
        return Completion(text, Usage(prompt, reply, self.price.dollars(prompt, reply)))


def example(schema: Mapping[str, Any]) -> Any:
    """A small value that follows a JSON schema of the kinds that prompts use."""
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for alternatives in ("anyOf", "oneOf"):
        if schema.get(alternatives):
            return example(schema[alternatives][0])
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        return {name: example(part) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        return [example(schema.get("items", {}))] * max(1, int(schema.get("minItems", 1)))
    scalars: dict[Any, Any] = {"number": 0.5, "integer": 1, "boolean": True, "null": None}
    return scalars.get(kind, TYPICAL_WORDS)
