"""Files under a seal: read whole and compared with their SHA-256 before anything is taken from them.

An opened base says here what its manifest records about its files, and whoever maps one of them asks here first. A file
is read once in a process, as long as nobody writes to it; what is being built has no seal yet.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clew.core.disk import file_sha256
from clew.core.errors import CorruptError

State = tuple[int, int, int, int]
"""What tells whether a file was written to: its device, its number there, its size and when it was changed last."""
EXTRACTED = "extracted"
"""Where a base keeps the texts of the documents it was built from."""
KEPT_TEXT = re.compile(r"[0-9a-f]{32}(\.\w+)?-(?P<version>\d+)\.json")
"""What a kept text is called."""
LEARNED = "feedback_paths.json"
"""What was learned from the confirmed answers of a base."""
FITTED = "reader_fitted.json"
"""What the reader learned for a base."""
TUNED = "tuned.json"
"""The method that was chosen for a base."""
FIRST_SEALED = 4
"""The version of the readers since which kept texts have a digest."""
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
        found = file.lstat()
        state = (found.st_dev, found.st_ino, found.st_size, max(found.st_mtime_ns, found.st_ctime_ns))
        if _sound.get((file, facts["sha256"])) == state:
            return
        digest = file_sha256(file)
        if stat.S_ISLNK(found.st_mode):
            raise CorruptError(f"{file} is a link, and Clew makes none: remove it")
    except OSError as error:
        raise CorruptError(f"{file} cannot be read ({error.strerror}): `clew verify {place.parent}`") from error
    if digest != facts["sha256"]:
        raise CorruptError(
            f"{file} was altered (its SHA-256 differs): `clew repair {place.parent}` restores what it can"
        )
    _sound[file, facts["sha256"]] = state


def sealed_text(content: bytes) -> bytes:
    """A text with its own digest as the first line, for files that no manifest lists."""
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def unsealed_text(sealed: bytes) -> bytes | None:
    """The text behind its digest; None where one does not fit the other."""
    digest, _, content = sealed.partition(b"\n")
    return content if hashlib.sha256(content).hexdigest().encode() == digest else None


def unsealed_or_older(content: bytes) -> bytes | None:
    """The text behind its digest, or JSON of an older version, which had none."""
    return content if content.startswith(b"{") else unsealed_text(content)


def altered_texts(folder: Path) -> list[Path]:
    """Which texts of documents and learned weights were altered; texts of older versions are not used any more."""
    altered = []
    for file in sorted((folder / EXTRACTED).glob("*.json")):
        told = KEPT_TEXT.fullmatch(file.name)
        if told and int(told["version"]) >= FIRST_SEALED and unsealed_text(file.read_bytes()) is None:
            altered.append(file)
    for learned, content in ((folder / LEARNED, unsealed_or_older), (folder / FITTED, unsealed_text)):
        if learned.exists() and content(learned.read_bytes()) is None:
            altered.append(learned)
    return altered


def learned_digests(folder: Path) -> dict[str, str]:
    """What tells one state of what a base was taught from any other."""
    return {name: file_sha256(folder / name) for name in (LEARNED, FITTED, TUNED) if (folder / name).is_file()}
