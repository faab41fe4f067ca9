"""What language models may cost, and what they have cost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from threading import Lock
from typing import TYPE_CHECKING

from clew.core.errors import InputError

if TYPE_CHECKING:  # a question that is put to no model needs a budget alone
    from clew.models.protocol import Completion


@dataclass(frozen=True, slots=True)
class Budget:
    """Caps on what a run may spend; None means no cap."""

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
    """What was spent against a budget, and what was refused because of it; safe for threads.

    Caps hold for calls that were made, not for cached ones. Calls under way count with their prompt, so that
    dollars and tokens outgrow a cap by no more than the replies that are under way when it is reached.
    """

    def __init__(self, budget: Budget = Budget(), *, clock: Callable[[], float] = time.monotonic) -> None:
        """The clock starts now."""
        self.budget = budget
        self.calls = self.tokens = self.refused = 0
        self.dollars = 0.0
        self._tokens_under_way = 0
        self._clock, self._begun = clock, clock()
        self._lock = Lock()
        self._why: str | None = None
        self.outage: str | None = None
        """What a server said last that could not be reached, after every retry; None where none failed so."""

    @property
    def seconds(self) -> float:
        """Since the ledger was opened."""
        return self._clock() - self._begun

    def seconds_left(self) -> float:
        """What the budget leaves; infinite without a cap."""
        return math.inf if self.budget.seconds is None else self.budget.seconds - self.seconds

    @property
    def cut_short(self) -> str | None:
        """The note an answer carries where calls were refused; None where none were."""
        return None if self._why is None else f"cut short: {self._why}; {self.refused} model calls were not made"

    def admit(self, prompt_tokens: int) -> str | None:
        """Count a call as under way, or say why it may not be made."""
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
        """Replace the guess made on admission by what the call really consumed."""
        usage = completion.usage
        with self._lock:
            if completion.failure in ("outage", "failing") or completion.retry_after is not None:
                self.outage = completion.error
            if completion.failure in ("outage", "access"):  # nothing was answered, and nothing is paid
                self.calls -= 1
            self._tokens_under_way -= prompt_tokens
            self.tokens += usage.prompt_tokens + usage.completion_tokens
            self.dollars += usage.dollars

    def _exhausted(self, prompt_tokens: int) -> str | None:
        budget = self.budget
        if budget.calls is not None and self.calls >= budget.calls:
            return f"the budget of {budget.calls} calls is spent"
        # A prompt that alone breaks the cap is not sent: what it would cost is known beforehand.
        if budget.tokens is not None and self.tokens + self._tokens_under_way + prompt_tokens > budget.tokens:
            return f"the budget of {budget.tokens:,} tokens is spent ({self.tokens:,} used)"
        if budget.dollars is not None and self.dollars >= budget.dollars:
            return f"the budget of ${budget.dollars:g} is spent (${self.dollars:.4f} used)"
        if budget.seconds is not None and self.seconds >= budget.seconds:
            return f"the budget of {budget.seconds:g} seconds is spent"
        return None
