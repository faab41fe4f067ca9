"""DOCX reader: headings by style or outline level, numbered lists, tables, footnotes, text boxes, page breaks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element

from clew.documents.extracted import Extracted
from clew.documents.formats.builder import TextBuilder
from clew.documents.formats.grid import Cell, spread
from clew.documents.formats.packed import Package, ancestors, unpacked, whole_number

CAPTION = re.compile(r"\s*table\s+\S+", re.IGNORECASE)
HEADING = re.compile(r"heading (\d)")
LONGEST_HEADING = 300
"""Maximum characters of a heading or caption. A longer paragraph is text, whatever its style."""
LONGEST_LABEL = 60
"""Paragraphs of text boxes are the labels of a drawing if all have fewer characters than this."""
LEFT_OUT = frozenset({"del", "moveFrom", "Fallback", "instrText", "delText", "rt", "pPr", "rPr", "annotationRef"})
"""Hidden elements: deleted text, field instructions, copies of text boxes for old programs."""


def read_docx(file: Path) -> Extracted:
    """Read a DOCX file. Raise SourceError if it is damaged or encrypted."""
    with unpacked(file, "DOCX") as package:
        main = package.main_part("word/document.xml")
        document = package.xml(main)
        walk = _DocxWalk(document, _Parts.of(package, main))
        for body in document.iter("body"):
            walk.blocks(body)
        walk.builder.caption("")
        title = package.core_title()
    return walk.builder.extracted(title, walk.title, walk.builder.first_heading())


@dataclass(frozen=True)
class _Style:
    name: str
    level: int
    list_name: str
    list_depth: int


@dataclass(frozen=True)
class _Parts:
    styles: dict[str, _Style]
    numbers: ListNumbers
    notes: dict[tuple[str, str], Element]

    @staticmethod
    def of(package: Package, main: str) -> _Parts:
        names = dict(package.related(main).values())
        notes = {}
        for kind in ("footnote", "endnote"):
            for note in package.optional(names.get(f"{kind}s", "")).iter(kind):
                if note.get("type") is None:  # a type marks separator lines
                    notes[kind, note.get("id", "")] = note
        styles = _styles(package.optional(names.get("styles", "")))
        return _Parts(styles, ListNumbers(_levels(package.optional(names.get("numbering", "")))), notes)


def _styles(root: Element) -> dict[str, _Style]:
    """Return styles by id, with properties inherited from base styles."""
    given = {style.get("styleId", ""): style for style in root.iter("style") if style.get("type") == "paragraph"}
    parents = {style_id: _value(style, "basedOn") for style_id, style in given.items()}
    styles = {}
    for style_id, style in given.items():
        line = [given[ancestor] for ancestor in ancestors(style_id, parents) if ancestor in given]
        lists = (_value(ancestor, "pPr/numPr/numId") for ancestor in line)
        depths = (_value(ancestor, "pPr/numPr/ilvl") for ancestor in line)
        styles[style_id] = _Style(
            _value(style, "name").lower(),
            next(filter(None, map(_own_level, line)), 0),
            next(filter(None, lists), ""),
            whole_number(next(filter(None, depths), "0")),
        )
    return styles


def _own_level(style: Element) -> int:
    outline = _value(style, "pPr/outlineLvl")
    if outline:
        return _outline_level(outline)
    name = _value(style, "name").lower()
    heading = HEADING.fullmatch(name)
    return int(heading.group(1)) if heading else int(name == "title")


def _levels(root: Element) -> dict[tuple[str, int], ListLevel]:
    abstract = {}
    for one in root.iter("abstractNum"):
        abstract[one.get("abstractNumId", "")] = {
            whole_number(level.get("ilvl", "0")): ListLevel(
                _value(level, "numFmt") or "decimal",
                _value(level, "lvlText"),
                whole_number(_value(level, "start") or "1"),
            )
            for level in one.iter("lvl")
        }
    return {
        (one.get("numId", ""), depth): level
        for one in root.iter("num")
        for depth, level in abstract.get(_value(one, "abstractNumId"), {}).items()
    }


def _value(element: Element, path: str) -> str:
    found = element.find(path)
    return "" if found is None else found.get("val", "")


@dataclass
class _ParagraphText:
    """The text of a paragraph, its text boxes and notes, and the page on which the text starts."""

    text: list[str] = field(default_factory=list)
    boxes: list[Element] = field(default_factory=list)
    notes: list[Element] = field(default_factory=list)
    page: int | None = None
    begun: bool = False


class _DocxWalk:
    """State of one pass over the body."""

    def __init__(self, document: Element, parts: _Parts) -> None:
        breaks = any(
            element.tag in {"lastRenderedPageBreak", "pageBreakBefore"} or _is_page_break(element)
            for element in document.iter()
        )
        self.builder = TextBuilder(page=1 if breaks else None)
        self.title = ""
        self._parts = parts
        self._fresh = False  # nothing has been added to the current page yet
        self._opened_by_type = iter([_value(one, "type") for one in document.iter("sectPr")][1:])

    def blocks(self, parent: Element) -> None:
        """Add the paragraphs and tables of a body, a cell or a text box."""
        for child in parent:
            if child.tag == "p":
                self._paragraph(child)
            elif child.tag == "tbl":
                self._table(child)
            elif child.tag not in LEFT_OUT:
                self.blocks(child)  # content controls, marked changes

    def _paragraph(self, element: Element) -> None:
        properties = element.find("pPr")
        style = self._parts.styles.get("" if properties is None else _value(properties, "pStyle"))
        if properties is not None and properties.find("pageBreakBefore") is not None:
            self._break_page()
        read = _ParagraphText(page=self.builder.page)
        self._collect(element, read, properties, style)
        self._end_paragraph(read, properties, style)
        self._boxes(read.boxes)
        for note in read.notes:
            self._note(note)
        ends_section = properties is not None and properties.find("sectPr") is not None
        if ends_section and next(self._opened_by_type, "") not in {"continuous", "nextColumn"}:
            self._break_page()

    def _boxes(self, boxes: list[Element]) -> None:
        """Add text boxes. The labels of a drawing become one paragraph."""
        texts = [
            " ".join("".join(part.text or "" for part in p.iter("t")).split()) for box in boxes for p in box.iter("p")
        ]
        if len(texts) > 1 and max(map(len, texts)) < LONGEST_LABEL:
            self.builder.paragraph("; ".join(filter(None, texts)))
            return
        for box in boxes:
            self.blocks(box)

    def _note(self, note: Element) -> None:
        read = _ParagraphText()
        for element in note.iter("p"):
            self._collect(element, read, None, None)
            read.text.append(" ")
        caption = self.builder.take_caption()
        self.builder.paragraph("".join(read.text))
        self.builder.caption(caption)

    def _end_paragraph(self, read: _ParagraphText, properties: Element | None, style: _Style | None) -> None:
        text = " ".join("".join(read.text).split())
        read.text = []
        if not text or (style is not None and style.name.startswith("toc ")):
            return
        now, self.builder.page = self.builder.page, read.page
        level = _level(properties, style) if len(text) <= LONGEST_HEADING else 0
        text = f"{self._number(properties, style)} {text}".strip()
        if style is not None and style.name == "title":
            self.title = self.title or text
        if level:
            self.builder.heading(text, level)
        elif len(text) < LONGEST_HEADING and CAPTION.match(text):
            self.builder.caption(text)
        else:
            self.builder.paragraph(text)
        self.builder.page = now

    def _number(self, properties: Element | None, style: _Style | None) -> str:
        own = None if properties is None else properties.find("numPr")
        if own is not None:
            return self._parts.numbers.next(
                _value(own, "numId") or (style.list_name if style else ""), whole_number(_value(own, "ilvl"))
            )
        if style is not None and style.list_name:
            return self._parts.numbers.next(style.list_name, style.list_depth)
        return ""

    def _collect(self, parent: Element, into: _ParagraphText, properties: Element | None, style: _Style | None) -> None:
        for child in parent:
            tag = child.tag
            if tag == "t":
                self._add_text(child.text or "", into)
            elif tag in {"tab", "br", "cr"}:
                into.text.append(" ")
                if _is_page_break(child):
                    self._end_paragraph(into, properties, style)
                    self._break_page()
                    into.begun = False
            elif tag == "noBreakHyphen":
                into.text.append("-")
            elif tag == "lastRenderedPageBreak":
                if not self._fresh:
                    self._break_page()
                self._fresh = False
            elif tag == "txbxContent":
                into.boxes.append(child)
            elif tag in {"footnoteReference", "endnoteReference"}:
                note = self._parts.notes.get((tag.removesuffix("Reference"), child.get("id", "")))
                into.notes += [] if note is None else [note]
            elif tag == "r" and child.find("rPr/vanish") is not None:
                continue
            elif tag not in LEFT_OUT:
                self._collect(child, into, properties, style)

    def _add_text(self, text: str, into: _ParagraphText) -> None:
        if text.strip():
            self._fresh = False
            if not into.begun:
                into.page, into.begun = self.builder.page, True
        into.text.append(text)

    def _break_page(self) -> None:
        if self.builder.page is not None:
            self.builder.page += 1
            self._fresh = True

    def _table(self, table: Element) -> None:
        caption, page = self.builder.take_caption(), self.builder.page
        rows = [list(_below(row, "tc")) for row in _below(table, "tr")]
        if max(map(len, rows), default=0) < 2:  # one column: a frame around text, not a table
            self.builder.paragraph(caption)
            for cell in (cell for row in rows for cell in row):
                self.blocks(cell)
            return
        grid, inner = self._cells(rows)
        headers = [row.find("trPr/tblHeader") is not None for row in _below(table, "tr")]
        now, self.builder.page = self.builder.page, page
        self.builder.table(grid, caption, headers)
        self.builder.page = now
        for label, one in inner:
            self.builder.caption(label)
            self._table(one)

    def _cells(self, rows: list[list[Element]]) -> tuple[list[list[str]], list[tuple[str, Element]]]:
        """Return the grid, with merged cells repeated, and the tables inside cells with the first cell of their row."""
        lines: list[list[str]] = []
        inner: list[tuple[str, Element]] = []
        for row in rows:
            line: list[str] = []
            for cell in row:
                read = _ParagraphText()
                for part in cell:
                    if part.tag not in {"tbl", "tcPr"}:
                        self._collect(part, read, None, None)
                        read.text.append(" ")
                text = "".join(read.text)
                merge = cell.find("tcPr/vMerge")
                if merge is not None and merge.get("val") != "restart" and lines:
                    text = lines[-1][len(line)] if len(line) < len(lines[-1]) else text
                text = " ".join((text, *(" ".join("".join(box.itertext()).split()) for box in read.boxes)))
                line += spread([[Cell(text, whole_number(_value(cell, "tcPr/gridSpan")) or 1)]])[0]
                inner += [(line[0], table) for table in cell.findall("tbl")]
            lines.append(line)
        return lines, inner


def _outline_level(outline: str) -> int:
    return 1 + whole_number(outline) if whole_number(outline) < 9 else 0


def _level(properties: Element | None, style: _Style | None) -> int:
    outline = "" if properties is None else _value(properties, "outlineLvl")
    if outline:
        return _outline_level(outline)
    return 0 if style is None else style.level


def _is_page_break(element: Element) -> bool:
    return element.tag == "br" and element.get("type") == "page"


def _below(parent: Element, tag: str) -> Iterator[Element]:
    """Yield the rows of a table or the cells of a row, including wrapped elements."""
    for child in parent:
        if child.tag == tag:
            yield child
        elif child.tag in {"sdt", "sdtContent", "ins", "customXml", "smartTag"}:
            yield from _below(child, tag)


ROMAN = {1000: "m", 900: "cm", 500: "d", 400: "cd", 100: "c", 90: "xc", 50: "l", 40: "xl", 10: "x", 9: "ix"}
ROMAN |= {5: "v", 4: "iv", 1: "i"}
HOLE = re.compile(r"%(\d)")


def written(number: int, style: str) -> str:
    """Format a number in a list style: 3, c, iii."""
    if style.lower().endswith("letter"):
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 % 8 + 1)
    elif style.lower().endswith("roman"):
        text, left = "", number % 4000
        for value, letters in ROMAN.items():
            text += letters * (left // value)
            left %= value
    else:
        return str(number)
    return text.upper() if style.startswith("upper") else text


@dataclass(frozen=True, slots=True)
class ListLevel:
    """Numbering of one list level: number style, text pattern and first number."""

    style: str
    pattern: str
    start: int = 1


@dataclass
class ListNumbers:
    """Counts the paragraphs of each list. A new item resets the levels below it."""

    levels: dict[tuple[str, int], ListLevel]
    _counts: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))

    def next(self, name: str, depth: int) -> str:
        """Return the number of the next paragraph on a list level. Empty for bullets."""
        level = self.levels.get((name, depth))
        if level is None:
            return ""
        counts = self._counts[name]
        counts[depth] = counts.get(depth, level.start - 1) + 1
        for deeper in [other for other in counts if other > depth]:
            del counts[deeper]
        if level.style in {"bullet", "none"}:
            return ""

        def shown(hole: re.Match[str]) -> str:
            at = int(hole.group(1)) - 1
            above = self.levels.get((name, at), level)
            return written(counts.get(at, above.start), above.style)

        return HOLE.sub(shown, level.pattern)
