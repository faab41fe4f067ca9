"""At most so many calls at once, and so many a minute."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock

from clew.models.protocol import Completion, Request, in_order
from clew.models.wrapping import Wrapping
from clew.trace import as_completed


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
