"""Uploaded files before they are kept: name, kind, and for packed formats what they unpack to."""

from __future__ import annotations

import io
import re
import unicodedata
import zipfile
import zlib

from clew.core.errors import InputError
from clew.documents.formats import READERS

LONGEST_NAME = 150
PACKED = (".docx", ".xlsx")
MOST_UNPACKED = 300_000_000
MOST_RATIO = 200
"""How many times its size a packed file may unpack to; text packs about tenfold."""
MOST_ENTRIES = 10_000
CHUNK = 1 << 20


def checked_name(name: str) -> str:
    """The name of an uploaded file, as it is kept: one plain file name with a known ending."""
    name = unicodedata.normalize("NFC", name).strip()
    parts = re.split(r"[/\\]", name)
    if len(parts) != 1 or name.startswith((".", "~")) or ":" in name or any(ord(mark) < 32 for mark in name):
        raise InputError("a file name must be a plain name, without folders or control characters")
    if not name or len(name.encode()) > LONGEST_NAME:
        raise InputError(f"a file name must have between 1 and {LONGEST_NAME} bytes")
    if not name.isprintable():
        raise InputError("a file name must be printable")
    if ending(name) not in READERS:
        raise InputError(f"files that end in {ending(name) or 'nothing'!r} cannot be read; known: {', '.join(READERS)}")
    return name


def ending(name: str) -> str:
    """`.pdf` for a.PDF."""
    return "." + name.rsplit(".", 1)[1].lower() if "." in name else ""


def check_content(name: str, content: bytes) -> None:
    """Raise where the content is not what the name says, or unpacks to far more than it shows."""
    if not content:
        raise InputError("the file is empty")
    kind = ending(name)
    if kind == ".pdf":
        if b"%PDF-" not in content[:1024]:
            raise InputError("the file is no PDF")
    elif kind in PACKED:
        _check_packed(content)
    elif b"\0" in content[:CHUNK] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError("the file is not text")


def _check_packed(content: bytes) -> None:
    """Unpack into nothing and count, since a packed file may lie about its sizes."""
    most = min(MOST_UNPACKED, MOST_RATIO * len(content) + CHUNK)
    unpacked = 0
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            entries = packed.infolist()
            if "[Content_Types].xml" not in packed.namelist():
                raise InputError("the file is no Office document")
            if len(entries) > MOST_ENTRIES or sum(entry.file_size for entry in entries) > most:
                raise InputError("the file unpacks to far more than it shows: a zip bomb")
            for entry in entries:
                with packed.open(entry) as part:
                    while piece := part.read(CHUNK):
                        unpacked += len(piece)
                        if unpacked > most:
                            raise InputError("the file unpacks to far more than it shows: a zip bomb")
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError):
        raise InputError("the file is damaged: it cannot be unpacked") from None
