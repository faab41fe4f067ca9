"""Vectors of a base in PostgreSQL, by content: each text is embedded only once, across all servers.

Each embedder of a base has a table of pgvector, shared by all generations and compared exactly. An HNSW index on
`embedding` (docs/guides/scale.md) is used only without a filter, since it would apply the filter after the search.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clew.core import trace
from clew.core.errors import EmbedderMismatch
from clew.core.types import IntArray
from clew.models.embedding.opening import open_embedder, trusted_embedder
from clew.models.protocol import Embedder
from clew.store.index.protocol import Index
from clew.store.index.vector_store import Hashes, Vectors
from clew.store.index.vectors import ServedVectors
from clew.store.postgres.catalog import row_of
from clew.store.postgres.connection import Connection, ReadOnlyError
from clew.store.postgres.knowledge_base import PostgresKnowledgeBase
from clew.store.postgres.loading import COPY_END, COPY_HEAD
from clew.store.postgres.names import PostgresLexical

IN_MEMORY = 1 << 30
"""First row number of vectors in the memory of this process, if the database is read-only."""


def remembered_embedder(kb: PostgresKnowledgeBase) -> str | None:
    """Return the embedder of a base's vectors, or None if there are none."""
    row = kb.database.one("SELECT spec FROM clew.embedder WHERE base = %s AND in_use", kb.generation.embeds)
    return None if row is None else str(row[0])


def have_all_vectors(kb: PostgresKnowledgeBase) -> bool:
    """Return whether every node has a vector, as after `clew embed`."""
    query = "SELECT count(*) FROM vector_rows r JOIN clew.embedder e ON e.id = r.embedder AND e.in_use"
    return bool(kb.database.value(query) == len(kb))


def renew_vectors(kb: PostgresKnowledgeBase) -> int:
    """Compute the missing vectors of a changed base, and return their number."""
    spec = trusted_embedder(remembered_embedder(kb), kb.address)
    embedder = open_embedder(spec)
    return PostgresVectors(kb, embedder, PostgresVectorStore(kb, embedder, spec), PostgresLexical(kb)).embed_all()


class PostgresVectorStore:
    """The vectors of one embedder, safe for threads and several servers."""

    def __init__(self, kb: PostgresKnowledgeBase, embedder: Embedder, spec: str, *, in_use: bool = True) -> None:
        """Open the store. Raise EmbedderMismatch if the base uses another embedder, unless `in_use` is false."""
        self.kb, self.name, self.dimension, self.spec = kb, embedder.name, embedder.dimension, spec
        self.in_use = in_use
        self.refusal: str | None = None
        """Reason why the database cannot be written, if known."""
        self._memory: dict[bytes, int] = {}
        self._kept: list[Vectors] = []
        query = "SELECT id, name, in_use FROM clew.embedder WHERE base = %s AND (in_use OR name = %s)"
        told = kb.database.rows(query, kb.generation.embeds, self.name)
        other = next((name for _, name, used in told if used and name != self.name), None)
        if in_use and other is not None:
            raise EmbedderMismatch(
                f"{kb.address} contains vectors of {other}, not of {self.name}: run `clew embed KB --embedder {spec}`"
            )
        self.id: int | None = next((number for number, name, _ in told if name == self.name), None)
        self._size: int = 0 if self.id is None else kb.database.value(f"SELECT count(*) FROM {self.table}")

    @property
    def table(self) -> str:
        """Table with the vectors."""
        return f"clew.vectors_{self.id}"

    def __len__(self) -> int:
        return self._size + len(self._kept)

    def rows(self, hashes: Hashes) -> NDArray[np.int64]:
        """Return the rows of the texts' vectors, -1 for missing vectors."""
        keys = [key.tobytes() for key in hashes]
        found: dict[bytes, int] = {key: self._memory[key] for key in keys if key in self._memory}
        if self.id is not None:
            query = f"SELECT hash, row FROM {self.table} WHERE hash = ANY(%s)"
            found |= {bytes(key): row for key, row in self.kb.database.rows(query, keys)}
        return np.array([found.get(key, -1) for key in keys], dtype=np.int64)

    def gather(self, rows: NDArray[np.integer]) -> Vectors:
        """Return the vectors of the given rows."""
        vectors = np.empty((len(rows), self.dimension), dtype=np.float32)
        own = rows >= IN_MEMORY
        for place in np.flatnonzero(own).tolist():
            vectors[place] = self._kept[int(rows[place]) - IN_MEMORY]
        if not own.all():
            query = f"SELECT row, vector_send(embedding) FROM {self.table} WHERE row = ANY(%s)"
            found = dict(self.kb.database.rows(query, rows[~own].astype(np.int32)))
            for place in np.flatnonzero(~own).tolist():
                vectors[place] = np.frombuffer(found[int(rows[place])], dtype=">f4", offset=4)
        return vectors

    def add(self, hashes: Hashes, vectors: Vectors) -> NDArray[np.int64]:
        """Store vectors and return their rows. Skip vectors that another server has stored meanwhile."""
        if self.refusal is None:
            try:
                self.id, added = self.kb.database.do(lambda connection: self._write(connection, hashes, vectors))
                self._size += added
                return self.rows(hashes)
            except ReadOnlyError as error:
                self.refusal = f"cannot write: {error}"
                trace.fallback("vectors", self.refusal, "new vectors stay in memory")
        for place in np.flatnonzero(self.rows(hashes) < 0).tolist():
            if hashes[place].tobytes() not in self._memory:
                self._memory[hashes[place].tobytes()] = IN_MEMORY + len(self._kept)
                self._kept.append(vectors[place])
        return self.rows(hashes)

    def adopt(self) -> None:
        """Make the base use these vectors. Remove the vectors of all other embedders."""
        base = self.kb.generation.embeds

        def work(connection: Connection) -> None:
            query = "DELETE FROM clew.embedder WHERE base = %s AND name <> %s RETURNING id"
            for (other,) in connection.execute(query, [base, self.name]).fetchall():
                connection.execute(f"DROP TABLE IF EXISTS clew.vectors_{other}")
            connection.execute("UPDATE clew.embedder SET in_use = true WHERE id = %s", [self.id])

        self.kb.database.do(work)
        self.in_use = True

    def _write(self, connection: Connection, hashes: Hashes, vectors: Vectors) -> tuple[int, int]:
        """Return the number of the embedder, and the number of new vectors."""
        number = self._make(connection) if self.id is None else self.id
        connection.execute(f"CREATE TEMP TABLE new (hash bytea, embedding vector({self.dimension})) ON COMMIT DROP")
        rows = np.empty(
            len(hashes),
            dtype=[
                ("fields", ">i2"), ("hash size", ">i4"), ("hash", "<u8", 2), ("vector size", ">i4"),
                ("dimension", ">i2"), ("unused", ">i2"), ("vector", ">f4", self.dimension),
            ],
        )  # fmt: skip
        rows["fields"], rows["hash size"], rows["hash"] = 2, 16, hashes
        rows["vector size"], rows["dimension"], rows["unused"] = 4 + 4 * self.dimension, self.dimension, 0
        rows["vector"] = vectors
        with connection.cursor().copy("COPY new FROM STDIN (FORMAT binary)") as copy:
            copy.write(COPY_HEAD + rows.tobytes() + COPY_END)
        query = (
            f"INSERT INTO clew.vectors_{number} (hash, embedding) SELECT DISTINCT ON (hash) hash, embedding FROM new"
        )
        return number, connection.execute(f"{query} ON CONFLICT (hash) DO NOTHING").rowcount

    def _make(self, connection: Connection) -> int:
        """Register the embedder of the base, and create its table if needed."""
        query = (
            "INSERT INTO clew.embedder (base, name, dimension, spec, in_use) VALUES (%s, %s, %s, %s, %s) "
            "ON CONFLICT (base, name) DO UPDATE SET spec = excluded.spec RETURNING id"
        )
        told = (self.kb.generation.embeds, self.name, self.dimension, self.spec, self.in_use)
        [number] = row_of(connection, query, *told)
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS clew.vectors_{number} (row int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
            f"hash bytea NOT NULL UNIQUE, embedding vector({self.dimension}) NOT NULL)"
        )
        return int(number)


class PostgresVectors(ServedVectors):
    """Vector index with the same ranking as on disk."""

    store: PostgresVectorStore

    def __init__(
        self, kb: PostgresKnowledgeBase, embedder: Embedder, store: PostgresVectorStore, lexical: Index
    ) -> None:
        self.kb = kb
        super().__init__(len(kb), kb.text, embedder, store, lexical)

    def _saved_rows(self) -> IntArray | None:
        """Return no rows if every node has a vector, since the database stores them."""
        query = "SELECT count(*) FROM vector_rows WHERE embedder = %s"
        is_complete = self.store.id is not None and self.kb.database.value(query, self.store.id) == len(self.kb)
        return np.empty(0, dtype=np.int32) if is_complete else None

    def _nearest_there(self, vector: Vectors, nodes: IntArray | None, k: int) -> IntArray:
        among, exactly = ("", "") if nodes is None else ("AND r.node = ANY(%s)", " + 0")  # avoids the approximate index
        query = (
            f"SELECT array_agg(node) FROM (SELECT r.node FROM {self.store.table} v "
            f"JOIN vector_rows r ON r.vector = v.row AND r.embedder = %s {among} "
            f"ORDER BY (v.embedding <#> %s::vector){exactly} LIMIT %s) AS found"
        )
        asked = "[" + ",".join(map(repr, vector.tolist())) + "]"
        given = [self.store.id, *([] if nodes is None else [nodes]), asked, k]
        return np.sort(self.kb.database.ints(query, *given, planned=True))

    def _ensure(self, nodes: IntArray) -> NDArray[np.int64]:
        if not self.is_complete:
            return super()._ensure(nodes)
        query = "SELECT node, vector FROM vector_rows WHERE embedder = %s AND node = ANY(%s)"
        rows = dict(self.kb.database.rows(query, self.store.id, np.asarray(nodes, dtype=np.int32)))
        return np.array([rows[node] for node in nodes.tolist()], dtype=np.int64)

    def _texts(self, nodes: IntArray) -> list[str]:
        self.kb.prefetch(nodes.tolist())
        return super()._texts(nodes)

    def _save_rows(self) -> None:
        def work(connection: Connection) -> None:
            connection.execute("DELETE FROM vector_rows WHERE embedder = %s", [self.store.id])
            connection.execute(
                "INSERT INTO vector_rows SELECT %s, place - 1, row "
                "FROM unnest(%s::int[]) WITH ORDINALITY AS given (row, place)",
                [self.store.id, self._rows],
            )

        if not self.is_complete:
            self.kb.database.do(work)
