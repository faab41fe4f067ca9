"""Load a built base into tables with COPY, in one transaction."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clew.core.errors import LockedError
from clew.core.types import NodeSet
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.description import describe
from clew.store.graph.tables import NODE_COLUMNS
from clew.store.graph.visibility import refuse_widening
from clew.store.index.build import INDEX, LEXICAL, NAMES
from clew.store.index.lexical import LexicalIndex
from clew.store.index.names import NameTable
from clew.store.index.strings import BUCKETS, LONGEST, TrigramIndex
from clew.store.index.vector_store import hashes_of
from clew.store.postgres.catalog import (
    Generation,
    add_generation,
    current_state,
    make_current,
    row_of,
    sql_file,
    writing,
)
from clew.store.postgres.connection import Address, Connection
from clew.store.postgres.knowledge_base import PostgresKnowledgeBase

ROWS = 10_000
"""Number of nodes, or edges with attributes, converted to rows at once."""
EDGES = 1_000_000
"""Number of edges without attributes copied at once: 26 MB."""
MOST_DISTINCT = 1_000
"""Maximum number of distinct attribute values stored with the facts. Attributes with more are not categories."""
FIXED_ROW = np.dtype(
    [("fields", ">i2")]
    + [part for name in ("head", "relation", "tail") for part in ((f"{name} size", ">i4"), (name, ">i4"))]
)
COPY_HEAD, COPY_END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"


def publish(
    folder: Path,
    address: Address,
    replacing: int | None = None,
    view_of: Generation | None = None,
    *,
    widen: bool = False,
) -> Generation:
    """Load the base in a folder as the current state of a base in PostgreSQL, in one transaction.

    `replacing` is the generation it was built from, 0 for none. Raise LockedError if another generation is current by
    now. A view shares the vectors of `view_of`. `widen` allows the new base to show content to more people than before.
    """
    kb = ArrayKnowledgeBase.open(folder)
    with writing(address) as (connection, base):
        number, facts = current_state(connection, base)
        if replacing is not None and number != replacing:
            raise LockedError(f"{address} has changed meanwhile, and nothing was written: try again")
        if not widen and facts.get("groups"):
            old = PostgresKnowledgeBase.open(address)
            refuse_widening(old.to_tables(), kb.to_tables(), address)
            old.release()
        made = add_generation(connection, base, kb.identity, facts_of(kb), view_of)
        connection.execute("SET LOCAL maintenance_work_mem = '512MB'")
        load_nodes(connection, kb)
        load_edges(connection, kb)
        load_arrays(connection, kb)
        load_names(connection, kb)
        load_postings(connection, LexicalIndex.open(kb.generation / INDEX / LEXICAL))
        connection.execute(sql_file("indexes.sql"))
        connection.execute("ANALYZE nodes, edges, forms, words, trigrams, postings")
        if view_of is not None:
            link_vectors(connection, kb, view_of)
        make_current(connection, made)
    return made


def facts_of(kb: ArrayKnowledgeBase) -> dict[str, Any]:
    """Return the facts of the manifest, and statistics over all nodes."""
    columns = kb.columns()
    written = pc.greater(pc.binary_length(columns["text"]), 0).to_numpy(zero_copy_only=False)
    counts = np.bincount(kb.types[written], minlength=len(kb.schema.node_types)).tolist()
    edges = kb.edge_columns
    return {
        **kb.manifest.facts,
        "description": describe(kb),
        "written": counts,
        "distinct": {
            name: [encoded(value) for value in kb.distinct(name)[:MOST_DISTINCT]] for name in kb.schema.attribute_types
        },
        "columns": base64.b64encode(columns.schema.serialize()).decode(),
        "edge_columns": base64.b64encode((edges.schema if edges else pa.schema([])).serialize()).decode(),
    }


def load_nodes(connection: Connection, kb: ArrayKnowledgeBase) -> None:
    """Load all nodes with their texts and attributes."""
    columns = kb.columns()
    attributes = [name for name in columns.schema.names if name not in NODE_COLUMNS]

    def rows() -> Iterator[Sequence[object]]:
        for first in range(0, kb.count, ROWS):
            some = columns.slice(first, ROWS)
            types = kb.types[first : first + ROWS].tolist()
            fixed = [some[name].to_pylist() for name in ("key", "name", "aliases", "text")]
            packed = packed_rows(some, attributes)
            for place, (key, name, aliases, text) in enumerate(zip(*fixed, strict=True)):
                others = [plain(alias) for alias in aliases or ()]
                yield first + place, plain(key), types[place], plain(name), others, plain(text), packed[place]

    kinds = ["int4", "text", "int4", "text", "text[]", "text", "jsonb"]
    copy_rows(connection, "nodes (id, key, type, name, aliases, text, attributes)", kinds, rows())


def load_edges(connection: Connection, kb: ArrayKnowledgeBase) -> None:
    """Load all edges. Without attributes they are loaded as blocks of bytes."""
    edges = kb.edges(NodeSet.range(kb.count), direction="out")
    columns = kb.edge_columns
    if columns is None:
        with connection.cursor().copy("COPY edges (head, relation, tail) FROM STDIN (FORMAT binary, FREEZE)") as copy:
            copy.write(COPY_HEAD)
            for first in range(0, len(edges), EDGES):
                block = slice(first, first + EDGES)
                rows = np.empty(len(edges.heads[block]), dtype=FIXED_ROW)
                rows["fields"] = 3
                for name, part in (("head", edges.heads), ("relation", edges.relations), ("tail", edges.tails)):
                    rows[f"{name} size"], rows[name] = 4, part[block]
                copy.write(rows.tobytes())
            copy.write(COPY_END)
        return
    ends = [part.tolist() for part in (edges.heads, edges.relations, edges.tails)]

    def told() -> Iterator[Sequence[object]]:
        before, nth = None, 0
        for first in range(0, len(edges), ROWS):
            packed = packed_rows(columns.slice(first, ROWS), columns.schema.names)
            for place, attributes in enumerate(packed, start=first):
                ends_here = tuple(part[place] for part in ends)
                nth = nth + 1 if ends_here == before else 0
                before = ends_here
                yield *ends_here, nth, attributes

    copy_rows(
        connection, "edges (head, relation, tail, nth, attributes)", ["int4", "int4", "int4", "int4", "jsonb"], told()
    )


def load_arrays(connection: Connection, kb: ArrayKnowledgeBase) -> None:
    """Load the arrays that each process reads once."""
    trigrams = TrigramIndex.open(kb.generation / INDEX / NAMES)
    lengths = LexicalIndex.open(kb.generation / INDEX / LEXICAL).lengths
    every = np.arange(kb.count, dtype=np.int32)
    arrays = {
        "types": kb.types.astype("<i4"),
        "degrees": kb.degrees(every).astype("<i4"),
        "names by length": trigrams.places.astype("<i4"),
        "shorter names": trigrams.lengths.astype("<i8"),
        "documents": np.array([len(lengths)], dtype="<i8"),
    }
    copy_rows(connection, "arrays (name, content)", ["text", "bytea"], ((n, a.tobytes()) for n, a in arrays.items()))


def load_names(connection: Connection, kb: ArrayKnowledgeBase) -> None:
    """Load forms with their nodes, the words of forms, and the trigrams of forms."""
    table = NameTable.open(kb.generation / INDEX / NAMES)
    trigrams = TrigramIndex.open(kb.generation / INDEX / NAMES)

    def forms() -> Iterator[Sequence[object]]:
        for place in range(len(table)):
            entries = table.entries(place)
            form = plain(table.forms[place].decode())
            yield place, form, entries.nodes, entries.kinds.tobytes(), [plain(alias) for alias in entries.aliases]

    def words() -> Iterator[Sequence[object]]:
        for place in range(len(table.words)):
            own = table.word_forms[table.word_offsets[place] : table.word_offsets[place + 1]]
            yield plain(table.words[place].decode()), len(own), own

    def by_length() -> Iterator[Sequence[object]]:
        for code in range(BUCKETS):
            ranks = trigrams.members[trigrams.offsets[code] : trigrams.offsets[code + 1]]
            if not len(ranks):
                continue
            borders = ranks.searchsorted(trigrams.lengths.astype(np.int32))
            for length in np.flatnonzero(np.diff(borders)).tolist():
                own = ranks[borders[length] : borders[length + 1]]
                yield code, min(length, LONGEST), len(own), own

    names = "forms (id, form, nodes, kinds, aliases)"
    copy_rows(connection, names, ["int4", "text", "int4[]", "bytea", "text[]"], forms())
    copy_rows(connection, "words (word, count, forms)", ["text", "int4", "int4[]"], words())
    copy_rows(connection, "trigrams (code, length, count, ranks)", ["int4", "int4", "int4", "int4[]"], by_length())


def load_postings(connection: Connection, lexical: LexicalIndex) -> None:
    """Load the documents of every term with their weights."""

    def rows() -> Iterator[Sequence[object]]:
        borders = lexical.offsets.tolist()
        for place in range(len(lexical.vocabulary)):
            own = slice(borders[place], borders[place + 1])
            documents = np.ascontiguousarray(lexical.documents[own], dtype="<i4")
            weights = np.ascontiguousarray(lexical.weights[own], dtype="<f4")
            yield lexical.vocabulary[place].decode(), len(documents), documents.tobytes(), weights.tobytes()

    copy_rows(connection, "postings (term, count, documents, weights)", ["text", "int4", "bytea", "bytea"], rows())


def link_vectors(connection: Connection, kb: ArrayKnowledgeBase, whole: Generation) -> None:
    """Assign the vectors to the nodes of a view, if all nodes of the whole base have vectors."""
    query = f"SELECT count(*) FROM {whole.schema}.vector_rows WHERE embedder = %s"
    for (embedder,) in connection.execute(
        "SELECT id FROM clew.embedder WHERE base = %s AND in_use", [whole.embeds]
    ).fetchall():
        if row_of(connection, query, embedder)[0] != whole.facts["nodes"]:
            continue
        for first in range(0, kb.count, ROWS):
            nodes = np.arange(first, min(first + ROWS, kb.count), dtype=np.int32)
            hashes = [key.tobytes() for key in hashes_of([kb.text(node) for node in nodes.tolist()])]
            connection.execute(
                "INSERT INTO vector_rows SELECT %s, given.node, v.row FROM unnest(%s::int[], %s::bytea[]) "
                f"AS given (node, hash) JOIN clew.vectors_{embedder} v USING (hash)",
                [embedder, nodes, hashes],
            )


def copy_rows(connection: Connection, table: str, kinds: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Load rows into the columns of a table created in this transaction."""
    with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary, FREEZE)") as copy:
        copy.set_types(kinds)
        for row in rows:
            copy.write_row(row)


def plain(text: str) -> str:
    """Replace zero characters, which PostgreSQL does not allow."""
    return text.replace("\0", "\ufffd") if "\0" in text else text


def packed_rows(some: pa.RecordBatch, names: Sequence[str]) -> list[dict[str, object]]:
    """Return the attributes of every row for JSON, without missing values."""
    columns = {name: some[name].to_pylist() for name in names}
    rows: list[dict[str, object]] = [{} for _ in range(some.num_rows)]
    for name, column in columns.items():
        for row, value in zip(rows, column, strict=True):
            if value is not None:
                row[plain(name)] = encoded(value)
    return rows


def encoded(value: Any) -> Any:
    """Convert a value for JSON. `decoder` reads it back."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    return [encoded(part) for part in value] if isinstance(value, list) else value
