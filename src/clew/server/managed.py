"""Document bases created on the page, each in its own subfolder.

Admins may fill a new base from sources that the server was started with: files, folders and addresses.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote, urlsplit

import httpx

from clew.core.disk import list_files, write_whole
from clew.core.errors import InputError, NotFoundError
from clew.core.limits import ReplyTooLongError, read_bounded
from clew.documents.formats import READERS
from clew.server.documents import KEPT_SECONDS, DocumentFolder
from clew.server.wire import BaseChange

if TYPE_CHECKING:  # an extra
    from clew.server.shared_bases import SharedBases, SharedDocuments
else:
    SharedBases = SharedDocuments = Any

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")
ABOUT = "about.json"
MOST = 200
"""Maximum number of bases created on the page."""


def checked_base_name(name: str) -> str:
    """Return a valid name, or raise InputError."""
    if NAME.fullmatch(name) is None:
        raise InputError("invalid name: use up to 50 characters of a-z, 0-9, and _ - after the first")
    return name


class ManagedBases:
    """Bases in a folder. Deleted bases can be restored for an hour."""

    def __init__(self, folder: Path, most_files: int) -> None:
        self.folder, self.most_files, self._gone = folder, most_files, folder / ".deleted"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def all(self) -> dict[str, DocumentFolder]:
        """Return all bases."""
        return {file.parent.name: self._open(file.parent.name) for file in sorted(self.folder.glob(f"*/{ABOUT}"))}

    def make(self, name: str, about: BaseChange) -> DocumentFolder:
        """Create an empty base."""
        if (self.folder / checked_base_name(name)).exists():
            raise InputError(f"the base {name!r} already exists")
        if len(list(self.folder.glob(f"*/{ABOUT}"))) >= MOST:
            raise InputError(f"the limit of {MOST} bases is reached: delete one first")
        made = self._open(name)
        self.describe(name, about)
        return made

    def describe(self, name: str, about: BaseChange) -> None:
        """Update the title or description. Omitted fields stay unchanged."""
        content = self.about(name) | about.model_dump(exclude_none=True)
        write_whole(self.folder / name / ABOUT, json.dumps(content, ensure_ascii=False).encode())

    def about(self, name: str) -> dict[str, str]:
        """Return title and description."""
        try:
            content: dict[str, str] = json.loads((self.folder / name / ABOUT).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return content

    def delete(self, name: str) -> None:
        """Delete a base. Its build must have ended."""
        self._gone.mkdir(mode=0o700, exist_ok=True)
        if (self._gone / name).exists():
            shutil.rmtree(self._gone / name)
        (self.folder / name).rename(self._gone / name)
        (self._gone / name).touch()  # the time limit starts now

    def deleted(self) -> list[str]:
        """Return the bases that can be restored. Remove expired bases."""
        if not self._gone.is_dir():
            return []
        for folder in list(self._gone.iterdir()):
            if time.time() - folder.stat().st_mtime > KEPT_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
        return sorted(folder.name for folder in self._gone.iterdir())

    def restore(self, name: str) -> DocumentFolder:
        """Undo a deletion."""
        if name not in self.deleted():
            raise NotFoundError(f"no deleted base {name[:100]!r}: it was restored, or removed")
        if (self.folder / name).exists():
            raise InputError(f"the base {name!r} exists again: delete it first")
        (self._gone / name).rename(self.folder / name)
        return self._open(name)

    def _open(self, name: str) -> DocumentFolder:
        return DocumentFolder(self.folder / name, self.most_files)


BaseDocuments: TypeAlias = DocumentFolder | SharedDocuments
"""The files of a base and the state of its build, in a folder or in the database of several servers."""
MadeBases: TypeAlias = ManagedBases | SharedBases
"""Bases created on the page, in a folder or in the database of several servers."""


SECONDS = 60.0
"""Time limit for the download of a file, in seconds. The request waits for it."""


@dataclass(frozen=True)
class Sources:
    """An allow-list. An address with a trailing slash allows everything below it."""

    places: tuple[str, ...] = ()

    def offered(self) -> list[str]:
        """Return the names of all files, and the addresses."""
        return [*self._files(), *self._addresses]

    def read(self, name: str, most_bytes: int) -> tuple[str, bytes]:
        """Return the name and content of an allowed file."""
        found = self._files().get(name)
        if found is None and not self._allows(name):
            raise InputError(f"{name[:200]!r} is not a source of this server: allow it with --source PLACE")
        kept = unquote(name.rstrip("/").rpartition("/")[2])
        return kept, _fetched(name, most_bytes) if found is None else _bounded(found, most_bytes)

    @property
    def _addresses(self) -> list[str]:
        return [place for place in self.places if _is_address(place)]

    def _files(self) -> dict[str, Path]:
        """Return files by name. Skip links out of a folder."""
        found: dict[str, Path] = {}
        for place in (Path(place) for place in self.places if not _is_address(place)):
            folder = place.resolve()
            for file in list_files(folder).files:
                name = file.name if file == folder else f"{folder.name}/{file.relative_to(folder).as_posix()}"
                if file.suffix.lower() in READERS:
                    found[name] = file
        return found

    def _allows(self, address: str) -> bool:
        """Return whether an address is in the list or below a listed address, without `..`, users or other hosts."""
        parts = urlsplit(address)
        if parts.username is not None or not parts.hostname or re.search(r"(^|/)\.\.?(/|$)|\\\\", unquote(parts.path)):
            return False
        for place in self._addresses:
            own = urlsplit(place)
            if (parts.scheme, parts.netloc) != (own.scheme, own.netloc):
                continue
            if address == place or (own.path.endswith("/") and parts.path.startswith(own.path)):
                return True
        return False


def _is_address(place: str) -> bool:
    return place.startswith(("http://", "https://"))


def _bounded(file: Path, most_bytes: int) -> bytes:
    if file.stat().st_size > most_bytes:
        raise InputError(f"{file.name} is larger than {most_bytes:,} bytes")
    return file.read_bytes()


def _fetched(address: str, most_bytes: int) -> bytes:
    """Fetch an address without following redirects."""
    try:
        with httpx.stream("GET", address, timeout=SECONDS, follow_redirects=False) as reply:
            if reply.status_code != httpx.codes.OK:
                raise InputError(f"{address[:200]} returned status {reply.status_code}: expected the file")
            return read_bounded(reply.iter_bytes(), most_bytes, SECONDS)
    except (httpx.HTTPError, TimeoutError, ReplyTooLongError) as failure:
        raise InputError(f"{address[:200]} cannot be read: {failure}") from None
