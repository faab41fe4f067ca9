"""What all wrappers of a model share."""

from __future__ import annotations

from dataclasses import dataclass

from clew.models.protocol import LanguageModel


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
