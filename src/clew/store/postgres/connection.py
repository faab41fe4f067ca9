"""Addresses of bases in PostgreSQL, and connections to them."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, LifoQueue
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import numpy as np

from clew.core.errors import ClewError, InputError, StorageError, needing

with needing("postgres", "psycopg"):
    import psycopg
    from psycopg import errors as states
    from psycopg.abc import Buffer
    from psycopg.adapt import Dumper, Loader
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.pq import Format

DEFAULT_BASE = "base"
INT4, INT4_ARRAY = 23, 1007
"""Object ids of the types int4 and int4[], the same in every Postgres."""
HEADER = 20
"""Size of the header of a one-dimensional array, in bytes."""
SETTINGS = (
    "-c jit=off -c join_collapse_limit=11 -c client_encoding=UTF8 -c statement_timeout={timeout} "
    "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
)
"""Keepalive releases the locks of a crashed machine after a minute, not after the usual two hours."""
MOST_SECONDS = 120
"""Time limit for a query of a reader, in seconds. Longer queries are cancelled."""
Connection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")


class ReadOnlyError(StorageError):
    """The user lacks the permission to write, or the server is a read-only replica."""


@dataclass(frozen=True)
class Address:
    """`postgresql://USER:PASSWORD@HOST/DATABASE#BASE`. Its text form omits the password."""

    conninfo: str
    base: str
    url: str
    """The original address for other processes, which must not be shown."""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Parse an address. Parameters of libpq may follow after `?`."""
        url, _, base = text.partition("#")
        try:
            conninfo = make_conninfo(url)
        except psycopg.ProgrammingError:
            raise InputError(
                f"{hidden(url)} is not an address of a database: expected postgresql://USER@HOST/DATABASE#BASE"
            ) from None
        base = unquote(base) or DEFAULT_BASE
        if len(base) > 200 or not base.isprintable():
            raise InputError(f"{base[:50]!r} cannot be the name of a base: give up to 200 printable characters")
        return cls(conninfo, base, text)

    def named(self, base: str) -> Address:
        """Return the address of another base in the same database."""
        return Address(self.conninfo, base, f"{self.url.partition('#')[0]}#{quote(base)}")

    def __str__(self) -> str:
        told = conninfo_to_dict(self.conninfo)
        port = f":{told['port']}" if told.get("port") else ""
        return f"postgresql://{told.get('host') or ''}{port}/{told.get('dbname') or ''}#{self.base}"

    __repr__ = __str__


def hidden(url: str) -> str:
    """Return a URL that is safe to show, without credentials and parameters."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.split('?')[0].rpartition('@')[2]}"


class _DumpInts(Dumper):
    """Dumps arrays of int32."""

    format = Format.BINARY
    oid = INT4_ARRAY

    def dump(self, obj: Any) -> Buffer:
        head = np.array([1, 0, INT4, len(obj), 1], dtype=">i4") if len(obj) else np.array([0, 0, INT4], dtype=">i4")
        body = np.empty((len(obj), 2), dtype=">i4")
        body[:, 0], body[:, 1] = 4, obj
        return head.tobytes() + body.tobytes()


class _LoadInts(Loader):
    """Loads arrays of integers without nulls as numpy arrays."""

    format = Format.BINARY

    def load(self, data: Buffer) -> Any:
        content = bytes(data)
        if len(content) < HEADER:
            return np.empty(0, dtype=np.int32)
        return np.frombuffer(content, dtype=">i4", offset=HEADER).reshape(-1, 2)[:, 1].astype(np.int32)


def connect(address: Address, *, search_path: Sequence[str] = (), timeout: float = MOST_SECONDS) -> Connection:
    """Connect with autocommit and conversion of numpy arrays."""
    options = SETTINGS.format(timeout=int(timeout * 1000))
    if search_path:
        options += f" -c search_path={','.join(search_path)}"
    with told_plainly(address):
        given = conninfo_to_dict(address.conninfo)
        options = " ".join(filter(None, (str(given.get("options") or ""), options)))
        info = make_conninfo(address.conninfo, options=options, connect_timeout=given.get("connect_timeout", 10))
        connection = _connected(info)
    connection.adapters.register_dumper(np.ndarray, _DumpInts)
    connection.adapters.register_loader(INT4_ARRAY, _LoadInts)
    return connection


def _connected(info: str) -> Connection:
    """Connect, with a second attempt if the first was cut: a restarting server also ends new connections."""
    try:
        return psycopg.connect(info, autocommit=True)
    except states.ConnectionTimeout:
        raise
    except psycopg.OperationalError:
        time.sleep(0.05)
        return psycopg.connect(info, autocommit=True)


@contextmanager
def told_plainly(address: Address) -> Iterator[None]:
    """Turn database errors into StorageError, without SQL and passwords."""
    try:
        yield
    except ClewError:
        raise
    except states.QueryCanceled:
        raise StorageError(f"{address} took longer than {MOST_SECONDS} s for a query, which was cancelled") from None
    except (states.UndefinedTable, states.InvalidSchemaName):
        raise StorageError(f"{address} was replaced while it was open: open it again") from None
    except (states.InsufficientPrivilege, states.ReadOnlySqlTransaction) as error:
        raise ReadOnlyError(
            f"{address}: {_message(error)}: ask for the permission, or use another user or server"
        ) from None
    except states.DiskFull:
        raise StorageError(f"the disk of {address} is full, nothing changed: free some space and try again") from None
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise StorageError(f"{address} cannot be reached ({_message(error)}): is the server running?") from None
    except psycopg.Error as error:
        raise StorageError(f"{address}: {_message(error)}") from None


def _message(error: psycopg.Error) -> str:
    """Return the server's message, or the first line of the driver's message."""
    message = error.diag.message_primary or str(error).strip()
    return message.splitlines()[0] if message else type(error).__name__


PAUSES = (0.05, 0.5)
"""Pauses before retries after a cut connection, in seconds. A server cuts connections one after another."""


def tried_again(work: Callable[[int], T]) -> T:
    """Retry after a cut connection. The work gets the number of earlier attempts."""
    for times, pause in enumerate(PAUSES):
        try:
            return work(times)
        except psycopg.OperationalError as error:
            if isinstance(error, states.QueryCanceled):
                raise
            time.sleep(pause)
    return work(len(PAUSES))


class Database:
    """Pool of connections to one generation. Cut connections are replaced."""

    def __init__(
        self, address: Address, search_path: Sequence[str] = (), prepare: Callable[[Connection], None] = lambda _: None
    ) -> None:
        """Create the pool. `prepare` is called for every new connection."""
        self.address, self.search_path, self.prepare = address, tuple(search_path), prepare
        self._free: LifoQueue[Connection] = LifoQueue()
        weakref.finalize(self, _close_all, self._free)

    def rows(self, query: str, *given: object, planned: bool = False) -> list[tuple[Any, ...]]:
        """Return the rows of a query. `planned` plans it each time, if the size of an array decides the plan."""
        prepare = False if planned else None
        return self.lent(lambda connection: connection.execute(query, given, prepare=prepare, binary=True).fetchall())

    def one(self, query: str, *given: object) -> tuple[Any, ...] | None:
        """Return the first row, or None if there are no rows."""
        return next(iter(self.rows(query, *given)), None)

    def value(self, query: str, *given: object) -> Any:
        """Return the value of a query that always returns one row."""
        return self.rows(query, *given)[0][0]

    def ints(self, query: str, *given: object, planned: bool = False) -> np.ndarray[Any, np.dtype[np.int32]]:
        """Return the array of `SELECT array_agg(…)`, empty for null."""
        found = self.rows(query, *given, planned=planned)[0][0]
        return np.empty(0, dtype=np.int32) if found is None else found

    def do(self, work: Callable[[Connection], T]) -> T:
        """Run work in one transaction."""

        def whole(connection: Connection) -> T:
            with connection.transaction():
                return work(connection)

        return self.lent(whole)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a transaction without retries. It rolls back if the connection is cut."""
        with told_plainly(self.address):
            connection = tried_again(self._alive)
            try:
                with connection.transaction():
                    yield connection
            finally:
                if not connection.closed:
                    self._free.put(connection)

    def close(self) -> None:
        """Close idle connections."""
        _close_all(self._free)

    def lent(self, work: Callable[[Connection], T]) -> T:
        """Run work with a connection. Retry with a new connection if it was cut."""
        with told_plainly(self.address):
            return tried_again(lambda times: self._with(self._taken(times), work))

    def _alive(self, times: int) -> Connection:
        """Return a live connection."""
        connection = self._taken(times)
        try:
            connection.execute("SELECT 1")
        except psycopg.OperationalError:
            connection.close()
            raise
        return connection

    def _taken(self, times: int) -> Connection:
        if times:
            self.close()  # all connections are cut if the server was restarted
            return self._new()
        try:
            return self._free.get_nowait()
        except Empty:
            return self._new()

    def _new(self) -> Connection:
        connection = connect(self.address, search_path=self.search_path)
        try:
            self.prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _with(self, connection: Connection, work: Callable[[Connection], T]) -> T:
        try:
            done = work(connection)
        except psycopg.OperationalError as error:
            if not isinstance(error, states.QueryCanceled):
                connection.close()
            raise
        finally:
            if not connection.closed:
                self._free.put(connection)
        return done


def _close_all(free: LifoQueue[Connection]) -> None:
    with suppress(Empty):
        while True:
            free.get_nowait().close()
