"""Wrappers of language models: traced(cached(budgeted(limited(breaking(retrying(adapter))))))."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from threading import Event, Lock

from clew.core import trace
from clew.core.errors import AccessError
from clew.core.trace import as_completed
from clew.models.budget import Ledger
from clew.models.protocol import Capabilities, Completion, LanguageModel, Request, each, in_order
from clew.models.reply_store import ReplyStore, digest
from clew.models.telemetry import tell
from clew.models.tokens import count_request_tokens


@dataclass(frozen=True)
class Wrapping:
    """A model around another one, which goes by the other's name."""

    inner: LanguageModel

    @property
    def name(self) -> str:
        """The inner model's."""
        return self.inner.name

    @property
    def context_tokens(self) -> int:
        """The inner model's."""
        return self.inner.context_tokens

    @property
    def capabilities(self) -> Capabilities:
        """The inner model's; what any model can where it does not say."""
        found = getattr(self.inner, "capabilities", None)
        return found if isinstance(found, Capabilities) else Capabilities(self.inner.context_tokens)


@dataclass(frozen=True)
class Retrying(Wrapping):
    """Repeats requests whose completion says that asking again may help, with exponential pauses and jitter."""

    attempts: int = 3
    first_pause: float = 0.5
    patience: float = 30.0
    """Seconds that the pauses of a request may come to; a server that asks for more is not asked again."""
    seconds_left: Callable[[], float] = field(default=lambda: math.inf, repr=False)
    """What the budget leaves."""
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    jitter: Callable[[], float] = field(default=random.random, repr=False)

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Completions after at most `attempts` tries each."""
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
        """Half the exponential pause and a random part of the other half; at least what the server asked for."""
        return max(asked_for, self.first_pause * (1 << (attempt - 1)) * (0.5 + 0.5 * self.jitter()))


@dataclass
class Pace:
    """Hands out starting times that lie evenly apart: never more than `per_minute` in any minute."""

    per_minute: float | None = None
    _next: float = 0.0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def wait(self) -> None:
        """Sleep until it is this caller's turn."""
        if self.per_minute is None:
            return
        with self._lock:
            turn = max(self._next, time.monotonic())
            self._next = turn + 60 / self.per_minute
        time.sleep(max(0.0, turn - time.monotonic()))


@dataclass(frozen=True)
class Limited(Wrapping):
    """Runs up to `concurrency` calls at once, each with up to `batch` requests, however large the batch it is given."""

    concurrency: int = 8
    per_minute: float | None = None
    batch: int = 1
    """Requests per call: 1 for servers; more for models that compute many replies at once."""
    _pace: Pace = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pace", Pace(self.per_minute))

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """The inner model's completions."""
        return in_order(self.each(requests))

    def each(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Completions as they come."""
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
    """Checks the ledger before each call; a call it refuses comes back with the failure "budget"."""

    ledger: Ledger = field(default_factory=Ledger)

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Completions of the calls the budget allows, errors for the others."""
        return in_order(self.each(requests))

    def each(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Draws requests one by one as the inner model has room, so that each check sees what was spent before."""
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
    """Asks the inner model only what the store does not know, each request once, and stores replies as they come."""

    store: ReplyStore
    _asked: dict[str, Event] = field(default_factory=dict, repr=False)
    """Requests some thread is asking right now, so that no other asks them too."""
    _lock: Lock = field(default_factory=Lock, repr=False)

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Known replies from the store, the others from the inner model."""
        return in_order(self.each(requests))

    def each(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Known replies first, then the others as they come; failures are not kept."""
        places: dict[str, list[int]] = {}
        wanted: dict[str, Request] = {}
        for place, request in enumerate(requests):
            key = digest(request, self.name)
            places.setdefault(key, []).append(place)
            wanted[key] = request
        while wanted:
            known = self.store.get(list(wanted))
            for key, completion in known.items():
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
            # Another thread's requests come last, when none of ours keeps anybody waiting: no circle of waiting.
            for asked in others:
                asked.wait()

    def _divide(self, wanted: dict[str, Request]) -> tuple[list[str], list[Event]]:
        """Which requests fall to this thread, and which ones another thread is asking already."""
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
    """One reply for several equal requests: paid once, so all but the first count as cached."""
    yield places[0], completion
    again = replace(completion, usage=replace(completion.usage, cached=True))
    yield from ((place, again) for place in places[1:])


SHOWN_REPLY = 400


@dataclass(frozen=True)
class Traced(Wrapping):
    """Records one span per batch of requests; raises AccessError where the server does not let the model be used."""

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """What the inner model says."""
        if not trace.is_recording():
            return [_let_in(done) for done in self.inner.complete(requests)]
        with trace.span("model", model=self.name, requests=len(requests)) as span:
            completions = self.inner.complete(requests)
            calls = [_call(request, done, self.name) for request, done in zip(requests, completions, strict=True)]
            span.calls.extend(calls)
            tell(self.name, calls)
            return [_let_in(done) for done in completions]

    def each(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """Completions as they come; all at the end while a trace is recorded, whose spans must end where they began."""
        if trace.is_recording():
            return iter(enumerate(self.complete(list(requests))))
        return ((place, _let_in(done)) for place, done in each(self.inner, requests))


def _let_in(done: Completion) -> Completion:
    """The completion; a wrong key or model is no matter for a fallback, but for whoever has named it."""
    if done.failure == "access":
        raise AccessError(done.error)
    return done


def _call(request: Request, completion: Completion, model: str) -> trace.ModelCall:
    return trace.ModelCall(
        prompt_hash=digest(request, model)[:16],
        **asdict(completion.usage),
        error=completion.error,
        reply=completion.text[:SHOWN_REPLY],
        failure=completion.failure,
    )
