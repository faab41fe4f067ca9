"""Pickles and PyTorch files without running what is in them: plain containers, numbers, arrays and tensors only."""

from __future__ import annotations

import io
import pickle
import re
import zipfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.errors import SourceError
from clew.kb.sources.files import read_bytes

_CONTAINERS = {
    ("builtins", name): value
    for name, value in (("set", set), ("frozenset", frozenset), ("list", list), ("dict", dict), ("tuple", tuple))
} | {
    ("builtins", "complex"): complex,
    ("builtins", "bytearray"): bytearray,
    ("collections", "OrderedDict"): OrderedDict,
}
_STORAGES = {
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ShortStorage": np.int16,
    "CharStorage": np.int8,
    "ByteStorage": np.uint8,
    "BoolStorage": np.bool_,
    "DoubleStorage": np.float64,
    "FloatStorage": np.float32,
    "HalfStorage": np.float16,
}


def read_pickle(path: Path) -> Any:
    """The content of a .pkl file, or an error where it holds anything but plain data."""
    return _load(_PlainUnpickler(io.BytesIO(read_bytes(path)), path), path)


def read_torch(path: Path) -> Any:
    """The content of a .pt file with its tensors as arrays; PyTorch is not needed."""
    data = read_bytes(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name.partition("/")[2]: name for name in archive.namelist()}
            if "data.pkl" not in members:
                raise SourceError("no data.pkl inside: not a file written by torch.save", file=path)
            order = archive.read(members["byteorder"]).decode() if "byteorder" in members else "little"
            storages = {
                name.removeprefix("data/"): archive.read(member)
                for name, member in members.items()
                if name.startswith("data/")
            }
            content = io.BytesIO(archive.read(members["data.pkl"]))
    except zipfile.BadZipFile as broken:
        raise SourceError("not a whole file of torch.save (PyTorch 1.6 or later)", file=path) from broken
    return _load(_PlainUnpickler(content, path, _Storages(storages, order)), path)


@dataclass(frozen=True)
class _Storages:
    """The raw numbers of a .pt file, by the key under which its pickle names them."""

    content: dict[str, bytes]
    byte_order: str

    def array(self, key: str, kind: type[np.generic]) -> NDArray[Any]:
        dtype = np.dtype(kind).newbyteorder("<" if self.byte_order == "little" else ">")
        return np.frombuffer(self.content[key], dtype=dtype)


class _PlainUnpickler(pickle.Unpickler):
    """Finds only the few names that plain data needs; any other name ends the reading before anything is called."""

    def __init__(self, file: io.BytesIO, path: Path, storages: _Storages | None = None) -> None:
        super().__init__(file)
        self._path = path
        self._storages = storages

    def find_class(self, module: str, name: str) -> Any:
        module = "builtins" if module == "__builtin__" else module  # as protocol 2 calls it
        if (module, name) in _CONTAINERS:
            return _CONTAINERS[module, name]
        if (module, name) in _STAND_INS:
            return _STAND_INS[module, name]
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        raise SourceError(
            f"this pickle wants to use {module}.{name}, which is not plain data; it was refused and nothing was run",
            file=self._path,
        )

    def persistent_load(self, pid: Any) -> NDArray[Any]:
        if self._storages is None or not (isinstance(pid, tuple) and len(pid) == 5 and pid[0] == "storage"):
            raise pickle.UnpicklingError("it refers to data outside of it")
        _, kind, key, _, count = pid
        return self._storages.array(key, kind)[:count]


def _load(unpickler: _PlainUnpickler, path: Path) -> Any:
    try:
        return unpickler.load()
    except SourceError:
        raise
    except (
        pickle.UnpicklingError,
        EOFError,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        OverflowError,
    ) as broken:
        raise SourceError(f"not a whole pickle of plain data: {broken}", file=path) from broken


def _reconstruct_array(kind: object, *_: object) -> NDArray[Any]:
    """An empty array for the state that follows in the pickle."""
    if kind is not _ARRAY:
        raise pickle.UnpicklingError("an array of an unknown kind")
    return np.empty(0, np.int8)


def _dtype(code: str, *_: object) -> np.dtype[Any]:
    """A type of numbers, texts or objects: never a structure, whose state could describe any memory."""
    if not re.fullmatch(r"[<>|=]?[biufcSUO?][0-9]*", code):
        raise pickle.UnpicklingError(f"an array of {code}")
    return np.dtype(code, copy=True)


def _from_buffer(content: bytes, dtype: np.dtype[Any], shape: tuple[int, ...], order: Any, *_: object) -> NDArray[Any]:
    """How protocol 5 writes an array."""
    return np.frombuffer(content, dtype).reshape(shape, order=order)


def _encode(text: str, encoding: str) -> bytes:
    """How Python 2's protocol writes bytes."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in {encoding}")
    return text.encode("latin-1")


def _numpy_scalar(dtype: np.dtype[Any], data: bytes) -> object:
    if dtype.hasobject:
        raise pickle.UnpicklingError("a scalar of objects")
    return np.frombuffer(data, dtype=dtype, count=1)[0].item()


def _rebuild_tensor(
    storage: NDArray[Any], offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: object
) -> NDArray[Any]:
    if len(size) != len(stride) or min((*size, *stride, offset), default=0) < 0:
        raise pickle.UnpicklingError("a tensor of an impossible shape")
    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    if all(size) and last >= len(storage):
        raise pickle.UnpicklingError("a tensor larger than its storage")
    if not all(size):
        return np.empty(size, storage.dtype)
    view = np.lib.stride_tricks.as_strided(storage[offset:], size, [step * storage.itemsize for step in stride])
    return np.array(view)


_ARRAY = object()
"""Stands for the class of arrays, which must not be called: its constructor takes any memory."""
_STAND_INS = {
    ("numpy", "ndarray"): _ARRAY,
    ("numpy", "dtype"): _dtype,
    ("_codecs", "encode"): _encode,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _reconstruct_array for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _numpy_scalar for core in ("core", "_core")},
}
"""What a pickle of arrays and tensors names, and the harmless function that is called instead."""
