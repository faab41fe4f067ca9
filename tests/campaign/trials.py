"""One try at a time: in a process of its own, within bounds, and with a verdict.

An answer is fine, and so is an error of Clew, which says what is wrong. Anything else is a failure: another exception,
the end of the process by a signal, more than 20 seconds, a base that is neither the old one nor the new one.
"""

import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from clew.core.errors import ClewError

SECONDS = 20.0
"""What takes longer hangs."""
MEGABYTES = 6_000
"""Memory that a process may map: far more than any of these tries needs."""
WRITING = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.link", "os.symlink"}

Work = Callable[[], str | None]
"""Says what is wrong, or None where nothing is."""


def apart(work: Work, *, seconds: float = SECONDS, megabytes: int | None = MEGABYTES) -> str | None:
    """What went wrong in a process of its own; None where nothing did."""
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        os.close(receiving)
        _work_and_end(work, sending, megabytes)
    os.close(sending)
    said, ended = b"", time.monotonic() + seconds
    while True:
        ready, _, _ = select.select([receiving], [], [], max(0.0, ended - time.monotonic()))
        piece = os.read(receiving, 65536) if ready else b""
        if not piece:
            break
        said += piece
    os.close(receiving)
    if not ready:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not ready:
        return f"slow: over {seconds:g} seconds"
    if code == -signal.SIGKILL and said == KILLED:
        return None
    return f"signal {-code}" if code < 0 else said.decode() or None


KILLED = b"killed on purpose"


def _work_and_end(work: Work, sending: int, megabytes: int | None) -> None:
    if megabytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    _Ending.told = sending
    said = ""
    try:
        said = work() or ""
    except ClewError as refusal:
        said = "" if str(refusal).strip() else f"{type(refusal).__name__} says nothing"
    except MemoryError:
        said = ""  # the command line says so, and nothing is changed
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        said = (
            f"internal: {type(error).__name__}: {str(error)[:200]} ({Path(place.filename).name}, line {place.lineno})"
        )
    os.write(sending, said.encode("utf-8", "replace"))
    os._exit(0)


class _Ending:
    """Where a process that kills itself says that it meant to."""

    told = -1


def kill_here() -> None:
    """End this process as a kill from outside would."""
    os.write(_Ending.told, KILLED)
    os.kill(os.getpid(), signal.SIGKILL)


class Writes:
    """Counts what a process writes below a folder, and does something at one of these moments."""

    def __init__(self, folder: Path, at: int = -1, then: Callable[[], None] = kill_here) -> None:
        self.folder, self.at, self.then = str(folder), at, then
        self.seen = 0
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not (event in WRITING or (event == "open" and _is_writing(arguments))):
            return
        path = arguments[0]
        if not isinstance(path, str | bytes | os.PathLike):
            return
        named = Path(os.fsdecode(path))
        if named.is_absolute() and self.folder not in str(named):
            return
        self.seen += 1
        if self.at >= 0 and self.seen > self.at:
            self.then()


def _is_writing(arguments: tuple[object, ...]) -> bool:
    _, mode, flags = arguments
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


def counted(work: Callable[[], object], folder: Path) -> int:
    """How many such moments a piece of work has."""
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        writes = Writes(folder)
        work()
        os.write(sending, str(writes.seen).encode())
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as told:
        count = int(told.read() or 0)
    os.waitpid(child, 0)
    return count
