"""Tables, foreign keys and rows of SQL databases.

SQLite uses the standard library, read-only. DuckDB and databases supported by SQLAlchemy use their packages.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from clew.core.errors import InputError, NotFoundError, SourceError, needing

SQLITE_FILES = frozenset({".sqlite", ".sqlite3", ".db", ".db3"})
"""Suffixes of files that may be SQLite databases."""
DATABASE_FILES = SQLITE_FILES | {".duckdb"}
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SQLITE_URL = "sqlite:///"
DUCKDB_URL = "duckdb:///"
_MAGIC = b"SQLite format 3\0"

Row = tuple[Any, ...]


@dataclass(frozen=True)
class ForeignKey:
    """Columns of a table that refer to columns of another table."""

    columns: tuple[str, ...]
    table: str
    targets: tuple[str, ...]


@dataclass(frozen=True)
class SqlTable:
    """Metadata of a table. `unique` lists sets of columns that are unique together."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    foreign: tuple[ForeignKey, ...] = ()
    unique: tuple[frozenset[str], ...] = ()
    truths: frozenset[str] = frozenset()
    """Columns declared as boolean that are stored as numbers."""


def is_url(source: object) -> bool:
    """Return whether a source is a database URL, not a file: `sqlite:///shop.db`."""
    return isinstance(source, str) and _URL.match(source) is not None


def is_sqlite(file: Path) -> bool:
    """Return whether a file is an SQLite database, since other files may also end in `.db`."""
    try:
        with file.open("rb") as opened:
            return opened.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def open_database(source: str | Path) -> AbstractContextManager[Sqlite | DuckDb | AnySql]:
    """Open a database by URL or file, read-only."""
    if isinstance(source, Path) and source.suffix.lower() == ".duckdb":
        source = f"{DUCKDB_URL}{source}"
    if isinstance(source, str) and source.startswith(_SQLITE_URL):
        source = Path(source.removeprefix(_SQLITE_URL).partition("?")[0])
    if isinstance(source, Path):
        return _sqlite(source)
    return open_duckdb(source) if source.startswith(DUCKDB_URL) else open_other(source)


@contextmanager
def _sqlite(file: Path) -> Iterator[Sqlite]:
    if not file.exists():
        raise NotFoundError(f"{file}: no such file: sqlite:///FILE is relative, sqlite:////FILE absolute")
    if not is_sqlite(file):
        raise SourceError("not an SQLite database (wrong first bytes)", file=file)
    connection = sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)
    connection.text_factory = lambda data: data.decode("utf-8", errors="replace")
    try:
        connection.execute("PRAGMA trusted_schema = OFF")  # do not call functions named in the file
        yield Sqlite(connection)
    except sqlite3.DatabaseError as broken:
        raise SourceError(f"the database cannot be read: {broken}", file=file) from broken
    finally:
        connection.close()


@dataclass(frozen=True)
class Sqlite:
    """An SQLite database."""

    connection: sqlite3.Connection

    def tables(self) -> list[SqlTable]:
        """Return the tables, without views, virtual tables and internal tables."""
        made = self.connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
            "AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
        )
        return [self._table(name) for (name,) in made.fetchall()]

    def rows(self, table: SqlTable) -> Iterator[Row]:
        """Yield the rows sorted by key, or in stored order."""
        yield from self.connection.execute(_all_rows(table))

    def _table(self, name: str) -> SqlTable:
        columns = self._pragma("table_info", name)
        key = sorted((place, column) for _, column, _, _, _, place in columns if place)
        unique = [
            frozenset(column for _, _, column in self._pragma("index_info", index) if column)
            for _, index, is_unique, *_ in self._pragma("index_list", name)
            if is_unique
        ]
        names = tuple(column[1] for column in columns)
        truths = frozenset(column for _, column, kind, *_ in columns if kind.upper() in ("BOOLEAN", "BOOL"))
        return SqlTable(name, names, tuple(column for _, column in key), self._foreign(name), tuple(unique), truths)

    def _foreign(self, name: str) -> tuple[ForeignKey, ...]:
        found: dict[int, list[Row]] = {}
        for row in self._pragma("foreign_key_list", name):
            found.setdefault(row[0], []).append(row)
        keys = []
        for parts in found.values():
            columns = tuple(part[3] for part in sorted(parts))
            targets = tuple(part[4] for part in sorted(parts) if part[4] is not None)
            keys.append(ForeignKey(columns, parts[0][2], targets))
        return tuple(sorted(keys, key=lambda key: key.columns))

    def _pragma(self, pragma: str, name: str) -> list[Row]:
        return self.connection.execute(f"PRAGMA {pragma}({_quoted(name)})").fetchall()


def _all_rows(table: SqlTable) -> str:
    columns, key = (", ".join(map(_quoted, names)) for names in (table.columns, table.key))
    order = f" ORDER BY {key}" if key else ""
    return f"SELECT {columns} FROM {_quoted(table.name)}{order}"  # noqa: S608 - quoted


def _quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


_ALONE = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
"""Prevents DuckDB from downloading extensions."""


@contextmanager
def open_duckdb(url: str) -> Iterator[DuckDb]:
    """Open a DuckDB file, read-only."""
    file = Path(url.removeprefix(DUCKDB_URL))
    with needing("duckdb", "duckdb"):
        import duckdb
    if not file.exists():
        raise NotFoundError(f"{file}: no such file: duckdb:///FILE is relative, duckdb:////FILE absolute")
    try:
        with duckdb.connect(str(file), read_only=True, config=_ALONE) as connection:
            yield DuckDb(connection)
    except duckdb.Error as broken:
        raise SourceError(f"the database cannot be read: {broken}", file=file) from broken


@dataclass(frozen=True)
class DuckDb:
    """A DuckDB database, of which only the schema `main` is read."""

    connection: Any

    def tables(self) -> list[SqlTable]:
        """Return the tables with their keys."""
        columns = self._all(
            "SELECT c.table_name, c.column_name FROM duckdb_columns() c JOIN duckdb_tables() t USING (table_oid) "
            "WHERE NOT c.internal AND c.schema_name = 'main' ORDER BY c.table_name, c.column_index"
        )
        told = self._all(
            "SELECT table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names "
            "FROM duckdb_constraints() WHERE schema_name = 'main'"
        )
        names: dict[str, list[str]] = {}
        for table, column in columns:
            names.setdefault(table, []).append(column)
        return [_table(name, tuple(own), [row[1:] for row in told if row[0] == name]) for name, own in names.items()]

    def rows(self, table: SqlTable) -> Iterator[Row]:
        """Yield the rows sorted by key, or in stored order."""
        yield from self._all(_all_rows(table))

    def _all(self, query: str) -> list[Row]:
        return list(self.connection.execute(query).fetchall())


def _table(name: str, columns: tuple[str, ...], constraints: list[Row]) -> SqlTable:
    by_kind: dict[str, list[Row]] = {}
    for kind, *told in constraints:
        by_kind.setdefault(kind, []).append(tuple(told))
    foreign = [ForeignKey(tuple(own), table, tuple(theirs)) for own, table, theirs in by_kind.get("FOREIGN KEY", ())]
    key = next((tuple(own) for own, *_ in by_kind.get("PRIMARY KEY", ())), ())
    unique = tuple(frozenset(own) for own, *_ in by_kind.get("UNIQUE", ()))
    return SqlTable(name, columns, key, tuple(foreign), unique)


@contextmanager
def open_other(url: str) -> Iterator[AnySql]:
    """Open a database by its SQLAlchemy URL. The driver must be installed."""
    with needing("sql", "sqlalchemy"):
        import sqlalchemy
    shown = re.sub(r"//[^@/]*@", "//…@", url)  # hide the password
    try:
        engine = sqlalchemy.create_engine(url)
    except ImportError as missing:
        raise InputError(f"{shown}: its driver is not installed ({missing}): pip install it") from missing
    except sqlalchemy.exc.ArgumentError as wrong:
        raise InputError(f"{shown}: expected the URL of a database, such as sqlite:///shop.db ({wrong})") from wrong
    try:
        with engine.connect() as connection:
            yield AnySql(connection, sqlalchemy.inspect(connection))
    except sqlalchemy.exc.SQLAlchemyError as broken:
        raise SourceError(
            f"the database cannot be read: {getattr(broken, 'orig', None) or broken}", file=shown
        ) from broken
    finally:
        engine.dispose()


@dataclass(frozen=True)
class AnySql:
    """A database supported by SQLAlchemy."""

    connection: Any
    inspector: Any

    def tables(self) -> list[SqlTable]:
        """Return the tables of the default schema."""
        return [self._table(name) for name in sorted(self.inspector.get_table_names())]

    def rows(self, table: SqlTable) -> Iterator[Row]:
        """Yield the rows sorted by key, or in any order."""
        import sqlalchemy as sql

        chosen = sql.table(table.name, *map(sql.column, table.columns))
        yield from map(tuple, self.connection.execute(sql.select(chosen).order_by(*map(sql.column, table.key))))

    def _table(self, name: str) -> SqlTable:
        foreign = [
            ForeignKey(tuple(key["constrained_columns"]), key["referred_table"], tuple(key["referred_columns"]))
            for key in self.inspector.get_foreign_keys(name)
        ]
        return SqlTable(
            name,
            tuple(column["name"] for column in self.inspector.get_columns(name)),
            tuple(self.inspector.get_pk_constraint(name)["constrained_columns"]),
            tuple(sorted(foreign, key=lambda key: key.columns)),
            tuple(frozenset(unique["column_names"]) for unique in self.inspector.get_unique_constraints(name)),
        )
