"""Exact vector search that computes vectors on demand.

A new base can be searched immediately: the vectors of relevant candidates are computed and stored by content. The
candidates depend only on the question, not on earlier questions, so answers do not change over time. Once every node
has a vector, all vectors are searched. In a folder, a file has the row of every node for each state of the base.
"""

from __future__ import annotations

import io
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from clew.core import trace
from clew.core.disk import write_whole
from clew.core.errors import CorruptError, StorageError
from clew.core.scores import cosines
from clew.core.types import IntArray, NodeSet, Ranking
from clew.models.protocol import Embedder
from clew.store.index.protocol import Index
from clew.store.index.vector_store import OWN, RELATIONS, Hashes, Vectors, VectorStore, hashes_of, read_card, repairs

UNKNOWN = -1
"""Row of a node whose vector is missing or was not looked up yet."""
BATCH = 256
"""Number of vectors to compute before writing them, which limits the loss in a crash."""
FEW = 1_000
"""Maximum number of vectors to fetch from a server and compare here. Larger sets are compared there."""
MARGIN = 32
"""Additional candidates to compare again here, since a server sums in another order."""


EmbedBatches = Callable[[Iterable[list[str]]], Iterator[NDArray[np.float32]]]
"""Function from batches of documents to their vectors, in the same order."""


@dataclass(frozen=True, eq=False)
class _Batch:
    """Nodes whose documents are being embedded, and the total number of nodes done after this batch."""

    nodes: IntArray
    hashes: Hashes
    done: int


class KeptVectors(Protocol):
    """Storage for vectors by the hash of their text, safe for threads."""

    spec: str
    """Specification of the embedder."""
    refusal: str | None
    """Reason why no more vectors can be stored, if known."""

    def __len__(self) -> int: ...

    def rows(self, hashes: Hashes) -> NDArray[np.int64]:
        """Return the rows of the texts' vectors, -1 for missing vectors."""

    def gather(self, rows: NDArray[np.integer]) -> Vectors:
        """Return the vectors of the given rows."""

    def add(self, hashes: Hashes, vectors: Vectors) -> NDArray[np.int64]:
        """Store vectors and return their rows. Existing vectors stay."""


class VectorIndex(ABC):
    """Ranks nodes by the inner product of the unit vectors of document and question."""

    store: KeptVectors

    def __init__(
        self,
        size: int,
        text: Callable[[int], str],
        embedder: Embedder,
        store: KeptVectors,
        lexical: Index,
        *,
        generation: str = "",
        pool: int = 100,
        most: int = 300,
    ) -> None:
        """Open the index. `text` returns the document of a node.

        `generation` names the state of the base to which node ids belong. The suffix `-relations` means documents with
        relations, whose vectors are kept separate. Until all nodes have vectors, up to `most` given candidates are
        embedded on demand. If there are more, only the `pool` best lexical hits are embedded.
        """
        self.size, self.text, self.embedder, self.store, self.lexical = size, text, embedder, store, lexical
        self.generation, self.pool, self.most = generation, pool, most
        rows = self._saved_rows()
        self.is_complete = rows is not None
        self._rows = np.full(size, UNKNOWN, dtype=np.int32) if rows is None else rows
        self._lock = RLock()

    def search(self, query: str, k: int, *, among: NodeSet | None = None) -> Ranking:
        """Return the k nearest nodes. `among` None means all nodes, an empty set means none."""
        if k <= 0 or not self.size or (among is not None and not len(among)):
            return Ranking.of([], [])
        with trace.span("vector search") as span:
            nodes = self._candidates(query, among)
            had = len(nodes) if self.is_complete else int((self._known(nodes) >= 0).sum())
            span.note(
                candidates=self.size if among is None else len(among),
                considered=len(nodes),
                had_vectors=had,
                complete=self.is_complete,
            )
            return self._ranked(self.embedder.embed([query], role="query")[0], nodes, k)

    def nearest(self, node: int, k: int, among: NodeSet) -> Ranking:
        """Return the k nodes of `among` with the nearest vectors to a node, except the node itself."""
        near = self._ranked(self.vectors(np.array([node], dtype=np.int32))[0], among.array, k + 1)
        kept = near.nodes != node
        return Ranking(near.nodes[kept][:k], near.scores[kept][:k])

    def similarities(self, query: str, nodes: NodeSet) -> Vectors:
        """Return the cosine of each given node with a query, in order. Compute missing vectors."""
        return cosines(self.vectors(nodes.array), self.embedder.embed([query], role="query")[0])

    def vectors(self, nodes: IntArray) -> Vectors:
        """Return the vectors of the given nodes. Compute missing vectors."""
        return self.store.gather(self._ensure(nodes))

    def embed_all(
        self, progress: Callable[[int, int], None] = lambda _done, _total: None, embed: EmbedBatches | None = None
    ) -> int:
        """Compute all missing vectors and return their number. An interrupted run can be resumed.

        `embed` computes the vectors of batches in order, by default with the embedder.
        """
        progress(0, self.size)
        before = len(self.store)
        under_way: deque[_Batch] = deque()
        for vectors in (embed or self._embed)(() if self.is_complete else self._missing(under_way)):
            batch = under_way.popleft()
            self._rows[batch.nodes] = self.store.add(batch.hashes, vectors)
            if self.store.refusal:
                break
            progress(batch.done, self.size)
        if self.store.refusal:
            raise StorageError(self.store.refusal)
        computed = len(self.store) - before
        if not self.is_complete:
            for start in range(0, self.size, BATCH):  # nodes with the same text as another batch
                self._ensure(np.arange(start, min(start + BATCH, self.size), dtype=np.int32))
            with self._lock:
                self._save_rows()
                self.is_complete = True
        progress(self.size, self.size)
        return computed

    # Inside

    def _missing(self, under_way: deque[_Batch]) -> Iterator[list[str]]:
        """Yield the texts without a vector that are not in `under_way`, and add each batch there."""
        for start in range(0, self.size, BATCH):
            nodes = np.arange(start, min(start + BATCH, self.size), dtype=np.int32)
            nodes = nodes[self._known(nodes) < 0]
            texts = self._texts(nodes)
            hashes = hashes_of(texts)
            expected = {key.tobytes() for batch in under_way for key in batch.hashes}
            new = [place for place, key in enumerate(hashes) if key.tobytes() not in expected]
            if new:
                under_way.append(_Batch(nodes[new], hashes[new], min(start + BATCH, self.size)))
                yield [texts[place] for place in new]

    def _embed(self, batches: Iterable[list[str]]) -> Iterator[NDArray[np.float32]]:
        return (self.embedder.embed(texts, role="document") for texts in batches)

    def _candidates(self, query: str, among: NodeSet | None) -> IntArray:
        wanted = NodeSet.range(self.size) if among is None else among
        if self.is_complete or len(wanted) <= self.most:
            return wanted.array
        hits = self.lexical.search(query, self.pool, among=among).nodes
        if among is not None and len(among) < self.size // 2:  # larger sets are filters by type, usually narrowed
            instead = f"the {len(hits)} of them that share most with the question's words"
            trace.fallback("vector search", f"{len(among)} candidates, and not all nodes have vectors yet", instead)
        return hits

    def _ranked(self, vector: Vectors, nodes: IntArray, k: int) -> Ranking:
        near = self._shortlist(vector, nodes, k)
        return Ranking.of(near, cosines(self.vectors(near), vector), k)

    @abstractmethod
    def _shortlist(self, vector: Vectors, nodes: IntArray, k: int) -> IntArray:
        """Return some of the nodes, including the k nearest and all ties."""

    @abstractmethod
    def _saved_rows(self) -> IntArray | None:
        """Return the vector row of each node, or None if some nodes have no vector."""

    @abstractmethod
    def _save_rows(self) -> None:
        """Record that every node has a vector, and its row."""

    def _known(self, nodes: IntArray) -> NDArray[np.int64]:
        """Return the rows of nodes whose texts have vectors."""
        rows = self._rows[nodes].astype(np.int64)
        unseen = np.flatnonzero(rows == UNKNOWN)
        if len(unseen):
            rows[unseen] = self.store.rows(hashes_of(self._texts(nodes[unseen])))
            with self._lock:
                self._rows[nodes] = rows
        return rows

    def _ensure(self, nodes: IntArray) -> NDArray[np.int64]:
        """Return the rows of nodes. Compute and store missing vectors."""
        return self._rows[nodes].astype(np.int64, copy=False) if self.is_complete else self._sought(nodes)

    def _sought(self, nodes: IntArray) -> NDArray[np.int64]:
        """Return the rows of nodes by their texts. Compute and store missing vectors."""
        with self._lock:
            rows = self._known(nodes)
            missing = np.flatnonzero(rows < 0)
            for start in range(0, len(missing), BATCH):
                some = missing[start : start + BATCH]
                texts = self._texts(nodes[some])
                rows[some] = self.store.add(hashes_of(texts), self.embedder.embed(texts, role="document"))
            self._rows[nodes] = rows
            return rows

    def _texts(self, nodes: IntArray) -> list[str]:
        return [self.text(node) for node in nodes.tolist()]


class ServedVectors(VectorIndex):
    """Vectors on a server: compares few candidates here, many there, and the best again here."""

    def _shortlist(self, vector: Vectors, nodes: IntArray, k: int) -> IntArray:
        if self.is_complete and len(nodes) > FEW:
            return self._nearest_there(vector, None if len(nodes) == self.size else nodes, k + MARGIN)
        return nodes

    @abstractmethod
    def _nearest_there(self, vector: Vectors, nodes: IntArray | None, k: int) -> IntArray:
        """Return the k nearest nodes of all or some, ascending. Nodes that share a vector may add more."""


Aggregation = Literal["max", "mean", "top_k_mean"]


def chunks(text: str, size: int = 256, overlap: int = 51) -> list[str]:
    """Split a text into at least one chunk of `size` characters with `overlap`."""
    step = size - overlap
    return [text[start : start + size] for start in range(0, max(len(text) - overlap, 1), step)]


def aggregate(scores: Vectors, how: Aggregation, top: int = 3) -> float:
    """Combine the chunk scores of a document into one score."""
    if how == "max":
        return float(scores.max())
    return float(scores.mean() if how == "mean" else np.sort(scores)[-top:].mean())


@dataclass(frozen=True)
class MultiVectorIndex:
    """Chunk vectors of the best documents of a vector search, stored by content."""

    text: Callable[[int], str]
    embedder: Embedder
    store: KeptVectors
    pool: int = 50
    aggregation: Aggregation = "max"

    def rescored(self, query: str, first: Ranking, k: int) -> Ranking:
        """Rerank the pool of a vector search by chunks and return the k best. Beyond the pool the order stays."""
        if not len(first):
            return first
        with trace.span("chunk vectors") as span:
            pooled = first.top(self.pool)
            pieces = [chunks(self.text(node)) for node in pooled.nodes.tolist()]
            vector = self.embedder.embed([query], role="query")[0]
            scores = cosines(self._chunk_vectors([piece for document in pieces for piece in document]), vector)
            borders = np.cumsum([len(document) for document in pieces])[:-1]
            ranked = [aggregate(part, self.aggregation) for part in np.split(scores, borders)]
            span.note(documents=len(pooled), chunks=len(scores))
        rescored = Ranking.of(pooled.nodes, ranked, k)
        if k <= len(rescored):
            return rescored
        rest = Ranking(first.nodes[self.pool : k], first.scores[self.pool : k])
        lowest = rescored.scores.min() if len(rescored) else 0.0
        ceiling = rest.scores.max() if len(rest) else 0.0
        below = rest.scores - max(0.0, float(ceiling - lowest))  # keeps scores descending beyond the pool
        return Ranking(np.concatenate((rescored.nodes, rest.nodes)), np.concatenate((rescored.scores, below)))

    def _chunk_vectors(self, pieces: Sequence[str]) -> Vectors:
        hashes = hashes_of(pieces)
        rows = self.store.rows(hashes)
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            computed = self.embedder.embed([pieces[place] for place in missing.tolist()], role="document")
            rows[missing] = self.store.add(hashes[missing], computed)
        return self.store.gather(rows)


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


def _as_file(rows: IntArray) -> bytes:
    """Return rows in NumPy format, with a checksum as the last number."""
    content = io.BytesIO()
    np.save(content, np.append(rows, np.uint32(zlib.crc32(rows.tobytes())).view(np.int32)))
    return content.getvalue()
