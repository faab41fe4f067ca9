"""Render a PDF page as an image with highlighted quotations.

A malicious file may make pdfium crash, hang or exhaust memory. So a server renders pages in a process of its own:
`python -m clew.documents.formats.pdf_render FILE PAGE BOXES`.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import ClewError, NotFoundError, SourceError, needing
from clew.core.limits import limit_memory, limit_seconds, start_module
from clew.core.types import Box

YELLOW = (255, 236, 120)
"""Highlight colour. Multiplied with the page, so black text stays black and overlaps do not get darker."""
MAX_PIXELS = 40_000_000
"""Maximum size of an image, in pixels. Larger pages are scaled down."""


def render_page(
    file: Path, page: int, boxes: Iterable[Box] = (), scale: float = 1.5, most_pixels: int = MAX_PIXELS
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


MEMORY = 2 << 30
"""Maximum address space for one page, in bytes."""
LONGEST = 20
"""Maximum duration for one page, in seconds."""


def rendered(file: Path, page: int, boxes: tuple[Box, ...]) -> bytes:
    """Render a page as PNG in a subprocess with limits."""
    process = start_module(
        "clew.documents.formats.pdf_render", str(file), str(page), json.dumps(boxes), stderr=subprocess.PIPE
    )
    try:
        picture, said = process.communicate(timeout=LONGEST + 5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise SourceError("the page takes too long to render", file=file.name) from None
    if process.returncode == 0:
        return picture
    why = said.decode("utf-8", "replace").strip() if process.returncode == 2 else "the page cannot be rendered"
    raise SourceError(why, file=file.name)


def main(file: str, page: str, boxes: str) -> int:
    """Render one page."""
    limit_memory(MEMORY)
    limit_seconds(LONGEST)
    try:
        places = [(left, top, right, bottom) for left, top, right, bottom in json.loads(boxes)]
        picture = render_page(Path(file), int(page), places, most_pixels=4_000_000)
    except ClewError as error:
        sys.stderr.write(str(error).removeprefix(f"{file}: "))
        return 2
    sys.stdout.buffer.write(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
