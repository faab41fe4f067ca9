"""Client for graph databases with Bolt, such as Neo4j: read-only, with limits, without showing passwords."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from clew.core.errors import InputError, QueryRefusedError, StorageError, needing
from clew.core.trace import span, within

if TYPE_CHECKING:  # an extra
    from neo4j import Driver

SHOWN = 300
"""Maximum length of a server message in an error, in characters."""
Record = list[Any]


def quoted(name: str) -> str:
    """Quote a label, a type or a property as a Cypher identifier."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class DatabaseLimits:
    """Limits on time and rows of a graph database."""

    seconds: float = 120.0
    """Time limit for a query, enforced by the server and also here, since some servers ignore it."""
    reading_seconds: float = 3600.0
    """Time limit for a query that reads the whole graph."""
    most_rows: int = 50_000_000
    connect_seconds: float = 10.0


@dataclass(frozen=True)
class GraphAddress:
    """`bolt://USER:PASSWORD@HOST:PORT/DATABASE`. Its text form omits credentials."""

    url: str
    """The original address for other processes, which must not be shown."""

    @cached_property
    def parts(self) -> SplitResult:
        """The parts of the URL. Raise InputError if it has no host."""
        try:
            parts = urlsplit(self.url)
            named = parts.hostname and parts.port != 0
        except ValueError:
            named = None
        if not named:
            scheme = self.url.partition("://")[0]
            raise InputError(f"the address {scheme}://… has no server: expected {scheme}://USER@HOST:7687/DATABASE")
        return parts

    @property
    def user(self) -> str:
        """User name. Empty if not given."""
        return unquote(self.parts.username or "")

    @property
    def server(self) -> str:
        """Address of the server for its driver."""
        return f"{self.parts.scheme}://{self.parts.netloc.rpartition('@')[2]}"

    @property
    def database(self) -> str | None:
        """Name of the database. None for the server's default."""
        return unquote(self.parts.path.strip("/")) or None

    def __str__(self) -> str:
        return self.server + (f"/{self.database}" if self.database else "")

    __repr__ = __str__


class BoltServer:
    """Runs Cypher queries in read-only transactions."""

    def __init__(self, address: GraphAddress, limits: DatabaseLimits | None = None) -> None:
        self.address, self.limits = address, limits or DatabaseLimits()

    @cached_property
    def _driver(self) -> Driver:
        with needing("neo4j", "neo4j"):
            import neo4j
        logging.getLogger("neo4j").addHandler(logging.NullHandler())  # it would log every attempt
        password = self.address.parts.password
        driver = neo4j.GraphDatabase.driver(
            self.address.server,
            auth=(self.address.user, unquote(password)) if password else None,
            user_agent="clew",
            connection_timeout=self.limits.connect_seconds,
            connection_acquisition_timeout=2 * self.limits.connect_seconds,
            max_transaction_retry_time=self.limits.connect_seconds / 2,
            telemetry_disabled=True,
        )
        weakref.finalize(self, driver.close)
        return driver

    def rows(self, query: str, *, reads_all: bool = False, **parameters: object) -> list[Record]:
        """Return the records of a query. Values are passed as parameters."""
        seconds = self.limits.reading_seconds if reads_all else self.limits.seconds
        with span("cypher", endpoint=str(self.address), query=query) as step:
            found = self._or_said(seconds, lambda: self._ask(query, parameters, seconds))
            step.note(rows=len(found))
        return found

    def _ask(self, query: str, parameters: dict[str, object], seconds: float) -> list[Record]:
        from neo4j import READ_ACCESS, ManagedTransaction, unit_of_work

        def read(transaction: ManagedTransaction) -> list[Record]:
            found: list[Record] = []
            for record in transaction.run(query, parameters):
                found.append(record.values())
                if len(found) > self.limits.most_rows:
                    raise StorageError(f"{self.address} has more than {self.limits.most_rows:,} rows for one query")
            return found

        with self._driver.session(database=self.address.database, default_access_mode=READ_ACCESS) as session:
            found: list[Record] = session.execute_read(unit_of_work(timeout=seconds)(read))
            return found

    def _or_said(self, seconds: float, ask: Callable[[], list[Record]]) -> list[Record]:
        """Return the records, or raise an error with a remedy."""
        self._driver  # noqa: B018 - reports a missing package first
        from neo4j._exceptions import BoltError  # the driver lets it through if a server breaks the protocol
        from neo4j.exceptions import AuthError, ClientError, DriverError, Neo4jError

        try:
            return within(seconds, ask)
        except TimeoutError:
            raise StorageError(
                f"{self.address} did not answer a query within {self.limits.seconds:g} seconds"
            ) from None
        except AuthError:
            who = f"the user {self.address.user!r} with this password" if self.address.user else "anonymous users"
            raise StorageError(
                f"{self.address} rejects {who}: set NEO4J_USERNAME and NEO4J_PASSWORD, or put the password "
                "under the address into [keys] of the configuration file"
            ) from None
        except ClientError as error:
            raise QueryRefusedError(f"{self.address} refused a query ({error.code}): {_said(error.message)}") from error
        except Neo4jError as error:
            raise StorageError(f"{self.address} failed ({error.code}): {_said(error.message)}") from error
        except (DriverError, OSError) as error:
            why = _said(str(error))
            raise StorageError(f"{self.address} cannot be reached by Bolt ({type(error).__name__}: {why})") from error
        except (BoltError, ValueError, LookupError, AttributeError, TypeError, RecursionError, MemoryError) as error:
            # the driver does not validate the data of a server
            raise StorageError(f"{self.address} does not use Bolt: check that it is a graph database") from error


def _said(message: str | None) -> str:
    return " ".join((message or "no reason").split())[:SHOWN]
