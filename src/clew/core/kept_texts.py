"""Persistent text cache: one SQLite file, safe for threads and processes, limited in size, with checksums."""

from __future__ import annotations

import sqlite3
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from zlib import crc32

from clew.core.errors import StorageError

DEFAULT_CAP = 1 << 30
"""Maximum size of all texts, in bytes. Beyond it, the least recently used tenth is deleted."""
FORMAT = 2
"""Version of the table. Version 1 lacks the columns `digest` and `made`, which are added when it is opened."""
_LAYOUT = """
CREATE TABLE IF NOT EXISTS reply (key TEXT PRIMARY KEY, value TEXT NOT NULL, size INTEGER NOT NULL, used REAL NOT NULL,
    digest INTEGER, made REAL);
CREATE INDEX IF NOT EXISTS by_use ON reply (used);
DROP TABLE IF EXISTS answer;
"""
_FROM_FIRST = "ALTER TABLE reply ADD COLUMN digest INTEGER; ALTER TABLE reply ADD COLUMN made REAL;"
_AT_ONCE = 500
"""Number of keys per query. SQLite before version 3.32 allows 999 parameters."""


class KeptTexts:
    """Text cache on disk. `put` returns after the text is stored, and `get` deletes texts that were altered on disk."""

    def __init__(self, file: Path | None, *, cap: int = DEFAULT_CAP) -> None:
        """Open or create the file, or a cache in memory for None. Raise StorageError if the file is broken."""
        self.file, self.cap = file, cap
        self._lock = Lock()
        try:
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                file or ":memory:", timeout=60, check_same_thread=False, isolation_level=None
            )
            weakref.finalize(self, self._connection.close)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")  # survives a killed process, which is enough here
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, 1, FORMAT):
                raise StorageError(f"{file}: cache format {version}, but this version reads {FORMAT}: remove the file")
            self._connection.executescript(_FROM_FIRST if version == 1 else _LAYOUT)
            self._connection.execute(f"PRAGMA user_version = {FORMAT}")
            self._size = self._total(self._connection)
        except (sqlite3.Error, OSError, TypeError, ValueError) as failure:
            raise StorageError(f"{file}: cannot be used as a cache ({failure}): remove it") from failure

    def get(self, keys: Sequence[str], *, since: float = 0.0) -> dict[str, str]:
        """Return the texts stored under these keys at or after the time `since`."""
        rows: list[tuple[str, str, float, int | None, float | None]] = []
        with self.reading() as connection:
            wanted = list(dict.fromkeys(keys))
            for start in range(0, len(wanted), _AT_ONCE):
                some = wanted[start : start + _AT_ONCE]
                marks = ",".join("?" * len(some))
                asked = f"SELECT key, value, used, digest, made FROM reply WHERE key IN ({marks})"  # noqa: S608
                rows += connection.execute(asked, some)
            now = time.time()
            stale = [(now, key) for key, _, used, *_ in rows if used < now - 3600]  # at most hourly, to write little
            fresh = {key for key, *_, made in rows if (made or 0.0) >= since}
        sound = {key: value for key, value, _, digest, _ in rows if _is_sound(key, value, digest)}
        altered = [(key,) for key, *_ in rows if key not in sound]
        if stale or altered:
            with self._writing() as connection:
                connection.executemany("DELETE FROM reply WHERE key = ?", altered)
                connection.executemany("UPDATE reply SET used = ? WHERE key = ?", stale)
        return {key: text for key, text in sound.items() if key in fresh}

    def put(self, key: str, text: str, *, anew: bool = False) -> None:
        """Store a text. An existing text under the key stays unless `anew` is set."""
        size, now = len(text.encode("utf-8", "surrogatepass")), time.time()
        with self._writing() as connection:
            if anew:
                connection.execute("DELETE FROM reply WHERE key = ?", (key,))
            row = (key, text, size, now, _digest(key, text), now)
            added = connection.execute("INSERT OR IGNORE INTO reply VALUES (?, ?, ?, ?, ?, ?)", row).rowcount
            self._size += size * added
            if self._size > self.cap:
                self._forget(connection)

    def __len__(self) -> int:
        with self.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM reply").fetchone()[0])

    def _forget(self, connection: sqlite3.Connection) -> None:
        self._size = self._total(connection)
        if self._size > self.cap:  # else another process made room already
            before = "SELECT key, sum(size) OVER (ORDER BY used, key) - size AS before FROM reply"
            excess = self._size - int(self.cap * 0.9)
            oldest = f"SELECT key FROM ({before}) WHERE before < ?"  # noqa: S608 - no values
            connection.execute(f"DELETE FROM reply WHERE key IN ({oldest})", (excess,))  # noqa: S608
            self._size = self._total(connection)

    @staticmethod
    def _total(connection: sqlite3.Connection) -> int:
        return int(connection.execute("SELECT coalesce(sum(size), 0) FROM reply").fetchone()[0])

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lock the connection for one thread, and turn errors of the file into StorageError."""
        with self._lock:
            try:
                yield self._connection
            except (sqlite3.Error, TypeError, ValueError) as failure:  # a damaged file may contain other types
                raise StorageError(f"{self.file}: {failure}: remove the file, it is only a cache") from failure

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise


def _is_sound(key: object, text: object, digest: int | None) -> bool:
    """Return whether a text is unchanged since it was stored. Texts of the first format have no digest."""
    return isinstance(key, str) and isinstance(text, str) and (digest is None or digest == _digest(key, text))


def _digest(key: str, text: str) -> int:
    return crc32(text.encode("utf-8", "surrogatepass"), crc32(key.encode("utf-8", "surrogatepass")))
