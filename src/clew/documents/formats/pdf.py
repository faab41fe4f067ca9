"""PDF: text in reading order, tables as cells, headings by outline or print, the place of each line on its page."""

from __future__ import annotations

from pathlib import Path

from clew.core.errors import MissingExtraError, SourceError
from clew.documents.extracted import Extracted
from clew.documents.formats.pdf_text import assembled


def read_pdf(file: Path, *, with_tables: bool = True) -> Extracted:
    """Raises SourceError for a file that is damaged or encrypted, or holds no text."""
    try:
        from clew.documents.formats.pdf_file import read_pages
    except ImportError as error:
        raise MissingExtraError("pypdfium2", "documents") from error
    read = read_pages(file, with_tables=with_tables)
    if not any(read.pages):
        what = "holds only images, so it was probably scanned" if read.images else "holds no text"
        raise SourceError(f"the PDF {what}: {read.notes[0] if read.notes else 'there is nothing to search'}", file=file)
    return assembled(read)
