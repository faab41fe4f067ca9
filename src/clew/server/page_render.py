"""The process that draws a page of an uploaded PDF, `python -m clew.server.page_render FILE PAGE BOXES`; writes a PNG.

A hostile file may make pdfium crash, hang or take all memory: then this process ends, and the server does not.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from clew.core.errors import ClewError, SourceError
from clew.core.limits import limit_memory, limit_seconds, start_module
from clew.core.types import Box

MEMORY = 2 << 30
"""Bytes of address space for one page."""
LONGEST = 20
"""Seconds for one page."""
MOST_PIXELS = 4_000_000
SCALE = 1.5


def rendered(file: Path, page: int, boxes: tuple[Box, ...]) -> bytes:
    """A page as PNG, drawn by a process of its own within bounds."""
    process = start_module("clew.server.page_render", str(file), str(page), json.dumps(boxes), stderr=subprocess.PIPE)
    try:
        picture, said = process.communicate(timeout=LONGEST + 5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise SourceError("the page takes too long to draw", file=file.name) from None
    if process.returncode == 0:
        return picture
    why = said.decode("utf-8", "replace").strip() if process.returncode == 2 else "the page cannot be drawn"
    raise SourceError(why, file=file.name)


def main(file: str, page: str, boxes: str) -> int:
    """Draw one page."""
    limit_memory(MEMORY)
    limit_seconds(LONGEST)
    from clew.documents.formats.pdf_render import render_page

    try:
        places = [(left, top, right, bottom) for left, top, right, bottom in json.loads(boxes)]
        picture = render_page(Path(file), int(page), places, SCALE, MOST_PIXELS)
    except ClewError as error:
        sys.stderr.write(str(error).removeprefix(f"{file}: "))
        return 2
    sys.stdout.buffer.write(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
