"""Files and folders: atomic writes, locks between processes, and checks before writing."""

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
"""Keeps Windows from converting line ends in files opened by `os.open`."""
_FAR = (1 << 31) - 2
"""Offset of the byte that Windows locks for the whole file. Other processes may still access the bytes before it."""
_PAUSE = 0.05
"""Seconds between two tries to lock a file on Windows. A longer pause delays the next writer."""


def draft_of(file: Path) -> Path:
    """Return the path of the temporary file that `write_whole` renames."""
    return file.with_name(f".{file.name}")


def write_whole(file: Path, content: bytes, *, safely: bool = False) -> None:
    """Write a file atomically through a draft that is renamed. `safely` waits until the draft is on disk.

    An existing draft is deleted first: in an untrusted base it may be a link to another file.
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
    """Open a text file that appears when the block ends without an error. Devices and pipes are written directly."""
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
    """Return the SHA-256 digest of a file in hexadecimal digits."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


if sys.platform == "win32":
    import msvcrt

    def hold(descriptor: int, *, wait: bool) -> None:
        """Lock an open file until it is closed. If another process has locked it, wait or raise OSError."""
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
        """Return None: Windows cannot lock folders, but refuses to remove a folder with open files."""
        return None

    def is_shared(_: Path) -> bool:
        """Return False: Windows cannot lock folders."""
        return False

else:
    import fcntl

    def hold(descriptor: int, *, wait: bool) -> None:
        """Lock an open file until it is closed. If another process has locked it, wait or raise OSError."""
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)

    def share(folder: Path) -> int | None:
        """Lock a folder for reading until the descriptor is closed. Return None if it is being removed."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:  # no locks on this file system: mapped files stay usable, but others may be removed
            pass
        return descriptor

    def is_shared(folder: Path) -> bool:
        """Return whether a process has locked a folder."""
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
    """Wait until a file or a folder's list of files is on disk. Skip folders on Windows, which does not support it."""
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
    """Files below a folder, and skipped entries with reasons."""

    files: tuple[Path, ...]
    skipped: tuple[tuple[Path, str], ...] = ()


def list_files(folder: Path, *, follow_links: bool = False, subfolders: bool = True) -> FolderFiles:
    """List the visible files of a folder, each file once even if several links lead to it.

    Skip links that lead out of the folder unless `follow_links` is set.
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
            skipped.append((path, "the link leads out of the folder: add --follow-links to read it"))
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
                queue.extend(entry for entry in entries if entry.is_symlink())  # last: prefer a file's own name
    return FolderFiles(tuple(sorted(files)), tuple(sorted(skipped)))


SHOWN = 3
"""Maximum number of other files in an error message."""


def refuse_foreign(folder: Path, own: Sequence[str], what: str, remedy: str = "name a new folder") -> None:
    """Raise InputError if a folder contains files, but none of `own`, the names that mark a folder of Clew."""
    if any((folder / name).exists() for name in own):
        return
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:  # missing, or not a folder: creating it will report that
        return
    if names:
        shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        raise InputError(f"{folder} contains other files ({shown}) and no {what}: {remedy}")


def refuse_existing(*files: Path | None, force: bool) -> None:
    """Raise InputError if a file exists, unless `force` is set. Devices and pipes may be written to."""
    for file in files:
        if file is not None and file.is_file() and not force:
            raise InputError(f"{file} exists already: name another file, or add --force to overwrite it")


def refuse_link(*files: Path) -> None:
    """Raise CorruptError if a file is a link: in an untrusted base it may lead to any file of the user."""
    for file in files:
        if file.is_symlink():
            raise CorruptError(f"{file} is a link, which Clew does not follow: replace it by its target, or remove it")


def refuse_readable(file: Path, what: str) -> None:
    """Raise SourceError if other users can read a file of secrets."""
    if os.name == "posix" and file.stat().st_mode & 0o077:
        raise SourceError(f"contains {what}, but other users can read it: run chmod 600 '{file}'", file=file)
