"""Processes of our own modules, and the bounds that they set themselves, on systems that have them.

Elsewhere whoever started a process has to end it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

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
