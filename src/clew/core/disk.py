"""What systems do differently with files: holding one against other processes, and bringing it to the disk."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

BINARY: int = getattr(os, "O_BINARY", 0)
"""The flag without which Windows changes line ends in files opened by `os.open`."""
_FAR = (1 << 31) - 2
"""The byte that stands for the whole file on Windows: others may read and write what is before it."""
_PAUSE = 0.05

if sys.platform == "win32":
    import msvcrt

    def hold(descriptor: int, *, wait: bool) -> None:
        """Hold an open file until it is closed; where another process does, wait for it or raise OSError."""
        place = os.lseek(descriptor, 0, os.SEEK_CUR)
        try:
            while True:
                os.lseek(descriptor, _FAR, os.SEEK_SET)
                try:
                    msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
                    return
                except OSError:
                    if not wait:
                        raise
                    time.sleep(_PAUSE)
        finally:
            os.lseek(descriptor, place, os.SEEK_SET)

    def sync(path: Path) -> None:
        """Wait until a file has reached the disk; folders cannot be waited for there."""
        if path.is_dir():
            return
        descriptor = os.open(path, os.O_RDWR | BINARY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

else:
    import fcntl

    def hold(descriptor: int, *, wait: bool) -> None:
        """Hold an open file until it is closed; where another process does, wait for it or raise OSError."""
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)

    def sync(path: Path) -> None:
        """Wait until a file, or the list of files of a folder, has reached the disk."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
