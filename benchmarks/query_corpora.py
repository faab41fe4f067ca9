"""Which share of the gold queries of public corpora the query language can say, and whether it says the same.

    python benchmarks/query_corpora.py DATA [--check 2000] [--seed 0]

DATA holds spider/, wikisql/ and text2cypher/. Prints the share of each corpus that converts, and the rest by reason.
With --check, databases of Spider are filled with made-up rows, and that many gold queries are carried out by SQLite
and, converted, by the executor. Needs the group `corpora`.
"""

import argparse
import gzip
import json
import random
import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cypher_to_query
import pyarrow as pa
import sql_to_query
import sqlglot
from sql_to_query import Database, Refused, called

from clew.answering.queries.execution import execute
from clew.answering.queries.kinds import check
from clew.core.errors import SchemaError
from clew.core.query import (
    Aggregate,
    AnyQuery,
    Attribute,
    Column,
    Combined,
    Compare,
    Pattern,
    Query,
    Value,
    Variable,
)
from clew.core.schema import NodeType, Schema
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.build import write_graph
from clew.store.graph.tables import Piece, Problems, Tables

COMPARED = re.compile(r"""(\w+)\s*(?:=|<|>|>=|<=|!=|like|LIKE)\s*["']?([^"'\s)]+[^"')]*?)["')\s]""")
"""A column and the value that a gold query compares it with."""
FILLERS = ("qa", "qb", "qc", "qd", "qe")
ROWS = 12
"""Made-up rows of each table."""


def records(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def spider(data: Path) -> Iterator[str]:
    databases = {row["db"]: Database.of(row) for row in records(data / "spider" / "schemas.jsonl.gz")}
    for row in records(data / "spider" / "train.jsonl.gz"):
        yield outcome(lambda row=row: sql_to_query.convert(row["sql"], databases[row["db"]]))


def text2cypher(data: Path) -> Iterator[str]:
    rows = records(data / "text2cypher" / "schemas.jsonl.gz")
    schemas = {row["db"]: cypher_to_query.schema_of(row["schema"]) for row in rows}
    for row in records(data / "text2cypher" / "questions.jsonl.gz"):
        result = outcome(lambda row=row: cypher_to_query.convert(row["cypher"], schemas.get(row["db"])))
        yield "converted, no schema to check it" if result == "converted" and row["db"] not in schemas else result


def wikisql(data: Path) -> Iterator[str]:
    for row in records(data / "wikisql" / "train.jsonl.gz"):
        yield outcome(lambda row=row: table_query(row))


def table_query(row: dict[str, Any]) -> AnyQuery:
    """A question of WikiSQL: a column of the rows of one table that meet conditions, or an aggregate of it."""
    numbers = {name for name, sign, _ in row["where"] if sign in "<>"}
    if row["aggregate"] in ("sum", "avg", "min", "max"):
        numbers.add(row["select"])
    names = {row["select"], *(name for name, *_ in row["where"])}
    kinds = {called(name): "number" if name in numbers else "text" for name in names}
    part: Any = Attribute("row", called(row["select"]))
    shown = Aggregate(row["aggregate"], part) if row["aggregate"] else part
    where = tuple(Compare(Attribute("row", called(name)), sign, Value(value)) for name, sign, value in row["where"])
    query = Query((Column(shown),), Pattern((Variable("row", "row"),), (), where))
    check(query, Schema((NodeType("row", 1),), (), kinds))
    return query


def outcome(convert: Any) -> str:
    try:
        convert()
    except Refused as reason:
        return str(reason)
    return "converted"


# The same rows


def made_up(database: Database, texts: dict[str, set[str]], chance: random.Random) -> dict[str, list[dict[str, Any]]]:
    """Rows whose columns have values that the queries ask for, and references that lead somewhere."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for table, columns in database.tables.items():
        rows[table] = []
        for number in range(ROWS):
            row: dict[str, Any] = {}
            for name, kind in columns.items():
                known = sorted(texts.get(name, ()))
                if kind == "number":
                    numbers = [float(text) for text in known if re.fullmatch(r"-?\d{1,9}(\.\d+)?", text)]
                    row[name] = chance.choice([*numbers, *range(8)])
                else:
                    words = [text for text in known if text.strip("%")]
                    row[name] = chance.choice([*(text.strip("%") for text in words), *FILLERS])
            if database.keys.get(table):
                is_number = columns[database.keys[table]] == "number"
                row[database.keys[table]] = number + 1 if is_number else f"k{number}"
            rows[table].append(row)
    for _ in range(3):  # a reference may lead to a column that is a reference itself
        for (table, name), (other, column) in database.references.items():
            for row in rows[table] if database.keys.get(table) != name else ():
                row[name] = chance.choice(rows[other])[column]
    return rows


def opened(database: Database, rows: dict[str, list[dict[str, Any]]], folder: Path) -> ArrayKnowledgeBase:
    """The database as a base."""
    schema = database.schema()
    kinds = {"number": pa.float64(), "boolean": pa.bool_()}
    nodes, edges = [], []
    for table, own in rows.items():
        for number, row in enumerate(own):
            held = {called(name): _held(value, schema.attribute_types[called(name)]) for name, value in row.items()}
            nodes.append({"key": f"{table}:{number}", "type": table, "name": f"{table} {number}", **held})
    for (table, name), (other, column) in database.references.items():
        for number, row in enumerate(rows[table]):
            for place, far in enumerate(rows[other]):
                if row[name] is not None and row[name] == far[column]:
                    relation = database.relation(table, name)
                    edges.append({"head": f"{table}:{number}", "relation": relation, "tail": f"{other}:{place}"})
    attributes = {name: kinds.get(kind, pa.string()) for name, kind in schema.attribute_types.items()}
    texts = dict.fromkeys(("key", "type", "name"), pa.string())
    ends = dict.fromkeys(("head", "relation", "tail"), pa.string())
    first = Piece(pa.Table.from_pylist(nodes, pa.schema({**texts, **attributes})), "nodes")
    tables = Tables((first,), (Piece(pa.Table.from_pylist(edges, pa.schema(ends)), "edges"),))
    return ArrayKnowledgeBase.staged(folder, write_graph(tables, folder, Problems(False)).to_json())


def _held(value: Any, kind: str) -> Any:
    """A value as the base has it: no column is without one, since SQL's NOT IN finds nothing beside a missing value."""
    if kind == "number":
        return value if isinstance(value, int | float) else None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def sqlite(database: Database, rows: dict[str, list[dict[str, Any]]]) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA case_sensitive_like = OFF")
    for table, columns in database.tables.items():
        kinds = ", ".join(f'"{name}" {"REAL" if kind == "number" else "TEXT"}' for name, kind in columns.items())
        connection.execute(f'CREATE TABLE "{table}" ({kinds})')
        for row in rows[table]:
            connection.execute(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(row))})', list(row.values()))
    return connection


def same_rows(data: Path, most: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Outcome, gold query and converted query for many questions of Spider."""
    databases = {row["db"]: Database.of(row) for row in records(data / "spider" / "schemas.jsonl.gz")}
    questions = list(records(data / "spider" / "train.jsonl.gz"))
    random.Random(seed).shuffle(questions)
    by_database: dict[str, list[str]] = {}
    for row in questions[:most]:
        by_database.setdefault(row["db"], []).append(row["sql"])
    for name, queries in by_database.items():
        if "sqlite_sequence" in databases[name].tables:  # a name that SQLite keeps for itself
            continue
        texts: dict[str, set[str]] = {}
        for sql in queries:
            for column, text in re.findall(
                r"""(\w+)\s*(?:=|<|>|>=|<=|!=|like|LIKE)\s*["']?([^"'\s)]+[^"')]*?)["')\s]""", sql + " "
            ):
                texts.setdefault(column.lower(), set()).add(text)
        rows = made_up(databases[name], texts, random.Random(seed))
        with tempfile.TemporaryDirectory() as folder:
            kb, gold = opened(databases[name], rows, Path(folder)), sqlite(databases[name], rows)
            for sql in queries:
                try:
                    query = sql_to_query.convert(sql, databases[name])
                except Refused:
                    continue
                yield compared(sql, query, kb, gold), sql, str(query)


def compared(sql: str, query: AnyQuery, kb: ArrayKnowledgeBase, gold: sqlite3.Connection) -> str:
    try:
        expected = Counter(_row(row) for row in gold.execute(sql))
    except sqlite3.Error:
        return "SQLite refuses the gold query"
    try:
        found = Counter(_row(row) for row in execute(kb, query).rows)
    except SchemaError:
        return "no made-up row has such a reference"
    if isinstance(query, Combined):
        expected = Counter(set(expected))
    if found == expected:
        return "same rows" if expected else "same, no rows"
    if isinstance(query, Query) and query.first is not None and found.total() == expected.total():
        every = execute(kb, Query(query.columns, query.pattern, query.distinct, query.group, query.having)).rows
        if not expected - Counter(map(_row, every)):
            return "same, but for ties at the last place"
    if '"null"' in sql or "'null'" in sql:
        return "different, a number is compared with a text"
    if isinstance(query, Query) and query.distinct and query.order:
        return "different, an order by something that distinct rows do not fix"
    if str(query).count(" first ") > str(query).endswith(f" first {getattr(query, 'first', None)}"):
        return "different, ties inside a sub-query"
    if "number(" in str(query):
        return "different, made-up texts are added up as numbers"
    return "different, a column beside groups that they do not fix" if is_loose(sql, query) else "different"


def is_loose(sql: str, query: AnyQuery) -> bool:
    """Whether a gold query shows a column that its groups do not fix: SQLite takes any row's value."""
    if isinstance(query, Combined):
        return "group by" in sql.lower()
    group = sqlglot.parse_one(sql, read="sqlite").args.get("group")
    return group is not None and len(query.group) > len(group.expressions)


def _row(row: Any) -> tuple[Any, ...]:
    cells = []
    for cell in row:
        try:
            cells.append(round(float(cell), 6) if cell is not None else None)
        except ValueError:
            cells.append(cell)
    return tuple(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--check", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5)
    given = parser.parse_args()
    for corpus in (spider, text2cypher, wikisql):
        counts = Counter(corpus(given.data))
        converted = sum(count for reason, count in counts.items() if reason.startswith("converted"))
        print(f"{corpus.__name__}: {converted} of {counts.total()}, {100 * converted / counts.total():.1f} %")
        for reason, count in counts.most_common(25):
            print(f"  {count:6} {reason}")
    if given.check:
        counts, shown = Counter(), 0
        for result, sql, query in same_rows(given.data, given.check, given.seed):
            counts[result] += 1
            if result.startswith("different") and shown < given.show:
                shown += 1
                print(f"--- {result}\n{sql}\n{query}")
        print(f"carried out: {counts.total()}")
        for result, count in counts.most_common():
            print(f"  {count:6} {result}")


if __name__ == "__main__":
    main()
