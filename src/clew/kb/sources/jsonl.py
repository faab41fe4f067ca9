"""JSON lines (one object a line), and JSON files that hold a list of objects or a graph of nodes and edges."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from clew.errors import SourceError
from clew.kb.problems import Problem
from clew.kb.sources.files import line_at
from clew.kb.sources.pieces import RawTable

_TOGETHER: tuple[set[type], ...] = ({str}, {int, float}, {bool}, {date}, {datetime})
_EDGE_LISTS = ("edges", "links", "relationships")


def read_json_lines(data: bytes, file: str, *, skip_bad: bool = False) -> tuple[RawTable, list[Problem]]:
    """One row per line; nested objects become columns named with a dot."""
    records: list[Mapping[str, Any]] = []
    lines: list[int] = []
    skipped: list[Problem] = []
    decode = json.JSONDecoder().decode
    for number, line in enumerate(data.split(b"\n"), 1):
        text = line.strip()
        if not text:
            continue
        try:
            record = decode(text.decode("utf-8"))
        except json.JSONDecodeError as broken:
            problem = Problem(f"not JSON: {broken.msg} at character {broken.pos + 1}", file, number)
        else:
            if isinstance(record, dict):
                records.append(record)
                lines.append(number)
                continue
            problem = Problem(f"expected a JSON object, found {type(record).__name__}", file, number)
        if not skip_bad:
            raise SourceError(problem.message, file=file, line=number)
        skipped.append(problem)
    table = table_of_records(records)
    if lines == list(range(1, len(lines) + 1)):
        return RawTable(table, file), skipped
    return RawTable(table, file, lines=pa.array(lines, pa.int64())), skipped


def read_json(data: bytes, file: str) -> list[RawTable]:
    """The tables of a JSON document: a list of objects, or an object with lists under nodes and edges (or links)."""
    try:
        document = json.loads(data)
    except json.JSONDecodeError as broken:
        raise SourceError(
            f"not JSON: {broken.msg}; a file with one object a line should be called .jsonl",
            file=file,
            line=line_at(data, broken.pos),
        ) from broken
    if isinstance(document, dict):
        parts = [document.get("nodes"), *(document.get(name) for name in _EDGE_LISTS)]
    else:
        parts = [document]
    tables = [
        RawTable(table_of_records(part), file)
        for part in parts
        if isinstance(part, list) and part and all(isinstance(record, dict) for record in part)
    ]
    if not tables:
        raise SourceError("expected a list of objects, or an object with lists named nodes and edges", file=file)
    return tables


def table_of_records(records: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Columns in order of first appearance; a missing field is null."""
    flat = [_flat(record) if any(isinstance(v, dict) for v in record.values()) else record for record in records]
    names: dict[str, None] = {}
    for record in flat:
        if not record.keys() <= names.keys():
            names.update(dict.fromkeys(record))
    return pa.table({name: column_of([record.get(name) for record in flat]) for name in names})


def column_of(values: Sequence[Any]) -> pa.Array:
    """An Arrow column of Python values; where kinds differ, numbers become floats and anything else becomes text."""
    kinds = {type(value) for value in values if value is not None}
    if list in kinds or tuple in kinds:
        return pa.array([_texts(value) for value in values], pa.list_(pa.string()))
    if not any(kinds <= together for together in _TOGETHER):
        return pa.array([None if value is None else _text(value) for value in values], pa.string())
    try:
        kind = pa.string() if kinds <= {str} else pa.float64() if float in kinds else None
        return pa.array(values, kind)
    except (pa.ArrowInvalid, OverflowError):  # an integer beyond 64 bits
        return pa.array([None if value is None else _text(value) for value in values], pa.string())


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
