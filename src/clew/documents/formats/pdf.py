"""PDF: text page by page, ruled and unruled tables as cells, captions, headings by size, running heads dropped."""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.core.errors import MissingExtraError, SourceError
from clew.documents.extracted import Extracted, TextBuilder
from clew.documents.formats.pdf_layout import (
    CAPTION,
    Area,
    Line,
    Word,
    flow_lines,
    heading_level,
    joined,
    paragraphs,
    unruled_tables,
    visual_lines,
)

BROKEN = (ValueError, KeyError, TypeError, IndexError, AttributeError, AssertionError, RecursionError, struct.error)
"""What the parser raises on damaged files, beside its own errors and those of the decompressor."""


NO_TITLES = frozenset({"untitled", "anonymous", "unspecified", "unknown", "document"})


@dataclass(frozen=True)
class _Page:
    number: int
    height: float
    lines: tuple[Line, ...]
    areas: tuple[Area, ...]
    is_image: bool


def read_pdf(file: Path) -> Extracted:
    """Raises SourceError for a damaged, encrypted or scanned file."""
    try:
        import pdfplumber
        from pdfminer.pdfdocument import PDFPasswordIncorrect
        from pdfminer.psexceptions import PSException
        from pdfplumber.utils.exceptions import MalformedPDFException, PdfminerException
    except ImportError as error:
        raise MissingExtraError("pdfplumber", "documents") from error
    try:
        with pdfplumber.open(file) as opened:
            title = str((opened.metadata or {}).get("Title") or "")
            pages = [_read_page(page) for page in opened.pages]
    except (PdfminerException, MalformedPDFException, PSException, zlib.error, *BROKEN) as error:
        if isinstance(error, PDFPasswordIncorrect) or any(isinstance(arg, PDFPasswordIncorrect) for arg in error.args):
            raise SourceError("the PDF is encrypted: remove its password first", file=file) from error
        raise SourceError(f"the PDF is damaged ({type(error).__name__}: {error})", file=file) from error
    if not any(page.lines or page.areas for page in pages):
        what = "holds only images, so it was probably scanned" if any(p.is_image for p in pages) else "holds no text"
        raise SourceError(f"the PDF {what}: run a text recognition over it first", file=file)
    return _assembled(pages, title)


def _read_page(page: Any) -> _Page:
    areas = tuple(_ruled_tables(page))
    raw = page.extract_words(use_text_flow=True, extra_attrs=["size", "fontname"], keep_blank_chars=False)
    words = [
        Word(w["text"], w["x0"], w["x1"], w["top"], w["bottom"], float(w["size"]), "bold" in w["fontname"].lower())
        for w in raw
    ]
    words = [word for word in words if not any(area.holds(word) for area in areas)]
    unruled = tuple(unruled_tables(visual_lines(words)))
    words = [word for word in words if not any(area.holds(word) for area in unruled)]
    result = _Page(
        page.page_number,
        float(page.height),
        tuple(flow_lines(words)),
        tuple(sorted((*areas, *unruled), key=lambda area: area.top)),
        bool(page.images),
    )
    page.close()  # the parser keeps every page in memory otherwise
    return result


def _ruled_tables(page: Any) -> Iterator[Area]:
    if len(page.lines) + len(page.rects) + len(page.curves) < 3:  # no rules, no ruled table: the search is slow
        return
    for table in page.find_tables():
        rows = tuple(tuple(cell or "" for cell in row) for row in table.extract())
        if len(rows) > 1 and max(map(len, rows)) > 1 and any(any(row) for row in rows):
            x0, top, x1, bottom = table.bbox
            yield Area(x0, top, x1, bottom, rows)


def _assembled(pages: Sequence[_Page], title: str) -> Extracted:
    running = _running_heads(pages)
    sizes = Counter(round(word.size, 1) for page in pages for line in page.lines for word in line.words)
    body_size = sizes.most_common(1)[0][0] if sizes else 10.0
    builder = TextBuilder()
    notes = []
    for page in pages:
        builder.page = page.number
        if page.is_image and not page.lines and not page.areas:
            notes.append(f"page {page.number} is an image without text")
        _add_page(builder, page, running, body_size)
    text = builder.text()
    first = next((text[block.start : block.end] for block in builder.blocks if block.kind == "heading"), "")
    usable = title if re.search(r"\w{3}", title) and title.lower().strip("()") not in NO_TITLES else ""
    return Extracted(usable or first, text, tuple(builder.blocks), len(pages), tuple(notes))


def _add_page(builder: TextBuilder, page: _Page, running: frozenset[str], body_size: float) -> None:
    blocks = paragraphs([line for line in page.lines if _repeated(line, page) not in running])
    waiting = list(page.areas)
    captions = {id(area): caption for area in waiting if (caption := _caption(area, blocks))}
    used = {id(block) for block in captions.values()}
    for block in blocks:
        if id(block) in used:
            continue
        above = block[0].top
        while waiting and waiting[0].top < above and _beside(waiting[0], block[0]):
            _add_table(builder, waiting.pop(0), captions)
        level = heading_level(block, body_size)
        if level:
            builder.heading(joined(block), level)
        else:
            builder.paragraph(joined(block))
    for area in waiting:
        _add_table(builder, area, captions)


def _add_table(builder: TextBuilder, area: Area, captions: dict[int, list[Line]]) -> None:
    caption = captions.get(id(area))
    builder.table(area.rows, joined(caption) if caption else "")


def _beside(area: Area, line: Line) -> bool:
    return line.left < area.x1 and line.right > area.x0


def _caption(area: Area, blocks: Sequence[list[Line]]) -> list[Line] | None:
    """The block that begins with "Table 2" right above the table, or else right below it."""
    named = [block for block in blocks if CAPTION.match(block[0].text) and len(joined(block)) < 400]
    above = [block for block in named if -2 <= area.top - block[-1].bottom < 40]
    below = [block for block in named if -2 <= block[0].top - area.bottom < 40]
    if above:
        return min(above, key=lambda block: area.top - block[-1].bottom)
    return min(below, key=lambda block: block[0].top - area.bottom) if below else None


def _running_heads(pages: Sequence[_Page]) -> frozenset[str]:
    """Lines at the top or bottom of most pages, page numbers left aside."""
    if len(pages) < 3:
        return frozenset()
    seen = Counter(text for page in pages for text in {_repeated(line, page) for line in page.lines} if text)
    return frozenset(text for text, count in seen.items() if count > max(2, len(pages) // 2))


def _repeated(line: Line, page: _Page) -> str:
    if 0.075 * page.height < line.top and line.bottom < 0.925 * page.height:
        return ""
    return f"{round(line.top / 4)} " + re.sub(r"\d+", "#", line.text)
