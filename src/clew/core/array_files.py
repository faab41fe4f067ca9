"""Readers for `.npy` and `.npz` files that avoid NumPy's header parser.

NumPy parses a header as Python source. In CPython 3.11.7 that occasionally fails in threads ("AST constructor recursion
depth mismatch", gh-106905, fixed in 3.12.1). This module matches headers with a regular expression instead.
"""

from __future__ import annotations

import math
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"\x93NUMPY"
HEADER = re.compile(rb"\{'descr': '([<|][biuf]\d+)', 'fortran_order': (False|True), 'shape': \(([\d, ]*)\), \}\s*")
LONGEST = 512
"""Maximum length of a header, in bytes."""


def map_array(file: Path) -> NDArray[Any]:
    """Memory-map the array in a file. Raise ValueError if the file is not an array of plain numbers."""
    with file.open("rb") as opened:
        head = opened.read(LONGEST)
    kind, shape, order, offset = _described(head)
    if file.stat().st_size != offset + math.prod(shape) * kind.itemsize:
        raise ValueError("the file size does not match the array header")
    if not math.prod(shape):
        return np.empty(shape, kind)
    return np.asarray(np.memmap(file, kind, "r", offset, shape, order))


def read_array(content: bytes) -> NDArray[Any]:
    """Return a copy of the array in the content of a file."""
    kind, shape, order, offset = _described(content[:LONGEST])
    if len(content) != offset + math.prod(shape) * kind.itemsize:
        raise ValueError("the file size does not match the array header")
    return np.frombuffer(content, kind, offset=offset).reshape(shape, order=order).copy()


def read_arrays(file: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive (.npz) by name."""
    with zipfile.ZipFile(file) as archive:
        return {name.removesuffix(".npy"): read_array(archive.read(name)) for name in archive.namelist()}


def _described(head: bytes) -> tuple[np.dtype[Any], tuple[int, ...], Any, int]:
    """Parse a header into dtype, shape, memory order and the offset of the numbers."""
    width = {b"\x01\x00": 2, b"\x02\x00": 4}.get(head[6:8], 0)
    start = 8 + width
    offset = start + int.from_bytes(head[8:start], "little")
    found = HEADER.fullmatch(head[start:offset]) if width and head[:6] == MAGIC and offset <= len(head) else None
    if found is None:
        raise ValueError("the file does not start with the header of an array of plain numbers")
    shape = tuple(int(part) for part in found[3].decode().split(",") if part.strip())
    return np.dtype(found[1].decode()), shape, "F" if found[2] == b"True" else "C", offset
