"""The words of an answer while a model writes them: told to whoever listens, checked by nobody yet.

The role that writes an answer says how its replies read (`showing`), the model says how far it has written
(`listener`), and the recorder of the question tells it on. Where nobody listens, nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from clew.core import trace


@dataclass(frozen=True, slots=True)
class Unchecked:
    """What a model has written so far of an answer; the checked answer takes its place, and may say something else."""

    text: str


@dataclass
class _Telling:
    readable: Callable[[str], str]
    tell: Callable[[str], None]
    told: str = ""
    is_over: bool = False

    def hear(self, reply: str) -> None:
        """Tell what can be read of a reply so far, where that has changed; too late a word is dropped."""
        text = self.readable(reply)
        if text != self.told and not self.is_over:
            self.told = text
            self.tell(text)


_telling: ContextVar[_Telling | None] = ContextVar("clew_unchecked", default=None)


@contextmanager
def showing(readable: Callable[[str], str]) -> Iterator[None]:
    """Tell what a model writes inside the block; `readable` is what people are shown of a reply so far."""
    tell = trace.text_listener()
    if tell is None:
        yield
        return
    telling = _Telling(readable, tell)
    token = _telling.set(telling)
    try:
        yield
    finally:
        _telling.reset(token)
        telling.is_over = True


def listener() -> Callable[[str], None] | None:
    """Takes a reply so far, whole each time; None where nobody listens, or what is written is no answer."""
    telling = _telling.get()
    return None if telling is None else telling.hear
