"""Entities of XML: a few bytes can stand for gigabytes, so what they come to is counted before parsing."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from clew.core.errors import SourceError

MOST_FOLD = 10
"""How many times the size of its file what its entities stand for may have; namespaces come to about one."""
SMALL = 10_000_000
_DECLARED = re.compile(rb"<!ENTITY\s+([^\s%]+)\s+(?:\"([^\"]*)\"|'([^']*)')")
_USED = re.compile(rb"&([^\s;#&<]{1,200});")


def refuse_entity_bomb(data: bytes, file: Path) -> None:
    """Refuse XML whose entities would be written out to many times its size."""
    declared = {name: double or single for name, double, single in _DECLARED.findall(data)}
    if not declared:
        return
    most = SMALL + MOST_FOLD * len(data)

    @cache
    def length(name: bytes) -> int:
        content = declared.get(name, b"")
        return min(most + 1, len(content) + sum(map(length, _USED.findall(content))))

    try:
        total = sum(map(length, _USED.findall(data)))
    except RecursionError:
        total = most + 1
    if total > most:
        raise SourceError("its entities stand for many times its size: write them out, or leave them out", file=file)
