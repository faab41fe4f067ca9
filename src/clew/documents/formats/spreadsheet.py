"""CSV, TSV and XLSX: each sheet is a table; a workbook's sheets count as its pages."""

from __future__ import annotations

import csv
import datetime
import io
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from clew.core.errors import MissingExtraError, SourceError
from clew.documents.extracted import Extracted, TextBuilder
from clew.documents.formats.decoding import read_text

DELIMITERS = ",;\t|"
SAMPLE = 20


def read_separated(file: Path) -> Extracted:
    """A file of separated values, whatever separates them; the first row is the header."""
    text = read_text(file)
    lines = [line for line in text.splitlines()[: 4 * SAMPLE] if line.strip()]
    delimiter = "\t" if file.suffix.lower() == ".tsv" else _delimiter(lines[:SAMPLE])
    builder = TextBuilder()
    try:
        builder.table(list(csv.reader(io.StringIO(text), delimiter=delimiter)))
    except csv.Error as error:
        raise SourceError(f"the table cannot be read: {error}", file=file) from error
    if not builder.blocks:
        raise SourceError("the table is empty", file=file)
    return Extracted("", builder.text(), tuple(builder.blocks))


def read_workbook(file: Path) -> Extracted:
    """The values of every sheet, formulas as last computed."""
    try:
        import openpyxl
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError as error:
        raise MissingExtraError("openpyxl", "documents") from error
    builder = TextBuilder(page=0)
    try:
        workbook = openpyxl.load_workbook(file, read_only=True, data_only=True)
        for number, sheet in enumerate(workbook.worksheets, 1):
            builder.page = number
            builder.heading(sheet.title, 1)
            builder.table(list(_rows(sheet)))
        workbook.close()
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise SourceError(f"the workbook is damaged or encrypted ({type(error).__name__})", file=file) from error
    if not any(block.kind == "table" for block in builder.blocks):
        raise SourceError("the workbook holds no table", file=file)
    return Extracted("", builder.text(), tuple(builder.blocks), builder.page or 0)


def _rows(sheet: Any) -> Iterator[list[str]]:
    for row in sheet.iter_rows(values_only=True):
        yield [_written(value) for value in row]


def _written(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return str(value)


def _delimiter(lines: Sequence[str]) -> str:
    """The one that cuts the first lines into the same number of cells, the more cells the better."""

    def quality(delimiter: str) -> tuple[bool, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        return (len(set(counts)) == 1 and counts[0] > 1, min(counts, default=0))

    return max(DELIMITERS, key=quality)
