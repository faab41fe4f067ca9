"""Vectors by content: each text is embedded only once, across all processes.

    KB/vectors/embedder.json            the embedder of the base, with a digest
    KB/vectors/<embedder>/keys.bin      per vector: a 128-bit hash of its text, and a checksum
    KB/vectors/<embedder>/vectors.bin   the vectors, in the same order

Both files only grow. A key is written after its vector is on disk, so a crash leaves at most vectors without keys,
which the next writer overwrites. If the folder is read-only, new vectors stay in memory. Each process compares a
vector with its checksum on first use.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import RLock
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from clew.core import trace
from clew.core.disk import BINARY, hold, refuse_link, write_whole
from clew.core.errors import CorruptError, EmbedderMismatch
from clew.core.texts import parse_json
from clew.models.protocol import Embedder

KEY = np.dtype([("hash", "<u8", 2), ("check", "<u4")])
FILE = "embedder.json"
RELATIONS = "-relations"
"""Suffix of the rows of documents with relations."""
OWN = re.compile(rf"keys\.bin|vectors\.bin|\.lock|\.?rows-(clew-)?data-[0-9a-f]{{16}}({RELATIONS})?\.npy")
"""Files of a store, and the row files of each state of the base."""
MOST_DIMENSIONS = 100_000
"""Upper bound of a stored dimension, far above any embedder. A larger number means a damaged card."""
MOST_FRESH = 10_000
"""Number of new keys in a dictionary before all keys are sorted again."""
Vectors = NDArray[np.float32]
Hashes = NDArray[np.uint64]


def hashes_of(texts: Sequence[str]) -> Hashes:
    """Return the 128-bit hash of every text as two integers."""
    encoded = (text.encode("utf-8", "surrogatepass") for text in texts)
    digests = b"".join(hashlib.blake2b(text, digest_size=16).digest() for text in encoded)
    return np.frombuffer(digests, dtype="<u8").reshape(-1, 2)


def repairs(folder: Path) -> str:
    """Return the remedy for damaged vectors."""
    return f"run `clew repair {folder.parent}`"


def remembered_embedder(folder: Path) -> str | None:
    """Return the embedder of the vectors in a folder, or None if there are none."""
    card = read_card(folder)
    return None if card is None else card.spec


class VectorStore:
    """The vectors of one embedder, safe for threads and several processes."""

    def __init__(self, folder: Path, name: str, dimension: int, spec: str, *, in_use: bool = True) -> None:
        """Open the files. Use `VectorStore.open` instead."""
        self.in_use = in_use
        """Whether the base uses these vectors. New vectors of another embedder wait for `adopt`."""
        self.folder, self.name, self.dimension, self.spec = folder, name, dimension, spec
        self.place = folder / file_name(name)
        self.refusal: str | None = None
        """Reason why the folder cannot be written, if known."""
        self._lock = RLock()
        self._mapped: Vectors = np.empty((0, dimension), dtype=np.float32)
        self._memory: list[Vectors] = []  # used if the folder cannot be written
        self._sorted: tuple[Hashes, NDArray[np.int64]] = np.empty((0, 2), np.uint64), np.empty(0, np.int64)
        self._fresh: dict[tuple[int, int], int] = {}
        self._is_sound: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        refuse_link(folder, self.place, *(self.place / name for name in ("keys.bin", "vectors.bin", ".lock")))
        self._refresh()

    @classmethod
    def open(cls, folder: Path, embedder: Embedder, *, spec: str = "minilm", in_use: bool = True) -> VectorStore:
        """Open the vectors of an embedder in the `vectors` folder of a base.

        Raise EmbedderMismatch if the base uses another embedder, unless `in_use` is false.
        """
        told = read_card(folder) if in_use else None
        if told is not None and told.name != embedder.name:
            raise EmbedderMismatch(
                f"{folder} contains vectors of {told.name}, not of {embedder.name}: "
                f"switch with `clew embed KB --embedder {spec}`"
            )
        return cls(folder, embedder.name, embedder.dimension, spec, in_use=in_use)

    def adopt(self) -> None:
        """Make the base use these vectors. Remove the vectors of all other embedders."""
        with self._writing():
            self.in_use = True
            self._remember()
        for other in self.folder.iterdir():
            if other.is_dir() and not other.is_symlink() and other != self.place:
                _remove_store(other)

    def __len__(self) -> int:
        return len(self._mapped) + sum(map(len, self._memory))

    def rows(self, hashes: Hashes) -> NDArray[np.int64]:
        """Return the rows of the texts' vectors, -1 for missing vectors."""
        with self._lock:
            known, order = self._sorted
            rows = np.full(len(hashes), -1, dtype=np.int64)
            if len(known):
                places = np.minimum(known[:, 0].searchsorted(hashes[:, 0]), len(known) - 1)
                same = (known[places] == hashes).all(axis=1)
                rows[same] = order[places[same]]
            if self._fresh:
                for place in np.flatnonzero(rows < 0).tolist():
                    rows[place] = self._fresh.get((int(hashes[place, 0]), int(hashes[place, 1])), -1)
            return rows

    def gather(self, rows: NDArray[np.integer]) -> Vectors:
        """Return the vectors of the given rows."""
        if not self._is_sound.all():
            self._check(rows[rows < len(self._mapped)])
        if not self._memory:
            found: Vectors = self._mapped[rows]
            return found
        vectors = np.empty((len(rows), self.dimension), dtype=np.float32)
        on_disk = rows < len(self._mapped)
        vectors[on_disk] = self._mapped[rows[on_disk]]
        vectors[~on_disk] = np.concatenate(self._memory)[rows[~on_disk] - len(self._mapped)]
        return vectors

    def products(self, query: Vectors) -> Vectors:
        """Return the inner product of a query with every vector, in row order."""
        if not self._is_sound.all():
            self._check(np.arange(len(self._mapped)))
        products: Vectors = np.concatenate([part @ query for part in (self._mapped, *self._memory)])
        return products

    def add(self, hashes: Hashes, vectors: Vectors) -> NDArray[np.int64]:
        """Store vectors and return their rows. Skip vectors that another process has stored meanwhile."""
        with self._lock:
            if self.refusal is None and self.in_use:
                told = read_card(self.folder)
                if told is not None and told.name != self.name:  # its files may be deleted and must not come back
                    self.refusal = f"{self.folder} was switched to {told.name}"
                    trace.fallback("vectors", self.refusal, "new vectors stay in memory")
            if self.refusal is None:
                try:
                    with self._writing():
                        self._refresh()
                        new = self._new(hashes)
                        if len(new):
                            if self.in_use:
                                self._remember()
                            self._append(hashes[new], vectors[new])
                        self._refresh()
                    return self.rows(hashes)
                except OSError as error:
                    self.refusal = f"cannot write {self.place}: {error.strerror or error}"
                    trace.fallback("vectors", self.refusal, "new vectors stay in memory")
            new = self._new(hashes)
            for row, place in enumerate(new.tolist(), start=len(self)):
                self._fresh[int(hashes[place, 0]), int(hashes[place, 1])] = row
            self._memory.append(vectors[new])
            return self.rows(hashes)

    def problems(self) -> list[str]:
        """Return all problems with the stored vectors."""
        altered = self.altered(np.arange(len(self._mapped)))
        if not len(altered):
            return []
        shown = ", ".join(map(str, altered[:5].tolist())) + (" …" if len(altered) > 5 else "")
        return [f"{self.place}: {len(altered)} vectors were altered (rows {shown}): {repairs(self.folder)}"]

    def altered(self, rows: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the given rows on disk that differ from their checksums."""
        keys = self._mapped_keys() if len(rows) else np.empty(0, dtype=KEY)
        width = self.dimension * 4
        vectors = self._mapped.data.cast("B") if len(rows) else memoryview(b"")
        checks = keys["check"][rows].tolist()
        hashes = np.ascontiguousarray(keys["hash"][rows]).tobytes()
        wrong = [
            row
            for index, (row, check) in enumerate(zip(rows.tolist(), checks, strict=True))
            if crc32(vectors[row * width : (row + 1) * width], crc32(hashes[index * 16 : index * 16 + 16])) != check
        ]
        return np.array(wrong, dtype=np.int64)

    # Inside

    def _check(self, rows: NDArray[np.integer]) -> None:
        """Raise CorruptError for altered vectors. Each vector is compared with its checksum at its first use."""
        unseen = rows[~self._is_sound[rows]]
        if len(unseen) and len(self.altered(unseen)):
            raise CorruptError(self.problems()[0])
        self._is_sound[unseen] = True

    def _new(self, hashes: Hashes) -> NDArray[np.int64]:
        """Return the first index of every hash that is not stored yet."""
        _, first = np.unique(hashes, axis=0, return_index=True)
        first.sort()
        return first[self.rows(hashes[first]) < 0]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self.place.mkdir(parents=True, exist_ok=True)
        with (self.place / ".lock").open("w") as lock:
            hold(lock.fileno(), wait=True)
            yield

    def _append(self, hashes: Hashes, vectors: Vectors) -> None:
        count = len(self._mapped)
        keys = np.empty(len(hashes), dtype=KEY)
        keys["hash"] = hashes
        keys["check"] = [crc32(v.tobytes(), crc32(h.tobytes())) for h, v in zip(hashes, vectors, strict=True)]
        numbers = np.ascontiguousarray(vectors, dtype="<f4").tobytes()
        _write_at(self.place / "vectors.bin", count * self.dimension * 4, numbers)
        _write_at(self.place / "keys.bin", count * KEY.itemsize, keys.tobytes())

    def _refresh(self) -> None:
        """Load vectors that this or another process has added."""
        known = len(self._mapped)
        new = self._keys(known)["hash"]
        if not len(new):
            return
        if len(self._fresh) + len(new) > max(MOST_FRESH, len(self._sorted[0]) // 4):
            hashes = np.ascontiguousarray(self._keys()["hash"])
            order = np.argsort(hashes[:, 0], kind="stable")
            self._sorted = hashes[order], order
            self._fresh.clear()
        else:
            self._fresh.update(zip(map(tuple, new.tolist()), range(known, known + len(new)), strict=True))
        file = self.place / "vectors.bin"
        count = known + len(new)
        if not file.exists() or file.stat().st_size < count * self.dimension * 4:
            raise CorruptError(f"{file} was cut: {repairs(self.folder)}")
        self._is_sound = np.append(self._is_sound, np.zeros(len(new), dtype=np.bool_))
        self._mapped = np.asarray(np.memmap(file, dtype="<f4", mode="r", shape=(count, self.dimension)))

    def _mapped_keys(self) -> NDArray[np.void]:
        """Return one key per vector, without incomplete data after them."""
        file = self.place / "keys.bin"
        try:
            return np.memmap(file, dtype=KEY, mode="r", shape=(len(self._mapped),))
        except (OSError, ValueError) as error:  # cut since it was opened
            raise CorruptError(f"{file} was cut: {repairs(self.folder)}") from error

    def _keys(self, first: int = 0) -> NDArray[np.void]:
        file = self.place / "keys.bin"
        whole = file.stat().st_size // KEY.itemsize if file.exists() else 0
        if whole <= first:
            return np.empty(0, dtype=KEY)
        return np.fromfile(file, dtype=KEY, count=whole - first, offset=first * KEY.itemsize)

    def _remember(self) -> None:
        card = EmbedderCard(self.name, self.dimension, self.spec)
        if read_card(self.folder) == card:
            return
        content = json.dumps({**asdict(card), "digest": card.digest}, ensure_ascii=False)
        write_whole(self.folder / FILE, content.encode() + b"\n")


@dataclass(frozen=True)
class EmbedderCard:
    """The embedder of a base's vectors: its name, the vector length, and its specification."""

    name: str
    dimension: int
    spec: str

    @property
    def digest(self) -> str:
        """Digest of the card."""
        return hashlib.blake2b(json.dumps(asdict(self)).encode(), digest_size=8).hexdigest()


def read_card(folder: Path) -> EmbedderCard | None:
    """Read the card of the vectors in a folder, or return None. Cards of older versions have no digest."""
    file = folder / FILE
    try:
        content = parse_json(file.read_text("utf-8"))
        digest = content.pop("digest", None)
        card = EmbedderCard(**content)
        sound = isinstance(card.name, str) and isinstance(card.spec, str) and type(card.dimension) is int
        if not sound or not 0 < card.dimension < MOST_DIMENSIONS or digest not in (None, card.digest):
            raise ValueError("the digest or a value is wrong")
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise CorruptError(f"{file} is damaged ({error}): {repairs(folder)}") from error
    return card


def remove_stores(folder: Path) -> None:
    """Remove all vectors of a base."""
    (folder / FILE).unlink(missing_ok=True)
    for place in folder.glob("*"):
        if place.is_dir() and not place.is_symlink():
            _remove_store(place)


def _remove_store(place: Path) -> None:
    """Remove the files of a store, and its folder if it is then empty."""
    for file in place.iterdir():
        if OWN.fullmatch(file.name) and file.is_file():
            file.unlink(missing_ok=True)
    with suppress(OSError):
        place.rmdir()


def file_name(name: str) -> str:
    """Return a unique folder name for an embedder."""
    mark = hashlib.blake2b(name.encode(), digest_size=4).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9.-]+', '-', name)[:60]}-{mark}"


def _write_at(file: Path, offset: int, content: bytes) -> None:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | BINARY, 0o644)
    with os.fdopen(descriptor, "r+b") as opened:
        opened.truncate(offset)  # drop the leftovers of a killed writer
        opened.seek(offset)
        opened.write(content)
        opened.flush()
        os.fsync(descriptor)
