"""Circuit breaker around a model on a server, so that not every call waits for a server that is down."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from clew.models.protocol import Completion, Request
from clew.models.wrappers import Wrapping

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
