"""Read JSON, JSON lines and Parquet as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from clew.core.errors import NotFoundError, SourceError
from clew.core.limits import TooLargeError, bounded_work, spend
from clew.core.texts import parse_json, whole_value
from clew.store.graph.tables import Problem
from clew.store.sources.columns import edge_roles, node_roles
from clew.store.sources.files import line_at, read_bytes, stem_of
from clew.store.sources.nested import nested_tables
from clew.store.sources.pieces import RawTable, is_list, is_text
from clew.store.sources.wide import concatenated

_TOGETHER: tuple[set[type], ...] = ({str}, {int, float}, {bool}, {date}, {datetime})
CELL_STEPS = 8
"""Steps of work per cell, including empty cells: a new key in every row creates a column each."""
_EDGE_LISTS = ("edges", "links", "relationships")


def read_json_lines(
    data: bytes, file: str, *, skip_bad: bool = False, flat: bool = True, groups: str | None = None
) -> tuple[list[RawTable], list[Problem]]:
    """Read one row per line. Nested objects become columns with dotted names, or tables without `flat`."""
    tables: list[pa.Table] = []
    lines: list[int] = []
    skipped: list[Problem] = []
    nested: list[dict[str, Any]] = []
    with bounded_table(data, file):
        for first, block in _blocks(data):
            records, places, problems = _records(first, block, file)
            if problems and not skip_bad:
                raise SourceError(problems[0].message, file=file, line=problems[0].line)
            skipped += problems
            lines += places
            if nested or (not flat and not tables and any(map(_is_nested, records))):
                nested += records
            else:
                tables.append(table_of_records(records))
        if nested:
            return nested_raw(nested, file, groups), skipped
    table = concatenated(tables)
    if lines == list(range(1, len(lines) + 1)):
        return [RawTable(table, file)], skipped
    return [RawTable(table, file, lines=pa.array(lines, pa.int64()))], skipped


def _is_nested(record: Mapping[str, Any]) -> bool:
    return any(
        isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict))
        for value in record.values()
    )


@contextmanager
def bounded_table(data: bytes, file: str) -> Iterator[None]:
    """Raise SourceError for data with far more cells than the file's size justifies."""
    try:
        with bounded_work(len(data)):
            yield
    except TooLargeError as error:
        reason = "nearly every row has different keys, so the table would be mostly empty"
        raise SourceError(f"{reason}: give each row the same keys", file=file) from error


def _blocks(data: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Yield blocks of lines with the number of the first line, since parsed records need more memory than text."""
    start, number = 0, 1
    while start < len(data):
        cut = data.find(b"\n", min(start + (1 << 22), len(data)))
        end = len(data) if cut < 0 else cut
        block = data[start:end].split(b"\n")
        yield number, block
        start, number = end + 1, number + len(block)


def _records(first: int, block: list[bytes], file: str) -> tuple[list[dict[str, Any]], list[int], list[Problem]]:
    """Return the objects of some lines, the line of each, and the problems."""
    places = [number for number, line in enumerate(block, first) if line and not line.isspace()]
    lines = block if len(places) == len(block) else [block[number - first] for number in places]
    try:
        together = parse_json(b"[" + b",".join(lines) + b"]")  # one call for all lines is twice as fast
    except json.JSONDecodeError:
        together = []
    if len(together) == len(lines) and all(type(record) is dict for record in together):
        return together, places, []
    records, kept, problems = [], [], []
    for number, line in zip(places, lines, strict=True):
        try:
            record = parse_json(line)
        except json.JSONDecodeError as broken:
            problems.append(Problem(f"not JSON: {broken.msg} at character {broken.pos + 1}", file, number))
            continue
        if not isinstance(record, dict):
            problems.append(Problem(f"expected a JSON object, found {type(record).__name__}", file, number))
            continue
        records.append(record)
        kept.append(number)
    return records, kept, problems


def read_json(data: bytes, file: str, *, flat: bool, groups: str | None = None) -> list[RawTable]:
    """Read the tables of a JSON document: a graph under nodes and edges (or links), or nested tables.

    `flat` creates one table from a list of objects, with a column for each field of nested objects.
    """
    try:
        document = parse_json(data)
    except json.JSONDecodeError as broken:
        raise SourceError(
            f"not JSON: {broken.msg}: use the suffix .jsonl for one object per line",
            file=file,
            line=line_at(data, broken.pos),
        ) from broken
    if _is_rows(document):
        header, rows = _with_header(document)
        document = [dict(zip(header, row, strict=True)) for row in rows]
    if isinstance(document, dict):
        parts = [document.get("nodes"), *(document.get(name) for name in _EDGE_LISTS)]
    else:
        parts = [document] if flat else []
    with bounded_table(data, file):
        tables = [
            RawTable(table_of_records(part), file)
            for part in parts
            if isinstance(part, list) and part and all(isinstance(record, dict) for record in part)
        ] or nested_raw(document, file, groups)
    if not tables:
        raise SourceError(
            f"expected objects, found {type(document).__name__} without objects: "
            "give a list of objects, an object of objects, or an object with lists named nodes and edges",
            file=file,
        )
    return tables


def _is_rows(document: Any) -> bool:
    """Return whether a document is a table without a header: a list of lists of the same length."""
    return (
        isinstance(document, list)
        and document != []
        and all(isinstance(row, list) and len(row) == len(document[0]) > 1 for row in document)
        and not any(isinstance(value, list | dict) for row in document for value in row)
    )


def _with_header(rows: list[list[Any]]) -> tuple[list[str], list[list[Any]]]:
    """Return the names of the columns and the rows. The first row is the header if a name stands above numbers."""
    first, *others = rows
    is_header = len({name for name in first if isinstance(name, str) and name}) == len(first) and any(
        not _is_number(name) and all(_is_number(row[at]) for row in others) for at, name in enumerate(first)
    )
    return (first, others) if is_header and others else ([f"column {at}" for at in range(1, len(first) + 1)], rows)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def nested_raw(document: Any, file: str, groups: str | None) -> list[RawTable]:
    """Return the tables nested in a JSON document. `groups` is the field with the groups that may see a record."""
    found = nested_tables(document, stem_of(Path(file)), groups)
    return [RawTable(table_of_records(records), file, name=name) for name, records in found.items()]


def table_of_records(records: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Convert records to a table in order of first appearance.

    Missing fields are null, nested objects become columns.
    """
    try:
        return _table(records)
    except UnicodeEncodeError:  # lone surrogates
        return _table([whole_value(record) for record in records])


def _table(records: Sequence[Mapping[str, Any]]) -> pa.Table:
    names: dict[str, None] = {}
    for record in records:
        if not record.keys() <= names.keys():
            names.update(dict.fromkeys(record))
    spend(CELL_STEPS * len(names) * len(records))
    columns = {name: [record.get(name) for record in records] for name in names}
    if any(dict in set(map(type, values)) for values in columns.values()):
        return _table([_flat(record) for record in records])
    return pa.table({name: column_of(values) for name, values in columns.items()})


def column_of(values: Sequence[Any]) -> pa.Array:
    """Convert Python values to an Arrow column. Mixed numbers become floats, other mixed values become text."""
    kinds = set(map(type, values)) - {type(None)}
    if list in kinds or tuple in kinds:
        return _lists(values)
    kind = pa.string() if kinds <= {str} else pa.float64() if float in kinds else None
    try:
        if any(kinds <= together for together in _TOGETHER):
            return pa.array(values, kind)
    except (pa.ArrowInvalid, OverflowError):  # an integer beyond 64 bits
        pass
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _lists(values: Sequence[Any]) -> pa.Array:
    try:
        held = [[value] if isinstance(value, str) else value for value in values]
        lists = pa.array(held, pa.list_(pa.string()))
        if not lists.flatten().null_count:
            return lists
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # items or values that are not texts
        pass
    return pa.array([_texts(value) for value in values], pa.list_(pa.string()))


def _flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _texts(value: Any) -> list[str] | None:
    if value is None:
        return None
    items: Iterable[Any] = value if isinstance(value, list | tuple) else [value]
    return [_text(item) for item in items if item is not None]


def _text(value: Any) -> str:
    if isinstance(value, str | date):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def holds_objects(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains nested records."""
    return bool(pa.types.is_struct(kind.value_type if is_list(kind) else kind))


def read_parquet(path: Path, columns: Mapping[str, str]) -> RawTable:
    """Read a table. Lines are row numbers from 1. Types and relations stay dictionaries, to save memory."""
    import pyarrow.parquet as pq

    if not path.exists():
        raise NotFoundError(f"{path}: no such file")
    content = pa.py_buffer(read_bytes(path)) if path.suffix == ".gz" else None
    try:
        schema = pq.read_schema(path if content is None else pa.BufferReader(content))
        roles = (edge_roles(schema.names, columns).get("relation"), node_roles(schema.names, columns).get("type"))
        words = [name for name in roles if name is not None and is_text(schema.field(name).type)]
        table = pq.ParquetFile(path if content is None else pa.BufferReader(content), read_dictionary=words).read()
    except (pa.ArrowInvalid, OSError) as broken:
        raise SourceError(f"not a whole Parquet file: {broken}", file=path) from broken
    if not table.num_rows:
        raise SourceError("the file contains no rows", file=path)
    return RawTable(table, str(path))
