"""Bases created on the page of several servers, with documents and bases in one database."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from clew.core.errors import InputError, NotFoundError
from clew.server.database import DatabaseStore
from clew.server.documents import KEPT_SECONDS, check_upload, checked_name
from clew.server.managed import MOST, checked_base_name
from clew.server.wire import BaseChange, BuildReply
from clew.store.postgres.catalog import empty
from clew.store.postgres.connection import Address

SILENT = 15.0
"""Seconds without a sign of life after which a server counts as dead, and another server takes over its build."""


@dataclass(frozen=True)
class SharedDocuments:
    """The documents of one base. shared_builds.py decides which server builds it."""

    store: DatabaseStore
    number: int
    most_files: int

    @property
    def address(self) -> Address:
        """Address of the base built from the documents."""
        return self.store.address.named(f"made/{self.number}")

    @property
    def base(self) -> str:
        """Complete address of the base, including credentials."""
        return self.address.url

    def names(self) -> dict[str, int]:
        """Return file sizes by name."""
        query = "SELECT name, bytes FROM document WHERE base = ? AND deleted IS NULL ORDER BY name"
        return {row["name"]: row["bytes"] for row in self.store.rows(query, self.number)}

    def indexed(self) -> Mapping[str, Any]:
        """Return the files in the base with their digests."""
        row = self.store.row("SELECT built FROM made WHERE id = ?", self.number)
        built: dict[str, str] = {} if row is None else json.loads(row["built"])
        return built

    def put(self, name: str, content: bytes) -> str:
        """Check and store a file, then build. Return its normalised name."""
        name = check_upload(self.names(), name, content, self.most_files)
        self.store.note(
            "WITH kept AS (INSERT INTO document (base, name, digest, bytes, content) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (base, name) DO UPDATE SET digest = excluded.digest, bytes = excluded.bytes, "
            "content = excluded.content, deleted = NULL) UPDATE made SET wanted = TRUE, tries = 0 WHERE id = ?",
            *(self.number, name, hashlib.sha256(content).hexdigest(), len(content), content, self.number),
        )
        return name

    def delete(self, name: str) -> None:
        """Remove a file, then build. A running build, which may read this file, stops."""
        found = self.store.row(
            "WITH gone AS (UPDATE document SET deleted = ? WHERE base = ? AND name = ? AND deleted IS NULL RETURNING 1)"
            " UPDATE made SET wanted = TRUE, tries = 0, worker = NULL WHERE id = ? AND EXISTS (SELECT 1 FROM gone) "
            "RETURNING id",
            *(time.time(), self.number, checked_name(name), self.number),
        )
        if found is None:
            raise NotFoundError(f"no document {name!r}")

    def deleted(self) -> list[str]:
        """Return the files that can be restored. Remove expired files."""
        self.store.note("DELETE FROM document WHERE base = ? AND deleted < ?", self.number, time.time() - KEPT_SECONDS)
        query = "SELECT name FROM document WHERE base = ? AND deleted IS NOT NULL ORDER BY name"
        return [row["name"] for row in self.store.rows(query, self.number)]

    def restore(self, name: str) -> None:
        """Undo a deletion, then build."""
        found = self.store.row(
            "WITH back AS (UPDATE document SET deleted = NULL WHERE base = ? AND name = ? AND deleted > ? RETURNING 1) "
            "UPDATE made SET wanted = TRUE, tries = 0 WHERE id = ? AND EXISTS (SELECT 1 FROM back) RETURNING id",
            *(self.number, checked_name(name), time.time() - KEPT_SECONDS, self.number),
        )
        if found is None:
            raise NotFoundError(f"no deleted document {name!r}: it was restored, or has expired")

    def state(self) -> BuildReply:
        """Return the state of the build on any server. It is waiting if that server has died."""
        row = self.store.row(
            "SELECT state, CASE WHEN worker IS NULL THEN wanted ELSE seen < now() - make_interval(secs => ?) END "
            "AS waits FROM made WHERE id = ?",
            *(SILENT, self.number),
        )
        if row is None:
            return BuildReply(state="idle")
        return BuildReply(state="waiting") if row["waits"] else BuildReply.model_validate_json(row["state"])

    @contextmanager
    def folder_with(self, name: str) -> Iterator[Path]:
        """Create a temporary folder with this file, if it exists."""
        with TemporaryDirectory(prefix="clew-") as scratch:
            if name in self.names():
                self.write(name, Path(scratch))
            yield Path(scratch)

    def write(self, name: str, folder: Path) -> str | None:
        """Write a file to a folder. Return its digest, or None if it has just been deleted."""
        query = "SELECT digest, content FROM document WHERE base = ? AND name = ? AND deleted IS NULL"
        row = self.store.row(query, self.number, name)
        if row is None:
            return None
        (folder / name).write_bytes(row["content"])
        return str(row["digest"])

    def resume(self) -> None:
        """Do nothing, since any free server takes over waiting builds."""

    def close(self, patience: float = 20.0) -> None:
        """Do nothing, since other servers also use the documents."""


@dataclass(frozen=True)
class SharedBases:
    """All bases created on a page. Deleted bases can be restored for an hour."""

    store: DatabaseStore
    most_files: int

    def all(self) -> dict[str, SharedDocuments]:
        """Return all bases."""
        rows = self.store.rows("SELECT id, name FROM made WHERE deleted IS NULL ORDER BY name")
        return {row["name"]: self.documents(row["id"]) for row in rows}

    def documents(self, number: int) -> SharedDocuments:
        """Return the documents of a base."""
        return SharedDocuments(self.store, number, self.most_files)

    def make(self, name: str, about: BaseChange) -> SharedDocuments:
        """Create an empty base."""
        about_json = json.dumps(about.model_dump(exclude_none=True), ensure_ascii=False)
        with self.store.alone():
            there = self.all()
            if checked_base_name(name) in there:
                raise InputError(f"the base {name!r} already exists")
            if len(there) >= MOST:
                raise InputError(f"the limit of {MOST} bases is reached: delete one first")
            self.store.note("INSERT INTO made (name, about) VALUES (?, ?)", name, about_json)
            return self.all()[name]

    def describe(self, name: str, about: BaseChange) -> None:
        """Update the title or description. Omitted fields stay unchanged."""
        with self.store.alone():
            about_json = json.dumps(self.about(name) | about.model_dump(exclude_none=True), ensure_ascii=False)
            self.store.note("UPDATE made SET about = ? WHERE name = ? AND deleted IS NULL", about_json, name)

    def about(self, name: str) -> dict[str, str]:
        """Return title and description."""
        row = self.store.row("SELECT about FROM made WHERE name = ? AND deleted IS NULL", name)
        about: dict[str, str] = {} if row is None else json.loads(row["about"])
        return about

    def delete(self, name: str) -> None:
        """Delete a base. A running build stops."""
        self.store.note(
            "UPDATE made SET deleted = ?, worker = NULL WHERE name = ? AND deleted IS NULL", time.time(), name
        )

    def deleted(self) -> list[str]:
        """Return the bases that can be restored. Remove expired bases."""
        for row in self.store.rows("SELECT id FROM made WHERE deleted < ?", time.time() - KEPT_SECONDS):
            empty(self.documents(row["id"]).address)
            self.store.note("DELETE FROM made WHERE id = ?", row["id"])
        rows = self.store.rows("SELECT DISTINCT name FROM made WHERE deleted IS NOT NULL ORDER BY name")
        return [row["name"] for row in rows]

    def restore(self, name: str) -> SharedDocuments:
        """Undo the last deletion of this name."""
        with self.store.alone():
            if name in self.all():
                raise InputError(f"the base {name!r} exists again: delete it first")
            found = self.store.row(
                "UPDATE made SET wanted = TRUE, tries = 0, deleted = NULL WHERE id = (SELECT id FROM made "
                "WHERE name = ? AND deleted > ? ORDER BY deleted DESC LIMIT 1) RETURNING id",
                *(name, time.time() - KEPT_SECONDS),
            )
        if found is None:
            raise NotFoundError(f"no deleted base {name[:100]!r}: it was restored, or removed")
        return self.documents(found["id"])
