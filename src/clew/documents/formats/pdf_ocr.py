"""Text of pages that are only a picture, recognised by RapidOCR where the extra `ocr` is installed."""

from __future__ import annotations

from functools import cache
from typing import Any

import pypdfium2 as pdfium

from clew.documents.formats.pdf_page import Font, Word

RESOLUTION = 200
"""Dots per inch at which a page is drawn to be recognised."""
POINTS = 72
SURE = 0.5
"""How sure the recogniser must be of a line."""


def recognised_words(page: pdfium.PdfPage) -> list[Word] | None:
    """The words of the picture with their boxes, or None where no recogniser is installed; the caller holds PDFIUM."""
    recogniser = _recogniser()
    if recogniser is None:
        return None
    scale = RESOLUTION / POINTS
    found, _ = recogniser(page.render(scale=scale).to_numpy())
    words: list[Word] = []
    for corners, text, sure in found or []:
        if float(sure) >= SURE:
            across, down = [x / scale for x, _ in corners], [y / scale for _, y in corners]
            words += _split(text, min(across), min(down), max(across), max(down))
    return words


def _split(text: str, x0: float, top: float, x1: float, bottom: float) -> list[Word]:
    """A recognised line as words, each with its share of the width."""
    font = Font("recognised", round(0.75 * (bottom - top)))
    each = (x1 - x0) / max(len(text), 1)
    words, place = [], 0
    for part in text.split():
        place = text.index(part, place)
        words.append(Word(part, x0 + each * place, top, x0 + each * (place + len(part)), bottom, font))
        place += len(part)
    return words


@cache
def _recogniser() -> Any:
    try:
        from rapidocr_onnxruntime import RapidOCR
    except ImportError:
        return None
    return RapidOCR()
