"""Documents over HTTP: upload, list, read, delete. The base is built in the background."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from clew.core.disk import refuse_foreign
from clew.core.errors import InputError, NotFoundError
from clew.core.limits import Process, start_module
from clew.documents.formats import READERS
from clew.documents.formats.packed import MAX_RATIO
from clew.server.wire import BuildReply

LONGEST_NAME = 150
"""Maximum bytes of a file name. File systems allow 255 bytes or less."""
PACKED = {
    **dict.fromkeys((".docx", ".pptx", ".xlsx"), "[Content_Types].xml"),
    **dict.fromkeys((".odt", ".ods", ".odp"), "content.xml"),
    ".epub": "META-INF/container.xml",
}
"""Required part of packed files by suffix."""
MAX_UNPACKED, MAX_ENTRIES = 300_000_000, 10_000
"""Maximum unpacked bytes and parts of an uploaded file, below those of the reader."""
CHUNK = 1 << 20
"""Bytes to unpack at once, to search for zero bytes, and that any packed file may unpack to."""
STOP_SECONDS = 5
"""Time that a stopped build has to end, in seconds."""
KEPT_SECONDS = 3600
"""Time in which a deleted file can be restored, in seconds."""


def checked_name(name: str) -> str:
    """Normalise the name of an uploaded file. Raise InputError unless it is a plain file name with a known suffix."""
    name = unicodedata.normalize("NFC", name).strip()
    parts = re.split(r"[/\\]", name)
    if len(parts) != 1 or name.startswith((".", "~")) or ":" in name or any(ord(mark) < 32 for mark in name):
        raise InputError("a file name must be a plain name, without folders or control characters")
    if not name or len(name.encode()) > LONGEST_NAME:
        raise InputError(f"a file name must have between 1 and {LONGEST_NAME} bytes")
    if not name.isprintable():
        raise InputError("a file name must be printable")
    if ending(name) not in READERS:
        raise InputError(f"unsupported file type {ending(name) or name!r}: use {', '.join(READERS)}")
    return name


def ending(name: str) -> str:
    """Return the suffix in lower case: `.pdf` for a.PDF."""
    return "." + name.rsplit(".", 1)[1].lower() if "." in name else ""


def check_content(name: str, content: bytes) -> None:
    """Raise InputError if the content does not match the name, or unpacks to far more than its size."""
    if not content:
        raise InputError("the file is empty")
    kind = ending(name)
    if kind == ".pdf":
        if b"%PDF-" not in content[:1024]:
            raise InputError("the file is not a PDF")
    elif kind in PACKED:
        _check_packed(content, PACKED[kind])
    elif b"\0" in content[:CHUNK] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("the file is not text")


def _check_packed(content: bytes, part: str) -> None:
    """Unpack without storing, and count, since the sizes in a packed file may be false."""
    most = min(MAX_UNPACKED, MAX_RATIO * len(content) + CHUNK)
    unpacked = 0
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            entries = packed.infolist()
            if part not in packed.namelist():
                raise InputError("the file is not an Office document")
            if len(entries) > MAX_ENTRIES or sum(entry.file_size for entry in entries) > most:
                raise InputError("the file unpacks to far more than its size (zip bomb)")
            for entry in entries:
                with packed.open(entry) as opened:
                    while piece := opened.read(CHUNK):
                        unpacked += len(piece)
                        if unpacked > most:
                            raise InputError("the file unpacks to far more than its size (zip bomb)")
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError):
        raise InputError("the file is damaged: it cannot be unpacked") from None


def check_upload(kept: Collection[str], name: str, content: bytes, most_files: int) -> str:
    """Return the normalised name of an uploaded file. Raise InputError if it is not allowed."""
    name = checked_name(name)
    check_content(name, content)
    if name not in kept and len(kept) >= most_files:
        raise InputError(f"the limit of {most_files} files is reached: delete one first")
    return name


def followed(process: Process, tell: Callable[[BuildReply], None]) -> BuildReply:
    """Follow a build, report its progress, and return its final state."""
    message: dict[str, Any] = {}
    assert process.stdout is not None
    for line in process.stdout:
        message = json.loads(line)
        if "stage" in message:
            tell(BuildReply(state="running", **message))
    skipped = tuple(message.get("skipped", ()))
    if process.wait() == 0:
        return BuildReply(state="idle", skipped=skipped)
    why = message.get("error", f"the build stopped with status {process.returncode}")
    return BuildReply(state="failed", error=why, skipped=skipped)


class DocumentFolder:
    """Uploads, deletions and builds of one document base, safe for threads."""

    def __init__(self, folder: Path, most_files: int = 2000) -> None:
        self.files, self.base, self.most_files = folder / "files", folder / "base.kb", most_files
        self._built, self._cache, self._gone = folder / "built.json", folder / "extracted", folder / "deleted"
        refuse_foreign(
            folder, (self._built.name, self.base.name), "document base", "name a new folder with --documents"
        )
        self.files.mkdir(parents=True, exist_ok=True)
        if not self._built.exists():
            self._built.write_text("{}", "utf-8")
        self._lock = Lock()
        self._state = BuildReply(state="idle")
        self._thread: Thread | None = None
        self._process: Process | None = None
        self._closing = False
        self._wanted = False

    def names(self) -> dict[str, int]:
        """Return file sizes by name."""
        found = (file for file in self.files.iterdir() if not file.name.startswith(".") and file.is_file())
        return {file.name: file.stat().st_size for file in sorted(found)}

    def indexed(self) -> Mapping[str, Any]:
        """Return the files in the base, with values that identify their content."""
        try:
            known = json.loads(self._built.read_text("utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return {}
        return known if isinstance(known, dict) else {}

    def put(self, name: str, content: bytes) -> str:
        """Check and store a file, then build. Return its normalised name."""
        name = check_upload(self.names(), name, content, self.most_files)
        with tempfile.NamedTemporaryFile(dir=self.files, prefix=".upload-", delete=False) as written:
            written.write(content)
        os.replace(written.name, self.files / name)  # noqa: PTH105 - a plain name inside the folder, checked above
        self.start_build()
        return name

    def delete(self, name: str) -> None:
        """Remove a file, then build. It can be restored for a limited time."""
        name = checked_name(name)
        if name not in self.names():
            raise NotFoundError(f"no document {name!r}")
        self._gone.mkdir(mode=0o700, exist_ok=True)
        (self.files / name).replace(self._gone / name)
        (self._gone / name).touch()  # the time limit starts now
        self._stop_build()  # it may be reading this file, for hours
        self.start_build()

    def deleted(self) -> list[str]:
        """Return the files that can be restored. Remove expired files."""
        if not self._gone.is_dir():
            return []
        for file in list(self._gone.iterdir()):
            if time.time() - file.stat().st_mtime > KEPT_SECONDS:
                file.unlink(missing_ok=True)
        return sorted(file.name for file in self._gone.iterdir() if file.name not in self.names())

    def restore(self, name: str) -> None:
        """Undo a deletion, then build."""
        name = checked_name(name)
        if name not in self.deleted():
            raise NotFoundError(f"no deleted document {name!r}: it was restored, or has expired")
        (self._gone / name).replace(self.files / name)
        self.start_build()

    def state(self) -> BuildReply:
        """Return the state of the build."""
        with self._lock:
            return self._state

    def folder_with(self, name: str) -> AbstractContextManager[Path]:  # noqa: ARG002
        """Return the folder of all files."""
        return contextlib.nullcontext(self.files)

    def resume(self) -> None:
        """Build if the files differ from the base. Remove files that were deleted before."""
        self._forget_deleted()
        if self._fingerprints() != self.indexed():
            self.start_build()

    def start_build(self) -> None:
        """Build in the background. Files changed meanwhile are built afterwards."""
        with self._lock:
            self._wanted = True
            if self._closing or (self._thread is not None and self._thread.is_alive()):
                return
            self._state = BuildReply(state="waiting")
            self._thread = Thread(target=self._build_all, name="build", daemon=True)
            self._thread.start()

    def close(self, patience: float = 20.0) -> None:
        """Wait for a build, or stop it after `patience` seconds. The next server resumes it."""
        with self._lock:
            self._closing, self._wanted = True, False
            thread = self._thread
        self._forget_deleted()
        if thread is not None:
            thread.join(patience)
            self._stop_build()
            thread.join(STOP_SECONDS)

    def _stop_build(self) -> None:
        with self._lock:
            process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)

    def _forget_deleted(self) -> None:
        if self._gone.is_dir():
            shutil.rmtree(self._gone)

    def _build_all(self) -> None:
        while True:
            with self._lock:
                if not self._wanted:
                    return
                self._wanted = False
                self._state = BuildReply(state="running", stage="reading")
            state = self._build_once()
            with self._lock:
                again = self._wanted
                self._state = BuildReply(state="waiting") if again else state
                if not again:
                    self._thread = None
                    return

    def _build_once(self) -> BuildReply:
        begun = self._fingerprints()
        if not begun:
            self._empty()
            return BuildReply(state="idle")
        folders = map(str, (self.files, self.base, self._cache))
        with self._lock:
            if self._closing:
                return BuildReply(state="waiting")
            self._process = start_module("clew.server.document_build", *folders, stderr=subprocess.DEVNULL)
        with self._process as process:
            ended = followed(process, self._tell)
        if ended.state == "idle":
            self._built.write_text(json.dumps(begun), "utf-8")
        return ended

    def _tell(self, state: BuildReply) -> None:
        with self._lock:
            self._state = state

    def _empty(self) -> None:
        """Remove the base, since there are no files."""
        (self.base / "manifest.json").unlink(missing_ok=True)
        self._built.write_text("{}", "utf-8")

    def _fingerprints(self) -> dict[str, Any]:
        found = {name: (self.files / name).stat() for name in self.names()}
        return {name: [facts.st_size, facts.st_mtime_ns] for name, facts in found.items()}
