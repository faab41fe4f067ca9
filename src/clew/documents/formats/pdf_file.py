"""Read a PDF with pdfium, page by page and within limits. A damaged page does not affect other pages.

RapidOCR recognises the text of scanned pages, if the extra `ocr` is installed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from threading import RLock
from typing import Any

import numpy as np
import pypdfium2 as pdfium
from numpy.typing import NDArray

from clew.core.errors import SourceError
from clew.documents.formats.pdf_headings import Entry
from clew.documents.formats.pdf_lines import Font, Line, PrintedWord, lines_in_reading_order
from clew.documents.formats.pdf_ruled import ruled_tables
from clew.documents.formats.pdf_unruled import rows_and_tables
from clew.documents.formats.pdf_words import PageContents, read_sheet

PDFIUM = RLock()
"""Lock for pdfium, which has global state and is not thread-safe."""
MAX_PAGES = 5000
"""Maximum number of pages of a file. A note lists the skipped pages."""
MAX_SECONDS = 300.0
"""Time limit for the pages of a file, in seconds. A note lists the skipped pages."""
MAX_ENTRIES = 5000
"""Maximum number of bookmarks of an outline."""


@dataclass
class ReadPages:
    """The pages of a file as lines, and the file's metadata."""

    count: int = 0
    title: str = ""
    entries: list[Entry] = field(default_factory=list)
    labels: tuple[str, ...] = ()
    pages: list[list[Line]] = field(default_factory=list)
    sizes: list[tuple[float, float]] = field(default_factory=list)
    images: list[int] = field(default_factory=list)
    """Pages that are only an image, without recognised text."""
    notes: list[str] = field(default_factory=list)


def read_pages(file: Path) -> ReadPages:
    """Read the lines of every page. Raise SourceError if the file cannot be opened."""
    with PDFIUM:
        opened = open_pdf(file)
        try:
            read = ReadPages(count=len(opened))
            read.title = opened.get_metadata_dict().get("Title", "")
            read.entries = _outline(opened)
            read.labels = _labels(opened)
            _read_into(read, opened)
            return read
        finally:
            opened.close()


def open_pdf(file: Path) -> pdfium.PdfDocument:
    """Open a file with pdfium. The caller must lock PDFIUM and close the file."""
    try:
        return pdfium.PdfDocument(file)
    except FileNotFoundError as error:
        raise SourceError("the file does not exist", file=file) from error
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower() or "security" in str(error).lower():
            raise SourceError("the PDF is encrypted: remove its password first", file=file) from error
        raise SourceError(f"the PDF is damaged ({error}): export or download it again", file=file) from error


def _read_into(read: ReadPages, opened: pdfium.PdfDocument) -> None:
    one_width: set[str] = set()
    began = time.monotonic()
    for number in range(1, read.count + 1):
        if number > MAX_PAGES or time.monotonic() - began > MAX_SECONDS:
            read.notes.append(f"pages {number} to {read.count} were not read, the file is too long: split it")
            break
        try:
            page = opened[number - 1]
            try:
                sheet = read_sheet(page, one_width)
                if not sheet.words and sheet.pictured:
                    sheet = _recognised(read, page, number, sheet)
            finally:
                page.close()
        except pdfium.PdfiumError as error:
            read.notes.append(f"page {number} is damaged and was left out ({error})")
            sheet = PageContents(0.0, 0.0, [], [], pictured=False)
        if sheet.cut:
            read.notes.append(f"page {number} has too many characters: only the first were read")
        read.sizes.append((round(sheet.width, 1), round(sheet.height, 1)))
        read.pages.append(_lines(sheet))


def _recognised(read: ReadPages, page: pdfium.PdfPage, number: int, sheet: PageContents) -> PageContents:
    words = recognised_words(page)
    if words is None:
        read.images.append(number)
        read.notes.append(f"page {number} is an image without text: install the extra 'ocr' to recognise it")
        return sheet
    if not words:
        read.notes.append(f"page {number} is an image in which no text was recognised")
    return PageContents(sheet.width, sheet.height, words, sheet.rules, pictured=True)


def _lines(sheet: PageContents) -> list[Line]:
    tables = ruled_tables(sheet.words, sheet.rules)
    outside = [word for word in sheet.words if not any(table.box.holds(word) for table in tables)]
    return lines_in_reading_order(outside, tables, rows_and_tables)


def _outline(opened: pdfium.PdfDocument) -> list[Entry]:
    entries: list[Entry] = []
    try:
        for bookmark in opened.get_toc(max_depth=8):
            target = bookmark.get_dest()
            page = None if target is None else target.get_index()
            if page is not None:
                entries.append(Entry(bookmark.level + 1, bookmark.get_title(), page))
            if len(entries) >= MAX_ENTRIES:
                break
    except pdfium.PdfiumError:
        return entries  # the outline is broken: headings follow from the print
    return entries


def _labels(opened: pdfium.PdfDocument) -> tuple[str, ...]:
    labels = tuple(opened.get_page_label(number) for number in range(min(len(opened), MAX_PAGES)))
    plain = all(label in ("", str(number)) for number, label in enumerate(labels, 1))
    return () if plain else labels


RESOLUTION = 200
"""Resolution of the rendered page, in dots per inch."""
GAP = 0.19
"""Minimum gap between words, as a share of the line height."""
MIN_CONFIDENCE = 0.5
"""Minimum confidence of the recogniser for a line."""


def recognised_words(page: pdfium.PdfPage) -> list[PrintedWord] | None:
    """Return the words of a page image with boxes, or None without a recogniser. The caller must lock PDFIUM."""
    recogniser = _recogniser()
    if recogniser is None:
        return None
    scale = RESOLUTION / 72  # points per inch
    pixels = page.render(scale=scale).to_numpy()[:, :, :3].mean(axis=2).astype(np.uint8)
    found, _ = recogniser(pixels, use_cls=False, return_word_box=True)
    words: list[PrintedWord] = []
    heights = [max(y for _, y in corners) - min(y for _, y in corners) for corners, *_ in found or []]
    usual = median(heights) if heights else 0.0
    for corners, _, confidence, boxes, letters, *_ in found or []:
        if float(confidence) >= MIN_CONFIDENCE:
            left, top = min(x for x, _ in corners), min(y for _, y in corners)
            right, bottom = max(x for x, _ in corners), max(y for _, y in corners)
            middles = [sum(x for x, _ in box) / len(box) for box in boxes]
            spans = inked(pixels[int(top) : int(bottom) + 1, int(left) : int(right) + 1])
            placed = words_of_letters(letters, middles, [(left + start, left + end) for start, end in spans])
            alike = 0.7 * usual < bottom - top < 1.3 * usual  # boxes of the same print vary by 30 %
            font = Font("recognised", round(0.75 * (usual if alike else bottom - top) / scale))
            words += [
                PrintedWord(text, x0 / scale, top / scale, x1 / scale, bottom / scale, font) for text, x0, x1 in placed
            ]
    return words


def inked(line: NDArray[Any]) -> list[tuple[int, int]]:
    """Return the horizontal extents of the words in a line image, separated by wide gaps."""
    if line.size == 0:
        return []
    middle = (float(line.min()) + float(line.max())) / 2
    ink = line < middle if np.median(line) > middle else line > middle
    dark = np.flatnonzero(ink.any(axis=0))
    if dark.size == 0:
        return []
    ends = np.flatnonzero(np.diff(dark) > GAP * line.shape[0])
    starts = dark[np.concatenate(([0], ends + 1))]
    return list(zip(starts.tolist(), (dark[np.concatenate((ends, [dark.size - 1]))] + 1).tolist(), strict=True))


def words_of_letters(
    letters: Sequence[str], middles: Sequence[float], spans: Sequence[tuple[float, float]]
) -> list[tuple[str, float, float]]:
    """Assign each letter to the nearest span, since the recogniser omits most spaces."""
    texts = [""] * len(spans)
    for letter, middle in zip(letters, middles, strict=False):
        if spans:
            nearest = min(range(len(spans)), key=lambda n: max(spans[n][0] - middle, middle - spans[n][1], 0.0))
            texts[nearest] += letter.strip()
    return [(text, *span) for text, span in zip(texts, spans, strict=True) if text]


@cache
def _recogniser() -> Any:
    try:
        from rapidocr_onnxruntime import RapidOCR
    except ImportError:
        return None
    return RapidOCR()
