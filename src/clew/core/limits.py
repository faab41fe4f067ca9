"""Limits for reading files and replies: memory and seconds of a subprocess, steps of work, requests, bytes of a reply.

Memory and seconds are limited only if the operating system supports it. Otherwise the parent must end the process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock

from clew.core.errors import SourceError

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
Process = subprocess.Popen[bytes]


def start_module(
    module: str, *arguments: str, stdin: int = subprocess.DEVNULL, stderr: int | None = None, apart: bool = False
) -> Process:
    """Start `python -m MODULE ARGUMENTS…` with the same packages and one thread for arithmetic.

    Its standard output is a pipe. With `apart`, Ctrl-C does not reach the process, and the caller must end it.
    """
    return subprocess.Popen(  # noqa: S603 - a module of Clew
        [sys.executable, "-m", module, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**ONE_THREAD, **os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        start_new_session=apart,
    )


def limit_memory(most: int) -> None:
    """Limit the address space of this process to `most` bytes, so that it fails before the machine runs out."""
    try:
        import resource
    except ImportError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def limit_seconds(most: int) -> None:
    """End this process after `most` seconds, in case its parent is gone."""
    if hasattr(signal, "alarm"):
        signal.alarm(most)


class TooLargeError(SourceError):
    """A file requires more work than its size justifies."""


FREE_STEPS = 1_000_000
"""Steps of work that any file may take, independent of its size."""
STEPS_PER_BYTE, STEPS_PER_UNPACKED_BYTE = 50, 5
"""Additional steps of work for each byte of a file, and for each byte unpacked from it."""
_steps_left: ContextVar[list[int] | None] = ContextVar("clew_steps_left", default=None)


@contextmanager
def bounded_work(size: int) -> Iterator[None]:
    """Limit the steps that reading a file of `size` bytes may take."""
    before = _steps_left.set([FREE_STEPS + STEPS_PER_BYTE * size])
    try:
        yield
    finally:
        _steps_left.reset(before)


def allow(unpacked: int) -> None:
    """Add the steps for bytes unpacked from a file, whose number is limited by the file's size."""
    left = _steps_left.get()
    if left is not None:
        left[0] += STEPS_PER_UNPACKED_BYTE * unpacked


def spend(steps: int) -> None:
    """Count steps of work. Raise TooLargeError if the file requires more than its size justifies.

    Readers call this before they follow numbers, spans or references in a file.
    """
    left = _steps_left.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise TooLargeError("the file requires far more cells or text than its size justifies: export it again")


@dataclass
class Pace:
    """Rate limiter that spaces calls of all threads evenly. None means no limit."""

    per_minute: float | None = None
    _next: float = 0.0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def wait(self) -> None:
        """Sleep until the caller's turn."""
        if self.per_minute is None:
            return
        with self._lock:
            turn = max(self._next, time.monotonic())
            self._next = turn + 60 / self.per_minute
        time.sleep(max(0.0, turn - time.monotonic()))


class ReplyTooLongError(ValueError):
    """A reply has more bytes than the caller reads."""


def read_bounded(pieces: Iterable[bytes], most_bytes: int, seconds: float) -> bytes:
    """Return the pieces joined. Raise ReplyTooLongError, or TimeoutError if they take longer than `seconds`.

    HTTP clients apply their timeout to each piece, so a server that sends single bytes can exceed any total time.
    """
    deadline = time.monotonic() + seconds
    content = bytearray()
    for piece in pieces:
        content += piece
        if len(content) > most_bytes:
            raise ReplyTooLongError(f"a reply is longer than {most_bytes:,} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError(f"a reply takes longer than {seconds:g} seconds")
    return bytes(content)
