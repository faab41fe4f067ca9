"""Arrays as NumPy writes them to files, read without its parser of headers.

NumPy takes a header for Python source and parses it as such. CPython 3.11.7 fails at that now and then in threads
("AST constructor recursion depth mismatch", gh-106905; 3.12.1 does not). Here a header is one of a few forms.
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
"""Bytes that a header has at most."""


def map_array(file: Path) -> NDArray[Any]:
    """An array in a file, mapped and not read; raises ValueError where it holds none of plain numbers."""
    with file.open("rb") as opened:
        head = opened.read(LONGEST)
    kind, shape, order, offset = _described(head)
    if file.stat().st_size != offset + math.prod(shape) * kind.itemsize:
        raise ValueError("its size is not that of the array it begins")
    if not math.prod(shape):
        return np.empty(shape, kind)
    return np.asarray(np.memmap(file, kind, "r", offset, shape, order))


def read_array(content: bytes) -> NDArray[Any]:
    """The array that the content of a file is, in memory of its own."""
    kind, shape, order, offset = _described(content[:LONGEST])
    if len(content) != offset + math.prod(shape) * kind.itemsize:
        raise ValueError("its size is not that of the array it begins")
    return np.frombuffer(content, kind, offset=offset).reshape(shape, order=order).copy()


def read_arrays(file: Path) -> dict[str, NDArray[Any]]:
    """The arrays in an archive (.npz), by name."""
    with zipfile.ZipFile(file) as archive:
        return {name.removesuffix(".npy"): read_array(archive.read(name)) for name in archive.namelist()}


def _described(head: bytes) -> tuple[np.dtype[Any], tuple[int, ...], Any, int]:
    """What a header says: the kind of numbers, the shape, its order in memory, and where the numbers begin."""
    width = {b"\x01\x00": 2, b"\x02\x00": 4}.get(head[6:8], 0)
    start = 8 + width
    offset = start + int.from_bytes(head[8:start], "little")
    found = HEADER.fullmatch(head[start:offset]) if width and head[:6] == MAGIC and offset <= len(head) else None
    if found is None:
        raise ValueError("it does not begin as an array of plain numbers does")
    shape = tuple(int(part) for part in found[3].decode().split(",") if part.strip())
    return np.dtype(found[1].decode()), shape, "F" if found[2] == b"True" else "C", offset
