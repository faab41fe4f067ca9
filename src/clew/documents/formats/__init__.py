"""Format readers, chosen by file suffix, or by content if the suffix is unknown."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from functools import partial
from mimetypes import MimeTypes
from pathlib import Path

from clew.core.errors import SourceError
from clew.core.limits import bounded_work
from clew.documents.extracted import Extracted
from clew.documents.formats.docx import read_docx
from clew.documents.formats.html import read_epub, read_html
from clew.documents.formats.mail import read_content, read_mail
from clew.documents.formats.manual_page import is_manual_page, read_manual_page
from clew.documents.formats.markdown import read_markdown
from clew.documents.formats.open_document import read_open_document
from clew.documents.formats.packed import SMALL
from clew.documents.formats.pdf import read_pdf
from clew.documents.formats.pptx import read_pptx
from clew.documents.formats.records import read_json, read_separated
from clew.documents.formats.restructured import read_restructured
from clew.documents.formats.text_file import decoded_text, read_plain_text
from clew.documents.formats.xlsx import read_xlsx
from clew.store.sources.files import GRAPHS, RECORDS, kind_of, opened, read_bytes

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
    ".man": read_manual_page,
    ".csv": read_separated,
    ".tsv": read_separated,
    ".json": read_json,
}
"""Readers by suffix. Every reader raises SourceError for a file it cannot use."""

READERS[".eml"] = READERS[".mbox"] = partial(read_mail, readers=dict(READERS))  # the formats of attachments

OTHER_FORMATS = MimeTypes()
OFFICE = {b"word/": ".docx", b"ppt/": ".pptx", b"xl/": ".xlsx"}
"""Format of an Office file by its main folder."""
CODE = re.compile(r"[{}()\[\]<>;=$&|\\_]+")
MAX_CODE_SHARE = 0.05
"""Maximum runs of code characters per character of a text. Prose has 0.003 to 0.03, code 0.05 to 0.12."""


def format_of(file: Path) -> str:
    """Return the suffix of the reader for a file: `.md` for a.md.gz, `.txt` for a README. Empty if no reader fits."""
    ending = kind_of(file)
    if ending == ".pdf" and (start := beginning(file)).startswith(b"PK"):  # an Office file with another name
        return next((own for folder, own in OFFICE.items() if folder in start), ending)
    if ending in READERS:
        return ending
    kind, _ = OTHER_FORMATS.guess_type(f"file{ending}")
    if ending in GRAPHS | RECORDS or not (kind is None or kind == "text/plain" or "troff" in kind):
        return ""
    text = decoded_text(beginning(file))
    if not text:
        return ""
    if is_manual_page(text):
        return ".man"
    return ".txt" if len(CODE.findall(text)) <= MAX_CODE_SHARE * len(text) else ""


def read_document(file: Path) -> Extracted:
    """Read a file that has a format. Unpack gzip files up to a size limit."""
    ending = format_of(file)
    if file.suffix.lower() != ".gz":
        with bounded_work(file.stat().st_size):
            return READERS[ending](file)
    content = read_bytes(file, SMALL)
    try:
        with bounded_work(len(content)):
            return read_content(content, ending, READERS)
    except SourceError as error:
        raise SourceError(str(error), file=file) from error


def plain_name(file: Path) -> str:
    """Return the file name without `.gz`."""
    return file.stem if file.suffix.lower() == ".gz" else file.name


def beginning(file: Path) -> bytes:
    """Return the first bytes of a file, unpacked if it is a gzip file. Return no bytes if it cannot be opened."""
    try:
        with opened(file) as content:
            return content.read(1 << 16)
    except (OSError, EOFError, zlib.error):
        return b""
