"""Process that renders a page of an uploaded PDF as PNG: `python -m clew.server.page_render FILE PAGE BOXES`.

A malicious file may make pdfium crash, hang or exhaust memory. Then this process ends, but not the server.
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
"""Maximum address space for one page, in bytes."""
LONGEST = 20
"""Maximum duration for one page, in seconds."""


def rendered(file: Path, page: int, boxes: tuple[Box, ...]) -> bytes:
    """Render a page as PNG in a subprocess with limits."""
    process = start_module("clew.server.page_render", str(file), str(page), json.dumps(boxes), stderr=subprocess.PIPE)
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
    from clew.documents.formats.pdf_render import render_page

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
