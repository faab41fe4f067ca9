"""Recognise the text of scanned pages with RapidOCR, if the extra `ocr` is installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from statistics import median
from typing import Any

import numpy as np
import pypdfium2 as pdfium
from numpy.typing import NDArray

from clew.documents.formats.pdf_page import Font, PrintedWord

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
