"""Generations in use: a reader holds the one it has open, and no writer removes it meanwhile."""

from __future__ import annotations

import fcntl
import os
import weakref
from contextlib import suppress
from pathlib import Path


class Held:
    """A generation in use: as long as this is open, no writer removes it."""

    def __init__(self, place: Path) -> None:
        """Where there is no such folder, or a writer is removing it, nothing is held."""
        self._close: weakref.finalize | None = None  # type: ignore[type-arg]
        with suppress(FileNotFoundError, NotADirectoryError):
            descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
            self._close = weakref.finalize(self, os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                self.close()
            except OSError:  # a file system without locks: what is mapped stays, what is opened later may be gone
                pass

    def close(self) -> None:
        """Let it go."""
        if self._close is not None:
            self._close()


def in_use(place: Path) -> bool:
    """Whether a process holds a generation."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
