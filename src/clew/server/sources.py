"""Sources that the server may read when an admin creates a base: files, folders and addresses given at its start."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx

from clew.core.disk import list_files
from clew.core.errors import InputError
from clew.core.limits import ReplyTooLongError, read_bounded
from clew.documents.formats import READERS

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
