"""Read CSV, TSV and other delimited text with pyarrow threads, with the line number of every row."""

from __future__ import annotations

import csv
import io
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from clew.core.errors import SourceError
from clew.store.graph.tables import EDGE_COLUMNS, Piece, Problem
from clew.store.sources.columns import GENERAL_KEYS, KEY_ENDINGS, plain, unique_names
from clew.store.sources.files import SourceOptions, kind_of
from clew.store.sources.pieces import RawTable, as_edges

_SEPARATORS = ("\t", "|", ",", ";")
_HIDDEN = "\x1f"
"""Stands for a delimiter that belongs to the text while a file is parsed. It does not occur in text."""


@dataclass(frozen=True)
class Dialect:
    """Delimiter of a file, and whether quotation marks at the start of a field quote it."""

    separator: str
    quoted: bool
    rows: tuple[tuple[str, ...], ...] = ()
    """The first rows, including the header or first data row."""
    escaped: bool = False
    """Whether a quotation mark inside quotes is written \\", not doubled."""
    spaced: bool = False
    """Whether blanks around fields only align the columns."""
    loose: bool = False
    """Whether a delimiter before a blank belongs to the text: `4,Survey Directorate, Bahrain`."""

    @property
    def header(self) -> tuple[str, ...]:
        """The first row."""
        return self.rows[0]


def sniff(data: bytes, path: Path) -> Dialect:
    """Detect the delimiter that splits the first rows most evenly, and the quoting."""
    sample = data[: 1 << 16]
    cut = sample.rfind(b"\n")
    if len(data) > len(sample) and cut > 0:
        sample = sample[:cut]
    text = sample.decode("utf-8", errors="ignore")
    by_suffix = {".tsv": "\t", ".tab": "\t", ".csv": ","}.get(kind_of(path), "")
    best: tuple[tuple[float, int, int], Dialect] | None = None
    for index, separator in enumerate(_SEPARATORS):
        dialect = _dialect(text, sample, separator)
        rows = dialect.rows
        if not rows or len(rows[0]) < 2:
            continue
        agreeing = sum(len(row) == len(rows[0]) for row in rows)
        score = (agreeing / len(rows) + (separator == by_suffix), len(rows[0]), -index)
        if best is None or score > best[0]:
            best = score, dialect
    if best is None:
        return _with_rows(text, Dialect(",", True))  # one column
    return _dialect(text, data, best[1].separator)  # the sample may not show the quoting


def _dialect(text: str, data: bytes, separator: str) -> Dialect:
    """Split the first lines by a delimiter, with the quoting of the whole data.

    If quotation marks are doubled inside quotes, none follows a backslash or a blank and precedes plain text.
    """
    quoted, mark = _is_quoted(data, separator), re.escape(separator)
    escaped = quoted and re.search(rb'\\"(?!"| *(?:[\r\n%b]|\Z))' % mark.encode(), data) is not None
    dialect = _with_rows(text, Dialect(separator, quoted, escaped=escaped))
    if not quoted and any(len(row) > len(dialect.header) for row in dialect.rows):
        loose = _with_rows(_hidden(text.encode(), separator).decode(), dialect)
        if all(len(row) == len(dialect.header) for row in loose.rows):
            rows = tuple(tuple(field.replace(_HIDDEN, separator) for field in row) for row in loose.rows)
            return replace(loose, rows=rows, loose=True)
    after = [field for row in dialect.rows for field in row[1:] if field]
    is_set_out = bool(after) and all(field.startswith(" ") for field in after)
    if not is_set_out and not (quoted and re.search(rf'{mark} +"[^"\r\n{mark}]', text)):
        return dialect
    spaced = replace(dialect, spaced=True)
    return _with_rows(_without_blanks(text.encode(), spaced).decode(), spaced)


def _hidden(data: bytes, separator: str) -> bytes:
    """Replace the delimiters before blanks, which belong to the text."""
    return data.replace(separator.encode() + b" ", _HIDDEN.encode() + b" ")


def _without_blanks(data: bytes, dialect: Dialect) -> bytes:
    """Remove blanks around fields, except inside quotes. Line numbers stay unchanged."""
    edge = rb"[\n%b]" % re.escape(dialect.separator.encode())
    inside = rb'[^"\\]|\\.|""' if dialect.escaped else rb'[^"]|""'
    quotation = rb'"(?:%b)*+"' % inside if dialect.quoted else rb"(?!)"
    field = rb"(\A|%b) *(%b)? *(?=%b|\r|\Z)|(\A|%b) +| +(?=%b|\r|\Z)" % (edge, quotation, edge, edge, edge)
    return re.sub(field, rb"\1\2\3", data, flags=re.DOTALL)


def read_delimited(
    data: bytes, dialect: Dialect, file: str, names: Sequence[str] | None = None, *, skip_bad: bool = False
) -> tuple[RawTable, list[Problem]]:
    """Read every field as text. `names` are for files without a header. Also return the rows skipped by `skip_bad`."""
    header = names or _numbered([" ".join(name.split()) for name in dialect.header], file)
    if dialect.spaced:
        data = _without_blanks(data, dialect)
    if dialect.loose:
        data = _hidden(data, dialect.separator)
    table, bad = _parse(data, dialect, file, names, skip_bad)
    if dialect.loose:
        fields = [pc.replace_substring(column, _HIDDEN, dialect.separator) for column in table.columns]
        table = pa.table(fields, table.column_names)
    table = table.rename_columns(list(header))
    header_rows = int(names is None)
    newlines = data.count(b"\n") + (not data.endswith(b"\n"))
    if table.num_rows + header_rows == newlines:
        return RawTable(table, file, 1 + header_rows, typed=False), []
    every = record_lines(data, dialect)
    _refuse_open_quotation(data, dialect, file, every[-1] if every else 1)
    lines = every[header_rows:]
    kept = lines if not bad else [line for number, line in enumerate(lines, 1 + header_rows) if number not in bad]
    skipped = [Problem(reason, file, lines[number - 1 - header_rows]) for number, reason in sorted(bad.items())]
    places = pa.array(kept, pa.int64()) if len(kept) == table.num_rows else None
    return RawTable(table, file, 1 + header_rows, places, typed=False), skipped


def record_lines(data: bytes, dialect: Dialect) -> list[int]:
    """Return the first line of each record including the header, for files whose records and lines differ."""
    lines = []
    with _unlimited_fields():
        reader = _reader(io.StringIO(data.decode("utf-8"), newline=""), dialect)
        start = 1
        for row in reader:
            if row:
                lines.append(start)
            start = reader.line_num + 1
    return lines


def _refuse_open_quotation(data: bytes, dialect: Dialect, file: str, line: int) -> None:
    """Raise SourceError if the last record, which starts at `line`, ends within quotes: it may contain other rows."""
    last = data.decode("utf-8").split("\n", line - 1)[-1]
    with _unlimited_fields():
        try:
            list(_reader(io.StringIO(last, newline=""), dialect, strict=True))
        except csv.Error as wrong:
            if "unexpected end" in str(wrong):
                raise SourceError(
                    "a quotation mark is never closed: add the closing one", file=file, line=line
                ) from None


def _parse(
    data: bytes, dialect: Dialect, file: str, names: Sequence[str] | None, skip_bad: bool
) -> tuple[pa.Table, dict[int, str]]:
    """Return the table and the invalid rows by record number, counted from 1 including the header."""
    bad: dict[int, str] = {}
    short: set[int] = set()

    def remember(row: pcsv.InvalidRow) -> str:
        bad[row.number] = f"{row.actual_columns} fields instead of {row.expected_columns}"
        short.update({row.number} if row.actual_columns < row.expected_columns else ())
        return "skip"

    def parse(block: int, careful: bool) -> pa.Table:
        return pcsv.read_csv(
            pa.BufferReader(data),
            pcsv.ReadOptions(use_threads=not careful, block_size=block, column_names=names),
            pcsv.ParseOptions(
                delimiter=dialect.separator,
                quote_char='"' if dialect.quoted else False,
                escape_char="\\" if dialect.escaped else False,
                newlines_in_values=dialect.quoted,
                invalid_row_handler=remember if careful else None,
            ),
            pcsv.ConvertOptions(
                column_types=dict.fromkeys(names or dialect.header, pa.string()),
                strings_can_be_null=False,
                check_utf8=False,
            ),
        )

    whole = min(len(data) + 1, (1 << 31) - 1)
    try:
        try:
            return parse(min(1 << 22, whole), careful=False), bad
        except pa.ArrowInvalid as wrong:
            if "straddling" not in str(wrong):
                raise
            return parse(whole, careful=False), bad  # a record longer than a block
    except pa.ArrowInvalid as wrong:
        table = parse(whole, careful=True)  # in one thread, so that bad rows have numbers
        if not bad:
            raise SourceError(str(wrong), file=file) from wrong
        if skip_bad:
            return table, bad
        number, reason = min(bad.items())
        advice = f"quote fields with the separator {dialect.separator!r}"
        if number in short:
            advice = "add the missing ones, or close a quotation mark"
        raise SourceError(
            f"{reason}: {advice}, or add --skip-bad to skip such rows",
            file=file,
            line=record_lines(data, dialect)[number - 1],
        ) from wrong


def _numbered(header: Sequence[str], file: str) -> list[str]:
    """Return the header with numbers after repeated names: `Score`, `Score 2`. Raise SourceError for repeated keys."""
    for name, times in Counter(header).items():
        if times > 1 and plain(name) in GENERAL_KEYS:
            raise SourceError(f"the column {name!r} appears more than once: rename one", file=file, line=1)
    return unique_names(header, "{} {}")


def _is_quoted(data: bytes, separator: str) -> bool:
    """Return whether quotation marks quote fields.

    With commas they do. With other delimiters, they must enclose whole fields only, and either fields that need quotes
    or most fields: a song called "Heroes" keeps its quotation marks.
    """
    if b'"' not in data:
        return False
    if separator in ",;":
        return True
    start = rb'(?:\A|[\n%b])"' % re.escape(separator.encode())
    whole = rb'(?:[^"]|"")*+"(?=[\r\n%b]|\Z)' % re.escape(separator.encode())
    if re.search(start, re.sub(start + whole, b"", data)) is not None:
        return False
    enclosed = [field[:-1].partition(b'"')[2] for field in re.findall(start + whole, data)]
    special = (separator.encode(), b"\n", b'""')
    if any(mark in field for field in enclosed for mark in special):
        return True
    fields = data.count(separator.encode()) + data.count(b"\n") + 1
    return 2 * len(enclosed) > fields


def _with_rows(text: str, dialect: Dialect) -> Dialect:
    """Return the dialect with the first rows of a text."""
    with _unlimited_fields():
        first = itertools.islice(_reader(io.StringIO(text, newline=""), dialect), 50)
        return replace(dialect, rows=tuple(tuple(row) for row in first if row))


def _reader(
    stream: io.StringIO, dialect: Dialect, *, strict: bool = False
) -> Any:  # the standard library has no public name for it
    return csv.reader(
        stream,
        delimiter=dialect.separator,
        quoting=csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE,
        escapechar="\\" if dialect.escaped else None,
        strict=strict,
    )


@contextmanager
def _unlimited_fields() -> Iterator[None]:
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


_FEW = 20
"""Maximum rows of a file in which a relation need not repeat."""


def looks_like_triples(dialect: Dialect, path: Path) -> bool:
    """Return whether most rows have three fields and the first is data: its relation repeats, or the file is short."""
    widths = Counter(len(row) for row in dialect.rows)
    if len(dialect.header) != 3 or widths[3] * 2 <= len(dialect.rows):
        return False
    if any(plain(cell) in GENERAL_KEYS or plain(cell).endswith(KEY_ENDINGS) for cell in dialect.header):
        return False  # a header
    relations = Counter(row[1] for row in dialect.rows if len(row) == 3)
    first = relations[dialect.header[1]]
    return first > 1 or (len(dialect.rows) <= _FEW and kind_of(path) != ".csv")


def read_triples(data: bytes, dialect: Dialect, file: str, options: SourceOptions) -> tuple[Piece, list[Problem]]:
    """Return the edges of a triples file, and the skipped rows."""
    raw, skipped = read_delimited(data, dialect, file, EDGE_COLUMNS, skip_bad=options.skip_bad)
    return as_edges(raw, SourceOptions()), skipped
