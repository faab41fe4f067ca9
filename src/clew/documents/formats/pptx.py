"""PPTX reader: a slide is a page, and its title a heading. Text, tables, diagrams and notes follow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from clew.documents.extracted import Extracted
from clew.documents.formats.builder import TextBuilder
from clew.documents.formats.grid import Cell, spread
from clew.documents.formats.packed import Package, unpacked, whole_number

TITLES = frozenset({"title", "ctrTitle"})
LEFT_OUT = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})
"""Placeholders that repeat on every slide."""


def read_pptx(file: Path) -> Extracted:
    """Read a PPTX file. Raise SourceError if it is damaged or encrypted."""
    builder = TextBuilder(page=0)
    with unpacked(file, "PPTX") as package:
        main = package.main_part("ppt/presentation.xml")
        related = package.related(main)
        slides = [related.get(slide.get("r:id", ""), ("", ""))[1] for slide in package.xml(main).iter("sldId")]
        for number, name in enumerate(slides, 1):
            builder.page = number
            if name in package.names:
                _add_slide(builder, package, name)
        title = package.core_title()
    opening = next((builder.text()[b.start : b.end] for b in builder.blocks if b.kind == "heading"), "")
    return builder.extracted(title, opening)


def _add_slide(builder: TextBuilder, package: Package, name: str) -> None:
    shapes = list(_shapes(package.xml(name)))
    for shape in shapes:
        if _placeholder(shape) in TITLES:
            builder.heading(" ".join(_paragraphs(shape)), 1)
    for shape in shapes:
        if _placeholder(shape) in TITLES | LEFT_OUT:
            continue
        if shape.tag == "graphicFrame":
            for table in shape.iter("tbl"):
                builder.table(_rows(table))
        else:
            for text in _paragraphs(shape):
                builder.paragraph(text)
    for kind, part in package.related(name).values():
        if kind == "diagramData" and part in package.names:
            for point in package.xml(part).iter("pt"):
                for text in _paragraphs(point):
                    builder.paragraph(text)
        elif kind == "notesSlide" and part in package.names:
            notes = [shape for shape in _shapes(package.xml(part)) if _placeholder(shape) not in LEFT_OUT]
            lines = [text for shape in notes for text in _paragraphs(shape)]
            if lines:
                builder.paragraph("Notes: " + " ".join(lines))


def _shapes(parent: Element) -> Iterator[Element]:
    """Yield shapes with text and frames with tables in order, including grouped shapes."""
    for child in parent:
        if child.tag in {"sp", "graphicFrame"}:
            yield child
        elif child.tag not in {"Fallback", "nvGrpSpPr", "grpSpPr"}:
            yield from _shapes(child)


def _placeholder(shape: Element) -> str:
    found = shape.find("nvSpPr/nvPr/ph")
    return "" if found is None else found.get("type", "body")


def _paragraphs(shape: Element) -> Iterator[str]:
    for paragraph in shape.iter("p"):
        text = "".join(
            " " if part.tag in {"br", "tab"} else part.text or ""
            for part in paragraph.iter()
            if part.tag in {"t", "br", "tab"}
        )
        if text.strip():
            yield text


def _rows(table: Element) -> list[list[str]]:
    return spread(
        [
            Cell(
                " ".join(_paragraphs(cell)),
                whole_number(cell.get("gridSpan", ""), 1),
                whole_number(cell.get("rowSpan", ""), 1),
            )
            for cell in row.iter("tc")
            if not {"hMerge", "vMerge"} & cell.attrib.keys()
        ]
        for row in table.iter("tr")
    )
