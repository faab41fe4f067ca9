"""What is drawn on a page of pdfium: rules and pictures. The caller holds PDFIUM."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from clew.documents.formats.pdf_direct import POINTER, direct

MOST_OBJECTS = 20_000
"""Drawn objects looked at on one page; drawings and maps have more, tables do not."""
THIN = 3.0
"""Points below which a drawn rectangle is a rule."""
SMALL = 12.0
"""Points below which a drawn shape is a mark in a figure, not the frame of a cell."""
MOST_SIDES = 60
"""Sides above which a path is a curve or a drawing."""

_object_type = direct(raw.FPDFPageObj_GetType, ctypes.c_int, POINTER)
_object_bounds = direct(raw.FPDFPageObj_GetBounds, ctypes.c_int, POINTER, *[POINTER] * 4)

_Point = tuple[float, float]


def read_drawn(page: pdfium.PdfPage) -> tuple[list[list[float]], list[list[float]]]:
    """Rules (thin boxes, the sides of rectangles, straight strokes) and pictures: left, top, right, bottom each."""
    rules: list[list[float]] = []
    pictures: list[list[float]] = []
    edges = [ctypes.c_float() for _ in range(4)]
    pointers = [ctypes.addressof(edge) for edge in edges]
    seen = 0
    for item, matrix in _objects(page):
        seen += 1
        if seen > MOST_OBJECTS:
            return [], pictures
        kind = _object_type(item)
        if kind not in (raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_IMAGE) or not _object_bounds(item, *pointers):
            continue
        left, bottom, right, top = (edge.value for edge in edges)
        if matrix is not None:
            left, top, right, bottom = _moved(matrix, left, top, right, bottom)
        width, height = right - left, top - bottom
        if min(width, height) <= THIN:
            if max(width, height) > 2 * THIN:
                rules.append([left, top, right, bottom])
        elif kind == raw.FPDF_PAGEOBJ_IMAGE:
            pictures.append([left, top, right, bottom])
        elif max(width, height) > SMALL:
            rules.extend(_strokes(item, matrix))
    return rules, pictures


def _objects(page: pdfium.PdfPage) -> Iterator[tuple[Any, Any]]:
    """The objects of the page and those in its forms, with the matrix of the form."""
    for place in range(min(raw.FPDFPage_CountObjects(page.raw), MOST_OBJECTS)):
        item = raw.FPDFPage_GetObject(page.raw, place)
        if _object_type(item) == raw.FPDF_PAGEOBJ_FORM:
            matrix = raw.FS_MATRIX()
            raw.FPDFPageObj_GetMatrix(item, matrix)
            for inner in range(min(raw.FPDFFormObj_CountObjects(item), MOST_OBJECTS)):
                yield raw.FPDFFormObj_GetObject(item, inner), matrix
        else:
            yield item, None


def _strokes(path: Any, matrix: Any) -> Iterator[list[float]]:
    """The straight sides of a path that run along the page."""
    count = raw.FPDFPath_CountSegments(path)
    if count > MOST_SIDES:
        return
    own = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(path, own)
    x, y = ctypes.c_float(), ctypes.c_float()
    before: _Point | None = None
    begun: _Point | None = None
    for place in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, place)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        here = _point(own, x.value, y.value)
        here = here if matrix is None else _point(matrix, *here)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            begun = here
        sides: list[tuple[_Point | None, _Point | None]] = [(before, here)] if kind == raw.FPDF_SEGMENT_LINETO else []
        if raw.FPDFPathSegment_GetClose(segment):
            sides.append((here, begun))
        for start, end in sides:
            if start and end and min(abs(start[0] - end[0]), abs(start[1] - end[1])) < 0.5:
                yield [min(start[0], end[0]), max(start[1], end[1]), max(start[0], end[0]), min(start[1], end[1])]
        before = here


def _point(matrix: Any, x: float, y: float) -> tuple[float, float]:
    return matrix.a * x + matrix.c * y + matrix.e, matrix.b * x + matrix.d * y + matrix.f


def _moved(matrix: Any, left: float, top: float, right: float, bottom: float) -> tuple[float, float, float, float]:
    (ax, ay), (bx, by) = _point(matrix, left, top), _point(matrix, right, bottom)
    return min(ax, bx), max(ay, by), max(ax, bx), min(ay, by)
