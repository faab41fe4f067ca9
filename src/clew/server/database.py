"""What several servers keep together: the same SQL as that of a file, spoken to PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import BoundedSemaphore, local
from typing import Any

from psycopg.rows import dict_row

from clew.server.store import Row, Store, T
from clew.store.postgres.catalog import migrate
from clew.store.postgres.connection import Address, Connection, Database, connect, told_plainly

SCHEMA = "clew_server"
MOST_CONNECTIONS = 8
"""Of one server: a database takes a hundred as it comes, for all servers and writers."""
ALONE = 1_131_177_337
"""What an advisory lock is taken on by those who must not be disturbed."""


class DatabaseStore(Store):
    """The tables of schema `clew_server`, brought to this version when they are opened."""

    def __init__(self, address: str) -> None:
        self.address = Address.parse(address)
        self._database = Database(self.address, (SCHEMA, "public"))
        self._own = local()
        self._few = BoundedSemaphore(MOST_CONNECTIONS)
        with told_plainly(self.address), connect(self.address, timeout=0) as connection:
            migrate(connection, self.address)

    def rows(self, query: str, *values: Any) -> list[Row]:
        """All rows of a query; where a connection is cut meanwhile, it is asked again."""

        def ask(connection: Connection) -> list[Row]:
            asked = connection.cursor(row_factory=dict_row).execute(_spoken(query), [_told(value) for value in values])
            return asked.fetchall() if asked.description else []

        held: Connection | None = getattr(self._own, "held", None)
        if held is not None:
            return ask(held)
        with self._few:
            return self._database.lent(ask)

    def note(self, statement: str, *values: Any) -> None:
        """Write something; where a connection is cut in that moment, perhaps twice."""
        self.rows(statement, *values)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Some statements as one, while no other server or thread does this."""
        with self._few, self._database.transaction() as connection, self._holding(connection):
            yield

    def at_once(self, work: Callable[[], T]) -> T:
        """The same for work that may be done again, where a connection is cut in the middle of it."""

        def whole(connection: Connection) -> T:
            with self._holding(connection):
                return work()

        with self._few:
            return self._database.do(whole)

    @contextmanager
    def _holding(self, connection: Connection) -> Iterator[None]:
        """What this thread asks is asked there, in its transaction; others wait."""
        connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", [ALONE])
        self._own.held = connection
        try:
            yield
        finally:
            del self._own.held

    def close(self) -> None:
        """Leave nothing open."""
        self._database.close()


@cache
def _spoken(query: str) -> bytes:
    """PostgreSQL has another mark for values, and a meaning of its own for `user`."""
    return re.sub(r"\?|\buser\b", lambda found: "%s" if found[0] == "?" else '"user"', query).encode()


def _told(value: Any) -> Any:
    """PostgreSQL has no character zero."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
