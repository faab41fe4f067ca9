"""Databases other than SQLite: DuckDB, and whatever SQLAlchemy and an installed driver know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.core.errors import InputError, MissingExtraError, NotFoundError, SourceError
from clew.kb.sources.databases import DUCKDB_URL, Database, ForeignKey, Row, SqlTable, quoted

_ALONE = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
"""DuckDB would fetch what it lacks."""


@contextmanager
def open_duckdb(url: str) -> Iterator[Database]:
    """A DuckDB file, read-only."""
    file = Path(url.removeprefix(DUCKDB_URL))
    try:
        import duckdb
    except ImportError as missing:
        raise MissingExtraError("duckdb", "duckdb") from missing
    if not file.exists():
        raise NotFoundError(f"{file}: no such file; duckdb:///FILE is relative, duckdb:////FILE absolute")
    try:
        with duckdb.connect(str(file), read_only=True, config=_ALONE) as connection:
            yield DuckDb(connection)
    except duckdb.Error as broken:
        raise SourceError(f"the database cannot be read: {broken}", file=file) from broken


@dataclass(frozen=True)
class DuckDb:
    """A DuckDB database; only its schema `main` is read."""

    connection: Any

    def tables(self) -> list[SqlTable]:
        """The tables with their keys."""
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
        """The rows in the order of the key, or else as they lie."""
        columns, key = (", ".join(map(quoted, names)) for names in (table.columns, table.key))
        order = f" ORDER BY {key}" if key else ""
        yield from self._all(f"SELECT {columns} FROM {quoted(table.name)}{order}")  # noqa: S608 - quoted

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
def open_other(url: str) -> Iterator[Database]:
    """A database by the URL that SQLAlchemy takes; its driver has to be installed."""
    try:
        import sqlalchemy
    except ImportError as missing:
        raise MissingExtraError("sqlalchemy", "sql") from missing
    shown = re.sub(r"//[^@/]*@", "//…@", url)  # no password in a message
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
    """A database behind SQLAlchemy."""

    connection: Any
    inspector: Any

    def tables(self) -> list[SqlTable]:
        """The tables of the default schema."""
        return [self._table(name) for name in sorted(self.inspector.get_table_names())]

    def rows(self, table: SqlTable) -> Iterator[Row]:
        """The rows in the order of the key, or else as they come."""
        import sqlalchemy as sql

        chosen = sql.table(table.name, *map(sql.column, table.columns))
        for row in self.connection.execute(sql.select(chosen).order_by(*map(sql.column, table.key))):
            yield tuple(row)

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
