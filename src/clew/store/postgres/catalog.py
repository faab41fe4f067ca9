"""Catalog of the bases and generations of a database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from clew.core.errors import FormatError, LockedError, NotFoundError, StorageError
from clew.store.postgres.connection import Address, Connection, Database, connect, told_plainly, tried_again

READING, WRITING = 1_131_177_335, 1_131_177_336
"""Keys of advisory locks: on a generation that is read, and on a base that is written. Base 0 means all bases."""

NAMED = 20
"""Maximum number of bases in an error message."""


@dataclass(frozen=True)
class Generation:
    """One immutable state of a base."""

    id: int
    base: int
    identity: str
    facts: dict[str, Any]
    embeds: int
    """The base whose vectors it uses: its own, or the whole base for a view."""

    @property
    def schema(self) -> str:
        """PostgreSQL schema with its tables."""
        return schema_of(self.id)


def schema_of(generation: int) -> str:
    """Return the PostgreSQL schema of a generation."""
    return f"clew_g{generation}"


def row_of(connection: Connection, query: str, *given: object) -> tuple[Any, ...]:
    """Return the row of a query that always returns one row."""
    row = connection.execute(query, given).fetchone()
    assert row is not None
    return row


def current(address: Address) -> Generation:
    """Return the current generation of a base."""
    with told_plainly(address):
        return tried_again(lambda _times: _current(address))


def _current(address: Address) -> Generation:
    with connect(address) as connection:
        check_version(connection, address)
        row = connection.execute(
            "SELECT g.id, g.base, g.identity, g.facts, coalesce(b.parent, b.id) FROM clew.base b "
            "JOIN clew.generation g ON g.id = b.generation WHERE b.name = %s",
            [address.base],
        ).fetchone()
        if row is None:
            query = "SELECT name FROM clew.base WHERE parent IS NULL AND generation IS NOT NULL ORDER BY name"
            names = [name for (name,) in connection.execute(query)]
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            there = f"there are: {', '.join(names[:NAMED])}{more}" if names else "there is none yet"
            raise NotFoundError(f"no base {address.base!r} in {address}, {there}: run `clew build … -o {address}`")
    number, base, identity, facts, embeds = row
    return Generation(number, base, identity, json.loads(facts), embeds)


def open_database(address: Address, generation: Generation) -> Database:
    """Return connections to one generation that lock it against removal."""

    def hold(connection: Connection) -> None:
        [is_free] = row_of(connection, "SELECT pg_try_advisory_lock_shared(%s, %s)", READING, generation.id)
        if not is_free:
            raise StorageError(f"{address} was replaced just now: open it again")

    return Database(address, (generation.schema, "public"), hold)


@contextmanager
def writing(address: Address) -> Iterator[tuple[Connection, int]]:
    """Open a transaction that writes a base. Yield the connection and the base's number."""
    with told_plainly(address), connect(address, timeout=0) as connection:
        migrate(connection, address)
        with connection.transaction():
            connection.execute("INSERT INTO clew.base (name) VALUES (%s) ON CONFLICT (name) DO NOTHING", [address.base])
            [base] = row_of(connection, "SELECT id FROM clew.base WHERE name = %s", address.base)
            [is_free] = row_of(connection, "SELECT pg_try_advisory_xact_lock(%s, %s)", WRITING, base)
            if not is_free:
                raise LockedError(f"another process is writing {address}: wait until it ends and try again")
            yield connection, base
        sweep(connection, base)


def add_generation(
    connection: Connection, base: int, identity: str, facts: dict[str, Any], view_of: Generation | None = None
) -> Generation:
    """Create a generation with empty tables in the caller's transaction. A view refers to its source."""
    told = json.dumps(facts, ensure_ascii=False).replace("\\u0000", "\ufffd")
    query = "INSERT INTO clew.generation (base, identity, facts, source) VALUES (%s, %s, %s, %s) RETURNING id"
    [number] = row_of(connection, query, base, identity, told, view_of and view_of.id)
    if view_of is not None:
        connection.execute("UPDATE clew.base SET parent = %s WHERE id = %s", [view_of.base, base])
    made = Generation(number, base, identity, facts, base if view_of is None else view_of.embeds)
    connection.execute(f"CREATE SCHEMA {made.schema}")
    connection.execute(f"SET LOCAL search_path = {made.schema}, public")
    connection.execute(sql_file("generation.sql"))
    return made


def current_state(connection: Connection, base: int) -> tuple[int, dict[str, Any]]:
    """Return the number and the facts of the current generation. 0 and no facts for a new base."""
    query = "SELECT g.id, g.facts FROM clew.base b JOIN clew.generation g ON g.id = b.generation WHERE b.id = %s"
    row = connection.execute(query, [base]).fetchone()
    return (0, {}) if row is None else (row[0], json.loads(row[1]))


def make_current(connection: Connection, generation: Generation) -> None:
    """Make a generation current."""
    connection.execute("UPDATE clew.base SET generation = %s WHERE id = %s", [generation.id, generation.base])


def empty(address: Address) -> None:
    """Remove all content of a base, including vectors."""
    with writing(address) as (connection, base):
        connection.execute("UPDATE clew.base SET generation = NULL WHERE id = %s", [base])
        gone = connection.execute("DELETE FROM clew.embedder WHERE base = %s RETURNING id", [base]).fetchall()
        for (embedder,) in gone:
            connection.execute(f"DROP TABLE IF EXISTS clew.vectors_{embedder}")


def exists(address: Address) -> bool:
    """Return whether a base exists."""
    with told_plainly(address), connect(address) as connection:
        query = "SELECT 1 FROM clew.base WHERE name = %s AND generation IS NOT NULL"
        return connection.execute(query, [address.base]).fetchone() is not None


class Watched:
    """A base that other servers write. Each call checks the current generation."""

    def __init__(self, address: str) -> None:
        self.address = Address.parse(address)
        self._database = Database(self.address)

    def newest(self) -> int | None:
        """Return the number of the current generation, or None if the base does not exist."""
        row = self._database.one("SELECT generation FROM clew.base WHERE name = %s", self.address.base)
        return None if row is None else row[0]


def sweep(connection: Connection, base: int) -> None:
    """Remove outdated generations of a base and their views, unless they are locked."""
    old = connection.execute(
        "SELECT g.id, b.parent IS NOT NULL FROM clew.generation g JOIN clew.base b ON b.id = g.base "
        "LEFT JOIN clew.base p ON p.id = b.parent WHERE (b.id = %s AND g.id IS DISTINCT FROM b.generation) "
        "OR (p.id = %s AND g.source IS DISTINCT FROM p.generation)",
        [base, base],
    ).fetchall()
    for generation, is_view in old:
        with connection.transaction():
            [is_free] = row_of(connection, "SELECT pg_try_advisory_xact_lock(%s, %s)", READING, generation)
            if is_free:
                connection.execute(f"DROP SCHEMA IF EXISTS {schema_of(generation)} CASCADE")
                if is_view:
                    connection.execute("UPDATE clew.base SET generation = NULL WHERE generation = %s", [generation])
                connection.execute("DELETE FROM clew.generation WHERE id = %s", [generation])


# Migrations


def migrations() -> list[tuple[int, str, str]]:
    """Return number, scope and SQL of every migration, in order.

    The scope is "catalog", "generation" for statements in each generation, or "server" for tables that only servers
    need.
    """
    found = []
    for file in files("clew.store.postgres").joinpath("migrations").iterdir():
        if file.name.endswith(".sql"):
            number, scope, *_ = file.name.split("_")
            found.append((int(number), scope, file.read_text("utf-8")))
    return sorted(found)


def applied(connection: Connection) -> int:
    """Return the number of the last migration of a database, or 0."""
    [is_there] = row_of(connection, "SELECT to_regclass('clew.migration') IS NOT NULL")
    return int(row_of(connection, "SELECT coalesce(max(number), 0) FROM clew.migration")[0]) if is_there else 0


def check_version(connection: Connection, address: Address) -> None:
    """Raise an error if the tables were written by a newer version, or need a migration."""
    have, known = applied(connection), migrations()
    newest, want = known[-1][0], max(number for number, scope, _ in known if scope != "server")
    if have == 0:
        raise NotFoundError(f"{address} contains no knowledge base: build one with `clew build SOURCE… -o {address}`")
    if have > newest:
        raise FormatError(f"{address} has tables of version {have}, this version reads {newest}: upgrade clew")
    if have < want:
        raise FormatError(
            f"{address} has tables of version {have}, this version needs {want}: run `clew build` or `clew update` "
            "on any base there to migrate them"
        )


def migrate(connection: Connection, address: Address) -> list[int]:
    """Migrate the tables of all bases in one transaction. Return the applied migrations."""
    done = []
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", [WRITING, 0])
        have, known = applied(connection), migrations()
        if have > known[-1][0]:
            check_version(connection, address)
        if have == 0:
            [encoding] = row_of(connection, "SELECT current_setting('server_encoding')")
            if encoding != "UTF8":
                raise StorageError(f"{address} is encoded in {encoding}: Clew needs a database in UTF8")
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        for number, scope, sql in known:
            if number <= have:
                continue
            if scope != "generation":
                connection.execute(sql.encode())
            else:
                for (generation,) in connection.execute("SELECT id FROM clew.generation").fetchall():
                    connection.execute(f"SET LOCAL search_path = {schema_of(generation)}, public")
                    connection.execute(sql.encode())
            connection.execute("INSERT INTO clew.migration (number) VALUES (%s)", [number])
            done.append(number)
    return done


def sql_file(name: str) -> bytes:
    """Return an SQL file of this package."""
    return files("clew.store.postgres").joinpath(name).read_bytes()
