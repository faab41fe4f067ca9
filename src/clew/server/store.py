"""Where a server keeps what lasts: SQL that SQLite and PostgreSQL both understand, with `?` for each value."""

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
    """Who does something, and from where."""

    name: str
    address: str = ""


SERVER = Actor("the server")


class Store(ABC):
    """A file of this machine, or a database that several servers share; safe for threads."""

    @abstractmethod
    def rows(self, query: str, *values: Any) -> list[Row]:
        """All rows of a query."""

    @abstractmethod
    def note(self, statement: str, *values: Any) -> None:
        """Write something of which the last moments may be lost with the power."""

    @abstractmethod
    def alone(self) -> AbstractContextManager[None]:
        """Some statements as one, while no other server or thread does this."""

    def at_once(self, work: Callable[[], T]) -> T:
        """The same for work that may be done again, where a connection is cut in the middle of it."""
        with self.alone():
            return work()

    @abstractmethod
    def close(self) -> None:
        """Leave nothing open."""

    def row(self, query: str, *values: Any) -> Row | None:
        """The first row, or None."""
        return next(iter(self.rows(query, *values)), None)  # all are fetched, or what is written waits to be

    @contextmanager
    def change(self, actor: Actor, what: str, about: str = "") -> Iterator[None]:
        """Some statements as one change, with its line in the audit log, on disk when this is left."""
        with self.alone():
            yield
            self.audit(actor, what, about)

    def audit(self, actor: Actor, what: str, about: str = "") -> None:
        """A line in the audit log."""
        self.note(
            "INSERT INTO audit (at, actor, what, about, address) VALUES (?, ?, ?, ?, ?)",
            *(time.time(), actor.name, what, about, actor.address),
        )

    def setting(self, name: str) -> str | None:
        """What an admin chose; None where nothing was."""
        row = self.row("SELECT value FROM setting WHERE name = ?", name)
        return None if row is None else str(row["value"])

    def set_setting(self, actor: Actor, name: str, value: str | None) -> None:
        """Choose something, or take back what was chosen."""
        with self.change(actor, "setting changed", f"{name}: {value}"):
            self.note("DELETE FROM setting WHERE name = ?", name)
            if value is not None:
                self.note("INSERT INTO setting VALUES (?, ?)", name, value)
