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
from dataclasses import dataclass
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
    said, left = b"", seconds
    begun = time.monotonic()
    while left > 0:
        ready, _, _ = select.select([receiving], [], [], left)
        if ready:
            piece = os.read(receiving, 65536)
            if not piece:
                break
            said += piece
        left = seconds - (time.monotonic() - begun - _waited(child))
    os.close(receiving)
    if left <= 0:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if left <= 0:
        return f"slow: over {seconds:g} seconds"
    if code == -signal.SIGPROF or (code == -signal.SIGKILL and said == KILLED):
        return None
    return f"signal {-code}" if code < 0 else said.decode() or None


def _waited(process: int) -> float:
    """Seconds for which a process was ready and others had the processor; they are not its own."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def judged(work: Work) -> str:
    """What a piece of work says is wrong, or its exception, unless it is an error of Clew with words."""
    try:
        return work() or ""
    except ClewError as refusal:
        return "" if str(refusal).strip() else f"{type(refusal).__name__} says nothing"
    except MemoryError:
        return ""  # the command line says so, and nothing is changed
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}"
        return f"internal: {type(error).__name__}: {str(error)[:200]} ({where})"


KILLED = b"killed on purpose"


def _work_and_end(work: Work, sending: int, megabytes: int | None) -> None:
    if megabytes is not None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    _Ending.told = sending
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
    os.write(sending, judged(work).encode("utf-8", "replace"))
    os._exit(0)


class _Ending:
    """Where a process that kills itself says that it meant to."""

    told = -1


def kill_here() -> None:
    """End this process as a kill from outside would."""
    os.write(_Ending.told, KILLED)
    os.kill(os.getpid(), signal.SIGKILL)


def kill_after(seconds: float) -> None:
    """End this process after so much time of the processor, wherever it is then, also within a library."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, max(seconds, 1e-4))


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


@dataclass(frozen=True)
class Cost:
    """What a piece of work is where nobody disturbs it."""

    moments: int
    """How often it writes."""
    seconds: float
    """Of the processor."""


def cost(work: Callable[[], object], folder: Path) -> Cost:
    """Do a piece of work in a process of its own, and say what it was."""
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        _Ending.told = sending
        sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
        writes, begun = Writes(folder), time.process_time()
        try:
            work()
            fault = ""
        except BaseException as error:
            fault = repr(error)
        os.write(sending, f"{writes.seen} {time.process_time() - begun} {fault}".encode())
        os._exit(0)
    os.close(sending)
    with os.fdopen(receiving) as told:
        moments, seconds, fault = told.read().split(" ", 2)
    os.waitpid(child, 0)
    if fault:
        raise AssertionError(fault)
    return Cost(int(moments), float(seconds))
