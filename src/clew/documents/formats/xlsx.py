"""XLSX: a sheet is a page; its tables, with numbers as shown and formulas as last computed."""

from __future__ import annotations

import io
import re
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from clew.core.errors import SourceError
from clew.documents.extracted import Extracted
from clew.documents.formats.builder import TextBuilder
from clew.documents.formats.grid import Sheet, parts
from clew.documents.formats.number_format import BUILT_IN, Shown, general, shown_by
from clew.documents.formats.packed import Package, strip_namespaces, unpacked

REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


def read_xlsx(file: Path) -> Extracted:
    """Raises SourceError for a damaged or encrypted workbook, and for one without cells."""
    builder = TextBuilder(page=0)
    notes = []
    with unpacked(file, "workbook") as package:
        main = package.main_part("xl/workbook.xml")
        workbook = package.xml(main)
        related = package.related(main)
        strings, formats = _strings(package, related), _formats(package, related, workbook)
        for number, sheet in enumerate(workbook.iter("sheet"), 1):
            builder.page = number
            name = related.get(sheet.get("r:id", ""), ("", ""))[1]
            if sheet.get("state", "visible") != "visible":
                notes.append(f"sheet {sheet.get('name', number)!r} is hidden")
            elif name in package.names:
                add_sheet(builder, sheet.get("name", ""), _read_sheet(package.xml_bytes(name), strings, formats))
        title = package.core_title()
    if not any(block.kind != "heading" for block in builder.blocks):
        raise SourceError("the workbook holds no table", file=file)
    return builder.extracted(title, notes=notes)


def add_sheet(builder: TextBuilder, name: str, sheet: Sheet) -> None:
    """The sheet's name as heading, then its tables and texts; an empty sheet adds nothing."""
    found = list(parts(sheet))
    if found:
        builder.heading(name, 1)
    for part in found:
        if part.kind == "table":
            builder.table(part.rows, part.caption)
        else:
            for row in part.rows:
                builder.paragraph(" ".join(row))


def _strings(package: Package, related: dict[str, tuple[str, str]]) -> list[str]:
    name = next((name for kind, name in related.values() if kind == "sharedStrings"), "")
    return [_rich(one) for one in package.optional(name).findall("si")]


def _rich(element: Element) -> str:
    """Runs of text, without the readings that East Asian cells carry beside them."""
    plain = [element.findtext("t", "")] + [run.findtext("t", "") for run in element.findall("r")]
    return ESCAPED.sub(lambda code: chr(int(code.group(1), 16)), "".join(plain))


def _formats(package: Package, related: dict[str, tuple[str, str]], workbook: Element) -> list[Shown]:
    """How each cell style shows numbers."""
    styles = package.optional(next((name for kind, name in related.values() if kind == "styles"), ""))
    codes = dict(BUILT_IN)
    for code in styles.iter("numFmt"):
        codes[_whole(code.get("numFmtId", ""))] = code.get("formatCode", "")
    properties = workbook.find("workbookPr")
    from_1904 = properties is not None and properties.get("date1904") in {"1", "true"}
    used = [_whole(style.get("numFmtId", "")) for style in styles.findall("cellXfs/xf")]
    known = {one: shown_by(codes.get(one, ""), from_1904=from_1904) for one in set(used)}
    return [known[one] for one in used]


def _read_sheet(content: bytes, strings: list[str], formats: list[Shown]) -> Sheet:
    sheet = Sheet()
    row, column = 0, 0
    for event, element in ElementTree.iterparse(io.BytesIO(content), ("start", "end")):  # noqa: S314 - no entities
        tag = element.tag.rpartition("}")[2]
        if event == "start":
            if tag == "row":
                row, column = _whole(element.get("r", "")) or row + 1, 0
        elif tag == "c":
            reference = element.get("r", "")
            row, column = _place(reference) if reference else (row, column + 1)
            text = _shown(element, strings, formats)
            if text:
                sheet.cells[row, column] = text
        elif tag == "row":
            element.clear()
        elif tag == "mergeCell":
            first, _, last = element.get("ref", "").partition(":")
            if last:
                sheet.merged.append((*_place(first), *_place(last)))
    return sheet


def _shown(cell: Element, strings: list[str], formats: list[Shown]) -> str:
    kind = cell.get("t", "n")
    value = cell.findtext(f"{cell.tag[:-1]}v", "")  # the tag ends in c, before it the namespace
    if kind == "s":
        return strings[int(value)] if value else ""
    if kind == "inlineStr":
        for part in cell.iter():
            strip_namespaces(part)
        return "".join(_rich(one) for one in cell.findall("is"))
    if kind == "b":
        return "TRUE" if value == "1" else "FALSE"
    if kind != "n" or not value:
        return value
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        return value
    style = _whole(cell.get("s", ""))
    return (formats[style] if style < len(formats) else general)(number)


def _place(reference: str) -> tuple[int, int]:
    found = REFERENCE.fullmatch(reference)
    if found is None:
        raise ValueError(reference)
    column = 0
    for letter in found.group(1):
        column = column * 26 + ord(letter) - 64
    return int(found.group(2)), column


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
