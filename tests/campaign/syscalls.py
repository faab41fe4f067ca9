"""Kill a process right before one of its system calls that write, on Linux: the kernel stops it there (seccomp).

Audit hooks see files being opened, renamed and removed. Here every single write, rename, removal and fsync is a moment,
also those of native libraries.
"""

import ctypes
import os
import platform
import signal
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trials import judged

_NUMBERS = {
    "aarch64": {
        "fd": {"write": 64, "writev": 66, "pwrite64": 68, "ftruncate": 46, "fallocate": 47, "fsync": 82,
               "fdatasync": 83, "sendfile": 71, "sendto": 206},
        "at": {"openat": 56, "mkdirat": 34, "unlinkat": 35, "linkat": 37, "renameat": 38, "renameat2": 276},
        "path": {"truncate": 45},
    },
    "x86_64": {
        "fd": {"write": 1, "writev": 20, "pwrite64": 18, "ftruncate": 77, "fallocate": 285, "fsync": 74,
               "fdatasync": 75, "sendfile": 40, "sendto": 44},
        "at": {"openat": 257, "mkdirat": 258, "unlinkat": 263, "linkat": 265, "renameat": 264, "renameat2": 316},
        "path": {"truncate": 76, "open": 2, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85, "link": 86,
                 "unlink": 87},
    },
}  # fmt: skip
CALLS = {
    number: (name, form)
    for form, numbers in _NUMBERS.get(platform.machine(), {}).items()
    for name, number in numbers.items()
}
IS_POSSIBLE = bool(CALLS) and os.uname().sysname == "Linux"

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long
_TRACEME, _CONT, _SETOPTIONS, _SYSCALL_INFO = 0, 7, 0x4200, 0x420E
_FORK, _VFORK, _CLONE, _SECCOMP, _EXITKILL = 1 << 1, 1 << 2, 1 << 3, 1 << 7, 1 << 20
_SECCOMP_STOP = signal.SIGTRAP | 7 << 8
_AT_FDCWD = -100


@dataclass(frozen=True)
class Ended:
    """How a traced process ended."""

    moments: int
    """Number of calls that wrote below the folder."""
    is_killed: bool
    fault: str = ""
    call: str = ""
    """The call before which it was killed."""


SOCKETS = "socket:"


def kill_before(work: Callable[[], object], folder: Path | str, at: int | None = None) -> Ended:
    """Do a piece of work in another process, and kill it right before its `at`th call that writes below a folder.

    In the place of a folder, SOCKETS stands for what is sent to other processes.
    """
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        os.close(receiving)
        _stop_at_calls()
        fault = judged(lambda: work() and None)
        os.write(sending, fault.encode("utf-8", "replace"))
        os._exit(0)
    os.close(sending)
    root, seen, call = folder if isinstance(folder, str) else str(folder.resolve()), 0, ""
    os.waitpid(child, 0)
    _ptrace(_SETOPTIONS, child, _FORK | _VFORK | _CLONE | _SECCOMP | _EXITKILL)
    _ptrace(_CONT, child, 0)
    while True:
        process, status = os.waitpid(-1, 0x40000000)  # threads, too
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            if process == child:
                break
            continue
        passed = os.WSTOPSIG(status)
        if status >> 8 == _SECCOMP_STOP:
            name, path = _call(process)
            if path.startswith(root):
                if seen == at:
                    call = f"{name} {path.removeprefix(root)}"
                    os.kill(child, signal.SIGKILL)
                    continue
                seen += 1
        _ptrace(_CONT, process, 0 if passed in (signal.SIGTRAP, signal.SIGSTOP) else passed)
    with os.fdopen(receiving) as told:
        return Ended(seen, bool(call), told.read(), call)


def _stop_at_calls() -> None:
    """Make the kernel stop this process at each of the calls, and wait for the parent."""
    allow, trace = 0x7FFF0000, 0x7FF00000
    lines = [(0x20, 0, 0, 0)]  # the number of the call
    lines += [(0x15, len(CALLS) - place, 0, number) for place, number in enumerate(CALLS)]
    lines += [(0x06, 0, 0, allow), (0x06, 0, 0, trace)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    header = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(program))
    _ptrace(_TRACEME, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    if _libc.prctl(38, 1, 0, 0, 0) or _libc.prctl(22, 2, ctypes.create_string_buffer(header), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def _call(process: int) -> tuple[str, str]:
    """Return the name of the call that a stopped process is about to make, and the file; no file if it only reads."""
    buffer = ctypes.create_string_buffer(96)
    _ptrace(_SYSCALL_INFO, process, ctypes.addressof(buffer), 96)
    number, first, second, third = struct.unpack_from("4Q", buffer, 24)
    name, form = CALLS[number]
    flags = {"openat": third, "open": second}.get(name)
    if flags is not None and not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
        return name, ""
    try:
        if form == "fd":
            return name, str(Path(f"/proc/{process}/fd/{first}").readlink())
        folder = ctypes.c_int(first & 0xFFFFFFFF).value if form == "at" else _AT_FDCWD
        place = Path(f"/proc/{process}/{'cwd' if folder == _AT_FDCWD else f'fd/{folder}'}").readlink()
        return name, os.path.normpath(place / _text(process, second if form == "at" else first))
    except OSError:
        return name, ""


def _text(process: int, address: int) -> str:
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        return os.fsdecode(memory.read(4096).partition(b"\0")[0])


def _ptrace(request: int, process: int, data: int, size: int = 0) -> None:
    if _libc.ptrace(request, process, size, data) < 0 and ctypes.get_errno() != 3:  # ESRCH: it was killed
        raise OSError(ctypes.get_errno(), f"ptrace {request}")
