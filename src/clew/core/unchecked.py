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


_listener: ContextVar[Callable[[str], None] | None] = ContextVar("clew_unchecked", default=None)


@contextmanager
def showing(readable: Callable[[str], str]) -> Iterator[None]:
    """Report what a model writes inside the block. `readable` turns a partial reply into text for display."""
    tell = trace.text_listener()
    if tell is None:
        yield
        return
    last, is_open = "", True

    def hear(reply: str) -> None:
        nonlocal last
        text = readable(reply)
        if text != last and is_open:  # a reply may continue after the block
            last = text
            tell(text)

    token = _listener.set(hear)
    try:
        yield
    finally:
        _listener.reset(token)
        is_open = False


def listener() -> Callable[[str], None] | None:
    """Return a callback that takes the whole reply so far, or None outside `showing` or without a recorder."""
    return _listener.get()
