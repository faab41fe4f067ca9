"""Bytes to text: the byte-order mark decides, then UTF-8, then the old western encoding that never fails."""

from __future__ import annotations

import codecs
from pathlib import Path

from clew.core.errors import SourceError

MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def read_text(file: Path) -> str:
    """The file's text with Unix line ends; a file with zero bytes in it is no text."""
    content = file.read_bytes()
    for mark, encoding in MARKS:
        if content.startswith(mark):
            return _unix(content.decode(encoding, errors="replace"))
    if b"\0" in content[:65536]:
        raise SourceError("this is not text: it holds zero bytes", file=file)
    try:
        return _unix(content.decode("utf-8"))
    except UnicodeDecodeError:
        return _unix(content.decode("cp1252", errors="replace"))


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
