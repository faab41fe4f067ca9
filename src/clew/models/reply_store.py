"""Replies on disk by content: one SQLite file, safe for many threads and processes, capped in size."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any

from clew.core.errors import StorageError
from clew.core.notations import parse_json
from clew.models.protocol import Completion, Request, Usage


def canonical(request: Request, model: str) -> str:
    """The whole request and the model's name as JSON with sorted keys: equal exactly where the replies must be."""
    fields: dict[str, Any] = asdict(request)
    return json.dumps({"model": model, **fields}, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(request: Request, model: str) -> str:
    """The SHA-256 of the canonical form, as hexadecimal digits."""
    return hashlib.sha256(canonical(request, model).encode("utf-8", "surrogatepass")).hexdigest()


DEFAULT_CAP = 1 << 30
"""Bytes of replies kept; the least recently used tenth goes when they outgrow it."""
FORMAT = 1
_LAYOUT = """
CREATE TABLE IF NOT EXISTS reply (key TEXT PRIMARY KEY, value TEXT NOT NULL, size INTEGER NOT NULL, used REAL NOT NULL);
CREATE INDEX IF NOT EXISTS by_use ON reply (used);
"""


class ReplyStore:
    """Completions by key; a reply is on disk as soon as `put` returns, so a killed run loses nothing it paid for."""

    def __init__(self, file: Path, *, cap: int = DEFAULT_CAP) -> None:
        """Open or make the file; a broken one is refused, never overwritten."""
        self.file, self.cap = file, cap
        self._lock = Lock()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(file, timeout=60, check_same_thread=False, isolation_level=None)
            weakref.finalize(self, self._connection.close)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")  # survives a killed process; enough for a cache
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, FORMAT):
                raise StorageError(f"{file}: replies in format {version}, this version reads {FORMAT}; remove the file")
            self._connection.executescript(_LAYOUT)
            self._connection.execute(f"PRAGMA user_version = {FORMAT}")
            self._size = int(self._connection.execute("SELECT coalesce(sum(size), 0) FROM reply").fetchone()[0])
        except (sqlite3.Error, OSError) as failure:
            raise StorageError(f"{file}: cannot be used as a cache of replies ({failure}); remove it") from failure

    def get(self, keys: Sequence[str]) -> dict[str, Completion]:
        """The stored completions among these keys, marked as cached."""
        rows: list[tuple[str, str, float]] = []
        with self._reading() as connection:
            for chunk in _chunks(list(dict.fromkeys(keys)), 500):
                marks = ",".join("?" * len(chunk))
                rows += connection.execute(f"SELECT key, value, used FROM reply WHERE key IN ({marks})", chunk)  # noqa: S608
        now = time.time()
        stale = [(now, key) for key, _, used in rows if used < now - 3600]  # rarely, so that reading seldom writes
        if stale:
            with self._writing() as connection:
                connection.executemany("UPDATE reply SET used = ? WHERE key = ?", stale)
        return {key: _decode(value) for key, value, _ in rows}

    def put(self, key: str, completion: Completion) -> None:
        """Keep a completion; the first one stored under a key stays."""
        value = _encode(completion)
        size = len(value.encode("utf-8", "surrogatepass"))
        with self._writing() as connection:
            added = connection.execute(
                "INSERT OR IGNORE INTO reply VALUES (?, ?, ?, ?)", (key, value, size, time.time())
            ).rowcount
            self._size += size * added
            if self._size > self.cap:
                self._forget(connection)

    def __len__(self) -> int:
        with self._reading() as connection:
            return int(connection.execute("SELECT count(*) FROM reply").fetchone()[0])

    def _forget(self, connection: sqlite3.Connection) -> None:
        self._size = int(connection.execute("SELECT coalesce(sum(size), 0) FROM reply").fetchone()[0])
        excess = self._size - int(self.cap * 0.9)
        if self._size <= self.cap:  # another process made room already
            return
        oldest = []
        for key, size in connection.execute("SELECT key, size FROM reply ORDER BY used, key"):
            oldest.append((key,))
            excess -= size
            if excess <= 0:
                break
        connection.executemany("DELETE FROM reply WHERE key = ?", oldest)
        self._size = int(connection.execute("SELECT coalesce(sum(size), 0) FROM reply").fetchone()[0])

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection
            except sqlite3.Error as failure:
                raise StorageError(f"{self.file}: {failure}") from failure

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise


def _encode(completion: Completion) -> str:
    fields: dict[str, Any] = {"text": completion.text, "cut": completion.cut, "usage": asdict(completion.usage)}
    if completion.logprobs:
        fields["logprobs"] = [dict(alternatives) for alternatives in completion.logprobs]
    return json.dumps(fields)  # ASCII: a lone surrogate in a reply must not break the file


def _decode(value: str) -> Completion:
    fields = parse_json(value)
    usage = Usage(**{**fields["usage"], "cached": True})
    return Completion(fields["text"], usage, cut=fields["cut"], logprobs=tuple(fields.get("logprobs", ())))


def _chunks(items: Sequence[str], size: int) -> Iterable[Sequence[str]]:
    return (items[start : start + size] for start in range(0, len(items), size))
