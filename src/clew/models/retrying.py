"""Innermost wrapper: what failed for the moment is asked again, later and later; what is wrong stays wrong."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from clew.models.protocol import Completion, Request
from clew.models.wrapping import Wrapping


@dataclass(frozen=True)
class Retrying(Wrapping):
    """Repeats requests whose completion says that asking again may help, with exponential pauses and jitter."""

    attempts: int = 5
    first_pause: float = 0.5
    longest_pause: float = 60.0
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    jitter: Callable[[], float] = field(default=random.random, repr=False)

    def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Completions after at most `attempts` tries each."""
        completions = self.inner.complete(requests)
        for attempt in range(1, self.attempts):
            failed = [place for place, done in enumerate(completions) if done.retry_after is not None]
            if not failed:
                break
            asked_for = max(completions[place].retry_after or 0.0 for place in failed)
            self.sleep(self._pause(attempt, asked_for))
            again = self.inner.complete([requests[place] for place in failed])
            for place, completion in zip(failed, again, strict=True):
                completions[place] = completion
        return completions

    def _pause(self, attempt: int, asked_for: float) -> float:
        """Half the exponential pause and a random part of the other half; at least what the server asked for."""
        pause = self.first_pause * (1 << (attempt - 1)) * (0.5 + 0.5 * self.jitter())
        return min(self.longest_pause, max(asked_for, pause))
