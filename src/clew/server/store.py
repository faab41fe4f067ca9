"""Persistent state of a server, in SQL for both SQLite and PostgreSQL, with `?` for each value."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

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
