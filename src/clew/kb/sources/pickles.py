"""Pickles and PyTorch files without running what is in them: plain containers, numbers, arrays and tensors only."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from clew.core.errors import SourceError
from clew.kb.sources.files import read_bytes
from clew.kb.sources.plain_unpickler import SCALARS, PlainUnpickler
from clew.kb.sources.unpickled import Space, Storages, UnpickledArray

DEEPEST = 100
"""How deep containers may lie in each other."""
LEAVES = (*SCALARS, np.ndarray, bytearray, set, frozenset)
BROKEN = (
    pickle.UnpicklingError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a damaged or hostile file makes Python's own readers raise."""


def read_pickle(path: Path) -> Any:
    """The content of a .pkl file, or an error where it holds anything but plain data."""
    data = read_bytes(path)
    return _load(data, path, Space(len(data)))


def read_torch(path: Path) -> Any:
    """The content of a .pt file with its tensors as arrays; PyTorch is not needed."""
    data = read_bytes(path)
    space = Space(len(data))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            space.take(sum(member.file_size for member in archive.infolist()))
            members = {name.partition("/")[2]: name for name in archive.namelist()}
            if "data.pkl" not in members:
                raise SourceError("no data.pkl inside: not a file written by torch.save", file=path)
            order = archive.read(members["byteorder"]).decode() if "byteorder" in members else "little"
            storages = {
                name.removeprefix("data/"): archive.read(member)
                for name, member in members.items()
                if name.startswith("data/")
            }
            content = archive.read(members["data.pkl"])
    except BROKEN as broken:
        raise SourceError(f"not a whole file of torch.save (PyTorch 1.6 or later): {broken}", file=path) from broken
    return _load(content, path, space, Storages(storages, "<" if order == "little" else ">"))


@dataclass
class _Plain:
    """Puts arrays in place of what stands in for them; what is shared is gone through once."""

    _done: dict[int, Any] = field(default_factory=dict)

    def of(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, LEAVES):
            return value
        if depth > DEEPEST:
            raise pickle.UnpicklingError(f"containers lie more than {DEEPEST} deep in each other")
        if isinstance(value, UnpickledArray):
            return value.value
        if id(value) in self._done:
            return self._done[id(value)]
        if isinstance(value, dict):
            found: Any = {key: self.of(item, depth + 1) for key, item in value.items()}
        elif isinstance(value, list | tuple):
            found = type(value)([self.of(item, depth + 1) for item in value])
        else:
            raise pickle.UnpicklingError("it holds something that is not plain data")
        self._done[id(value)] = found
        return found


def _load(content: bytes, path: Path, space: Space, storages: Storages | None = None) -> Any:
    try:
        return _Plain().of(PlainUnpickler(content, path, space, storages).load())
    except BROKEN as broken:
        raise SourceError(f"not a whole pickle of plain data: {broken}", file=path) from broken
