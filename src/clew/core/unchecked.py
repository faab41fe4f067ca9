"""Live display of an answer while a model writes it, before it is checked.

The role that writes an answer declares how to display its replies (`showing`). The model reports its progress
(`listener`), and the recorder of the question passes it on. Without a recorder, none of this has any effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from clew.core import trace


@dataclass(frozen=True, slots=True)
class Unchecked:
    """The unchecked text of an answer so far. The checked answer replaces it and may differ."""

    text: str


@dataclass
class _LiveText:
    readable: Callable[[str], str]
    tell: Callable[[str], None]
    told: str = ""
    is_over: bool = False

    def hear(self, reply: str) -> None:
        """Pass on the readable part of a reply so far, if it changed and the block of `showing` is still open."""
        text = self.readable(reply)
        if text != self.told and not self.is_over:
            self.told = text
            self.tell(text)


_telling: ContextVar[_LiveText | None] = ContextVar("clew_unchecked", default=None)


@contextmanager
def showing(readable: Callable[[str], str]) -> Iterator[None]:
    """Report what a model writes inside the block. `readable` turns a partial reply into text for display."""
    tell = trace.text_listener()
    if tell is None:
        yield
        return
    telling = _LiveText(readable, tell)
    token = _telling.set(telling)
    try:
        yield
    finally:
        _telling.reset(token)
        telling.is_over = True


def listener() -> Callable[[str], None] | None:
    """Return a callback that takes the whole reply so far, or None outside `showing` or without a recorder."""
    telling = _telling.get()
    return None if telling is None else telling.hear
