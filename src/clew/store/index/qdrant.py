"""Vectors in Qdrant instead of the base's folder, with one collection per base and embedder.

A point is the vector of one text, and its id is the hash of the text. The payload lists its nodes for each state of the
base. Qdrant searches exactly, so scores equal the scores of the index on disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

import httpx
import numpy as np
from numpy.typing import NDArray

from clew.core.errors import EmbedderMismatch, InputError, StorageError, needing
from clew.core.types import IntArray
from clew.models.protocol import Embedder
from clew.models.settings import Settings
from clew.store.index.vector_store import Hashes, Vectors, file_name
from clew.store.index.vectors import BATCH, UNKNOWN, ServedVectors
from clew.store.remote.remote import Interned
from clew.store.remote.sparql_endpoint import pages_of

if TYPE_CHECKING:  # an extra
    from qdrant_client import QdrantClient

SCHEME = "qdrant+"
FINISHED = str(UUID(int=0))
"""Point that lists the states of the base in which every node has a vector."""


@lru_cache(maxsize=4)
def connect(address: str) -> QdrantClient:
    """Return a client for `qdrant+http://HOST:6333`, or for `qdrant+file:///FOLDER`, which needs no server."""
    with needing("qdrant", "qdrant_client"):
        from qdrant_client import QdrantClient
    url = address.removeprefix(SCHEME).partition("#")[0]
    parts = urlsplit(url)
    if not address.startswith(SCHEME) or parts.scheme not in ("http", "https", "file"):
        raise InputError(f"CLEW_VECTORS={address}: expected qdrant+http://HOST:6333 or qdrant+file:///FOLDER")
    with refusing(url):
        if parts.scheme == "file":
            return QdrantClient(path=unquote(parts.path))
        key = Settings.load().local_key(url).reveal()
        return QdrantClient(url=url, api_key=key or None, timeout=60, check_compatibility=False)


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn errors of Qdrant inside the block into StorageError."""
    from qdrant_client.http.exceptions import ApiException

    try:
        yield
    except (ApiException, httpx.HTTPError, OSError, RuntimeError) as error:
        raise StorageError(f"Qdrant, {what!r}: {str(error).strip() or type(error).__name__}") from error


class QdrantStore:
    """The vectors of one base by one embedder, safe for threads and several servers."""

    def __init__(self, address: str, base: str, embedder: Embedder, spec: str) -> None:
        """Open the collection of an embedder. Raise EmbedderMismatch if its vectors have another length."""
        self.client, self.dimension, self.spec = connect(address), embedder.dimension, spec
        self.is_server = not address.startswith(f"{SCHEME}file:")
        """Whether it is a server. The embedded engine compares all vectors and accepts no search parameters."""
        self.collection = f"clew {base} {file_name(embedder.name)}"
        self.refusal: str | None = None
        self._points = Interned()
        self._open(embedder)

    def _open(self, embedder: Embedder) -> None:
        from qdrant_client.models import Distance, VectorParams

        with refusing(self.collection):
            if not self.client.collection_exists(self.collection):
                kind = VectorParams(size=self.dimension, distance=Distance.DOT)
                self.client.create_collection(self.collection, vectors_config=kind)
            found = self.client.get_collection(self.collection).config.params.vectors
        size = found.size if isinstance(found, VectorParams) else None
        if size != self.dimension:
            raise EmbedderMismatch(
                f"Qdrant's collection {self.collection!r} holds vectors of length {size}, {embedder.name} makes "
                f"{self.dimension}: remove the collection, or name another one after # in CLEW_VECTORS"
            )

    def __len__(self) -> int:
        with refusing(self.collection):
            return int(self.client.count(self.collection).count)

    def rows(self, hashes: Hashes) -> NDArray[np.int64]:
        """Return the row numbers of texts in this process, -1 for missing vectors."""
        ids = [str(UUID(bytes=key.tobytes())) for key in hashes]
        unknown = [point for point in dict.fromkeys(ids) if point not in self._points.ids]
        for some in pages_of(unknown, BATCH):
            with refusing(self.collection):
                there = self.client.retrieve(self.collection, some, with_payload=False)
            for point in there:
                self._points.id(str(point.id))
        return np.array([self._points.ids.get(point, -1) for point in ids], dtype=np.int64)

    def gather(self, rows: NDArray[np.integer]) -> Vectors:
        """Return the vectors of the given rows."""
        ids = [self._points.terms[row] for row in rows.tolist()]
        found: dict[str, Any] = {}
        for some in pages_of(list(dict.fromkeys(ids)), BATCH):
            with refusing(self.collection):
                there = self.client.retrieve(self.collection, some, with_payload=False, with_vectors=True)
            found |= {str(point.id): point.vector for point in there}
        if len(found) < len(set(ids)):
            raise StorageError(f"vectors have vanished from Qdrant's {self.collection!r}: open the base again")
        return np.array([found[point] for point in ids], dtype=np.float32).reshape(-1, self.dimension)

    def add(self, hashes: Hashes, vectors: Vectors) -> NDArray[np.int64]:
        """Store vectors and return their rows. Vectors that another server has stored meanwhile are the same."""
        from qdrant_client.models import PointStruct

        ids = [str(UUID(bytes=key.tobytes())) for key in hashes]
        points = [PointStruct(id=one, vector=vector.tolist()) for one, vector in zip(ids, vectors, strict=True)]
        with refusing(self.collection):
            self.client.upsert(self.collection, points, wait=True)
        return np.array(list(map(self._points.id, ids)), dtype=np.int64)

    def is_finished(self, state: str) -> bool:
        """Return whether every node of a state has a vector, as after `clew embed`."""
        with refusing(self.collection):
            return any(state in (point.payload or {}) for point in self.client.retrieve(self.collection, [FINISHED]))

    def finish(self, state: str, rows: IntArray) -> None:
        """Record the nodes of each vector in a state, then that all nodes have vectors."""
        from qdrant_client.models import PayloadSchemaType, PointStruct, SetPayload, SetPayloadOperation

        nodes: dict[int, list[int]] = {}
        for node, row in enumerate(rows.tolist()):
            nodes.setdefault(row, []).append(node)
        with refusing(self.collection):
            if self.is_server:
                self.client.create_payload_index(self.collection, state, PayloadSchemaType.INTEGER)
            for some in pages_of(list(nodes), BATCH):
                told = [SetPayload(payload={state: nodes[row]}, points=[self._points.terms[row]]) for row in some]
                self.client.batch_update_points(self.collection, [SetPayloadOperation(set_payload=one) for one in told])
            if not self.client.retrieve(self.collection, [FINISHED]):
                self.client.upsert(self.collection, [PointStruct(id=FINISHED, vector=[0.0] * self.dimension)])
            self.client.set_payload(self.collection, {state: [UNKNOWN]}, points=[FINISHED], wait=True)

    def nearest(self, state: str, vector: Vectors, nodes: IntArray | None, k: int) -> IntArray:
        """Return the nodes of a state with the k nearest vectors, among all or some nodes."""
        from qdrant_client.models import FieldCondition, Filter, MatchAny, Range, SearchParams

        wanted = Range(gte=0) if nodes is None else None
        among = None if nodes is None else MatchAny(any=nodes.tolist())
        with refusing(self.collection):
            found = self.client.query_points(
                self.collection,
                query=vector.tolist(),
                query_filter=Filter(must=[FieldCondition(key=state, range=wanted, match=among)]),
                search_params=SearchParams(exact=True) if self.is_server else None,
                limit=k,
                with_payload=[state],
            )
        there = np.array([node for point in found.points for node in (point.payload or {})[state]], dtype=np.int32)
        return np.unique(there if nodes is None else np.intersect1d(there, nodes)).astype(np.int32)


class QdrantVectors(ServedVectors):
    """Vector index with the same ranking as the index on disk."""

    store: QdrantStore

    @property
    def state(self) -> str:
        """Name of the state of the base in payloads."""
        return self.generation.replace("-", "_")

    def _saved_rows(self) -> IntArray | None:
        """Return unknown rows if every node has a vector, since row numbers are specific to this process."""
        return np.full(self.size, UNKNOWN, dtype=np.int32) if self.store.is_finished(self.state) else None

    def _nearest_there(self, vector: Vectors, nodes: IntArray | None, k: int) -> IntArray:
        return self.store.nearest(self.state, vector, nodes, k)

    def _ensure(self, nodes: IntArray) -> NDArray[np.int64]:
        return self._sought(nodes)

    def _save_rows(self) -> None:
        self.store.finish(self.state, self._rows)
