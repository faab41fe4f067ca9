"""A server that is down is asked once, not once per call: the circuit breaker around a model on a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

from clew.models.protocol import Completion, Request
from clew.models.wrappers import Wrapping

Greeting = Callable[[], str | None]
"""Says hello to a server and returns what is wrong, within two seconds; None where it answers."""


@dataclass
class Circuit:
    """What is known of a server's state; shared by all calls of a model, and guarded by one lock."""

    refusal: Completion | None = None
    """What calls get instead of a reply while the server is given up."""
    until: float = 0.0
    """When it is tried again."""
    outages: int = 0
    """In a row: each doubles the time until the next try."""
    failed: int = 0
    """Requests in a row that the server answered, but never with a reply."""
    heard: bool = False
    """Whether it has ever replied."""
    greeted: bool = False
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True)
class Breaking(Wrapping):
    """Gives a server up at its first outage, and greets it again after a while.

    A server is greeted before its first request, as silence says more about a greeting than about a long reply: one
    that hangs costs two seconds instead of the whole time a reply may take. A wrong key or model gives it up as well.
    """

    greet: Greeting
    first_pause: float = 30.0
    longest_pause: float = 600.0
    tolerance: int = 2
    """Requests in a row that may fail on a server that has replied before; one on a server that never has."""
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    circuit: Circuit = field(default_factory=Circuit, repr=False, compare=False)

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """The inner model's completions, or why it is not asked."""
        refusal = self.refusal()
        if refusal is not None:
            return [refusal] * len(requests)
        return [self._noted(done) for done in self.inner.complete(requests)]

    def refusal(self) -> Completion | None:
        """None where the server may be asked; greets it where it is new or was given up a while ago."""
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
        """Whether the server may be asked."""
        return self.refusal() is None

    def _noted(self, done: Completion) -> Completion:
        """The completion of a request after every retry, and what it means for the next one."""
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
