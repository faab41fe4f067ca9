"""State shared by several servers: the same SQL as for a file, translated to PostgreSQL."""

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
MAX_CONNECTIONS = 8
"""Maximum connections per server. A database accepts a hundred by default, for all servers and writers."""
ALONE = 1_131_177_337
"""Key of the advisory lock for exclusive work."""


class DatabaseStore(Store):
    """The tables of the schema `clew_server`, migrated when opened."""

    def __init__(self, address: str) -> None:
        self.address = Address.parse(address)
        self._database = Database(self.address, (SCHEMA, "public"))
        self._own = local()
        self._few = BoundedSemaphore(MAX_CONNECTIONS)
        with told_plainly(self.address), connect(self.address, timeout=0) as connection:
            migrate(connection, self.address)

    def rows(self, query: str, *values: Any) -> list[Row]:
        """Return all rows of a query. Retry if the connection is cut."""

        def ask(connection: Connection) -> list[Row]:
            asked = connection.cursor(row_factory=dict_row).execute(_spoken(query), [_told(value) for value in values])
            return asked.fetchall() if asked.description else []

        held: Connection | None = getattr(self._own, "held", None)
        if held is not None:
            return ask(held)
        with self._few:
            return self._database.lent(ask)

    def note(self, statement: str, *values: Any) -> None:
        """Write a row. If the connection is cut, it may be written twice."""
        self.rows(statement, *values)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Run several statements as one, exclusively among all servers and threads."""
        with self._few, self._database.transaction() as connection, self._holding(connection):
            yield

    def at_once(self, work: Callable[[], T]) -> T:
        """Run work exclusively in a transaction. Retry if the connection is cut."""

        def whole(connection: Connection) -> T:
            with self._holding(connection):
                return work()

        with self._few:
            return self._database.do(whole)

    @contextmanager
    def _holding(self, connection: Connection) -> Iterator[None]:
        """Use this connection for all queries of the thread, in its transaction, while others wait."""
        connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", [ALONE])
        self._own.held = connection
        try:
            yield
        finally:
            del self._own.held

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


@cache
def _spoken(query: str) -> bytes:
    """Convert the placeholders for PostgreSQL, and quote `user`, which is a keyword."""
    return re.sub(r"\?|\buser\b", lambda found: "%s" if found[0] == "?" else '"user"', query).encode()


def _told(value: Any) -> Any:
    """Replace zero characters, which PostgreSQL does not allow."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
