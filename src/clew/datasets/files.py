"""Reading data-set files: plain or gzipped, JSON array or JSON lines, checked against a record type."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from clew.core.errors import NotFoundError, SourceError
from clew.core.texts import parse_json

R = TypeVar("R", bound=BaseModel)


def find_file(*choices: Path) -> Path:
    """The first of these files that exists, plain or with .gz."""
    for choice in choices:
        for file in (choice, choice.with_name(choice.name + ".gz")):
            if file.is_file():
                return file
    raise NotFoundError("no file " + " or ".join(str(choice) for choice in choices) + " (nor with .gz)")


def read_text(file: Path) -> str:
    """The whole text of a plain or gzipped file in UTF-8."""
    try:
        data = file.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"not UTF-8 text: {error}", file=file) from error
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"cannot be read: {error}", file=file) from error


def read_lines(file: Path) -> Iterator[tuple[int, str]]:
    """Every line that is not blank with its number; only newlines end a line."""
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            yield number, line.rstrip("\r")


def read_rows(file: Path, separator: str, columns: int) -> Iterator[tuple[int, list[str]]]:
    """Lines split into exactly so many columns; a run of tabs separates once."""
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
    """One JSON value."""
    return _parse(read_text(file), file, None)


def read_records(file: Path, record: type[R], inside: str | None = None) -> list[R]:
    """The records of a JSON array, of JSON lines, or of the array under `inside` in a JSON object."""
    text = read_text(file)
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
