"""Scheduling of builds among servers: one server builds a base, and another takes over if it dies.

Each server sends a sign of life every second. If it is silent for some seconds, it has lost its build, and the next
free server takes over. A slow server stops when it notices. If both write, the second write is rejected, since another
state of the base is current, and it builds again.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from threading import Event, Thread

from clew.core.errors import ClewError
from clew.core.limits import Process, start_module
from clew.server.document_build import OVERTAKEN
from clew.server.documents import followed
from clew.server.shared_bases import SILENT, SharedBases, SharedDocuments
from clew.server.wire import BuildReply
from clew.store.postgres.catalog import Watched, empty

BEAT = 1.0
"""Seconds between two signs of life."""
MAX_TRIES = 3
"""Maximum number of servers that may die during one build."""
BEGUN = BuildReply(state="running", stage="reading")
GIVEN_UP = BuildReply(state="failed", error=f"{MAX_TRIES} servers stopped during the build: upload again")


@dataclass
class _Build:
    """A build on this server."""

    documents: SharedDocuments
    state: BuildReply = BEGUN
    process: Process | None = None
    is_lost: bool = False

    def tell(self, state: BuildReply) -> None:
        self.state = state

    def stop(self) -> None:
        self.is_lost = True
        if self.process is not None:
            self.process.terminate()


class SharedBuilds:
    """Builds on one server for the bases of all servers."""

    def __init__(self, bases: SharedBases, on_beat: Callable[[], None]) -> None:
        self.bases, self.store, self.on_beat = bases, bases.store, on_beat
        self.name = f"{socket.gethostname()} {os.getpid()} {token_hex(4)}"
        self._ending = Event()
        self._life = Thread(target=self._live, name="builds", daemon=True)
        self._build: _Build | None = None
        self._work: Thread | None = None
        self._scratch = TemporaryDirectory(prefix="clew-builds-", ignore_cleanup_errors=True)

    def start(self) -> None:
        """Start sending signs of life and building."""
        self._life.start()

    def close(self) -> None:
        """Stop. Another server takes over an unfinished build."""
        self._ending.set()
        if self._life.is_alive():
            self._life.join()
        build = self._build
        if build is not None:
            build.stop()
        if self._work is not None:
            self._work.join()
        with suppress(ClewError):
            self.store.note("UPDATE made SET worker = NULL, wanted = TRUE WHERE worker = ?", self.name)
        self._scratch.cleanup()

    def _live(self) -> None:
        while not self._ending.wait(BEAT):
            with suppress(ClewError):  # the database may answer later, or questions will report the error
                self._beat()
                self.on_beat()

    def _beat(self) -> None:
        build = self._build
        if build is None:
            self._take()
            return
        alive = self.store.row(
            "UPDATE made SET seen = now(), state = ? WHERE id = ? AND worker = ? RETURNING id",
            *(build.state.model_dump_json(), build.documents.number, self.name),
        )
        if alive is None:
            build.stop()

    def _take(self) -> None:
        """Start a waiting build, or a build of a dead server."""
        self.store.note(
            "UPDATE made SET worker = NULL, wanted = FALSE, state = ? "
            "WHERE tries >= ? AND worker IS NOT NULL AND seen < now() - make_interval(secs => ?)",
            *(GIVEN_UP.model_dump_json(), MAX_TRIES, SILENT),
        )
        row = self.store.row(
            "UPDATE made SET worker = ?, seen = now(), state = ?, wanted = FALSE, tries = tries + 1 WHERE id = ("
            "SELECT id FROM made WHERE deleted IS NULL AND "
            "CASE WHEN worker IS NULL THEN wanted ELSE seen < now() - make_interval(secs => ?) END "
            "ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id",
            *(self.name, BEGUN.model_dump_json(), SILENT),
        )
        if row is not None:
            self._build = build = _Build(self.bases.documents(row["id"]))
            self._work = Thread(target=self._do, args=(build,), name="build", daemon=True)
            self._work.start()

    def _do(self, build: _Build) -> None:
        try:
            with suppress(ClewError):  # the database does not answer, so another server will build
                try:
                    built, ended = self._done(build)
                except OSError as error:
                    built, ended = {}, BuildReply(state="failed", error=f"a file cannot be written: {error.strerror}")
                self._finish(build, built, ended)
        finally:
            self._build = None

    def _finish(self, build: _Build, built: dict[str, str], ended: BuildReply) -> None:
        """Store the result, if the build still belongs to this server."""
        self.store.note(
            "UPDATE made SET worker = NULL, seen = NULL, tries = 0, state = ?, wanted = wanted OR ?, "
            "built = coalesce(?, built) WHERE id = ? AND worker = ?",
            *(ended.model_dump_json(), ended.state == "waiting"),
            json.dumps(built) if ended.state == "idle" else None,
            *(build.documents.number, self.name),
        )

    def _done(self, build: _Build) -> tuple[dict[str, str], BuildReply]:
        """Return the built files with digests, and the final state, which is waiting if another server was faster."""
        documents, folder = build.documents, Path(self._scratch.name) / str(build.documents.number)
        current = Watched(documents.base).newest() or 0  # before any file is read
        shutil.rmtree(folder / "files", ignore_errors=True)
        (folder / "files").mkdir(parents=True)
        written = {name: documents.write(name, folder / "files") for name in documents.names()}
        built = {name: digest for name, digest in written.items() if digest is not None}
        if not built:
            if current:
                empty(documents.address)
            return {}, BuildReply(state="idle")
        with start_module(
            *("clew.server.document_build", str(folder / "files"), "-", str(folder / "extracted")),
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            build.process = process
            if build.is_lost:
                process.terminate()
            assert process.stdin is not None
            with suppress(OSError):  # the process has already ended
                process.stdin.write(json.dumps([documents.base, current]).encode() + b"\n")
                process.stdin.flush()
            ended = followed(process, build.tell)
        is_for_another = build.is_lost or process.returncode == OVERTAKEN
        return built, BuildReply(state="waiting") if is_for_another else ended
