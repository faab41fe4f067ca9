"""Processes of our own modules: they find the same packages, and their arithmetic keeps to one core each."""

from __future__ import annotations

import os
import subprocess
import sys

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def start(module: str, *arguments: str, stdin: int = subprocess.DEVNULL, stderr: int | None = None) -> Process:
    """`python -m MODULE ARGUMENTS…`; what it writes is read from its standard output."""
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", module, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**ONE_THREAD, **os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )


Process = subprocess.Popen[bytes]
