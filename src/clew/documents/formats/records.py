"""Readers for separated values with any delimiter, and for JSON.

A JSON list of flat records becomes a table. Other JSON becomes lines of key path and value.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.core.errors import SourceError
from clew.core.limits import spend
from clew.core.texts import parse_json
from clew.documents.extracted import Extracted
from clew.documents.formats.builder import TextBuilder
from clew.documents.formats.text_file import read_text

SAMPLE = 20
"""Number of rows that decide about the delimiter and the header. Some multiples of it decide about the width."""


def read_separated(file: Path) -> Extracted:
    """Read a table. The header is the first row with several cells. Rows above it become the caption."""
    from clew.store.sources.delimited import sniff  # imports pyarrow, which other formats do without

    text = read_text(file)
    lines = [line for line in text[:100_000].splitlines()[: 4 * SAMPLE] if line.strip()]
    delimiter = "\t" if file.suffix.lower() == ".tsv" else sniff("\n".join(lines[-SAMPLE:]).encode(), Path()).separator
    csv.field_size_limit(10_000_000)
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise SourceError(f"the table cannot be read: {error}", file=file) from error
    if not rows:
        raise SourceError("the table is empty", file=file)
    width = Counter(map(len, rows[: 10 * SAMPLE])).most_common(1)[0][0]
    filled = [sum(bool(cell.strip()) for cell in row) for row in rows[:SAMPLE]]
    first = next((index for index, count in enumerate(filled) if count > 1), 0) if width > 1 else 0
    builder = TextBuilder()
    builder.table(rows[first:], ". ".join(" ".join(row).strip() for row in rows[:first]))
    return builder.extracted()


def read_json(file: Path) -> Extracted:
    """Read a JSON file. Raise SourceError with the line of a syntax error."""
    try:
        content = parse_json(read_text(file))
    except json.JSONDecodeError as error:
        raise SourceError(f"the JSON is damaged: {error.msg}", file=file, line=error.lineno) from error
    builder = TextBuilder()
    _add(builder, content, ())
    title = content.get("title", content.get("name")) if isinstance(content, dict) else ""
    return builder.extracted(title if isinstance(title, str) else "")


def _add(builder: TextBuilder, value: Any, path: tuple[str, ...]) -> None:
    """Add a table, the entries of an object under their keys, or lines."""
    if _is_table(value):
        columns = list(dict.fromkeys(name for record in value for name in record))
        spend(len(columns) * len(value))
        rows = [[_written(record.get(name)) for name in columns] for record in value]
        builder.table([columns, *rows], ".".join(path))
    elif isinstance(value, dict) and any(map(_is_table, value.values())):
        for name, item in value.items():
            _add(builder, item, (*path, name))
    else:
        entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for name, item in entries or [("", value)]:
            builder.preformatted("\n".join(_lines(item, (*path, str(name)) if entries else path)))


def _is_table(value: Any) -> bool:
    """Return whether a value is a list of records without nested records or lists."""
    return (
        isinstance(value, list)
        and len(value) > 0
        and all(
            isinstance(record, dict) and record and not any(isinstance(cell, dict | list) for cell in record.values())
            for record in value
        )
    )


def _lines(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _lines(item, (*path, name))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for index, item in enumerate(value):
            yield from _lines(item, (*path, str(index)))
    else:
        text = ", ".join(map(_written, value)) if isinstance(value, list) else _written(value)
        if text:
            yield f"{'.'.join(path)}: {text}" if path else text


def _written(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
