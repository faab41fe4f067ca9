"""Bases that are made on the page of several servers: their documents lie in one database, and so do the bases."""

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
"""Seconds after which a server that was not heard of is dead: what it built is taken up by another one."""


@dataclass(frozen=True)
class SharedDocuments:
    """The documents of one base; which of the servers builds it is decided elsewhere (shared_builds.py)."""

    store: DatabaseStore
    number: int
    most_files: int

    @property
    def address(self) -> Address:
        """Of the base that is built of them."""
        return self.store.address.named(f"made/{self.number}")

    @property
    def base(self) -> str:
        """Where that is, with all that it takes to open it."""
        return self.address.url

    def names(self) -> dict[str, int]:
        """File → bytes."""
        query = "SELECT name, bytes FROM document WHERE base = ? AND deleted IS NULL ORDER BY name"
        return {row["name"]: row["bytes"] for row in self.store.rows(query, self.number)}

    def indexed(self) -> Mapping[str, Any]:
        """The files the base was built of, with their digests."""
        row = self.store.row("SELECT built FROM made WHERE id = ?", self.number)
        built: dict[str, str] = {} if row is None else json.loads(row["built"])
        return built

    def put(self, name: str, content: bytes) -> str:
        """Check and keep a file, then build; returns its name as kept."""
        name = check_upload(self.names(), name, content, self.most_files)
        self.store.note(
            "WITH kept AS (INSERT INTO document (base, name, digest, bytes, content) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (base, name) DO UPDATE SET digest = excluded.digest, bytes = excluded.bytes, "
            "content = excluded.content, deleted = NULL) UPDATE made SET wanted = TRUE, tries = 0 WHERE id = ?",
            *(self.number, name, hashlib.sha256(content).hexdigest(), len(content), content, self.number),
        )
        return name

    def delete(self, name: str) -> None:
        """Remove a file, then build; whoever builds now, and may read this very file, stops."""
        found = self.store.row(
            "WITH gone AS (UPDATE document SET deleted = ? WHERE base = ? AND name = ? AND deleted IS NULL RETURNING 1)"
            " UPDATE made SET wanted = TRUE, tries = 0, worker = NULL WHERE id = ? AND EXISTS (SELECT 1 FROM gone) "
            "RETURNING id",
            *(time.time(), self.number, checked_name(name), self.number),
        )
        if found is None:
            raise NotFoundError(f"no document {name!r}")

    def deleted(self) -> list[str]:
        """Files that can be restored; those deleted long ago are forgotten here."""
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
            raise NotFoundError(f"no deleted document {name!r}: it was restored, or forgotten")

    def state(self) -> BuildReply:
        """How the build stands, whichever server builds; it waits where that one has died."""
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
        """A temporary folder with this file, if there is one of this name."""
        with TemporaryDirectory(prefix="clew-") as scratch:
            if name in self.names():
                self.write(name, Path(scratch))
            yield Path(scratch)

    def write(self, name: str, folder: Path) -> str | None:
        """Write a file there; returns its digest, None where it was deleted just now."""
        query = "SELECT digest, content FROM document WHERE base = ? AND name = ? AND deleted IS NULL"
        row = self.store.row(query, self.number, name)
        if row is None:
            return None
        (folder / name).write_bytes(row["content"])
        return str(row["digest"])

    def resume(self) -> None:
        """Nothing: what waits is taken up by whichever server is free."""

    def close(self, patience: float = 20.0) -> None:
        """Nothing: the documents are those of other servers, too."""


@dataclass(frozen=True)
class SharedBases:
    """All bases that were made on a page; what is deleted can be restored for an hour."""

    store: DatabaseStore
    most_files: int

    def all(self) -> dict[str, SharedDocuments]:
        """Those that are there."""
        rows = self.store.rows("SELECT id, name FROM made WHERE deleted IS NULL ORDER BY name")
        return {row["name"]: self.documents(row["id"]) for row in rows}

    def documents(self, number: int) -> SharedDocuments:
        """Those of one base."""
        return SharedDocuments(self.store, number, self.most_files)

    def make(self, name: str, about: BaseChange) -> SharedDocuments:
        """A new base, empty."""
        told = json.dumps(about.model_dump(exclude_none=True), ensure_ascii=False)
        with self.store.alone():
            there = self.all()
            if checked_base_name(name) in there:
                raise InputError(f"there is a base {name!r} already")
            if len(there) >= MOST:
                raise InputError(f"{MOST} bases can be made at most: delete one first")
            self.store.note("INSERT INTO made (name, about) VALUES (?, ?)", name, told)
            return self.all()[name]

    def describe(self, name: str, about: BaseChange) -> None:
        """Another title or description; what is left out stays."""
        with self.store.alone():
            told = json.dumps(self.about(name) | about.model_dump(exclude_none=True), ensure_ascii=False)
            self.store.note("UPDATE made SET about = ? WHERE name = ? AND deleted IS NULL", told, name)

    def about(self, name: str) -> dict[str, str]:
        """Title and description."""
        row = self.store.row("SELECT about FROM made WHERE name = ? AND deleted IS NULL", name)
        told: dict[str, str] = {} if row is None else json.loads(row["about"])
        return told

    def delete(self, name: str) -> None:
        """Put a base aside; whoever builds it stops."""
        self.store.note(
            "UPDATE made SET deleted = ?, worker = NULL WHERE name = ? AND deleted IS NULL", time.time(), name
        )

    def deleted(self) -> list[str]:
        """Those that can be restored; those deleted long ago are removed here."""
        for row in self.store.rows("SELECT id FROM made WHERE deleted < ?", time.time() - KEPT_SECONDS):
            empty(self.documents(row["id"]).address)
            self.store.note("DELETE FROM made WHERE id = ?", row["id"])
        rows = self.store.rows("SELECT DISTINCT name FROM made WHERE deleted IS NOT NULL ORDER BY name")
        return [row["name"] for row in rows]

    def restore(self, name: str) -> SharedDocuments:
        """Undo a deletion, of several the last one."""
        with self.store.alone():
            if name in self.all():
                raise InputError(f"there is a base {name!r} again: delete it first")
            found = self.store.row(
                "UPDATE made SET wanted = TRUE, tries = 0, deleted = NULL WHERE id = (SELECT id FROM made "
                "WHERE name = ? AND deleted > ? ORDER BY deleted DESC LIMIT 1) RETURNING id",
                *(name, time.time() - KEPT_SECONDS),
            )
        if found is None:
            raise NotFoundError(f"no deleted base {name[:100]!r}: it was restored, or removed")
        return self.documents(found["id"])
