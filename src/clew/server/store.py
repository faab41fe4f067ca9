"""Persistent state of a server, in SQL for both SQLite and PostgreSQL, with `?` for each value, and its SQLite file."""

from __future__ import annotations

import re
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from clew.core.disk import refuse_readable
from clew.core.errors import SourceError, StorageError

Row = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Actor:
    """The user of an action, and the address."""

    name: str
    address: str = ""


SERVER = Actor("the server")


class Store(ABC):
    """A local file, or a database shared by several servers, safe for threads."""

    @abstractmethod
    def rows(self, query: str, *values: Any) -> list[Row]:
        """Return all rows of a query."""

    @abstractmethod
    def note(self, statement: str, *values: Any) -> None:
        """Write a row. The last writes may be lost in a power failure."""

    @abstractmethod
    def alone(self) -> AbstractContextManager[None]:
        """Run several statements as one, exclusively among all servers and threads."""

    def at_once(self, work: Callable[[], T]) -> T:
        """Run work exclusively. It may be repeated if a connection is cut."""
        with self.alone():
            return work()

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""

    def row(self, query: str, *values: Any) -> Row | None:
        """Return the first row, or None."""
        return next(iter(self.rows(query, *values)), None)  # fetch all rows, so that writes are executed

    @contextmanager
    def change(self, actor: Actor, what: str, about: str = "") -> Iterator[None]:
        """Run several statements as one change with an audit log entry. The change is on disk when the block ends."""
        with self.alone():
            yield
            self.audit(actor, what, about)

    def audit(self, actor: Actor, what: str, about: str = "") -> None:
        """Add an entry to the audit log."""
        self.note(
            "INSERT INTO audit (at, actor, what, about, address) VALUES (?, ?, ?, ?, ?)",
            *(time.time(), actor.name, what, about, actor.address),
        )

    def setting(self, name: str) -> str | None:
        """Return a setting of an admin, or None."""
        row = self.row("SELECT value FROM setting WHERE name = ?", name)
        return None if row is None else str(row["value"])

    def set_setting(self, actor: Actor, name: str, value: str) -> None:
        """Change a setting."""
        with self.change(actor, "setting changed", f"{name}: {value}"):
            self.note("DELETE FROM setting WHERE name = ?", name)
            self.note("INSERT INTO setting VALUES (?, ?)", name, value)


MARK = 0x436C6577
"""Application id of a team's database."""
VERSION = 3
"""Version of the tables. Files of other versions are refused."""
SCHEMA = """
CREATE TABLE user (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, password TEXT NOT NULL,
    is_initial INTEGER NOT NULL, is_active INTEGER NOT NULL DEFAULT 1, groups_of TEXT NOT NULL DEFAULT '[]',
    asks_per_day INTEGER, made REAL NOT NULL, subject TEXT UNIQUE);
CREATE TABLE role (
    user INTEGER NOT NULL REFERENCES user ON DELETE CASCADE, base TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('reader', 'editor', 'admin')), PRIMARY KEY (user, base)) WITHOUT ROWID;
CREATE TABLE session (
    digest BLOB PRIMARY KEY, user INTEGER NOT NULL REFERENCES user ON DELETE CASCADE,
    made REAL NOT NULL, seen REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE token (
    id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL UNIQUE, name TEXT NOT NULL,
    user INTEGER NOT NULL REFERENCES user ON DELETE CASCADE, may_write INTEGER NOT NULL,
    made REAL NOT NULL, seen REAL, ends REAL NOT NULL);
CREATE TABLE asked (
    id INTEGER PRIMARY KEY, user INTEGER NOT NULL REFERENCES user ON DELETE CASCADE, at REAL NOT NULL,
    base TEXT NOT NULL, question TEXT, run TEXT);
CREATE INDEX asked_by_user ON asked (user, at);
CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, actor TEXT NOT NULL, what TEXT NOT NULL,
    about TEXT NOT NULL, address TEXT NOT NULL);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'an audit log stays'); END;
CREATE TRIGGER audit_is_not_emptied BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'an audit log stays'); END;
CREATE TABLE login (
    state BLOB PRIMARY KEY, nonce TEXT NOT NULL, verifier TEXT NOT NULL, made REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tried (who BLOB NOT NULL, at REAL NOT NULL);
CREATE INDEX tried_by_whom ON tried (who);
"""
"""Tables of users, pending logins at a provider, settings of admins, and login attempts of the last minute."""


PATIENCE = 10.0
"""Seconds to wait for another server that has locked the file."""


@dataclass
class TeamFile(Store):
    """The database, safe for threads."""

    file: Path
    _connection: sqlite3.Connection = field(repr=False)
    _lock: RLock = field(default_factory=RLock, repr=False)

    @classmethod
    def open(cls, file: Path) -> TeamFile:
        """Open or create the file of a team. Raise SourceError for another database."""
        try:
            file.touch(mode=0o600, exist_ok=True)
            refuse_readable(file, "users")
            connection = sqlite3.connect(file, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            connection.row_factory = _named
            _is_new(connection, file)
            _write_ahead(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("BEGIN IMMEDIATE")  # another server may open the same new file
            if _is_new(connection, file):
                for statement in re.split(r";\n(?=CREATE)", SCHEMA.strip().removesuffix(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {MARK}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        except (OSError, sqlite3.Error) as failure:
            raise SourceError(f"cannot be used as a file of users: {failure}", file=file) from None
        return cls(file, connection)

    def rows(self, query: str, *values: Any) -> list[Row]:
        """Return all rows of a query."""
        with self._using() as connection:
            return connection.execute(query, values).fetchall()

    def note(self, statement: str, *values: Any) -> None:
        """Write a row. The last writes may be lost in a power failure."""
        with self._using() as connection:
            connection.execute(statement, values)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Run several statements as one, while no other server or thread writes."""
        with self._using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk may have ended it
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def change(self, actor: Actor, what: str, about: str = "") -> Iterator[None]:
        """Run several statements as one change with an audit log entry. The change is on disk when the block ends."""
        with super().change(actor, what, about):
            yield
        with self._using() as connection, suppress(sqlite3.OperationalError):  # the next change does it
            connection.execute("PRAGMA wal_checkpoint(FULL)")

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """Lock the connection for one thread, and turn errors into StorageError."""
        with self._lock:
            try:
                yield self._connection
            except sqlite3.DatabaseError as failure:
                remedy = "restore it from a copy" if "malformed" in str(failure) else "try again"
                raise StorageError(f"the file of users {self.file} cannot be used ({failure}): {remedy}") from failure


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Enable WAL, so that readers do not wait for writers. SQLite does not wait if two servers switch at once."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def _named(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> Row:
    return {column[0]: value for column, value in zip(cursor.description, values, strict=True)}


def _is_new(connection: sqlite3.Connection, file: Path) -> bool:
    """Return whether the file has no tables yet. Raise SourceError for another database."""
    names = ("application_id", "user_version")
    made_by = tuple(connection.execute(f"PRAGMA {name}").fetchone()[name] for name in names)
    is_new = not made_by[0] and not connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    if not is_new and made_by != (MARK, VERSION):
        raise SourceError("is not a file of users of this version of Clew: use a new file", file=file)
    return is_new
