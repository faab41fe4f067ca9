"""Readers, one file per format, found by the ending of a file's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from clew.documents.extracted import Extracted
from clew.documents.formats.html import read_html
from clew.documents.formats.office import read_docx, read_separated, read_workbook
from clew.documents.formats.pdf import read_pdf
from clew.documents.formats.text import read_markdown, read_plain_text

READERS: dict[str, Callable[[Path], Extracted]] = {
    ".pdf": read_pdf,
    ".docx": read_docx,
    ".html": read_html,
    ".htm": read_html,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".txt": read_plain_text,
    ".text": read_plain_text,
    ".rst": read_plain_text,
    ".csv": read_separated,
    ".tsv": read_separated,
    ".xlsx": read_workbook,
}
"""Ending → reader; every reader raises SourceError for a file it cannot use."""
