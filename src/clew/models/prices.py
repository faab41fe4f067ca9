"""Model prices, and estimates of the cost of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from clew.core.texts import read_toml
from clew.models.protocol import Capabilities, Completion, Request, Usage
from clew.models.reply_store import ReplyStore, digest
from clew.models.tokens import count_request_tokens, count_tokens


class Price(BaseModel):
    """Dollars per million tokens, and the context length if known."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    input: float = Field(ge=0)
    output: float = Field(ge=0)
    context: int | None = Field(default=None, gt=0)

    def dollars(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the cost of these tokens."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1_000_000

    def discounted(self, share: float) -> Price:
        """Return the price multiplied by `share`."""
        return Price(input=self.input * share, output=self.output * share, context=self.context)


FREE = Price(input=0, output=0)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    batch_discount: float | None = Field(None, ge=0, le=1)
    models: dict[str, Price] = Field(default_factory=dict)


@dataclass(frozen=True)
class PriceTable:
    """Prices by model name."""

    rows: dict[str, Price]
    batch_discount: float = 1.0

    @classmethod
    def load(cls, own: Path | None = None) -> PriceTable:
        """Load the bundled table, and override it with the user's table if that exists."""
        shipped = Path(__file__).with_name("prices.toml")
        there = [shipped] if own is None or not own.is_file() else [shipped, own]
        files = [read_toml(file, _File, "not a price table") for file in there]
        rows = {name: price for file in files for name, price in file.models.items()}
        discounts = [file.batch_discount for file in files if file.batch_discount is not None]
        return cls(rows, discounts[-1] if discounts else 1.0)

    def of(self, model: str) -> Price:
        """Return the price of a model or of its undated version, or FREE if it is not listed."""
        if model in self.rows:
            return self.rows[model]
        stems = [name for name in self.rows if model.startswith(f"{name}-") and model[len(name) + 1 :][:1].isdigit()]
        return self.rows[max(stems, key=len)] if stems else FREE


TYPICAL_WORDS = "a few words as a typical reply"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated calls, tokens and cost of a run. A guess, since replies decide about further calls."""

    calls: int = 0
    cached: int = 0
    """Calls with a cached reply, which are free."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float | None = 0.0
    """None if the price is unknown."""

    def in_words(self) -> str:
        """Format as one line."""
        known = f", {self.cached:,} of them known already" if self.cached else ""
        tokens = f"about {self.prompt_tokens:,} prompt and {self.completion_tokens:,} reply tokens"
        price = "its price is unknown: add it to prices.toml" if self.dollars is None else f"${self.dollars:.4f}"
        return f"{self.calls:,} model calls{known}; {tokens}; {price}"


@dataclass
class EstimatingModel:
    """Substitute for a model that replies from the cache, or else with typical values that follow the schema."""

    name: str
    price: Price | None = FREE
    """None if the price is unknown."""
    capabilities: Capabilities = field(default_factory=Capabilities)
    store: ReplyStore | None = None
    _usages: dict[str, Usage] = field(default_factory=dict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def context_tokens(self) -> int:
        """Context length as known without asking the server."""
        return self.capabilities.context_tokens

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Return free replies. Equal requests count once, as with the cache."""
        keys = [digest(request, self.name) for request in requests]
        known = self.store.get(keys) if self.store is not None else {}
        completions = [
            known[key] if key in known else self._typical(request) for key, request in zip(keys, requests, strict=True)
        ]
        with self._lock:
            self._usages.update((key, done.usage) for key, done in zip(keys, completions, strict=True))
        return completions

    def estimate(self) -> Estimate:
        """Sum up all distinct requests so far."""
        with self._lock:
            usages = list(self._usages.values())
        fresh = [usage for usage in usages if not usage.cached]
        return Estimate(
            calls=len(usages),
            cached=len(usages) - len(fresh),
            prompt_tokens=sum(usage.prompt_tokens for usage in fresh),
            completion_tokens=sum(usage.completion_tokens for usage in fresh),
            dollars=None if self.price is None else sum(usage.dollars for usage in fresh),
        )

    def _typical(self, request: Request) -> Completion:
        text = TYPICAL_WORDS if request.schema is None else json.dumps(example(request.schema), ensure_ascii=False)
        prompt, reply = count_request_tokens(request), min(count_tokens(text), request.max_tokens)
        return Completion(text, Usage(prompt, reply, (self.price or FREE).dollars(prompt, reply)))


def example(schema: Mapping[str, Any]) -> Any:
    """Return a small value that follows a JSON schema, for the schema features used in prompts."""
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
