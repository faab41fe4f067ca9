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
HEADER = 20
"""Bytes before the first element of an array of one dimension."""
CONNECT_SECONDS = 10
SETTINGS = (
    "-c jit=off -c join_collapse_limit=11 -c client_encoding=UTF8 -c statement_timeout={timeout} "
    "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
)
"""The locks of a machine that lost its power are free after a minute, instead of the two hours of most systems."""
MOST_SECONDS = 120
"""No single query of a reader takes longer: one that does is cancelled."""
Connection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")


class ReadOnlyError(StorageError):
    """A user may not write, or a replica cannot."""


@dataclass(frozen=True)
class Address:
    """`postgresql://USER:PASSWORD@HOST/DATABASE#BASE`, its password never shown."""

    conninfo: str
    base: str
    url: str
    """As it was given, for another process; never shown."""

    @classmethod
    def parse(cls, text: str) -> Address:
        """An address as it was given; what libpq knows may follow after `?`."""
        url, _, base = text.partition("#")
        try:
            conninfo = make_conninfo(url)
        except psycopg.ProgrammingError:
            raise InputError(
                f"{hidden(url)} is no address of a database: expected postgresql://USER@HOST/DATABASE#BASE"
            ) from None
        base = unquote(base) or DEFAULT_BASE
        if len(base) > 200 or not base.isprintable():
            raise InputError(f"{base[:50]!r} cannot be the name of a base: give up to 200 printable characters")
        return cls(conninfo, base, text)

    def named(self, base: str) -> Address:
        """Another base of the same database."""
        return Address(self.conninfo, base, f"{self.url.partition('#')[0]}#{quote(base)}")

    def __str__(self) -> str:
        told = conninfo_to_dict(self.conninfo)
        port = f":{told['port']}" if told.get("port") else ""
        return f"postgresql://{told.get('host') or ''}{port}/{told.get('dbname') or ''}#{self.base}"

    __repr__ = __str__


def hidden(url: str) -> str:
    """A URL as it may be shown: without who asks, and without what was asked for beside the database."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.split('?')[0].rpartition('@')[2]}"


class _DumpInts(Dumper):
    """An array of int32 as PostgreSQL reads it."""

    format = Format.BINARY
    oid = INT4_ARRAY

    def dump(self, obj: Any) -> Buffer:
        head = np.array([1, 0, INT4, len(obj), 1], dtype=">i4") if len(obj) else np.array([0, 0, INT4], dtype=">i4")
        body = np.empty((len(obj), 2), dtype=">i4")
        body[:, 0], body[:, 1] = 4, obj
        return head.tobytes() + body.tobytes()


class _LoadInts(Loader):
    """An array of integers without nulls as numpy holds it."""

    format = Format.BINARY

    def load(self, data: Buffer) -> Any:
        content = bytes(data)
        if len(content) < HEADER:
            return np.empty(0, dtype=np.int32)
        return np.frombuffer(content, dtype=">i4", offset=HEADER).reshape(-1, 2)[:, 1].astype(np.int32)


def connect(address: Address, *, search_path: Sequence[str] = (), timeout: float = MOST_SECONDS) -> Connection:
    """A connection that commits at once and speaks arrays of numpy."""
    options = SETTINGS.format(timeout=int(timeout * 1000))
    if search_path:
        options += f" -c search_path={','.join(search_path)}"
    with told_plainly(address):
        given = conninfo_to_dict(address.conninfo)
        options = " ".join(filter(None, (str(given.get("options") or ""), options)))
        info = make_conninfo(
            address.conninfo, options=options, connect_timeout=given.get("connect_timeout", CONNECT_SECONDS)
        )
        connection = _connected(info)
    connection.adapters.register_dumper(np.ndarray, _DumpInts)
    connection.adapters.register_loader(INT4_ARRAY, _LoadInts)
    return connection


def _connected(info: str) -> Connection:
    """At the second try where the first was cut off: who ends all connections of a server ends those half made too."""
    try:
        return psycopg.connect(info, autocommit=True)
    except states.ConnectionTimeout:
        raise
    except psycopg.OperationalError:
        time.sleep(0.05)
        return psycopg.connect(info, autocommit=True)


@contextmanager
def told_plainly(address: Address) -> Iterator[None]:
    """What a database refuses, in the words of a user: no SQL, no password."""
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
            f"{address}: {_message(error)}; ask for the right, or name another user or server"
        ) from None
    except states.DiskFull:
        raise StorageError(f"the disk of {address} is full: free some space and run again; nothing changed") from None
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise StorageError(f"{address} cannot be reached ({_message(error)}): is the server running?") from None
    except psycopg.Error as error:
        raise StorageError(f"{address}: {_message(error)}") from None


def _message(error: psycopg.Error) -> str:
    """What the server says, or the first line of what the driver does: what follows is advice."""
    said = error.diag.message_primary or str(error).strip()
    return said.splitlines()[0] if said else type(error).__name__


PAUSES = (0.05, 0.5)
"""Seconds until what a cut connection spoilt is tried again: a server that cuts many does so one after another."""


def tried_again(work: Callable[[int], T]) -> T:
    """What a cut connection leaves undone is done again; the work is told how often it was tried before."""
    for times, pause in enumerate(PAUSES):
        try:
            return work(times)
        except psycopg.OperationalError as error:
            if isinstance(error, states.QueryCanceled):
                raise
            time.sleep(pause)
    return work(len(PAUSES))


class Database:
    """Connections to one generation, lent to one thread at a time; a connection that was cut is replaced."""

    def __init__(
        self, address: Address, search_path: Sequence[str] = (), prepare: Callable[[Connection], None] = lambda _: None
    ) -> None:
        """`prepare` is done with every new connection."""
        self.address, self.search_path, self.prepare = address, tuple(search_path), prepare
        self._free: LifoQueue[Connection] = LifoQueue()
        weakref.finalize(self, _close_all, self._free)

    def rows(self, query: str, *given: object, planned: bool = False) -> list[tuple[Any, ...]]:
        """The rows that a query gives; `planned` anew each time, where the size of an array decides how it is run."""
        prepare = False if planned else None
        return self.lent(lambda connection: connection.execute(query, given, prepare=prepare, binary=True).fetchall())

    def one(self, query: str, *given: object) -> tuple[Any, ...] | None:
        """The first row, None where there is none."""
        return next(iter(self.rows(query, *given)), None)

    def ints(self, query: str, *given: object, planned: bool = False) -> np.ndarray[Any, np.dtype[np.int32]]:
        """What `SELECT array_agg(…)` gives, empty where there was nothing to gather."""
        found = self.rows(query, *given, planned=planned)[0][0]
        return np.empty(0, dtype=np.int32) if found is None else found

    def do(self, work: Callable[[Connection], T]) -> T:
        """Work in one transaction."""

        def whole(connection: Connection) -> T:
            with connection.transaction():
                return work(connection)

        return self.lent(whole)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction of many statements, which nobody tries again: a cut in the middle changes nothing."""
        with told_plainly(self.address):
            connection = tried_again(self._alive)
            try:
                with connection.transaction():
                    yield connection
            finally:
                if not connection.closed:
                    self._free.put(connection)

    def close(self) -> None:
        """Close what is not lent."""
        _close_all(self._free)

    def lent(self, work: Callable[[Connection], T]) -> T:
        """Work with a connection; where it was cut, with a new one."""
        with told_plainly(self.address):
            return tried_again(lambda times: self._with(self._taken(times), work))

    def _alive(self, times: int) -> Connection:
        """A connection that was not cut."""
        connection = self._taken(times)
        try:
            connection.execute("SELECT 1")
        except psycopg.OperationalError:
            connection.close()
            raise
        return connection

    def _taken(self, times: int) -> Connection:
        if times:
            self.close()  # whoever cut one has cut them all: a server that was restarted
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
