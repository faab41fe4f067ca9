"""Which bases a database holds, in which generations: opened, committed, removed."""

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
"""What advisory locks are taken on: a generation that is read, a base that is written."""
ALL_BASES = 0

NAMED = 20
"""So many bases of a database an error names."""


@dataclass(frozen=True)
class Generation:
    """One state of a base, which never changes."""

    id: int
    base: int
    identity: str
    created: str
    facts: dict[str, Any]
    embeds: int
    """The base whose vectors it shares: its own, or that of the whole where it is a view."""

    @property
    def schema(self) -> str:
        """The PostgreSQL schema that holds its tables."""
        return schema_of(self.id)


def schema_of(generation: int) -> str:
    """The PostgreSQL schema of a generation."""
    return f"clew_g{generation}"


def row_of(connection: Connection, query: str, *given: object) -> tuple[Any, ...]:
    """The row of a query that always gives one."""
    row = connection.execute(query, given).fetchone()
    assert row is not None
    return row


def current(address: Address) -> Generation:
    """The state of a base that is current now."""
    with told_plainly(address):
        return tried_again(lambda _times: _current(address))


def _current(address: Address) -> Generation:
    with connect(address) as connection:
        check_version(connection, address)
        row = connection.execute(
            "SELECT g.id, g.base, g.identity, g.created::text, g.facts, coalesce(b.parent, b.id) FROM clew.base b "
            "JOIN clew.generation g ON g.id = b.generation WHERE b.name = %s",
            [address.base],
        ).fetchone()
        if row is None:
            query = "SELECT name FROM clew.base WHERE parent IS NULL AND generation IS NOT NULL ORDER BY name"
            names = [name for (name,) in connection.execute(query)]
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            there = f"there are: {', '.join(names[:NAMED])}{more}" if names else "there is none yet"
            raise NotFoundError(f"no base {address.base!r} in {address}; {there}. `clew build … -o {address}` makes it")
    number, base, identity, created, facts, embeds = row
    return Generation(number, base, identity, created, json.loads(facts), embeds)


def open_database(address: Address, generation: Generation) -> Database:
    """Connections to one generation, each of which lets no writer remove it."""

    def hold(connection: Connection) -> None:
        [is_free] = row_of(connection, "SELECT pg_try_advisory_lock_shared(%s, %s)", READING, generation.id)
        if not is_free:
            raise StorageError(f"{address} was replaced just now: open it again")

    return Database(address, (generation.schema, "public"), hold)


@contextmanager
def writing(address: Address) -> Iterator[tuple[Connection, int]]:
    """One transaction that writes a base, and the number of the base: all of it is committed, or nothing."""
    with told_plainly(address), connect(address, timeout=0) as connection:
        migrate(connection, address)
        with connection.transaction():
            connection.execute("INSERT INTO clew.base (name) VALUES (%s) ON CONFLICT (name) DO NOTHING", [address.base])
            [base] = row_of(connection, "SELECT id FROM clew.base WHERE name = %s", address.base)
            [is_free] = row_of(connection, "SELECT pg_try_advisory_xact_lock(%s, %s)", WRITING, base)
            if not is_free:
                raise LockedError(f"another process is writing {address}: wait for it, or stop it, then run again")
            yield connection, base
        sweep(connection, base)


def add_generation(
    connection: Connection, base: int, identity: str, facts: dict[str, Any], view_of: Generation | None = None
) -> Generation:
    """A new generation with empty tables, in the caller's transaction; a view names what it was made from."""
    told = json.dumps(facts, ensure_ascii=False).replace("\\u0000", "\ufffd")
    query = "INSERT INTO clew.generation (base, identity, facts, source) VALUES (%s, %s, %s, %s)"
    number, created = row_of(
        connection, f"{query} RETURNING id, created::text", base, identity, told, view_of and view_of.id
    )
    if view_of is not None:
        connection.execute("UPDATE clew.base SET parent = %s WHERE id = %s", [view_of.base, base])
    made = Generation(number, base, identity, created, facts, base if view_of is None else view_of.embeds)
    connection.execute(f"CREATE SCHEMA {made.schema}")
    connection.execute(f"SET LOCAL search_path = {made.schema}, public")
    connection.execute(sql_file("generation.sql"))
    return made


def current_generation(connection: Connection, base: int) -> int | None:
    """The number of the generation that is current, None where a base is new."""
    [number] = row_of(connection, "SELECT generation FROM clew.base WHERE id = %s", base)
    return None if number is None else int(number)


def current_facts(connection: Connection, base: int) -> dict[str, Any]:
    """The facts of the current generation, none where a base is new."""
    query = "SELECT g.facts FROM clew.base b JOIN clew.generation g ON g.id = b.generation WHERE b.id = %s"
    row = connection.execute(query, [base]).fetchone()
    return {} if row is None else dict(json.loads(row[0]))


def make_current(connection: Connection, generation: Generation) -> None:
    """Name the state of a base that is opened from now on."""
    connection.execute("UPDATE clew.base SET generation = %s WHERE id = %s", [generation.id, generation.base])


def empty(address: Address) -> None:
    """Let a base hold nothing any more, not even vectors."""
    with writing(address) as (connection, base):
        connection.execute("UPDATE clew.base SET generation = NULL WHERE id = %s", [base])
        gone = connection.execute("DELETE FROM clew.embedder WHERE base = %s RETURNING id", [base]).fetchall()
        for (embedder,) in gone:
            connection.execute(f"DROP TABLE IF EXISTS clew.vectors_{embedder}")


def exists(address: Address) -> bool:
    """Whether a base is there."""
    with told_plainly(address), connect(address) as connection:
        query = "SELECT 1 FROM clew.base WHERE name = %s AND generation IS NOT NULL"
        return connection.execute(query, [address.base]).fetchone() is not None


class Watched:
    """A base that others write: which generation is current is asked anew each time."""

    def __init__(self, address: str) -> None:
        self.address = Address.parse(address)
        self._database = Database(self.address)

    def newest(self) -> int | None:
        """The number of the current generation; None where the base is not there yet."""
        row = self._database.one("SELECT generation FROM clew.base WHERE name = %s", self.address.base)
        return None if row is None else row[0]


def sweep(connection: Connection, base: int) -> None:
    """Remove the generations of a base that are not current, and the views of such, where nobody holds them."""
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
    """Number, scope and SQL of every migration, in order.

    The scope is "catalog", "generation" for what is done in each, or "server" for what only servers need.
    """
    found = []
    for file in files("clew.store.postgres").joinpath("migrations").iterdir():
        if file.name.endswith(".sql"):
            number, scope, *_ = file.name.split("_")
            found.append((int(number), scope, file.read_text("utf-8")))
    return sorted(found)


def applied(connection: Connection) -> int:
    """The number of the last migration that a database has had; 0 where Clew was never here."""
    [is_there] = row_of(connection, "SELECT to_regclass('clew.migration') IS NOT NULL")
    return int(row_of(connection, "SELECT coalesce(max(number), 0) FROM clew.migration")[0]) if is_there else 0


def check_version(connection: Connection, address: Address) -> None:
    """Refuse what a newer version has written, or an older one that has to be migrated first."""
    have, known = applied(connection), migrations()
    newest, want = known[-1][0], max(number for number, scope, _ in known if scope != "server")
    if have == 0:
        raise NotFoundError(f"{address} holds no knowledge base: build one with `clew build SOURCE… -o {address}`")
    if have > newest:
        raise FormatError(f"{address} has tables of version {have}, this version reads {newest}: upgrade clew")
    if have < want:
        raise FormatError(
            f"{address} has tables of version {have}, this version needs {want}: any `clew build` or `clew update` "
            "of a base there brings them up to it"
        )


def migrate(connection: Connection, address: Address) -> list[int]:
    """Bring the tables of all bases to this version, in one transaction; returns what was applied."""
    done = []
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", [WRITING, ALL_BASES])
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
    """An SQL file of this package."""
    return files("clew.store.postgres").joinpath(name).read_bytes()
