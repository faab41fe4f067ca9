"""Read the words, rules and images of a page with pdfium. The caller must lock PDFIUM.

A call through ctypes takes about a microsecond. So boxes are fetched only for the first and last letter of each word,
and fonts once per text object.
"""

from __future__ import annotations

import ctypes
import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pypdfium2 as pdfium
import pypdfium2.raw as raw
from numpy.typing import NDArray

from clew.documents.formats.pdf_lines import THIN, Box, Font, PrintedWord

MAX_CHARACTERS = 100_000
"""Maximum number of characters of a page. A printed page has about 3,000."""
MONOSPACED = re.compile(
    r"mono|courier|typewriter|consol|menlo|cmtt|sftt|cmsltt|cmitt|ectt|\btt\b|nimbusmon|inconsol|terminal", re.I
)
BOLD = re.compile(r"bold|black|heavy|cmbx|cmssbx|sfbx|sfsx|ecbx|-medi\b|demi|[-_]bd|cmb\d", re.I)
WORD = re.compile(r"[^\s\x00-\x1f\ufffe\u00a0]+[\ufffe\x02]?|[\ufffe\x02]")
PLAIN = str.maketrans(
    {chr(code): None for code in (*range(0xE000, 0xF900), 0xFFFD, 0x200B)}
    | dict.fromkeys("\uf0b7\uf0a7\uf0d8\uf0fc\uf076\uf02d", "•")
    | {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "\ufffe": "-", "\x02": "-"}
)
"""Replaces ligatures and line-end hyphens by letters, and removes symbols of private fonts."""
SWAPPED = {0x100 * code: chr(code) for code in (*range(0x41, 0x5B), *range(0x61, 0x7B))} | {0xCF00: "fi", 0xD200: "fl"}
"""Letters of ligatures that pdfium returns for some fonts with swapped bytes."""
ACCENT = re.compile(r"([¨ˇ˚])([^\W\d_])|(?<=\w)(´)([aeiouAEIOU])")
ACCENTS = {"¨": "\u0308", "ˇ": "\u030c", "˚": "\u030a", "´": "\u0301"}
"""Accents that TeX prints before their letter."""


@dataclass(frozen=True, slots=True)
class PageContents:
    """Printed contents of a page: words in file order, rules, and whether an image covers much of it."""

    width: float
    height: float
    words: list[PrintedWord]
    rules: list[Box]
    pictured: bool
    cut: bool = False
    """Whether the page has more characters than the limit."""


@dataclass(frozen=True, slots=True)
class View:
    """Maps file coordinates to points from the top left of the displayed page."""

    left: float
    bottom: float
    right: float
    top: float
    quarter_turns: int

    def boxes(self, corners: NDArray[Any]) -> NDArray[np.float64]:
        """Convert (left, top, right, bottom) rectangles of the file to (x0, top, x1, bottom) on the page."""
        x, y = corners[:, [0, 2]], corners[:, [1, 3]]
        across, down = (
            (x - self.left, self.top - y),
            (y - self.bottom, x - self.left),
            (self.right - x, y - self.bottom),
            (self.top - y, self.right - x),
        )[self.quarter_turns]
        return np.column_stack([across.min(1), down.min(1), across.max(1), down.max(1)]).astype(np.float64)


POINTER = ctypes.c_void_p


def direct(function: Any, result: Any, *arguments: Any) -> Any:
    """Return a library function without the checks of pypdfium2, which take as long as the call."""
    return ctypes.CFUNCTYPE(result, *arguments)(ctypes.cast(function, POINTER).value or 0)


_loose_box = direct(raw.FPDFText_GetLooseCharBox, ctypes.c_int, POINTER, ctypes.c_int, POINTER)
_text_object = direct(raw.FPDFText_GetTextObject, POINTER, POINTER, ctypes.c_int)


def read_sheet(page: pdfium.PdfPage, one_width: set[str]) -> PageContents:
    """Read the words and rules of a page. Add the document's monospaced fonts to `one_width`.

    The caller must lock PDFIUM.
    """
    view = _view(page)
    text_page = page.get_textpage()
    try:
        count = text_page.count_chars()
        words = _words(text_page.raw, min(count, MAX_CHARACTERS), view)
        words = with_monospaced(words, one_width)
    finally:
        text_page.close()
    width, height = page.get_size()
    boxes, pictures = read_drawn(page)
    rules, covered = [], 0.0
    if pictures:
        shown = view.boxes(np.array(pictures))
        covered = sum((x1 - x0) * (bottom - top) for x0, top, x1, bottom in shown.tolist())  # scans may be strips
    if boxes:
        rules = [Box(*box) for box in view.boxes(np.array(boxes)).tolist()]
    return PageContents(width, height, words, rules, covered > 0.1 * width * height, count > MAX_CHARACTERS)


def _view(page: pdfium.PdfPage) -> View:
    rectangle = raw.FS_RECTF()
    if not raw.FPDF_GetPageBoundingBox(page.raw, rectangle):
        width, height = page.get_size()
        return View(0, 0, width, height, 0)
    return View(rectangle.left, rectangle.bottom, rectangle.right, rectangle.top, page.get_rotation() // 90)


def _words(text_page: Any, count: int, view: View) -> list[PrintedWord]:
    text = _characters(text_page, count)
    spans = [(match.start(), match.end()) for match in WORD.finditer(text)]
    if not spans:
        return []
    handle = ctypes.cast(text_page, POINTER).value
    ends = np.array(spans) - [0, 1]
    corners = (ctypes.c_float * (4 * ends.size))()
    address = ctypes.addressof(corners)
    for index, character in enumerate(ends.ravel().tolist()):
        _loose_box(handle, character, address + 16 * index)
    firsts_lasts = view.boxes(np.ctypeslib.as_array(corners).reshape(-1, 4))  # left, top, right, bottom
    first, last = firsts_lasts[0::2], firsts_lasts[1::2]
    boxes = np.column_stack([np.minimum(first, last)[:, :2], np.maximum(first, last)[:, 2:]]).tolist()
    fonts: dict[int | None, Font] = {}
    words = []
    for (start, end), (x0, top, x1, bottom) in zip(spans, boxes, strict=True):
        drawn = text[start:end].translate(PLAIN)
        if not drawn:
            continue
        if not drawn.isascii():
            drawn = mended(drawn)
        owner = _text_object(handle, start)
        if owner not in fonts:
            fonts[owner] = _font(text_page, start, view)
        words.append(PrintedWord(drawn, x0, top, x1, bottom, fonts[owner]))
    return words


def with_monospaced(words: list[PrintedWord], one_width: set[str]) -> list[PrintedWord]:
    """Mark words in fonts whose letters all have the same width as monospaced."""
    widths: dict[str, dict[str, float]] = defaultdict(dict)
    for word in words:
        if not word.font.mono and not word.font.sideways and len(word.text) > 2:
            wide = (word.x1 - word.x0) / len(word.text) / max(word.font.size, 1.0)
            widths[word.font.name][word.text] = wide
    for name, found in widths.items():
        if len(found) < 6 or max(found.values()) - min(found.values()) > 0.03 * max(found.values()):
            continue
        letters = set("".join(found).lower())
        if not letters.isdisjoint("il") and not letters.isdisjoint("mw"):  # digits have the same width in most fonts
            one_width.add(name)
    if one_width.isdisjoint(widths):
        return words
    fonts = {word.font: word.font._replace(mono=True) for word in words if word.font.name in one_width}
    return [word._replace(font=fonts.get(word.font, word.font)) for word in words]


def mended(word: str) -> str:
    """Repair the ligatures ("o昀昀er") and accents ("Gr¨un") of a word."""
    others = [ord(letter) for letter in word if not letter.isascii()]
    if all(code in SWAPPED for code in others) and re.search(r"[a-z]", word):
        return word.translate(SWAPPED)
    return ACCENT.sub(_accented, word)


def _accented(found: re.Match[str]) -> str:
    accent, letter = found[1] or found[3], found[2] or found[4]
    composed = unicodedata.normalize("NFC", letter + ACCENTS[accent])
    return composed if len(composed) == 1 else found[0]


def _characters(text_page: Any, count: int) -> str:
    """Return one character per index of the text page, in pdfium's order."""
    buffer = ctypes.create_string_buffer(2 * count + 2)
    written = raw.FPDFText_GetText(text_page, 0, count, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)))
    text = buffer.raw[: 2 * max(written - 1, 0)].decode("utf-16-le", "replace")
    if len(text) == count:
        return text
    codes = (raw.FPDFText_GetUnicode(text_page, index) for index in range(count))  # characters beyond 16 bits
    return "".join(chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else " " for code in codes)


def _font(text_page: Any, index: int, view: View) -> Font:
    matrix = raw.FS_MATRIX()
    size = raw.FPDFText_GetFontSize(text_page, index)
    sideways = False
    if raw.FPDFText_GetMatrix(text_page, index, matrix):
        size *= math.hypot(matrix.c, matrix.d) or 1.0
        along, across = (matrix.a, matrix.b) if view.quarter_turns % 2 == 0 else (matrix.b, matrix.a)
        sideways = abs(across) > 0.3 * abs(along)
    flags = ctypes.c_int()
    name = ctypes.create_string_buffer(256)
    raw.FPDFText_GetFontInfo(text_page, index, name, 256, flags)
    prefix, _, plain = name.value.decode("utf-8", "replace").partition("+")
    plain = plain or prefix
    bold = bool(BOLD.search(plain))  # pdfium only guesses the weight from the stems
    mono = bool(MONOSPACED.search(plain)) or bool(flags.value & 1)
    return Font(plain, round(size, 1), bold, mono, sideways)


MAX_OBJECTS = 20_000
"""Maximum number of drawn objects of a page. Drawings and maps have more, tables do not."""
SMALL = 12.0
"""Maximum size of a mark in a figure, in points. Larger shapes may frame a cell."""
MAX_SIDES = 60
"""Maximum number of sides of a path. Paths with more sides are curves or drawings."""

_object_type = direct(raw.FPDFPageObj_GetType, ctypes.c_int, POINTER)
_object_bounds = direct(raw.FPDFPageObj_GetBounds, ctypes.c_int, POINTER, *[POINTER] * 4)

_Point = tuple[float, float]


def read_drawn(page: pdfium.PdfPage) -> tuple[list[list[float]], list[list[float]]]:
    """Return rules (thin boxes, sides of rectangles, straight strokes) and images, each as left, top, right, bottom."""
    rules: list[list[float]] = []
    pictures: list[list[float]] = []
    edges = [ctypes.c_float() for _ in range(4)]
    pointers = [ctypes.addressof(edge) for edge in edges]
    seen = 0
    for item, matrix in _objects(page):
        seen += 1
        if seen > MAX_OBJECTS:
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
    """Yield the objects of the page and of its forms, with the matrix of the form."""
    for index in range(min(raw.FPDFPage_CountObjects(page.raw), MAX_OBJECTS)):
        item = raw.FPDFPage_GetObject(page.raw, index)
        if _object_type(item) == raw.FPDF_PAGEOBJ_FORM:
            matrix = raw.FS_MATRIX()
            raw.FPDFPageObj_GetMatrix(item, matrix)
            for inner in range(min(raw.FPDFFormObj_CountObjects(item), MAX_OBJECTS)):
                yield raw.FPDFFormObj_GetObject(item, inner), matrix
        else:
            yield item, None


def _strokes(path: Any, matrix: Any) -> Iterator[list[float]]:
    """Yield the horizontal and vertical sides of a path."""
    count = raw.FPDFPath_CountSegments(path)
    if count > MAX_SIDES:
        return
    own = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(path, own)
    x, y = ctypes.c_float(), ctypes.c_float()
    before: _Point | None = None
    first: _Point | None = None
    for index in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, index)
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        here = _point(own, x.value, y.value)
        here = here if matrix is None else _point(matrix, *here)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            first = here
        sides: list[tuple[_Point | None, _Point | None]] = [(before, here)] if kind == raw.FPDF_SEGMENT_LINETO else []
        if raw.FPDFPathSegment_GetClose(segment):
            sides.append((here, first))
        for start, end in sides:
            if start and end and min(abs(start[0] - end[0]), abs(start[1] - end[1])) < 0.5:
                yield [min(start[0], end[0]), max(start[1], end[1]), max(start[0], end[0]), min(start[1], end[1])]
        before = here


def _point(matrix: Any, x: float, y: float) -> tuple[float, float]:
    return matrix.a * x + matrix.c * y + matrix.e, matrix.b * x + matrix.d * y + matrix.f


def _moved(matrix: Any, left: float, top: float, right: float, bottom: float) -> tuple[float, float, float, float]:
    (ax, ay), (bx, by) = _point(matrix, left, top), _point(matrix, right, bottom)
    return min(ax, bx), max(ay, by), max(ax, bx), min(ay, by)
