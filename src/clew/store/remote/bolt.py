"""A graph database that speaks Bolt, such as Neo4j: asked read-only, within limits, its password never shown."""

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

SCHEMES = tuple(f"{kind}{safety}://" for kind in ("bolt", "neo4j") for safety in ("", "+s", "+ssc"))
SHOWN = 300
"""Characters of what a server says that an error repeats."""
Record = list[Any]


def is_graph_address(text: object) -> bool:
    """Whether something names a graph database: `bolt://HOST:7687/DATABASE` or `neo4j://…`."""
    return isinstance(text, str) and text.startswith(SCHEMES)


def quoted(name: str) -> str:
    """A label, a type or a property as an identifier of Cypher, whatever it holds."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class Limits:
    """How long a graph database may take, and how much it may say."""

    seconds: float = 120.0
    """For one query, asked of the server and kept here: not every server keeps to it."""
    reading_seconds: float = 3600.0
    """For one query that reads the whole graph."""
    most_rows: int = 50_000_000
    connect_seconds: float = 10.0


@dataclass(frozen=True)
class GraphAddress:
    """`bolt://USER:PASSWORD@HOST:PORT/DATABASE`; only what may be shown is shown."""

    url: str
    """As it was given, for another process; never shown."""

    @cached_property
    def parts(self) -> SplitResult:
        """The parts of the URL; refused where it names no host."""
        try:
            parts = urlsplit(self.url)
            named = parts.hostname and parts.port != 0
        except ValueError:
            named = None
        if not named:
            scheme = self.url.partition("://")[0]
            raise InputError(f"{scheme}://… names no server: expected {scheme}://USER@HOST:7687/DATABASE")
        return parts

    @property
    def user(self) -> str:
        """Who asks; empty where nobody is named."""
        return unquote(self.parts.username or "")

    @property
    def server(self) -> str:
        """Where the server is, as its driver takes it."""
        return f"{self.parts.scheme}://{self.parts.netloc.rpartition('@')[2]}"

    @property
    def database(self) -> str | None:
        """One of its databases; None for the one that the server prefers."""
        return unquote(self.parts.path.strip("/")) or None

    def __str__(self) -> str:
        return self.server + (f"/{self.database}" if self.database else "")

    __repr__ = __str__


class BoltServer:
    """Answers Cypher queries, each in a transaction that only reads."""

    def __init__(self, address: GraphAddress, limits: Limits | None = None) -> None:
        self.address, self.limits = address, limits or Limits()

    @cached_property
    def _driver(self) -> Driver:
        with needing("neo4j", "neo4j"):
            import neo4j
        logging.getLogger("neo4j").addHandler(logging.NullHandler())  # it would print every attempt
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
        """The records of a query; values are parameters, never written into it."""
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
        """The records, or an error that says what is wrong and what to do."""
        self._driver  # noqa: B018 - what is missing is said first
        from neo4j.exceptions import AuthError, ClientError, DriverError, Neo4jError

        try:
            return within(seconds, ask)
        except TimeoutError:
            raise StorageError(
                f"{self.address} has not answered a query within {self.limits.seconds:g} seconds"
            ) from None
        except AuthError:
            who = f"the user {self.address.user!r} with this password" if self.address.user else "anybody unnamed"
            raise StorageError(
                f"{self.address} does not let in {who}: set NEO4J_USERNAME and NEO4J_PASSWORD, or put the password "
                "under the address into [keys] of the configuration file"
            ) from None
        except ClientError as error:
            raise QueryRefusedError(f"{self.address} refused a query ({error.code}): {_said(error.message)}") from error
        except Neo4jError as error:
            raise StorageError(f"{self.address} failed ({error.code}): {_said(error.message)}") from error
        except (DriverError, OSError) as error:
            why = _said(str(error))
            raise StorageError(f"{self.address} cannot be reached by Bolt ({type(error).__name__}: {why})") from error
        except (ValueError, LookupError, AttributeError, TypeError, RecursionError, MemoryError) as error:
            # The driver trusts what a server sends
            raise StorageError(f"{self.address} sends what is no Bolt: is a graph database there?") from error


def _said(message: str | None) -> str:
    return " ".join((message or "no reason").split())[:SHOWN]
