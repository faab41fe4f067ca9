"""Generations in use: a reader holds the one it has open, and no writer removes it meanwhile."""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from clew.core.disk import share


class Held:
    """A generation in use: as long as this is open, no writer removes it."""

    def __init__(self, place: Path) -> None:
        """Where there is no such folder, or a writer is removing it, nothing is held."""
        self._close: weakref.finalize[Any, Any] | None = None
        with suppress(FileNotFoundError, NotADirectoryError):
            descriptor = share(place)
            if descriptor is not None:
                self._close = weakref.finalize(self, os.close, descriptor)

    def close(self) -> None:
        """Let it go."""
        if self._close is not None:
            self._close()
