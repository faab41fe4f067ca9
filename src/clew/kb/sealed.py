"""Files under a seal: read whole and compared with their SHA-256 before anything is taken from them.

An opened base says here what its manifest records about its files, and whoever maps one of them asks here first. A file
is read once in a process, as long as nobody writes to it; what is being built has no seal yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clew.core.errors import CorruptError

State = tuple[int, int, int, int]
"""What tells whether a file was written to: its device, its number there, its size and when it was changed last."""
DEEPEST = 3
"""How far below the folder of a generation its files lie."""

_sealed: dict[Path, Mapping[str, Any]] = {}
_sound: dict[tuple[Path, str], State] = {}


def seal_folder(place: Path, files: Mapping[str, Any]) -> None:
    """From now on a file below this folder is only used as its manifest records it."""
    _sealed[place] = files


def check_sealed(file: Path) -> None:
    """Refuse a file that is not as its manifest records it; nothing happens where it has no seal."""
    place = next((folder for folder in list(file.parents)[:DEEPEST] if folder in _sealed), None)
    if place is None:
        return
    facts = _sealed[place].get(file.relative_to(place).as_posix())
    if facts is None:
        raise CorruptError(f"{file} is not in the manifest: `clew repair {place.parent}` restores what belongs there")
    try:
        found = file.stat()
        state = (found.st_dev, found.st_ino, found.st_size, max(found.st_mtime_ns, found.st_ctime_ns))
        if _sound.get((file, facts["sha256"])) == state:
            return
        digest = file_sha256(file)
    except OSError as error:
        raise CorruptError(f"{file} cannot be read ({error.strerror}): `clew verify {place.parent}`") from error
    if digest != facts["sha256"]:
        raise CorruptError(
            f"{file} was altered (its SHA-256 differs): `clew repair {place.parent}` restores what it can"
        )
    _sound[file, facts["sha256"]] = state


def file_sha256(file: Path) -> str:
    """The SHA-256 of a file, as hexadecimal digits."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
