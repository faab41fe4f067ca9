"""Words divided at the end of a line, made whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

DIVIDED = re.compile(r"([^\W\d_]+)[-‐\u00ad]$")
FIRST = re.compile(r"[^\W\d_]+")
LONG = 4
"""Letters from which two words of the document around a hyphen are taken as a compound."""


def words_of(texts: Iterable[str]) -> frozenset[str]:
    """The words of a document and its compounds with a hyphen, in lower case; ends of divided words left out."""
    words: set[str] = set()
    for text in texts:
        words.update(re.findall(r"[^\W\d_]+(?:[-‐][^\W\d_]+)*(?![-‐\u00ad\w])", text.lower()))
    return frozenset(words)


def joined(lines: Sequence[str], words: frozenset[str]) -> list[str]:
    """The lines of a paragraph as pieces that follow each other without a space."""
    pieces = [line.replace("\u00ad", "") if line[-1:] != "\u00ad" else line for line in lines]
    for place, following in enumerate(pieces[1:]):
        pieces[place] = _ending(pieces[place], following, words)
    if pieces:
        pieces[-1] = pieces[-1].rstrip("\u00ad")
    return pieces


def _ending(line: str, following: str, words: frozenset[str]) -> str:
    before, after = DIVIDED.search(line), FIRST.match(following)
    if before is None or after is None:
        return line + " "
    if line[-1] == "\u00ad":
        return line[:-1]
    return line if keeps_hyphen(line, before[1], after[0], words) else line[:-1]


def keeps_hyphen(line: str, before: str, after: str, words: frozenset[str]) -> bool:
    """Whether the hyphen belongs to the word: by how the rest of the document writes it."""
    if not after[0].islower() or before[-1].isupper() or re.search(r"[-‐\d_/]" + re.escape(before) + r"[-‐]$", line):
        return True  # names, abbreviations, compounds of three words
    first, second = before.lower(), after.lower()
    if first + second in words:
        return False
    if f"{first}-{second}" in words:
        return True
    return min(len(first), len(second)) >= LONG and first in words and second in words
