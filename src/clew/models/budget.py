"""Budgets for language models, and the amounts spent."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from threading import Lock
from typing import TYPE_CHECKING

from clew.core.errors import InputError

if TYPE_CHECKING:  # questions without a model need only this module
    from clew.models.protocol import Completion


@dataclass(frozen=True, slots=True)
class Budget:
    """Spending limits of a run. None means no limit."""

    dollars: float | None = None
    tokens: int | None = None
    calls: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for cap in fields(self):
            value = getattr(self, cap.name)
            if value is not None and not value >= 0:
                raise InputError(f"a budget of {value} {cap.name}: expected zero or more")


class Ledger:
    """Amounts spent from a budget, and refused calls. Thread-safe.

    Cached calls are free. Running calls count with their prompt, so that dollars and tokens exceed a limit at most by
    the replies that are under way when it is reached.
    """

    def __init__(self, budget: Budget = Budget(), *, clock: Callable[[], float] = time.monotonic) -> None:
        """Start the clock."""
        self.budget = budget
        self.calls = self.tokens = self.refused = 0
        self.dollars = 0.0
        self._tokens_under_way = 0
        self._clock, self._begun = clock, clock()
        self._lock = Lock()
        self._why: str | None = None
        self.outage: str | None = None
        """Last error of an unreachable or failing server after all retries, or None."""

    @property
    def seconds(self) -> float:
        """Seconds since the ledger was created."""
        return self._clock() - self._begun

    def seconds_left(self) -> float:
        """Return the remaining seconds, infinite without a limit."""
        return math.inf if self.budget.seconds is None else self.budget.seconds - self.seconds

    @property
    def cut_short(self) -> str | None:
        """Note for the answer if calls were refused, else None."""
        return None if self._why is None else f"cut short: {self._why}; {self.refused} model calls were not made"

    def admit(self, prompt_tokens: int) -> str | None:
        """Register a call, or return the reason why the budget refuses it."""
        with self._lock:
            why = self._exhausted(prompt_tokens)
            if why is not None:
                self.refused += 1
                self._why = self._why or why
                return why
            self.calls += 1
            self._tokens_under_way += prompt_tokens
            return None

    def settle(self, prompt_tokens: int, completion: Completion) -> None:
        """Replace the estimate from `admit` by the actual usage."""
        usage = completion.usage
        with self._lock:
            if completion.failure in ("outage", "failing") or completion.retry_after is not None:
                self.outage = completion.error
            if completion.failure in ("outage", "access"):  # no reply, no cost
                self.calls -= 1
            self._tokens_under_way -= prompt_tokens
            self.tokens += usage.prompt_tokens + usage.completion_tokens
            self.dollars += usage.dollars

    def _exhausted(self, prompt_tokens: int) -> str | None:
        budget = self.budget
        if budget.calls is not None and self.calls >= budget.calls:
            return f"the budget of {budget.calls} calls is spent"
        # Refuse a prompt that exceeds the limit before it is sent, since its size is known.
        if budget.tokens is not None and self.tokens + self._tokens_under_way + prompt_tokens > budget.tokens:
            return f"the budget of {budget.tokens:,} tokens is spent ({self.tokens:,} used)"
        if budget.dollars is not None and self.dollars >= budget.dollars:
            return f"the budget of ${budget.dollars:g} is spent (${self.dollars:.4f} used)"
        if budget.seconds is not None and self.seconds >= budget.seconds:
            return f"the budget of {budget.seconds:g} seconds is spent"
        return None
