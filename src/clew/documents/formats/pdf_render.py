"""Render a PDF page as an image with highlighted quotations."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import NotFoundError, needing

YELLOW = (255, 236, 120)
"""Highlight colour. Multiplied with the page, so black text stays black and overlaps do not get darker."""
MAX_PIXELS = 40_000_000
"""Maximum size of an image, in pixels. Larger pages are scaled down."""


def render_page(
    file: Path,
    page: int,
    boxes: Iterable[tuple[float, float, float, float]] = (),
    scale: float = 1.5,
    most_pixels: int = MAX_PIXELS,
) -> bytes:
    """Render a page, counted from 1, as PNG. Boxes are x0, top, x1, bottom in points from the top left."""
    with needing("documents", "pypdfium2"):
        from clew.documents.formats.pdf_file import PDFIUM, open_pdf
    with PDFIUM:
        opened = open_pdf(file)
        try:
            if not 1 <= page <= len(opened):
                raise NotFoundError(f"there is no page {page} in {file.name}: it has {len(opened)} pages")
            sheet = opened[page - 1]
            width, height = sheet.get_size()
            scale = min(scale, (most_pixels / max(width * height, 1.0)) ** 0.5)
            pixels = sheet.render(scale=scale, rev_byteorder=True).to_numpy()[:, :, :3].copy()
        finally:
            opened.close()
    marked = np.zeros(pixels.shape[:2], dtype=np.bool_)
    for box in boxes:
        x0, top, x1, bottom = (max(int(side * scale), 0) for side in box)
        marked[top : bottom + 1, x0 : x1 + 1] = True
    pixels[marked] = pixels[marked] * (np.array(YELLOW) / 255)
    return png(pixels)


def png(pixels: NDArray[Any]) -> bytes:
    """Encode rows of RGB bytes as a PNG file."""
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)  # each row starts with filter type 0
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
        + chunk(b"IEND", b"")
    )
