"""Spreadsheets as tables of a graph: each table of a sheet is named after the sheet, or after its caption."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from clew.core.disk import list_files
from clew.core.errors import SourceError
from clew.documents.formats import open_document, xlsx
from clew.documents.formats.grid import Sheet, SheetPart, parts
from clew.documents.formats.packed import unpacked
from clew.store.sources.columns import unique_names
from clew.store.sources.files import kind_of, stem_of
from clew.store.sources.pieces import RawTable

SHEETS = frozenset({".xlsx", ".ods"})
"""File suffixes of spreadsheets."""
MAX_LINES = 5
"""Maximum mean number of lines of text beside the tables of a sheet. A spreadsheet with more text is a document."""


def are_tables(file: Path) -> bool:
    """Return whether all sheets with text contain tables, and little other text."""
    try:
        found = [list(parts(sheet)) for _, sheet in _sheets(file)]
    except SourceError:
        return False
    filled = [some for some in found if some]
    lines = [sum(len(part.rows) for part in some if not _is_table(part)) for some in filled]
    have_tables = all(any(map(_is_table, some)) for some in filled)
    return bool(filled) and have_tables and sum(lines) <= MAX_LINES * len(filled)


def with_workbooks(sources: Sequence[Path | str]) -> list[Path | str | RawTable]:
    """Replace spreadsheets, also in given folders, by their tables."""
    found: list[Path | str | RawTable] = []
    for source in sources:
        folder = Path(source)
        files = list_files(folder, subfolders=False).files if folder.is_dir() else [folder]
        books = [file for file in files if kind_of(file) in SHEETS and file.is_file()]
        found += [source] if len(books) < len(files) or not books else []
        found += [table for file in books for table in tables_of(file)]
    return found


def tables_of(file: Path) -> list[RawTable]:
    """Return the tables of a spreadsheet."""
    found, sheets = [], [(name, list(parts(sheet))) for name, sheet in _sheets(file)]
    for name, some in sheets:
        tables = [part for part in some if _is_table(part)]
        for part in tables:
            own = name if len(tables) == 1 else part.caption or name
            called = stem_of(file) if len(sheets) == len(tables) == 1 else own
            found.append(RawTable(_table(part), str(file), typed=False, name=called))
    if not found:
        raise SourceError("the spreadsheet contains no table", file=file)
    return found


def _is_table(part: SheetPart) -> bool:
    return part.kind == "table" and len(part.rows) > 1 and len(part.rows[0]) > 1


def _table(part: SheetPart) -> pa.Table:
    header, *rows = part.rows
    names = unique_names([" ".join(name.split()) or f"column {at}" for at, name in enumerate(header, 1)], "{} {}")
    cells = [[row[place] if place < len(row) else "" for row in rows] for place in range(len(names))]
    return pa.table([pa.array(column, pa.large_string()) for column in cells], names=names)


def _sheets(file: Path) -> Iterator[tuple[str, Sheet]]:
    with unpacked(file, "spreadsheet") as package:
        if kind_of(file) == ".xlsx":
            yield from ((name, sheet) for name, sheet in xlsx.sheets(package) if sheet is not None)
        else:
            for spreadsheet in package.xml("content.xml").iter("spreadsheet"):
                yield from open_document.sheets(spreadsheet)
