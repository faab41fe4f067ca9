"""Files and folders: writing them whole, holding them against other processes, and whose they are."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from clew.core.errors import CorruptError, InputError, SourceError

BINARY: int = getattr(os, "O_BINARY", 0)
"""The flag without which Windows changes line ends in files opened by `os.open`."""
_FAR = (1 << 31) - 2
"""The byte that stands for the whole file on Windows: others may read and write what is before it."""
_PAUSE = 0.05


def draft_of(file: Path) -> Path:
    """Return the path of the draft that `write_whole` renames."""
    return file.with_name(f".{file.name}")


def write_whole(file: Path, content: bytes, *, safely: bool = False) -> None:
    """Write a file beside and rename it: a kill leaves the old one or the new one; `safely` waits for the disk.

    What stands in the place of the draft is removed: a link there, in a base from a stranger, is never followed.
    """
    draft = draft_of(file)
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o666)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(content)
        if safely:
            opened.flush()
            os.fsync(descriptor)
    draft.replace(file)


@contextmanager
def written_whole(file: Path) -> Iterator[TextIO]:
    """A text file to be written line by line, in its place when all is; a device or a pipe is written as it is."""
    place = file.resolve()
    if place.exists() and not place.is_file():
        with place.open("w", encoding="utf-8") as lines:
            yield lines
        return
    draft = place.with_name(f".{place.name}.partial")
    try:
        with draft.open("w", encoding="utf-8") as lines:
            yield lines
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)


def file_sha256(file: Path) -> str:
    """The SHA-256 of a file, read in pieces, as hexadecimal digits."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


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

    def share(_: Path) -> int | None:
        """Folders cannot be held there; one with an open file in it cannot be removed anyway."""
        return None

    def is_shared(_: Path) -> bool:
        """Never known there."""
        return False

else:
    import fcntl

    def hold(descriptor: int, *, wait: bool) -> None:
        """Hold an open file until it is closed; where another process does, wait for it or raise OSError."""
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)

    def share(folder: Path) -> int | None:
        """Hold a folder together with others until the descriptor is closed; None where it is being removed."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:  # a file system without locks: what is mapped stays, what is opened later may be gone
            pass
        return descriptor

    def is_shared(folder: Path) -> bool:
        """Whether a process holds a folder."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return False


def sync(path: Path) -> None:
    """Wait until a file, or the list of files of a folder, has reached the disk; Windows cannot wait for folders."""
    is_windows = sys.platform == "win32"
    if is_windows and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR | BINARY if is_windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class FolderFiles:
    """Files below a folder, and entries that were skipped with the reason."""

    files: tuple[Path, ...]
    skipped: tuple[tuple[Path, str], ...] = ()


def list_files(folder: Path, *, follow_links: bool = False, subfolders: bool = True) -> FolderFiles:
    """List the visible files of a folder. A file that several links lead to is listed once.

    Links that lead out of the folder are skipped unless `follow_links` is set.
    """
    root = Path(os.path.realpath(folder))
    queue = deque([folder])
    visited: set[Path] = set()
    files: list[Path] = []
    skipped: list[tuple[Path, str]] = []
    while queue:
        path = queue.popleft()
        target = Path(os.path.realpath(path))
        if not follow_links and not target.is_relative_to(root):
            skipped.append((path, "a link that leads out of the folder is not followed: --follow-links reads it"))
        elif target not in visited:
            visited.add(target)
            if path.is_file():
                files.append(path)
            elif path.is_dir() and (subfolders or path == folder):
                try:
                    entries = [entry for entry in path.iterdir() if not entry.name.startswith((".", "~$"))]
                except OSError as error:
                    skipped.append((path, f"the folder cannot be opened: {error.strerror}"))
                    continue
                queue.extendleft(entry for entry in entries if not entry.is_symlink())
                queue.extend(entry for entry in entries if entry.is_symlink())  # last: its own name comes first
    return FolderFiles(tuple(sorted(files)), tuple(sorted(skipped)))


SHOWN = 3
"""How many of the other files an error names."""


def refuse_foreign(folder: Path, own: Sequence[str], what: str, remedy: str = "name a new folder") -> None:
    """Refuse a folder that holds files, but none of `own`, the names by which Clew knows a folder as its own."""
    if any((folder / name).exists() for name in own):
        return
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:  # not there yet, or no folder: whoever makes it says so
        return
    if names:
        shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        raise InputError(f"{folder} holds other files ({shown}) and no {what}: nothing was written; {remedy}")


def refuse_existing(*files: Path | None, force: bool) -> None:
    """Refuse to overwrite files unless `force` is set. Devices and pipes may be written to."""
    for file in files:
        if file is not None and file.is_file() and not force:
            raise InputError(f"{file} exists already: name another file, or add --force to overwrite it")


def refuse_link(*files: Path) -> None:
    """Refuse files that are links: those of a base from a stranger may lead to any file of its user."""
    for file in files:
        if file.is_symlink():
            raise CorruptError(f"{file} is a link, and Clew makes none: replace it by what it leads to, or remove it")


def refuse_readable(file: Path, what: str) -> None:
    """Refuse a file of secrets that others than its owner can read."""
    if os.name == "posix" and file.stat().st_mode & 0o077:
        raise SourceError(f"holds {what} and can be read by others: chmod 600 '{file}'", file=file)
