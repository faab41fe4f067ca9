"""Readers of formats, found by the ending of a file's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from clew.documents.extracted import Extracted
from clew.documents.formats.docx import read_docx
from clew.documents.formats.html import read_epub, read_html
from clew.documents.formats.mail import read_mail
from clew.documents.formats.markdown import read_markdown
from clew.documents.formats.open_document import read_open_document
from clew.documents.formats.pdf import read_pdf
from clew.documents.formats.plain_text import read_plain_text
from clew.documents.formats.pptx import read_pptx
from clew.documents.formats.records import read_json, read_separated
from clew.documents.formats.restructured import read_restructured
from clew.documents.formats.xlsx import read_xlsx

READERS: dict[str, Callable[[Path], Extracted]] = {
    ".pdf": read_pdf,
    ".docx": read_docx,
    ".pptx": read_pptx,
    ".xlsx": read_xlsx,
    ".odt": read_open_document,
    ".ods": read_open_document,
    ".odp": read_open_document,
    ".epub": read_epub,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".rst": read_restructured,
    ".txt": read_plain_text,
    ".text": read_plain_text,
    ".csv": read_separated,
    ".tsv": read_separated,
    ".json": read_json,
}
"""Ending → reader; every reader raises SourceError for a file it cannot use."""

ATTACHED = dict(READERS)


def read_messages(file: Path) -> Extracted:
    """Mail, its attachments read by the readers of their own formats."""
    return read_mail(file, ATTACHED)


READERS[".eml"] = READERS[".mbox"] = read_messages
