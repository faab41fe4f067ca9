"""Distinct strings in order, mapped from disk and looked up by binary search."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.kb.adjacency import map_array

HEAD = 8
"""The first bytes of every string are kept as one integer, so that most of a search runs in compiled code."""


class StringTable:
    """Strings one after another in one array of bytes; string i is read without the others."""

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.data, self.offsets = data, offsets
        self._view = data.data

    @staticmethod
    def write(folder: Path, name: str, strings: pa.Array | pa.ChunkedArray) -> None:
        """Save strings in the given order."""
        data, offsets = byte_arrays(strings)
        np.save(folder / f"{name}_bytes.npy", data)
        np.save(folder / f"{name}_offsets.npy", offsets)

    @classmethod
    def open(cls, folder: Path, name: str) -> StringTable:
        """Map saved strings."""
        return cls(map_array(folder / f"{name}_bytes.npy"), map_array(folder / f"{name}_offsets.npy"))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, place: int) -> bytes:
        return bytes(self._view[self.offsets[place] : self.offsets[place + 1]])


class SortedStrings(StringTable):
    """Distinct strings in the order of their bytes."""

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64], heads: NDArray[np.uint64]) -> None:
        super().__init__(data, offsets)
        self.heads = heads

    @staticmethod
    def write(folder: Path, name: str, strings: pa.Array | pa.ChunkedArray) -> None:
        """Save strings that are sorted by their bytes and distinct."""
        data, offsets = byte_arrays(strings)
        np.save(folder / f"{name}_bytes.npy", data)
        np.save(folder / f"{name}_offsets.npy", offsets)
        np.save(folder / f"{name}_heads.npy", _heads(data, offsets))

    @classmethod
    def open(cls, folder: Path, name: str) -> SortedStrings:
        """Map saved strings."""
        plain = StringTable.open(folder, name)
        return cls(plain.data, plain.offsets, map_array(folder / f"{name}_heads.npy"))

    def place(self, wanted: bytes) -> int:
        """Where a string stands, or would stand."""
        head = np.uint64(int.from_bytes(wanted[:HEAD].ljust(HEAD, b"\0"), "big"))
        first, last = int(self.heads.searchsorted(head)), int(self.heads.searchsorted(head, side="right"))
        return bisect_left(range(len(self)), wanted, first, last, key=self.__getitem__)

    def find(self, wanted: bytes) -> int | None:
        """Where a string stands; None where it is not among them."""
        place = self.place(wanted)
        return place if place < len(self) and self[place] == wanted else None


def byte_arrays(strings: pa.Array | pa.ChunkedArray) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of all strings, and where each begins and ends."""
    column = strings if isinstance(strings, pa.ChunkedArray) else pa.chunked_array([strings])
    lengths = pc.binary_length(column).to_numpy() if len(column) else np.empty(0, dtype=np.int64)
    offsets = np.zeros(len(column) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    parts = [np.empty(0, dtype=np.uint8)]
    for chunk in column.chunks:
        whole = chunk.cast(pa.large_binary())
        borders = np.frombuffer(whole.buffers()[1], dtype=np.int64)[whole.offset : whole.offset + len(whole) + 1]
        content = np.frombuffer(whole.buffers()[2] or b"", dtype=np.uint8)
        parts.append(content[borders[0] : borders[-1]])
    return np.concatenate(parts), offsets


def _heads(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    heads = np.zeros(len(offsets) - 1, dtype=np.uint64)
    lengths = np.diff(offsets)
    for byte in range(HEAD):
        heads <<= np.uint64(8)
        long = np.flatnonzero(lengths > byte)
        heads[long] |= data[offsets[long] + byte]
    return heads
