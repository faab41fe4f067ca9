"""Bases that are made on the page: each takes documents and lies in a folder of its own, below one folder."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from clew.core.disk import write_whole
from clew.core.errors import InputError, NotFoundError
from clew.server.documents import KEPT_SECONDS, DocumentFolder, Documents
from clew.server.wire import BaseChange

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")
ABOUT = "about.json"
MOST = 200
"""Bases that may be made."""


class MadeBases(Protocol):
    """Bases that are made on the page; what is deleted can be restored for an hour."""

    def all(self) -> Mapping[str, Documents]:
        """Those that are there."""

    def make(self, name: str, about: BaseChange) -> Documents:
        """A new base, empty."""

    def describe(self, name: str, about: BaseChange) -> None:
        """Another title or description; what is left out stays."""

    def about(self, name: str) -> dict[str, str]:
        """Title and description."""

    def delete(self, name: str) -> None:
        """Put a base aside; nothing may build it any more."""

    def deleted(self) -> list[str]:
        """Those that can be restored; those deleted long ago are removed here."""

    def restore(self, name: str) -> Documents:
        """Undo a deletion."""


def checked_base_name(name: str) -> str:
    """The name, where a base may have it."""
    if NAME.fullmatch(name) is None:
        raise InputError("a base's name has up to 50 characters: a-z, 0-9, and _ - after the first")
    return name


class ManagedBases:
    """The folder of these bases; what is deleted can be restored for an hour."""

    def __init__(self, folder: Path, most_files: int) -> None:
        self.folder, self.most_files, self._gone = folder, most_files, folder / ".deleted"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def all(self) -> dict[str, DocumentFolder]:
        """Those that are there."""
        return {file.parent.name: self._open(file.parent.name) for file in sorted(self.folder.glob(f"*/{ABOUT}"))}

    def make(self, name: str, about: BaseChange) -> DocumentFolder:
        """A new base, empty."""
        if (self.folder / checked_base_name(name)).exists():
            raise InputError(f"there is a base {name!r} already")
        if len(list(self.folder.glob(f"*/{ABOUT}"))) >= MOST:
            raise InputError(f"{MOST} bases can be made at most: delete one first")
        made = self._open(name)
        self.describe(name, about)
        return made

    def describe(self, name: str, about: BaseChange) -> None:
        """Another title or description; what is left out stays."""
        told = self.about(name) | about.model_dump(exclude_none=True)
        write_whole(self.folder / name / ABOUT, json.dumps(told, ensure_ascii=False).encode())

    def about(self, name: str) -> dict[str, str]:
        """Title and description."""
        try:
            told: dict[str, str] = json.loads((self.folder / name / ABOUT).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return told

    def delete(self, name: str) -> None:
        """Put a base aside; nothing may build it any more."""
        self._gone.mkdir(mode=0o700, exist_ok=True)
        if (self._gone / name).exists():
            shutil.rmtree(self._gone / name)
        (self.folder / name).rename(self._gone / name)
        (self._gone / name).touch()  # counts from now

    def deleted(self) -> list[str]:
        """Those that can be restored; those deleted long ago are removed here."""
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
            raise InputError(f"there is a base {name!r} again: delete it first")
        (self._gone / name).rename(self.folder / name)
        return self._open(name)

    def _open(self, name: str) -> DocumentFolder:
        return DocumentFolder(self.folder / name, self.most_files)
