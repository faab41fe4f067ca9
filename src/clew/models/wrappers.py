"""Wrappers of language models: traced(cached(budgeted(limited(breaking(retrying(adapter))))))."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from threading import Event, Lock

from clew.core import trace
from clew.core.errors import AccessError
from clew.core.limits import Pace
from clew.core.trace import ModelCall, as_completed
from clew.models.budget import Ledger
from clew.models.protocol import Capabilities, Completion, LanguageModel, Request, each, in_order
from clew.models.reply_store import ReplyStore, digest
from clew.models.tokens import count_request_tokens


@dataclass(frozen=True)
class Wrapping:
    """A wrapper with the name and properties of its inner model."""

    inner: LanguageModel

    @property
    def name(self) -> str:
        """Name of the inner model."""
        return self.inner.name

    @property
    def context_tokens(self) -> int:
        """Context length of the inner model."""
        return self.inner.context_tokens

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the inner model."""
        return self.inner.capabilities


@dataclass(frozen=True)
class Retrying(Wrapping):
    """Wrapper that retries requests after transient failures, with exponential pauses and jitter."""

    attempts: int = 3
    first_pause: float = 0.5
    patience: float = 30.0
    """Maximum total pause of a request in seconds. If a server asks for more, there is no further attempt."""
    seconds_left: Callable[[], float] = field(default=lambda: math.inf, repr=False)
    """Returns the remaining seconds of the budget."""
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    jitter: Callable[[], float] = field(default=random.random, repr=False)

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Return completions after at most `attempts` tries each."""
        completions = self.inner.complete(requests)
        paused = 0.0
        for attempt in range(1, self.attempts):
            failed = [place for place, done in enumerate(completions) if done.retry_after is not None]
            if not failed:
                break
            asked_for = max(completions[place].retry_after or 0.0 for place in failed)
            pause = self._pause(attempt, asked_for)
            paused += pause
            if paused > self.patience or pause > self.seconds_left():
                break
            self.sleep(pause)
            again = self.inner.complete([requests[place] for place in failed])
            for place, completion in zip(failed, again, strict=True):
                completions[place] = completion
        return completions

    def _pause(self, attempt: int, asked_for: float) -> float:
        """Return half the exponential pause plus a random part of the other half, and at least the server's request."""
        return max(asked_for, self.first_pause * (1 << (attempt - 1)) * (0.5 + 0.5 * self.jitter()))


Greeting = Callable[[], str | None]
"""Health check of a server, within two seconds. Returns the problem, or None if the server replies."""


@dataclass
class Circuit:
    """State of a server, shared by all calls of a model under one lock."""

    refusal: Completion | None = None
    """Completion that calls get while the server is given up."""
    until: float = 0.0
    """Time of the next health check."""
    outages: int = 0
    """Consecutive outages. Each doubles the time until the next check."""
    failed: int = 0
    """Consecutive requests that the server answered with an error."""
    heard: bool = False
    """Whether the server has ever replied to a request."""
    greeted: bool = False
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True)
class Breaking(Wrapping):
    """Wrapper that gives a server up at its first outage, and checks it again after a pause.

    A health check precedes the first request, so that a server that hangs costs two seconds instead of the time limit
    of a reply. A wrong key or model name gives the server up as well.
    """

    greet: Greeting
    first_pause: float = 30.0
    longest_pause: float = 600.0
    tolerance: int = 2
    """Consecutive failures that give up a server that has replied before. Otherwise a single failure does."""
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    circuit: Circuit = field(default_factory=Circuit, repr=False, compare=False)

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Return the inner model's completions, or the reason why the server is given up."""
        refusal = self.refusal()
        if refusal is not None:
            return [refusal] * len(requests)
        return [self._noted(done) for done in self.inner.complete(requests)]

    def refusal(self) -> Completion | None:
        """Return None if the server is available. Check its health before the first request and after a pause."""
        circuit = self.circuit
        with circuit.lock:
            if circuit.refusal is not None and self.clock() < circuit.until:
                return circuit.refusal
            if circuit.refusal is not None or not circuit.greeted:
                wrong = self.greet()
                if wrong is not None:
                    self._give_up(Completion("", error=wrong, failure="outage"))
                    return circuit.refusal
                circuit.refusal, circuit.greeted = None, True
            return None

    def answers(self) -> bool:
        """Return whether the server is available."""
        return self.refusal() is None

    def _noted(self, done: Completion) -> Completion:
        """Update the state after a request and all its retries, and return its completion."""
        circuit = self.circuit
        failing = done.retry_after is not None
        with circuit.lock:
            if done.error is None:
                circuit.outages, circuit.failed, circuit.heard = 0, 0, True
                return done
            circuit.failed += failing
            most = self.tolerance if circuit.heard else 1
            if done.failure in ("outage", "access") or circuit.failed >= most:
                self._give_up(done)
        return replace(done, failure="failing", retry_after=None) if failing else done

    def _give_up(self, refusal: Completion) -> None:
        circuit = self.circuit
        if circuit.refusal is None or self.clock() >= circuit.until:  # else another thread has just given it up
            pause = min(self.longest_pause, self.first_pause * 2**circuit.outages)
            circuit.outages, circuit.failed, circuit.until = circuit.outages + 1, 0, self.clock() + pause
        circuit.refusal = Completion("", error=refusal.error, failure=refusal.failure or "outage")


@dataclass(frozen=True)
class Limited(Wrapping):
    """Wrapper that runs up to `concurrency` calls at once, with up to `batch` requests per call."""

    concurrency: int = 8
    per_minute: float | None = None
    batch: int = 1
    """Requests per call: 1 for servers, more for models that compute replies in batches."""
    _pace: Pace = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pace", Pace(self.per_minute))

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Return the inner model's completions."""
        return in_order(self.each(requests))

    def each(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Yield completions as they finish."""
        for chunk, completions in as_completed(self._call, _chunks(requests, self.batch), self.concurrency):
            yield from enumerate(completions, start=chunk * self.batch)

    def _call(self, requests: Sequence[Request]) -> list[Completion]:
        self._pace.wait()
        return self.inner.complete(requests)


def _chunks(requests: Iterable[Request], size: int) -> Iterator[list[Request]]:
    source = iter(requests)
    while chunk := list(itertools.islice(source, size)):
        yield chunk


@dataclass(frozen=True)
class Budgeted(Wrapping):
    """Wrapper that checks the ledger before each call. A refused call gets the failure "budget"."""

    ledger: Ledger = field(default_factory=Ledger)

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Return completions of the calls within budget, and errors for refused calls."""
        return in_order(self.each(requests))

    def each(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Take requests one by one as the inner model has capacity, so that each check sees all earlier costs."""
        admitted: list[tuple[int, int]] = []
        refused: list[tuple[int, Completion]] = []

        def allowed() -> Iterator[Request]:
            for place, request in enumerate(requests):
                guess = count_request_tokens(request)
                why = self.ledger.admit(guess)
                if why is None:
                    admitted.append((place, guess))
                    yield request
                else:
                    refused.append((place, Completion("", error=why, failure="budget")))

        for position, completion in each(self.inner, allowed()):
            place, guess = admitted[position]
            self.ledger.settle(guess, completion)
            yield place, completion
        yield from refused


@dataclass(frozen=True)
class Cached(Wrapping):
    """Wrapper that sends only uncached requests to the inner model, each once, and stores replies as they finish."""

    store: ReplyStore
    _asked: dict[str, Event] = field(default_factory=dict, repr=False)
    """Requests that a thread is sending now, so that other threads wait for the reply."""
    _lock: Lock = field(default_factory=Lock, repr=False)

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Return cached replies, and the inner model's replies to all other requests."""
        return in_order(self.each(requests))

    def each(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Yield cached replies first, then new replies as they finish. Failures are not cached."""
        places: dict[str, list[int]] = {}
        wanted: dict[str, Request] = {}
        for place, request in enumerate(requests):
            key = digest(request, self.name)
            places.setdefault(key, []).append(place)
            wanted[key] = request
        while wanted:
            for key, completion in self.store.get(list(wanted)).items():
                del wanted[key]
                yield from ((place, completion) for place in places[key])
            mine, others = self._divide(wanted)
            try:
                for position, completion in each(self.inner, [wanted[key] for key in mine]):
                    key = mine[position]
                    if completion.error is None:
                        self.store.put(key, completion)
                    self._release(key)
                    del wanted[key]
                    yield from _shared(places[key], completion)
            finally:
                for key in mine:
                    self._release(key)
            # Wait for other threads last, when no thread waits for our requests: this prevents deadlocks.
            for asked in others:
                asked.wait()

    def _divide(self, wanted: dict[str, Request]) -> tuple[list[str], list[Event]]:
        """Divide requests into keys for this thread to send, and events of requests that other threads are sending."""
        with self._lock:
            mine = [key for key in wanted if key not in self._asked]
            others = [self._asked[key] for key in wanted if key in self._asked]
            self._asked.update((key, Event()) for key in mine)
        return mine, others

    def _release(self, key: str) -> None:
        with self._lock:
            asked = self._asked.pop(key, None)
        if asked is not None:
            asked.set()


def _shared(places: list[int], completion: Completion) -> Iterator[tuple[int, Completion]]:
    """Yield one reply for equal requests. All but the first count as cached, since only one was paid."""
    yield places[0], completion
    again = replace(completion, usage=replace(completion.usage, cached=True))
    yield from ((place, again) for place in places[1:])


@cache
def is_told() -> bool:
    """Return whether the extra `telemetry` is installed."""
    return find_spec("opentelemetry") is not None and find_spec("opentelemetry.trace") is not None


def tell(model: str, calls: Iterable[ModelCall]) -> None:
    """Emit an OpenTelemetry span per call that ends now, without prompt and reply. No effect without an SDK."""
    if not is_told():
        return
    from opentelemetry.trace import SpanKind, Status, StatusCode, get_tracer

    tracer, now = get_tracer("clew"), time.time_ns()
    for call in calls:
        span = tracer.start_span(
            f"chat {model}",
            kind=SpanKind.CLIENT,
            start_time=now - int(call.seconds * 1e9),  # in nanoseconds
            attributes=call.attributes(model),
        )
        if call.error is not None:
            span.set_attribute("error.type", call.failure or "other")
            span.set_status(Status(StatusCode.ERROR, call.error))
        span.end(end_time=now)


@dataclass(frozen=True)
class Traced(Wrapping):
    """Wrapper that records one span per batch of requests, and raises AccessError if the server denies access."""

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Return the inner model's completions."""
        if not trace.is_recording():
            return [_let_in(done) for done in self.inner.complete(requests)]
        with trace.span("model", model=self.name, requests=len(requests)) as span:
            completions = self.inner.complete(requests)
            calls = [_call(request, done, self.name) for request, done in zip(requests, completions, strict=True)]
            span.calls.extend(calls)
            tell(self.name, calls)
            return [_let_in(done) for done in completions]

    def each(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Yield completions as they finish. While recording, yield all at the end, so that the span can end before."""
        if trace.is_recording():
            return iter(enumerate(self.complete(list(requests))))
        return ((place, _let_in(done)) for place, done in each(self.inner, requests))


def _let_in(done: Completion) -> Completion:
    """Return the completion. Raise AccessError for a wrong key or model, which no fallback should hide."""
    if done.failure == "access":
        raise AccessError(done.error)
    return done


def _call(request: Request, completion: Completion, model: str) -> ModelCall:
    return ModelCall(
        prompt_hash=digest(request, model)[:16],
        **asdict(completion.usage),
        error=completion.error,
        reply=completion.text[:400],
        failure=completion.failure,
    )
