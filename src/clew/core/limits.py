"""Bounds that a process sets itself, on systems that have them; elsewhere whoever started it has to end it."""

from __future__ import annotations

import signal


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
