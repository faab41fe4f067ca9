"""reStructuredText reader: sections by underline style, lists, literal blocks, tables, contents of directives."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

from clew.documents.extracted import Extracted, cells_of
from clew.documents.formats.text_file import BlockCollector, Lines, read_text

ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{1,}\s*$")
LABEL = re.compile(r"\s*\.\. _`?[^`:]+`?:\s*$")
DIRECTIVE = re.compile(r"\s*\.\. (?:\|[^|]+\| )?([\w:.+-]+?)::(?:\s+(.*))?$")
OPTION = re.compile(r"\s*:[\w -]+:(?:\s|$)")
ITEM = re.compile(r"\s*(?:[-*+•]|(?:\d{1,3}|[a-zA-Z#])[.)]|\((?:\d{1,3}|[a-z])\))\s+\S")
GRID_RULE = re.compile(r"\s*\+(?:[-=]+\+)+\s*$")
SIMPLE_RULE = re.compile(r"\s*=+(?:\s+=+)+\s*$")
COLUMN = re.compile(r"=+")
SILENT = """
contents toctree image include raw highlight index meta sectnum default-role role unicode replace target-notes header
footer class container currentmodule module py:module automodule autoclass autofunction graphviz
"""
LEFT_OUT = frozenset(SILENT.split())
"""Directives that show no text."""

LITERAL = frozenset({"code-block", "code", "sourcecode", "math", "parsed-literal", "literalinclude", "productionlist"})
"""Directives with verbatim content."""
NOT_SHOWN = LITERAL | {"figure", "only", "versionadded", "versionchanged", "deprecated"}
"""Directives whose argument is a language, a file, a version or a condition."""


def read_restructured(file: Path) -> Extracted:
    """Read an RST file. Spans count characters of the file. The title is the first heading."""
    lines = Lines(read_text(file))
    scan = _RestructuredScan(lines)
    row = 0
    while row < len(lines):
        row = scan.take(row)
    return scan.found.extracted(scan.found.first_heading())


class _RestructuredScan:
    """State of one pass over the lines."""

    def __init__(self, lines: Lines) -> None:
        self.found = BlockCollector(lines)
        self._lines = lines
        self._styles: list[tuple[str, bool]] = []
        self._caption = ""

    def take(self, row: int) -> int:
        """Read the block that starts on a line. Return the line after it."""
        lines = self._lines
        line = lines[row]
        if not line.strip():
            return row + 1
        if GRID_RULE.match(line):
            return self._take_table(row, self._grid_end(row), _grid_cells)
        if SIMPLE_RULE.match(line):
            return self._take_table(row, self._simple_end(row), _simple_cells)
        if (taken := self._take_section(row)) is not None:
            return taken
        if line.startswith(":orphan:") or LABEL.match(line):
            return row + 1
        if directive := DIRECTIVE.match(line):
            return self._take_directive(row, directive.group(1).lower(), directive.group(2) or "")
        if line.lstrip().startswith(".. ") or line.strip() == "..":  # a comment, a footnote or a link target
            if re.match(r"\s*\.\. \[", line):
                self.found.paragraph(row, self._body_end(row))
            return self._body_end(row)
        return self._take_paragraph(row)

    def _take_section(self, row: int) -> int | None:
        """Read a title with a line of marks below it, and maybe another above."""
        lines = self._lines
        over = ADORNMENT.match(lines[row])
        title = row + 1 if over else row
        if title + 1 >= len(lines) or lines.is_blank(title):
            return row + 1 if over and len(lines[row].strip()) > 3 else None  # a horizontal rule
        under = ADORNMENT.match(lines[title + 1])
        text = lines[title].strip()
        if not under or (not over and lines[title][:1].isspace()) or not re.search(r"\w", text):
            return None
        length = len(lines[title + 1].strip())
        if length < min(4, len(text)) or (over and over.group(1) != under.group(1)) or length + 6 < len(text):
            return None
        style = (under.group(1), bool(over))
        if style not in self._styles:
            self._styles.append(style)
        self.found.heading(title, self._styles.index(style) + 1)
        return title + 2

    def _take_paragraph(self, first: int) -> int:
        lines = self._lines
        row = first + 1
        while not lines.is_blank(row) and not ITEM.match(lines[row]) and not self._starts_other(row):
            row += 1
        self.found.paragraph(first, row)
        if lines.whole(row - 1).rstrip().endswith("::"):
            return self._take_literal(row, lines.indent(first))
        return row

    def _starts_other(self, row: int) -> bool:
        line = self._lines[row]
        if DIRECTIVE.match(line) or GRID_RULE.match(line):
            return True
        return row + 1 < len(self._lines) and bool(ADORNMENT.match(self._lines[row + 1])) and not line[:1].isspace()

    def _take_literal(self, row: int, indent: int) -> int:
        """Add everything indented further as one verbatim paragraph."""
        last = self._indented_end(row, indent)
        if last > row:
            self.found.paragraph(row, last)
        return last

    def _body_end(self, row: int) -> int:
        """Return the line after the body of a directive or a comment."""
        return self._indented_end(row + 1, self._lines.indent(row))

    def _indented_end(self, row: int, indent: int) -> int:
        """Return the first line from `row` on that is neither blank nor indented further."""
        while row < len(self._lines) and (self._lines.is_blank(row) or self._lines.indent(row) > indent):
            row += 1
        return row

    def _take_directive(self, row: int, name: str, argument: str) -> int:
        lines = self._lines
        end = self._body_end(row)
        body = row + 1
        while body < end and OPTION.match(lines[body]):
            body += 1
        if name in LEFT_OUT:
            return end
        if name in {"list-table", "csv-table"}:
            rows = _csv_rows(lines, body, end) if name == "csv-table" else _list_rows(lines, body, end)
            header = [lines[n].partition(":header:")[2] for n in range(row + 1, body) if ":header:" in lines[n]]
            rows = [*(next(csv.reader([line], skipinitialspace=True), []) for line in header), *rows]
            self.found.table(body, end, cells_of(rows, argument))
            return end
        if name == "table":
            self._caption = argument
        elif argument and name not in NOT_SHOWN:
            stop = lines.span(row, row + 1)[1]
            self.found.add("paragraph", stop - len(argument.rstrip()), stop)
        if name in LITERAL:
            self.found.paragraph(body, end)
            return end
        return body  # read the body as text

    def _take_table(self, row: int, end: int, read: Callable[[list[str]], list[list[str]]]) -> int:
        caption, self._caption = self._caption, ""
        rows = read([self._lines.whole(number).strip() for number in range(row, end)])
        self.found.table(row, end, cells_of(rows, caption))
        return end

    def _grid_end(self, row: int) -> int:
        while row < len(self._lines) and self._lines[row].lstrip().startswith(("+", "|")):
            row += 1
        return row

    def _simple_end(self, row: int) -> int:
        """Return the line after the closing rule: the second rule before a blank line, or else the end of the text."""
        rules, last = 0, row
        while last < len(self._lines):
            if SIMPLE_RULE.match(self._lines[last]):
                rules += 1
                if rules > 1 and self._lines.is_blank(last + 1):
                    return last + 1
            elif self._lines.is_blank(last) and rules > 2:
                return last
            last += 1
        return last


def _grid_cells(lines: list[str]) -> list[list[str]]:
    """Return the rows between the rules, with the lines of a cell joined."""
    rows: list[list[str]] = []
    fresh = True
    for line in lines:
        if line.startswith("+"):
            fresh = True
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if fresh:
            rows.append(cells)
        else:
            rows[-1] = [f"{above} {cell}".strip() for above, cell in zip_longest(rows[-1], cells, fillvalue="")]
        fresh = False
    return rows


def _simple_cells(lines: list[str]) -> list[list[str]]:
    """Split at the columns of the rule. A line with an empty first column continues the row above."""
    starts = [run.start() for run in COLUMN.finditer(lines[0])]
    rows: list[list[str]] = []
    for line in lines[1:]:
        if not line or SIMPLE_RULE.match(line) or set(line) <= {"-", " "}:
            continue
        cells = [line[start:stop].strip() for start, stop in zip(starts, [*starts[1:], None], strict=True)]
        if rows and not cells[0]:
            rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    return rows


def _list_rows(lines: Lines, first: int, last: int) -> list[list[str]]:
    rows: list[list[str]] = []
    for row in range(first, last):
        line = lines.whole(row).strip()
        cell = re.match(r"(\* )?-(?: (.*))?$", line)
        if cell and cell.group(1):
            rows.append([cell.group(2) or ""])
        elif cell and rows:
            rows[-1].append(cell.group(2) or "")
        elif line and rows:
            rows[-1][-1] += f" {line}"
    return rows


def _csv_rows(lines: Lines, first: int, last: int) -> list[list[str]]:
    body = [lines.whole(row).strip() for row in range(first, last) if not lines.is_blank(row)]
    try:
        return list(csv.reader(body, skipinitialspace=True))
    except csv.Error:
        return [[line] for line in body]
