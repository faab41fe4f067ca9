"""What every method does."""

from __future__ import annotations

from typing import Protocol

from clew.core.types import Answer


class Method(Protocol):
    """Answers a question over the knowledge base it was built for."""

    def answer(self, question: str) -> Answer:
        """Ranked candidates with their evidence."""
        ...
