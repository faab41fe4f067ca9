"""Text of pages that are only a picture, recognised by RapidOCR where the extra `ocr` is installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pypdfium2 as pdfium

from clew.documents.formats.pdf_page import Font, Word

RESOLUTION = 200
"""Dots per inch at which a page is drawn to be recognised."""
POINTS = 72
GAP = 0.22
"""Distance between two letters that parts words, as a share of the height of the line."""
SURE = 0.5
"""How sure the recogniser must be of a line."""


def recognised_words(page: pdfium.PdfPage) -> list[Word] | None:
    """The words of the picture with their boxes, or None where no recogniser is installed; the caller holds PDFIUM."""
    recogniser = _recogniser()
    if recogniser is None:
        return None
    scale = RESOLUTION / POINTS
    found, _ = recogniser(page.render(scale=scale).to_numpy(), use_cls=False, return_word_box=True)
    words: list[Word] = []
    for corners, _, sure, boxes, letters, *_ in found or []:
        if float(sure) >= SURE:
            top, bottom = min(y for _, y in corners) / scale, max(y for _, y in corners) / scale
            edges = [(min(x for x, _ in box) / scale, max(x for x, _ in box) / scale) for box in boxes]
            words += words_of_letters(letters, edges, top, bottom)
    return words


def words_of_letters(
    letters: Sequence[str], edges: Sequence[tuple[float, float]], top: float, bottom: float
) -> list[Word]:
    """A recognised line cut at its gaps, since the recogniser leaves most spaces out."""
    font = Font("recognised", round(0.75 * (bottom - top)))
    words: list[Word] = []
    ended = True
    for letter, (x0, x1) in zip(letters, edges, strict=False):
        if not letter.strip():
            ended = True
            continue
        if ended or x0 - words[-1].x1 > GAP * (bottom - top):
            words.append(Word(letter, x0, top, x1, bottom, font))
        else:
            words[-1] = words[-1]._replace(text=words[-1].text + letter, x1=x1)
        ended = False
    return words


@cache
def _recogniser() -> Any:
    try:
        from rapidocr_onnxruntime import RapidOCR
    except ImportError:
        return None
    return RapidOCR()
