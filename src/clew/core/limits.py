"""Bounds on what a file may cost: memory and seconds of a process of our own, and steps of work by the file's size.

Memory and seconds are bounded on systems that can do it. Elsewhere whoever started a process has to end it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from clew.core.errors import SourceError

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
Process = subprocess.Popen[bytes]


def start_module(
    module: str, *arguments: str, stdin: int = subprocess.DEVNULL, stderr: int | None = None, apart: bool = False
) -> Process:
    """`python -m MODULE ARGUMENTS…`, which finds the same packages, and whose arithmetic keeps to one core.

    What it writes is read from its standard output. Ctrl-C does not reach one that is `apart`: we end it.
    """
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", module, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**ONE_THREAD, **os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        start_new_session=apart,
    )


def limit_memory(most: int) -> None:
    """Let what needs more bytes of address space fail here, instead of taking the machine with it."""
    try:
        import resource
    except ImportError:  # this system has no such limits
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def limit_seconds(most: int) -> None:
    """End this process after so many seconds, in case the one who should end it is gone."""
    if hasattr(signal, "alarm"):
        signal.alarm(most)


class TooLargeError(SourceError):
    """A file that asks for more work than its size explains."""


FREE_STEPS = 1_000_000
"""Steps of work that every file may take, however small it is."""
STEPS_PER_BYTE, STEPS_PER_UNPACKED_BYTE = 50, 5
"""Steps of work that each byte of a file, and each byte unpacked from it, may take beyond that."""
_steps_left: ContextVar[list[int] | None] = ContextVar("clew_steps_left", default=None)


@contextmanager
def bounded_work(size: int) -> Iterator[None]:
    """Bound the steps that reading a file of `size` bytes may take."""
    before = _steps_left.set([FREE_STEPS + STEPS_PER_BYTE * size])
    try:
        yield
    finally:
        _steps_left.reset(before)


def allow(unpacked: int) -> None:
    """Allow the steps for bytes that were unpacked from a file, which bounds them by its size."""
    left = _steps_left.get()
    if left is not None:
        left[0] += STEPS_PER_UNPACKED_BYTE * unpacked


def spend(steps: int) -> None:
    """Count steps of work. Raise SourceError if the file asks for more than its size explains.

    Readers call this before they do what numbers, spans or references in a file ask for.
    """
    left = _steps_left.get()
    if left is not None:
        left[0] -= steps
        if left[0] < 0:
            raise TooLargeError("the file asks for far more cells or text than its size explains: export it again")
