"""What the server may read where an admin makes a base: files, folders and addresses that were named at its start."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx

from clew.core.disk import list_files
from clew.core.errors import InputError
from clew.core.replies import ReplyTooLongError, read_bounded
from clew.documents.formats import READERS

SECONDS = 60.0


@dataclass(frozen=True)
class Sources:
    """An allow-list; an address that ends with a slash allows all below it."""

    places: tuple[str, ...] = ()

    def offered(self) -> list[str]:
        """What can be asked for by name, and the addresses."""
        return [*self._files(), *self._addresses]

    def read(self, name: str, most_bytes: int) -> tuple[str, bytes]:
        """The name and the content of a file that is allowed."""
        found = self._files().get(name)
        if found is None and not self._allows(name):
            raise InputError(
                f"{name[:200]!r} is no file or address that this server may read: --source PLACE allows it"
            )
        kept = unquote(name.rstrip("/").rpartition("/")[2])
        return kept, _fetched(name, most_bytes) if found is None else _bounded(found, most_bytes)

    @property
    def _addresses(self) -> list[str]:
        return [place for place in self.places if _is_address(place)]

    def _files(self) -> dict[str, Path]:
        """Files by name; what a link in a folder leads to elsewhere is left out."""
        found: dict[str, Path] = {}
        for place in (Path(place) for place in self.places if not _is_address(place)):
            folder = place.resolve()
            for file in list_files(folder).files:
                name = file.name if file == folder else f"{folder.name}/{file.relative_to(folder).as_posix()}"
                if file.suffix.lower() in READERS:
                    found[name] = file
        return found

    def _allows(self, address: str) -> bool:
        """Whether an address is one of the list, or plainly below one: no way up, no user, no other host."""
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
    """The content of an address; where it leads elsewhere nobody follows."""
    try:
        with httpx.stream("GET", address, timeout=SECONDS, follow_redirects=False) as reply:
            if reply.status_code != httpx.codes.OK:
                raise InputError(f"{address[:200]} answers with status {reply.status_code}: expected the file itself")
            return read_bounded(reply.iter_bytes(), most_bytes, SECONDS)
    except (httpx.HTTPError, TimeoutError, ReplyTooLongError) as failure:
        raise InputError(f"{address[:200]} cannot be read: {failure}") from None
