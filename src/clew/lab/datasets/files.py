"""Read data-set files: plain or gzipped, JSON array or JSON lines, validated against a record type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from clew.core.errors import InputError, NotFoundError, SourceError
from clew.core.texts import parse_json
from clew.store.sources.files import read_utf8

R = TypeVar("R", bound=BaseModel)


def find_file(*choices: Path) -> Path:
    """Return the first path that exists, with or without .gz."""
    for choice in choices:
        for file in (choice, choice.with_name(choice.name + ".gz")):
            if file.is_file():
                return file
    raise NotFoundError("no file " + " or ".join(str(choice) for choice in choices) + " (nor with .gz)")


def refuse_split(name: str, path: Path, split: str | None) -> None:
    """Raise InputError if a split is given for a data set that has none."""
    if split is not None:
        raise InputError(f"{name} has no splits: write {name}:{path}")


def read_lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield each non-blank line with its number. Only newlines end a line."""
    for number, line in enumerate(read_utf8(file).decode().split("\n"), 1):
        if line.strip():
            yield number, line.rstrip("\r")


def read_rows(file: Path, separator: str, columns: int) -> Iterator[tuple[int, list[str]]]:
    """Yield lines split into exactly `columns` cells. Consecutive tabs count as one separator."""
    for number, line in read_lines(file):
        cells = line.split(separator)
        if len(cells) != columns and separator == "\t":
            cells = [cell for cell in cells if cell]
        if len(cells) != columns:
            raise SourceError(
                f"expected {columns} columns separated by {separator!r}, found {len(cells)}", file=file, line=number
            )
        yield number, cells


def read_json(file: Path) -> Any:
    """Read one JSON value."""
    return _parse(read_utf8(file).decode(), file, None)


def read_records(file: Path, record: type[R], inside: str | None = None) -> list[R]:
    """Read the records of a JSON array, of JSON lines, or of the array under `inside` in a JSON object."""
    text = read_utf8(file).decode()
    start = text.lstrip()[:1]
    values: list[tuple[int | None, Any]]
    if start == "[":
        values = [(None, value) for value in _parse(text, file, None)]
    elif inside is not None and start == "{" and f'"{inside}"' in text[:200]:
        values = [(None, value) for value in _parse(text, file, None)[inside]]
    else:
        lines = enumerate(text.split("\n"), 1)
        values = [(number, _parse(line, file, number)) for number, line in lines if line.strip()]
    return [_checked(value, record, file, line, place) for place, (line, value) in enumerate(values, 1)]


def _parse(text: str, file: Path, line: int | None) -> Any:
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        raise SourceError(f"not JSON: {error.msg}", file=file, line=line or error.lineno) from error


def _checked(value: Any, record: type[R], file: Path, line: int | None, place: int) -> R:
    try:
        return record.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the record"
        number = "" if line is not None else f"record {place}: "
        raise SourceError(f"{number}{where}: {first['msg']}", file=file, line=line) from error
