"""Spans with times, fallbacks and model calls, recorded beside the algorithms and never influencing them."""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Literal, ParamSpec, TypeVar, cast

from clew.core.errors import PendingError
from clew.core.types import Fallback

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

Failure = Literal["budget", "access", "outage", "failing"]
"""Why a model call failed: a cap was reached; the key, the model's name or the address is wrong; the server cannot be
reached or was given up; it answers, but with errors or with what is no reply, however often it is asked."""
LONGEST_DETAIL = 2000
GRACE_SECONDS = 3.0
"""How long work under way may go on after Ctrl-C."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to a language model: the hash of its prompt, what it consumed, and the beginning of the reply."""

    prompt_hash: str
    prompt_tokens: int
    completion_tokens: int
    dollars: float
    seconds: float
    cached: bool
    error: str | None = None
    reply: str = ""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Spending:
    """What the model calls of an answer came to; cached calls cost nothing."""

    calls: int = 0
    cached: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0

    @classmethod
    def of(cls, calls: Iterable[ModelCall]) -> Spending:
        """The sum over calls; tokens and dollars of those that were really made."""
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
    """One step: what it was given, what it found, how long it took, and the step it belongs to."""

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
        """Add what is known only after the step has begun."""
        self.details.update(details)

    def to_dict(self, begun: float = 0.0) -> dict[str, Any]:
        """For the page: times counted from `begun`, what it found cut to a readable length."""
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
    """Collects the spans and fallbacks of one answer; safe for threads."""

    def __init__(
        self, on_span: Callable[[Span], None] | None = None, on_text: Callable[[str], None] | None = None
    ) -> None:
        """`on_span` is called whenever a span begins or ends, `on_text` with what a model has written so far of an
        answer, unchecked and whole each time; both for live display.
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
        """What the model calls so far came to."""
        return Spending.of(call for span in self.spans for call in span.calls)

    def cut_short(self) -> str | None:
        """The note an answer carries where a budget refused model calls; None where none were."""
        refused = [call for span in self.spans for call in span.calls if call.failure == "budget"]
        return f"cut short: {refused[0].error}; {len(refused)} model calls were not made" if refused else None

    def model(self) -> str:
        """The name of the model that replied; "none" where none did."""
        spoke = (span for span in self.spans if any(call.error is None for call in span.calls))
        return next((str(span.details["model"]) for span in spoke), "none")

    def outage(self) -> str | None:
        """What a server said, or the network, that gave no reply; None where none failed so."""
        calls = (call for span in self.spans for call in span.calls)
        return next((call.error for call in calls if call.failure in ("outage", "failing")), None)

    def write(self, file: Path) -> None:
        """One JSON line per span, with its model calls and fallbacks, then one per fallback outside of any span."""
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
        file.write_text(text, "utf-8", errors="replace")  # a reply may hold half a character


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


def is_recording() -> bool:
    """Whether anything listens, for what is costly to prepare."""
    return _recorder.get() is not None


def text_listener() -> Callable[[str], None] | None:
    """Who is to be told what a model writes of an answer, while it writes."""
    recorder = _recorder.get()
    return None if recorder is None else recorder.on_text


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
        stated, current = Fallback(step, reason, instead), _current.get()
        with recorder._lock:
            recorder.fallbacks.append(stated)
            if current is not None:
                recorder.spans[current].fallbacks.append(stated)


def within(seconds: float, work: Callable[[], R]) -> R:
    """The result of some work, or TimeoutError: for what cannot be stopped, such as looking up a host's name.

    Work that is given up goes on in its thread, which never holds up an exit.
    """
    done: SimpleQueue[tuple[R | None, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            done.put((work(), None))
        except BaseException as failure:  # carried over to the caller's thread
            done.put((None, failure))

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    try:
        result, failure = done.get(timeout=seconds)
    except Empty:
        raise TimeoutError from None
    if failure is not None:
        raise failure
    return cast("R", result)


def concurrently(function: Callable[[T], R], items: Iterable[T], limit: int = 8) -> list[R]:
    """Apply a function to every item in threads, results in order, spans kept below the caller's."""
    return [result for _, result in sorted(as_completed(function, items, limit), key=lambda pair: pair[0])]


def as_completed(function: Callable[[T], R], items: Iterable[T], limit: int = 8) -> Iterator[tuple[int, R]]:
    """Results with the positions of their items as they come; an item is drawn only when a thread is free for it.

    After a failure no more items are drawn and the first failed item's error is raised once those under way are done;
    a `PendingError` lets the others go on, so that one round collects all that is pending. After Ctrl-C those under
    way have a few seconds to be handed out, so that what was paid for is not lost; the threads never hold up an exit.
    """
    if limit <= 1 or (isinstance(items, Sequence) and len(items) <= 1):
        yield from _one_by_one(function, items)
        return
    done: SimpleQueue[tuple[int, R | None, BaseException | None]] = SimpleQueue()

    def work(place: int, item: T) -> None:
        try:
            done.put((place, function(item), None))
        except BaseException as failure:  # carried over to the caller's thread
            done.put((place, None, failure))

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
                context = copy_context()
                Thread(target=context.run, args=(work, place, item), daemon=True).start()
                under_way += 1
            if not under_way:
                break
            place, result, failure = done.get(
                timeout=None if interrupted is None else max(0.0, deadline - time.monotonic())
            )
        except KeyboardInterrupt as interrupt:
            if interrupted is not None:
                raise
            interrupted, deadline = interrupt, time.monotonic() + GRACE_SECONDS
            continue
        except Empty:
            break
        under_way -= 1
        if failure is None:
            yield place, cast("R", result)
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


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 400 else text[:400] + "…"
