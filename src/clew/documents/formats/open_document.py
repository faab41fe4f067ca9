"""Reader for ODT, ODS and ODP, which share one XML vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

from clew.core.errors import SourceError
from clew.core.limits import spend
from clew.documents.extracted import Extracted
from clew.documents.formats.builder import TextBuilder
from clew.documents.formats.docx import CAPTION
from clew.documents.formats.grid import MAX_SPAN, Cell, Sheet, spread
from clew.documents.formats.packed import Package, ancestors, text_of, unpacked, whole_number
from clew.documents.formats.xlsx import add_sheet

LEFT_OUT = frozenset(
    {
        "table-of-content", "alphabetical-index", "tracked-changes", "annotation", "forms", "sequence-decls",
        "illustration-index", "table-index", "user-index", "bibliography-index-source", "ruby-text", "object", "script",
        "desc", "title", "event-listeners", "settings", "bookmark-ref-dummy",
    }
)  # fmt: skip
INLINE_SPACE = frozenset({"s", "tab", "line-break"})
CELL_STEPS = 10
"""Steps of work for a cell of a sheet."""


def read_open_document(file: Path) -> Extracted:
    """Read an OpenDocument file. Raise SourceError if it is damaged or encrypted."""
    with unpacked(file, "OpenDocument file") as package:
        manifest = package.content("META-INF/manifest.xml") if "META-INF/manifest.xml" in package.names else b""
        if b"encryption-data" in manifest:
            raise SourceError("the file is encrypted: save it without a password", file=file)
        content = package.xml("content.xml")
        walk = _Walk(_Styles.of(content, package))
        for body in content.iter("body"):
            for kind in body:
                walk.body(kind)
        title = text_of(package.optional("meta.xml").find("meta/title"))
    return walk.builder.extracted(title, walk.title, walk.builder.first_heading())


@dataclass(frozen=True)
class _Styles:
    parents: dict[str, str]
    breaks: frozenset[str]
    """Styles whose paragraphs start a page."""
    numbered: dict[str, frozenset[int]]
    """Numbered levels by list style."""

    @staticmethod
    def of(content: Element, package: Package) -> _Styles:
        parents: dict[str, str] = {}
        numbered: dict[str, frozenset[int]] = {}
        breaks = set()
        for root in (content, package.optional("styles.xml")):
            for style in root.iter("style"):
                name = style.get("name", "")
                parents.setdefault(name, style.get("parent-style-name", ""))
                for properties in style.findall("paragraph-properties"):
                    if properties.get("break-before") == "page":
                        breaks.add(name)
            for style in root.iter("list-style"):
                levels = [
                    one.get("level", "") for one in style.findall("list-level-style-number") if one.get("num-format")
                ]
                numbered[style.get("name", "")] = frozenset(map(whole_number, levels))
        return _Styles(parents, frozenset(breaks), numbered)


class _Walk:
    def __init__(self, styles: _Styles) -> None:
        self.builder = TextBuilder()
        self.title = ""
        self._styles = styles
        self._number = ""
        self._after: list[Element] = []
        """Notes and text boxes inside the current paragraph."""

    def body(self, kind: Element) -> None:
        """Read a text, a spreadsheet or a presentation."""
        if kind.tag == "spreadsheet":
            for number, (name, sheet) in enumerate(sheets(kind), 1):
                self.builder.page = number
                add_sheet(self.builder, name, sheet)
        elif kind.tag in {"presentation", "drawing"}:
            for number, page in enumerate(kind.findall("page"), 1):
                self.builder.page = number
                self._slide(page)
        elif kind.tag == "text":
            paged = any(True for _ in kind.iter("soft-page-break")) or any(
                element.get("style-name", "") in self._styles.breaks for element in kind.iter("p")
            )
            self.builder.page = 1 if paged else None
            self._blocks(kind)
            self.builder.caption("")

    def _blocks(self, parent: Element, numbers: str = "", depth: int = 0) -> None:
        for child in parent:
            if child.tag in {"p", "h"}:
                self._paragraph(child)
            elif child.tag == "list":
                self._list(child, child.get("style-name", numbers), depth + 1)
            elif child.tag == "table":
                self._table(child)
            elif child.tag == "soft-page-break":
                self._break_page()
            elif child.tag not in LEFT_OUT:
                self._blocks(child, numbers, depth)

    def _list(self, element: Element, style: str, depth: int) -> None:
        numbered = depth in self._styles.numbered.get(style, ())
        for number, item in enumerate(element, 1):
            self._number = f"{number}. " if numbered else ""
            self._blocks(item, style, depth)
            self._number = ""

    def _paragraph(self, element: Element) -> None:
        style = element.get("style-name", "")
        if style in self._styles.breaks and self.builder.blocks:
            self._break_page()
        page = self.builder.page
        text = " ".join("".join(self._inline(element)).split())
        after, self._after = self._after, []
        if text and not _is_link(element):
            text, self._number = self._number + text, ""
            now, self.builder.page = self.builder.page, page
            self._add(element, style, text)
            self.builder.page = now
        for inner in after:
            self._blocks(inner)

    def _add(self, element: Element, style: str, text: str) -> None:
        based = ancestors(style, self._styles.parents)
        if element.tag == "h":
            self.builder.heading(text, max(1, whole_number(element.get("outline-level", ""), 1)))
        elif "Title" in based:
            self.title = self.title or text
            self.builder.heading(text, 1)
        elif len(text) < 300 and (CAPTION.match(text) or "Table" in based):
            self.builder.caption(text)
        else:
            self.builder.paragraph(text)

    def _inline(self, element: Element) -> Iterator[str]:
        yield element.text or ""
        for child in element:
            if child.tag in {"text-box", "note-body"}:
                self._after.append(child)
            elif child.tag == "soft-page-break":
                self._break_page()
            elif child.tag in INLINE_SPACE:
                yield " "
            elif child.tag == "note-citation" or child.tag in LEFT_OUT:
                pass
            else:
                yield from self._inline(child)
            yield child.tail or ""

    def _break_page(self) -> None:
        if self.builder.page is not None:
            self.builder.page += 1

    def _table(self, table: Element) -> None:
        caption, rows = self.builder.take_caption(), list(_rows(table))
        widest = max((sum(1 for _ in _cells_of(row)) for row, _ in rows), default=0)
        if widest < 2:  # one column: a frame around text, not a table
            self.builder.paragraph(caption)
            for row, _ in rows:
                for cell in _cells_of(row):
                    self._blocks(cell)
            return
        inner: list[Element] = []
        grid = spread([self._cell(cell, inner) for cell in _cells_of(row)] for row, _ in rows)
        self.builder.table(grid, caption, [is_header for _, is_header in rows])
        for one in inner:
            self._table(one)

    def _cell(self, cell: Element, inner: list[Element]) -> Cell:
        texts = []
        for part in cell.iter():
            if part.tag in {"p", "h"}:
                texts.append("".join(self._inline(part)))
                spend(1 + len(texts[-1]))
        self._after = []
        inner += cell.findall("table")
        return Cell(" ".join(texts), _span(cell, "number-columns-spanned"), _span(cell, "number-rows-spanned"))

    def _slide(self, page: Element) -> None:
        notes = page.find("notes")
        in_notes = set() if notes is None else set(notes.iter())
        shapes = [child for child in page.iter() if child.tag in {"frame", "custom-shape", "rect", "ellipse"}]
        shapes = [shape for shape in shapes if shape not in in_notes]
        title = next((shape for shape in shapes if shape.get("class") == "title"), None)
        if title is not None:
            text = " ".join("".join(self._inline(p)) for p in title.iter("p"))
            self.title = self.title or text
            self.builder.heading(text, 1)
        for shape in shapes:
            if shape is not title and shape.get("class") not in {"header", "footer", "date-time", "page-number"}:
                self._blocks(shape)
        self.builder.caption("")
        if notes is not None:
            lines = [
                "".join(self._inline(p)) for f in notes.iter("frame") if f.get("class") == "notes" for p in f.iter("p")
            ]
            text = " ".join(" ".join(lines).split())
            self.builder.paragraph(f"Notes: {text}" if text else "")


def _is_link(paragraph: Element) -> bool:
    """Return whether a paragraph is only a link into the same file, as in a table of contents."""
    link = paragraph.find("a")
    if link is None or not link.get("href", "").startswith("#"):
        return False
    return len(paragraph) == 1 and not (paragraph.text or "").strip() and not (link.tail or "").strip()


def _rows(table: Element, *, header: bool = False) -> Iterator[tuple[Element, bool]]:
    for child in table:
        if child.tag == "table-row":
            yield child, header
        elif child.tag in {"table-header-rows", "table-rows", "table-row-group"}:
            yield from _rows(child, header=header or child.tag == "table-header-rows")


def _cells_of(row: Element) -> Iterator[Element]:
    """Yield the cells of a row. Repeated cells are repeated, covered cells are skipped."""
    for cell in row:
        if cell.tag == "table-cell":
            for _ in range(_span(cell, "number-columns-repeated")):
                spend(1)
                yield cell


def sheets(spreadsheet: Element) -> Iterator[tuple[str, Sheet]]:
    """Yield the name and the cells of each sheet."""
    for table in spreadsheet.findall("table"):
        yield table.get("name", ""), _sheet(table)


def _sheet(table: Element) -> Sheet:
    """Return the filled cells. The empty margin of a sheet consists of repeated rows and columns."""
    sheet = Sheet()
    row = 0
    for line, _ in _rows(table):
        repeated = _span(line, "number-rows-repeated", 1 << 20)
        cells: list[tuple[int, str, Element]] = []
        column = 0
        for cell in line:
            if cell.tag not in {"table-cell", "covered-table-cell"}:
                continue
            times = _span(cell, "number-columns-repeated", 1 << 14)
            text = "" if cell.tag == "covered-table-cell" else " ".join(_shown(p) for p in cell.findall("p")).strip()
            if text:
                spend(CELL_STEPS * min(times, MAX_SPAN))
                cells += [(column + n, text, cell) for n in range(min(times, MAX_SPAN))]
            column += times
        if cells:
            spend(CELL_STEPS * min(repeated, MAX_SPAN) * len(cells))
            for below in range(min(repeated, MAX_SPAN)):
                for at, text, cell in cells:
                    sheet.cells[row + below, at] = text
                    _note_merge(sheet, cell, row + below, at)
        row += repeated
    return sheet


def _note_merge(sheet: Sheet, cell: Element, row: int, column: int) -> None:
    wide, high = _span(cell, "number-columns-spanned"), _span(cell, "number-rows-spanned")
    if wide > 1 or high > 1:
        sheet.merged.append((row, column, row + high - 1, column + wide - 1))


def _shown(paragraph: Element) -> str:
    return "".join(
        (" " if part.tag in INLINE_SPACE else part.text or "") + (part.tail or "")
        if part is not paragraph
        else part.text or ""
        for part in paragraph.iter()
        if part.tag not in LEFT_OUT
    )


def _span(element: Element, name: str, most: int = MAX_SPAN) -> int:
    return max(1, min(whole_number(element.get(name, ""), 1), most))
