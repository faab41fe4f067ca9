"""The text of a file, whatever its encoding."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from clew.core.errors import SourceError

MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([\w.:-]{3,20})""", re.IGNORECASE)


def read_text(file: Path) -> str:
    """The file's text with Unix line ends; a file with zero bytes in it is no text."""
    content = file.read_bytes()
    if b"\0" in content[:65536] and not content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise SourceError("this is not text: it holds zero bytes", file=file)
    return decoded(content)


def decoded(content: bytes) -> str:
    """Bytes as text: by their mark, as UTF-8, as they declare, or as Western European."""
    for mark, encoding in MARKS:
        if content.startswith(mark):
            return unix(content.decode(encoding, errors="replace"))
    try:
        return unix(content.decode("utf-8"))
    except UnicodeDecodeError:
        declared = DECLARED.search(content[:2048])
        name = declared.group(1).decode("ascii") if declared else "cp1252"
        try:
            return unix(content.decode(name, errors="replace"))
        except (LookupError, UnicodeError, ValueError):
            return unix(content.decode("cp1252", errors="replace"))


def unix(text: str) -> str:
    """Line ends as one character, and none that only some programs see as such."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
