"""Recording of spans, fallbacks and model calls, without influence on the algorithms.

An answer is also displayed while a model writes it, before it is checked. The role that writes declares how to display
its replies (`showing`). The model reports its progress (`reply_listener`), and the recorder of the question passes it
on. Without a recorder, none of this has any effect.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Literal, TypeVar, cast

from clew.core.errors import PendingError
from clew.core.types import Fallback

T = TypeVar("T")
R = TypeVar("R")

Failure = Literal["budget", "access", "outage", "failing"]
"""Reason of a failed model call: "budget" (a cap was reached), "access" (wrong key, model name or address), "outage"
(server unreachable or given up), or "failing" (errors or unusable replies after all retries)."""
LONGEST_DETAIL = 2000
"""Maximum characters of a detail in a stored trace. Longer texts and lists are cut, so that a trace stays small."""
GRACE_SECONDS = 3.0
"""Seconds that running work may continue after Ctrl-C."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a language model: the hash of its prompt, its cost, and the start of the reply."""

    prompt_hash: str
    prompt_tokens: int
    completion_tokens: int
    dollars: float
    seconds: float
    cached: bool
    error: str | None = None
    reply: str = ""
    failure: Failure | None = None

    def attributes(self, model: str) -> dict[str, Any]:
        """Return attributes for OpenTelemetry, by the GenAI conventions."""
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": model,
            "gen_ai.usage.input_tokens": self.prompt_tokens,
            "gen_ai.usage.output_tokens": self.completion_tokens,
            "clew.cached": self.cached,
            "clew.dollars": self.dollars,
        }


@dataclass(frozen=True, slots=True)
class Spending:
    """Total cost of the model calls of an answer. Cached calls are free."""

    calls: int = 0
    cached: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0

    @classmethod
    def of(cls, calls: Iterable[ModelCall]) -> Spending:
        """Sum up calls. Cached calls do not count towards tokens and dollars."""
        known = list(calls)
        paid = [call for call in known if not call.cached]
        return cls(
            calls=len(known),
            cached=len(known) - len(paid),
            failed=sum(call.error is not None for call in known),
            prompt_tokens=sum(call.prompt_tokens for call in paid),
            completion_tokens=sum(call.completion_tokens for call in paid),
            dollars=sum(call.dollars for call in paid),
        )


@dataclass
class Span:
    """One step with its details, duration and parent step."""

    id: int
    parent: int | None
    name: str
    start: float
    seconds: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    calls: list[ModelCall] = field(default_factory=list)
    fallbacks: list[Fallback] = field(default_factory=list)

    def note(self, **details: Any) -> None:
        """Add details to a running step."""
        self.details.update(details)

    def to_dict(self, begun: float = 0.0) -> dict[str, Any]:
        """Return values for the page: times relative to `begun`, and details shortened."""
        return {
            "id": self.id,
            "parent": self.parent,
            "name": self.name,
            "start": round(self.start - begun, 6),
            "seconds": self.seconds,
            "details": _shortened(self.details),
            "error": self.error,
            "calls": [asdict(call) for call in self.calls],
        }


def _shortened(details: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for name, value in details.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        kept[name] = value if isinstance(value, int | float | bool | None) else text[:LONGEST_DETAIL]
    return kept


class Recorder:
    """Collector of the spans and fallbacks of one answer. Thread-safe."""

    def __init__(
        self, on_span: Callable[[Span], None] | None = None, on_text: Callable[[str], None] | None = None
    ) -> None:
        """Register callbacks for live display: `on_span` gets each span at its start and end, `on_text` gets the whole
        unchecked text of an answer each time a model continues it.
        """
        self.spans: list[Span] = []
        self.fallbacks: list[Fallback] = []
        self._lock = Lock()
        self._on_span = on_span
        self.on_text = on_text

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

    def spending(self) -> Spending:
        """Return the total cost of the model calls so far."""
        return Spending.of(call for span in self.spans for call in span.calls)

    def cut_short(self) -> str | None:
        """Return a note if a budget refused model calls, else None."""
        refused = [call for span in self.spans for call in span.calls if call.failure == "budget"]
        return f"cut short: {refused[0].error}; {len(refused)} model calls were not made" if refused else None

    def model(self) -> str:
        """Return the name of the first model that replied, or "none"."""
        spoke = (span for span in self.spans if any(call.error is None for call in span.calls))
        return next((str(span.details["model"]) for span in spoke), "none")

    def outage(self) -> str | None:
        """Return the first error of an unreachable or failing server, or None."""
        calls = (call for span in self.spans for call in span.calls)
        return next((call.error for call in calls if call.failure in ("outage", "failing")), None)

    def write(self, file: Path) -> None:
        """Write a JSON line per span with its model calls and fallbacks, then a line per fallback outside of spans."""
        lines = [
            {
                "kind": "span",
                **vars(span),
                "calls": [asdict(call) for call in span.calls],
                "fallbacks": [asdict(fallback) for fallback in span.fallbacks],
            }
            for span in self.spans
        ]
        inside = [fallback for span in self.spans for fallback in span.fallbacks]
        outside = [fallback for fallback in self.fallbacks if not any(fallback is other for other in inside)]
        lines += [{"kind": "fallback", **asdict(fallback)} for fallback in outside]
        text = "".join(json.dumps(line, ensure_ascii=False, default=str) + "\n" for line in lines)
        file.write_text(text, "utf-8", errors="replace")  # a reply may contain lone surrogates


_recorder: ContextVar[Recorder | None] = ContextVar("clew_recorder", default=None)
_current: ContextVar[int | None] = ContextVar("clew_span", default=None)


@contextmanager
def recording(recorder: Recorder | None = None) -> Iterator[Recorder]:
    """Record all steps inside the block."""
    recorder = recorder or Recorder()
    token, parent = _recorder.set(recorder), _current.set(None)
    try:
        yield recorder
    finally:
        _recorder.reset(token)
        _current.reset(parent)


@contextmanager
def span(name: str, **details: Any) -> Iterator[Span]:
    """Record the block as a named step, if a recorder is active."""
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


def is_recording() -> bool:
    """Return whether a recorder is active, so that callers can skip costly details."""
    return _recorder.get() is not None


@dataclass(frozen=True, slots=True)
class Unchecked:
    """The unchecked text of an answer so far. The checked answer replaces it and may differ."""

    text: str


_writing: ContextVar[Callable[[str], None] | None] = ContextVar("clew_unchecked", default=None)


@contextmanager
def showing(readable: Callable[[str], str]) -> Iterator[None]:
    """Report what a model writes inside the block. `readable` turns a partial reply into text for display."""
    recorder = _recorder.get()
    tell = None if recorder is None else recorder.on_text
    if tell is None:
        yield
        return
    last, is_open = "", True

    def hear(reply: str) -> None:
        nonlocal last
        text = readable(reply)
        if text != last and is_open:  # a reply may continue after the block
            last = text
            tell(text)

    token = _writing.set(hear)
    try:
        yield
    finally:
        _writing.reset(token)
        is_open = False


def reply_listener() -> Callable[[str], None] | None:
    """Return a callback that takes the whole reply so far, or None outside `showing` or without a recorder."""
    return _writing.get()


def fallback(step: str, reason: str, instead: str) -> None:
    """Record that a step used a fallback. Answers show it, and reports count it."""
    recorder = _recorder.get()
    if recorder is not None:
        stated, current = Fallback(step, reason, instead), _current.get()
        with recorder._lock:
            recorder.fallbacks.append(stated)
            if current is not None:
                recorder.spans[current].fallbacks.append(stated)


def within(seconds: float, work: Callable[[], R]) -> R:
    """Return the result of work that cannot be cancelled, such as a DNS lookup. Raise TimeoutError after `seconds`.

    After a timeout the work continues in a daemon thread, which does not delay the exit.
    """
    return _started(work).result(seconds)


def _started(work: Callable[[], R], finished: Callable[[Future[R]], None] = lambda _: None) -> Future[R]:
    """Start work in a daemon thread, which does not delay the exit. The thread calls `finished` before it ends."""
    future: Future[R] = Future()
    future.add_done_callback(finished)

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as failure:  # raised again in the caller's thread
            future.set_exception(failure)

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    return future


def concurrently(function: Callable[[T], R], items: Iterable[T], limit: int = 8) -> list[R]:
    """Apply a function to items in threads. Return results in order, and keep spans below the caller's span."""
    return [result for _, result in sorted(as_completed(function, items, limit), key=lambda pair: pair[0])]


def as_completed(function: Callable[[T], R], items: Iterable[T], limit: int = 8) -> Iterator[tuple[int, R]]:
    """Yield results with the indexes of their items as they finish. Take an item only when a thread is free.

    After a failure, finish the running items and raise the error of the first failed item. A `PendingError` does not
    stop the other items, so that one round collects all pending requests. After Ctrl-C, running items have
    `GRACE_SECONDS` to finish, since they may be paid for. The threads do not delay the exit.
    """
    if limit <= 1 or (isinstance(items, Sequence) and len(items) <= 1):
        yield from _one_by_one(function, items)
        return
    done: SimpleQueue[tuple[int, Future[R]]] = SimpleQueue()
    source = enumerate(items)
    failures: dict[int, BaseException] = {}
    interrupted: KeyboardInterrupt | None = None
    under_way, deadline = 0, math.inf
    while True:
        try:
            while under_way < limit and interrupted is None and _only_pending(failures):
                place, item = next(source, (-1, None))
                if place < 0:
                    break
                _started(partial(function, cast("T", item)), lambda future, place=place: done.put((place, future)))  # type: ignore[misc]
                under_way += 1
            if not under_way:
                break
            place, future = done.get(timeout=None if interrupted is None else max(0.0, deadline - time.monotonic()))
        except KeyboardInterrupt as interrupt:
            if interrupted is not None:
                raise
            interrupted, deadline = interrupt, time.monotonic() + GRACE_SECONDS
            continue
        except Empty:
            break
        under_way -= 1
        if (failure := future.exception()) is None:
            yield place, future.result()
        else:
            failures[place] = failure
    if interrupted is not None:
        raise interrupted
    if failures:
        raise failures[min(failures, key=lambda place: (isinstance(failures[place], PendingError), place))]


def _one_by_one(function: Callable[[T], R], items: Iterable[T]) -> Iterator[tuple[int, R]]:
    pending: PendingError | None = None
    for place, item in enumerate(items):
        try:
            result = function(item)
        except PendingError as wait:
            pending = pending or wait
            continue
        yield place, result
    if pending is not None:
        raise pending


def _only_pending(failures: dict[int, BaseException]) -> bool:
    return all(isinstance(failure, PendingError) for failure in failures.values())
