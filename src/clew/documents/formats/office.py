"""DOCX and spreadsheets."""

from __future__ import annotations

import csv
import datetime
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from clew.core.errors import MissingExtraError, SourceError
from clew.documents.extracted import Extracted, TextBuilder
from clew.documents.formats.text import read_text

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
CAPTION = re.compile(r"\s*table\s+\S+", re.IGNORECASE)


def read_docx(file: Path) -> Extracted:
    """Raises SourceError for a damaged or encrypted file."""
    try:
        import docx
        from docx.opc.exceptions import PackageNotFoundError
        from docx.table import Table
        from lxml.etree import XMLSyntaxError
    except ImportError as error:
        raise MissingExtraError("python-docx", "documents") from error
    try:
        document = docx.Document(str(file))
    except (PackageNotFoundError, zipfile.BadZipFile, KeyError, ValueError, XMLSyntaxError) as error:
        encrypted = file.read_bytes()[:4] == b"\xd0\xcf\x11\xe0"  # an encrypted DOCX is wrapped in the old container
        why = "is encrypted, or is an old .doc: save it as .docx without a password" if encrypted else "is damaged"
        raise SourceError(f"the DOCX {why} ({type(error).__name__})", file=file) from error
    builder = TextBuilder(page=1 if _has_pages(document) else None)
    caption = ""
    for item in document.iter_inner_content():
        if isinstance(item, Table):
            builder.table([[cell.text for cell in row.cells] for row in item.rows], caption)
            caption = ""
            continue
        builder.paragraph(caption)  # it was none: no table came after it
        caption = item.text if CAPTION.match(item.text) and len(item.text) < 300 else ""
        if not caption:
            _add_paragraph(builder, item.style.name if item.style is not None else "", item.text)
        if builder.page is not None:
            builder.page += _breaks(item._p)
    builder.paragraph(caption)
    core = document.core_properties.title or ""
    text = builder.text()
    first = next((text[block.start : block.end] for block in builder.blocks if block.kind == "heading"), "")
    if not text:
        raise SourceError("the DOCX holds no text", file=file)
    return Extracted(core or first, text, tuple(builder.blocks), builder.page or 0)


def _add_paragraph(builder: TextBuilder, style: str, text: str) -> None:
    heading = re.fullmatch(r"heading (\d)", style.lower())
    if style.lower() == "title" or heading:
        builder.heading(text, int(heading.group(1)) if heading else 1)
    else:
        builder.paragraph(text)


def _has_pages(document: Any) -> bool:
    return _breaks(document.element.body) > 0


def _breaks(element: Any) -> int:
    """Page breaks set by the author or noted by the word processor when it last laid the text out."""
    set_by_author = sum(1 for found in element.iter(f"{WORD}br") if found.get(f"{WORD}type") == "page")
    noted = sum(1 for _ in element.iter(f"{WORD}lastRenderedPageBreak"))
    return max(set_by_author, noted)


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
