"""XLSX reader: a sheet is a page. Numbers are formatted as displayed, and formulas use their stored results."""

from __future__ import annotations

import datetime
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from clew.documents.extracted import Extracted
from clew.documents.formats.builder import TextBuilder
from clew.documents.formats.grid import Sheet, parts
from clew.documents.formats.packed import Package, strip_namespaces, unpacked, whole_number

REFERENCE = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7})")
ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")


def read_xlsx(file: Path) -> Extracted:
    """Read a workbook. Raise SourceError if it is damaged or encrypted."""
    builder = TextBuilder(page=0)
    notes = []
    with unpacked(file, "workbook") as package:
        for number, (name, sheet) in enumerate(sheets(package), 1):
            builder.page = number
            if sheet is None:
                notes.append(f"sheet {name or number!r} is hidden")
            else:
                add_sheet(builder, name, sheet)
        title = package.core_title()
    return builder.extracted(title, notes=notes)


def sheets(package: Package) -> Iterator[tuple[str, Sheet | None]]:
    """Yield the name and the cells of each sheet, with None for hidden sheets."""
    main = package.main_part("xl/workbook.xml")
    workbook = package.xml(main)
    related = package.related(main)
    strings, formats = _strings(package, related), _formats(package, related, workbook)
    for sheet in workbook.iter("sheet"):
        part = related.get(sheet.get("r:id", ""), ("", ""))[1]
        is_shown = sheet.get("state", "visible") == "visible"
        content = package.xml_bytes(part) if is_shown and part in package.names else b""
        read = _read_sheet(content, strings, formats) if content else Sheet()
        yield sheet.get("name", ""), read if is_shown else None


def add_sheet(builder: TextBuilder, name: str, sheet: Sheet) -> None:
    """Add the sheet's name as a heading, then its tables and texts. Skip an empty sheet."""
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
    return [_rich(item) for item in package.optional(name).findall("si")]


def _rich(element: Element) -> str:
    """Join runs of text, without the phonetic guides of East Asian cells."""
    plain = [element.findtext("t", "")] + [run.findtext("t", "") for run in element.findall("r")]
    return ESCAPED.sub(lambda code: chr(int(code.group(1), 16)), "".join(plain))


def _formats(package: Package, related: dict[str, tuple[str, str]], workbook: Element) -> list[Shown]:
    """Return the number formatter of each cell style."""
    styles = package.optional(next((name for kind, name in related.values() if kind == "styles"), ""))
    codes = dict(BUILT_IN)
    for code in styles.iter("numFmt"):
        codes[whole_number(code.get("numFmtId", ""))] = code.get("formatCode", "")
    properties = workbook.find("workbookPr")
    from_1904 = properties is not None and properties.get("date1904") in {"1", "true"}
    used = [whole_number(style.get("numFmtId", "")) for style in styles.findall("cellXfs/xf")]
    formatters = {code: shown_by(codes.get(code, ""), from_1904=from_1904) for code in set(used)}
    return [formatters[code] for code in used]


def _read_sheet(content: bytes, strings: list[str], formats: list[Shown]) -> Sheet:
    sheet = Sheet()
    row, column = 0, 0
    for event, element in ElementTree.iterparse(io.BytesIO(content), ("start", "end")):  # noqa: S314 - no entities
        tag = element.tag.rpartition("}")[2]
        if event == "start":
            if tag == "row":
                row, column = whole_number(element.get("r", "")) or row + 1, 0
        elif tag == "c":
            reference = element.get("r", "")
            row, column = _position(reference) if reference else (row, column + 1)
            text = _shown(element, strings, formats)
            if text:
                sheet.cells[row, column] = text
        elif tag == "row":
            element.clear()
        elif tag == "mergeCell":
            first, _, last = element.get("ref", "").partition(":")
            if last:
                sheet.merged.append((*_position(first), *_position(last)))
    return sheet


def _shown(cell: Element, strings: list[str], formats: list[Shown]) -> str:
    kind = cell.get("t", "n")
    value = cell.findtext(f"{cell.tag[:-1]}v", "")  # the tag is the namespace and "c"
    if kind == "s":
        return strings[int(value)] if value else ""
    if kind == "inlineStr":
        for part in cell.iter():
            strip_namespaces(part)
        return "".join(map(_rich, cell.findall("is")))
    if kind == "b":
        return "TRUE" if value == "1" else "FALSE"
    if kind != "n" or not value:
        return value
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        return value
    style = whole_number(cell.get("s", ""))
    return (formats[style] if style < len(formats) else general)(number)


def _position(reference: str) -> tuple[int, int]:
    found = REFERENCE.fullmatch(reference)
    if found is None:
        raise ValueError(reference)
    column = 0
    for letter in found.group(1):
        column = column * 26 + ord(letter) - 64
    return int(found.group(2)), column


BUILT_IN = {1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 14: "yyyy-mm-dd"}
BUILT_IN |= {15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm", 19: "h:mm:ss", 20: "h:mm", 21: "h:mm:ss"}
BUILT_IN |= {22: "yyyy-mm-dd h:mm", 37: "#,##0", 38: "#,##0", 39: "#,##0.00", 40: "#,##0.00", 48: "0.0E+0"}
BUILT_IN |= {45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss"}
LITERAL = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]')
QUOTED = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h|m|s)[^\]]*\]', re.IGNORECASE)
DIGITS = re.compile(r"[#0?][#0?,.]*")
EPOCH = datetime.datetime(1899, 12, 30)
EPOCH_1904 = datetime.datetime(1904, 1, 1)

Shown = Callable[[float], str]


def shown_by(code: str, *, from_1904: bool = False) -> Shown:
    """Return the number formatter of a format code."""
    first = code.split(";")[0]
    plain = QUOTED.sub("", first).lower()
    if not plain.strip() or "general" in plain or "@" in plain:
        return general
    if re.search(r"[ymdhs]", plain):
        return _dates(plain, EPOCH_1904 if from_1904 else EPOCH)
    if "e+" in plain or "e-" in plain or "/" in plain or not DIGITS.search(plain):
        return general
    return _numbers(first, plain)


def general(value: float) -> str:
    """Format a number in the shortest form that a sheet displays in full."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.10g}"


def _numbers(code: str, plain: str) -> Shown:
    found = DIGITS.search(QUOTED.sub(lambda quoted: "\0" * len(quoted.group()), code))
    assert found is not None
    pattern = found.group()
    whole, _, fraction = pattern.partition(".")
    decimals = len(re.findall(r"[0?#]", fraction))
    optional = len(fraction) - len(fraction.rstrip("#"))
    thousands = "," if re.search(r"[0#?],[0#?]", whole) else ""
    scale = 1000 ** (len(pattern) - len(pattern.rstrip(",")))
    before, after = _literals(code[: found.start()]), _literals(code[found.end() :])
    percent = "%" in plain
    after = after.replace("%", "")

    def shown(value: float) -> str:
        text = f"{abs(value) / scale * (100 if percent else 1):{thousands}.{decimals}f}"
        if optional and "." in text:
            cut = text.rstrip("0")
            text = (cut + "0" * max(0, decimals - optional - len(cut.partition(".")[2]))).rstrip(".")
        minus = "-" if value < 0 and re.search(r"[1-9]", text) else ""
        return f"{minus}{before}{text}{'%' if percent else ''}{after}".strip()

    return shown


def _literals(code: str) -> str:
    """Return the text around the digits of a format, such as a currency or a unit."""
    quoted_text = "".join(quoted or escaped or currency for quoted, escaped, currency in LITERAL.findall(code))
    outside = re.sub(r"_.|\*.|\[[^\]]*\]", "", LITERAL.sub("", code))
    return "".join(mark for mark in outside if mark in "$€£¥%") + quoted_text.strip("()")


def _dates(plain: str, epoch: datetime.datetime) -> Shown:
    has_year, has_day = "y" in plain, "d" in plain
    has_time = bool(re.search(r"[hs]", plain))
    has_month = "m" in (re.sub(r"h+:m+|m+:s+|\[m+\]", "", plain) if has_time else plain)

    def shown(value: float) -> str:
        try:
            moment = epoch + datetime.timedelta(seconds=round(value * 86400))
        except OverflowError:
            return general(value)
        clock = f"{moment:%H:%M:%S}" if moment.second or "s" in plain else f"{moment:%H:%M}"
        if "[" in plain:
            hours, seconds = divmod(round(value * 86400), 3600)
            return f"{hours}:{seconds // 60:02}:{seconds % 60:02}"
        if not (has_year or has_day or has_month):
            return clock
        if has_day and has_month and not has_year:
            day = f"{moment.day} {moment:%b}"
        elif has_day:
            day = f"{moment:%Y-%m-%d}"
        else:
            day = f"{moment:%b}" * has_month + " " * (has_month and has_year) + f"{moment:%Y}" * has_year
        return f"{day} {clock}" if has_time and (moment.hour or moment.minute or moment.second) else day

    return shown
