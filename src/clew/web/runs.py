"""Finished runs, kept so that a link to one shows it again."""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from clew.core.errors import NotFoundError

RUN_ID = re.compile(r"[A-Za-z0-9_-]{12}")


@dataclass
class Runs:
    """The last runs of every base in memory, and on disk where there is a folder for them."""

    folder: Path | None = None
    most: int = 2000
    _kept: OrderedDict[tuple[str, str], bytes] = field(default_factory=OrderedDict, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @staticmethod
    def new_id() -> str:
        """An id nobody can guess."""
        return secrets.token_urlsafe(9)

    def put(self, base: str, run: str, content: bytes) -> None:
        """Keep a run; the oldest is forgotten where there are too many."""
        with self._lock:
            self._kept[base, run] = content
            dropped = [self._kept.popitem(last=False)[0] for _ in range(len(self._kept) - self.most)]
        if self.folder is not None:
            (self.folder / base).mkdir(parents=True, exist_ok=True)
            self._file(self.folder, base, run).write_bytes(content)
            for old in dropped:
                self._file(self.folder, *old).unlink(missing_ok=True)

    def get(self, base: str, run: str) -> bytes:
        """A run of this base; that of another base does not exist here."""
        with self._lock:
            content = self._kept.get((base, run))
        if content is not None:
            return content
        if self.folder is not None and RUN_ID.fullmatch(run):
            file = self._file(self.folder, base, run)
            if file.is_file():
                return file.read_bytes()
        raise NotFoundError("no such run: it was forgotten, or never made")

    @staticmethod
    def _file(folder: Path, base: str, run: str) -> Path:
        return folder / base / f"{run}.json"
