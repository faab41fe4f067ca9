"""Vector search in the folder of a base: its vector store, and the row of every node for each state of the base."""

from __future__ import annotations

import io
import zlib
from pathlib import Path

import numpy as np

from clew.core import trace
from clew.core.disk import write_whole
from clew.core.errors import CorruptError
from clew.core.types import IntArray
from clew.store.index.vector_store import OWN, RELATIONS, Vectors, VectorStore, read_card
from clew.store.index.vectors import VectorIndex

HEADER = 128
"""Size of the NumPy header before the numbers of an array, in bytes."""
TIE_MARGIN = 1e-4
"""Margin within which cosines may tie with the k-th: larger than rounding errors of cosines and float32 sums."""
SCAN = 8
"""With more than one candidate per this many vectors, a full scan is faster than gathering."""


class DiskVectors(VectorIndex):
    """The index of a base in a folder."""

    store: VectorStore

    def _shortlist(self, vector: Vectors, nodes: IntArray, k: int) -> IntArray:
        if len(nodes) <= 4 * k:
            return nodes
        rows = self._ensure(nodes)
        is_most = len(rows) * SCAN > len(self.store)
        products = self.store.products(vector)[rows] if is_most else self.store.gather(rows) @ vector
        near: IntArray = nodes[products >= np.partition(products, -k)[-k] - TIE_MARGIN]
        return near

    @property
    def _file(self) -> Path | None:
        return self.store.place / rows_file(self.generation) if self.generation else None

    def _saved_rows(self) -> IntArray | None:
        rows = None if self._file is None else read_rows(self._file)
        if rows is not None and (len(rows) != self.size or rows.max() >= len(self.store) or rows.min() < 0):
            raise CorruptError(f"{self._file} does not match its vectors: {repairs(self.store.folder)}")
        if rows is None and self._file and rows_files(self.store.place, relations=has_relations(self._file)):
            base = self.store.folder.parent
            instead = f"as in a base that was never embedded; `clew embed {base}` computes the rest"
            trace.fallback("vectors", "the base has changed since all its nodes had vectors", instead)
        return rows

    def _save_rows(self) -> None:
        if self._file is None or not self.size:
            return
        write_whole(self._file, _as_file(self._rows), safely=True)
        drop_rows(self._file.parent, self.store.folder.parent, keep=self._file)


def rows_file(generation: str) -> str:
    """Return the name of the file with the rows of one state of a base."""
    return f"rows-{generation}.npy"


def has_relations(file: Path) -> bool:
    """Return whether rows belong to documents with relations."""
    return file.stem.endswith(RELATIONS)


def rows_files(place: Path, *, relations: bool | None = None) -> list[Path]:
    """Return the row files of a store for all states, optionally only with or without relations."""
    files = (file for file in sorted(place.glob(rows_file("*"))) if OWN.fullmatch(file.name))
    return [file for file in files if relations is None or has_relations(file) == relations]


def drop_rows(place: Path, base: Path, keep: Path | None = None) -> None:
    """Remove row files of deleted states, only of the same kind as `keep` if given. Generations in use stay."""
    for file in rows_files(place, relations=None if keep is None else has_relations(keep)):
        generation = file.stem.removeprefix("rows-").removesuffix(RELATIONS)
        if file != keep and not (base / generation).is_dir():
            file.unlink(missing_ok=True)


def read_rows(file: Path) -> IntArray | None:
    """Read the row of every node, or return None if there is no such file."""
    if not file.exists():
        return None
    content = file.read_bytes()
    is_whole = len(content) > HEADER and len(content) % 4 == 0
    rows: IntArray = np.frombuffer(content[HEADER:-4] if is_whole else b"", dtype="<i4")
    if not len(rows) or content != _as_file(rows):
        raise CorruptError(f"{file} was altered: {repairs(file.parent.parent)}")
    return rows


def vector_problems(folder: Path) -> list[str]:
    """Return all problems with the vectors in a folder."""
    try:
        card = read_card(folder)
        if card is None:
            return []
        store = VectorStore(folder, card.name, card.dimension, card.spec)
        problems = store.problems()
    except CorruptError as error:
        return [str(error)]
    for file in rows_files(store.place):
        try:
            rows = read_rows(file)
            if rows is not None and rows.max() >= len(store):
                problems.append(f"{file} refers to missing vectors: {repairs(folder)}")
        except CorruptError as error:
            problems.append(str(error))
    return problems


def repairs(folder: Path) -> str:
    """Return the remedy for damaged vectors."""
    return f"run `clew repair {folder.parent}`"


def _as_file(rows: IntArray) -> bytes:
    """Return rows in NumPy format, with a checksum as the last number."""
    content = io.BytesIO()
    np.save(content, np.append(rows, np.uint32(zlib.crc32(rows.tobytes())).view(np.int32)))
    return content.getvalue()
