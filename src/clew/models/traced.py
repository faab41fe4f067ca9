"""Outermost wrapper: tells the trace about every call (prompt hash, tokens, cached or not, cost), changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from clew import trace
from clew.models.identity import digest
from clew.models.protocol import Completion, Request, each
from clew.models.wrapping import Wrapping

SHOWN_REPLY = 400


@dataclass(frozen=True)
class Traced(Wrapping):
    """Records one span per batch of requests."""

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """What the inner model says."""
        if not trace.is_recording():
            return self.inner.complete(requests)
        with trace.span("model", model=self.name, requests=len(requests)) as span:
            completions = self.inner.complete(requests)
            calls = [_call(request, done, self.name) for request, done in zip(requests, completions, strict=True)]
            span.calls.extend(calls)
            return completions

    def each(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Completions as they come; all at the end while a trace is recorded, whose spans must end where they began."""
        if trace.is_recording():
            return iter(enumerate(self.complete(list(requests))))
        return each(self.inner, requests)


def _call(request: Request, completion: Completion, model: str) -> trace.ModelCall:
    usage = completion.usage
    return trace.ModelCall(
        prompt_hash=digest(request, model)[:16],
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        dollars=usage.dollars,
        seconds=usage.seconds,
        cached=usage.cached,
        error=completion.error,
        reply=completion.text[:SHOWN_REPLY],
    )
