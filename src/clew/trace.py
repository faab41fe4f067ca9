"""Spans with times, fallbacks and model calls, recorded beside the algorithms and never influencing them."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from clew.types import Fallback

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Span:
    """One step: what it was given, what it found, how long it took, and the step it belongs to."""

    id: int
    parent: int | None
    name: str
    start: float
    seconds: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
    error: str | None = None

    def note(self, **details: Any) -> None:
        """Add what is known only after the step has begun."""
        self.details.update(details)


class Recorder:
    """Collects the spans and fallbacks of one answer; safe for threads."""

    def __init__(self, on_span: Callable[[Span], None] | None = None) -> None:
        """`on_span` is called whenever a span begins or ends, for live display."""
        self.spans: list[Span] = []
        self.fallbacks: list[Fallback] = []
        self._lock = Lock()
        self._on_span = on_span

    def begin(self, name: str, parent: int | None, details: dict[str, Any]) -> Span:
        """Open a span below `parent`."""
        with self._lock:
            span = Span(len(self.spans), parent, name, time.time(), details=details)
            self.spans.append(span)
        if self._on_span:
            self._on_span(span)
        return span

    def end(self, span: Span, seconds: float, error: str | None) -> None:
        """Close a span."""
        span.seconds, span.error = seconds, error
        if self._on_span:
            self._on_span(span)

    def write(self, file: Path) -> None:
        """One JSON line per span, then one per fallback."""
        lines = [{"kind": "span", **vars(span)} for span in self.spans]
        lines += [
            {"kind": "fallback", "step": f.step, "reason": f.reason, "instead": f.instead} for f in self.fallbacks
        ]
        file.write_text("".join(json.dumps(line, ensure_ascii=False, default=str) + "\n" for line in lines), "utf-8")


_recorder: ContextVar[Recorder | None] = ContextVar("clew_recorder", default=None)
_current: ContextVar[int | None] = ContextVar("clew_span", default=None)


@contextmanager
def recording(recorder: Recorder | None = None) -> Iterator[Recorder]:
    """Record everything that happens inside the block."""
    recorder = recorder or Recorder()
    token, parent = _recorder.set(recorder), _current.set(None)
    try:
        yield recorder
    finally:
        _recorder.reset(token)
        _current.reset(parent)


@contextmanager
def span(name: str, **details: Any) -> Iterator[Span]:
    """A named step; a no-op, apart from the clock, when nothing records."""
    recorder = _recorder.get()
    if recorder is None:
        yield Span(-1, None, name, 0.0)
        return
    opened = recorder.begin(name, _current.get(), details)
    token = _current.set(opened.id)
    begun = time.perf_counter()
    error: str | None = None
    try:
        yield opened
    except BaseException as failure:
        error = f"{type(failure).__name__}: {failure}"
        raise
    finally:
        _current.reset(token)
        recorder.end(opened, time.perf_counter() - begun, error)


def step(function: Callable[P, R]) -> Callable[P, R]:
    """Record each call of a function as a span named after it."""

    @functools.wraps(function)
    def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
        if _recorder.get() is None:
            return function(*args, **kwargs)
        with span(function.__name__) as opened:
            result = function(*args, **kwargs)
            opened.note(result=_brief(result))
            return result

    return recorded


def fallback(step: str, reason: str, instead: str) -> None:
    """State that a step did something other than it was meant to: shown in the answer, counted in reports."""
    recorder = _recorder.get()
    if recorder is not None:
        with recorder._lock:
            recorder.fallbacks.append(Fallback(step, reason, instead))


def concurrently(function: Callable[[T], R], items: Iterable[T], limit: int = 8) -> list[R]:
    """Apply a function to every item in threads, results in order, spans kept below the caller's."""
    work = list(items)
    if len(work) <= 1 or limit <= 1:
        return [function(item) for item in work]
    with ThreadPoolExecutor(max_workers=min(limit, len(work))) as pool:
        futures = [pool.submit(copy_context().run, function, item) for item in work]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 400 else text[:400] + "…"
