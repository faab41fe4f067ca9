"""Build the indexes of a knowledge base with its graph, and open them from its folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clew.core.disk import refuse_link
from clew.core.errors import FormatError
from clew.core.types import IntArray
from clew.models.embedding.multilingual import MULTILINGUAL, has_multilingual
from clew.models.embedding.opening import PASSAGES, open_embedder, trusted_embedder
from clew.models.protocol import Embedder
from clew.models.settings import Settings
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import read_manifest
from clew.store.graph.protocol import KnowledgeBase, StoredKnowledgeBase
from clew.store.graph.render import SEPARATOR, searchable
from clew.store.index.lexical import LexicalIndex, sampled, written_in
from clew.store.index.names import NameIndex, NameTable
from clew.store.index.protocol import Index
from clew.store.index.strings import TrigramIndex
from clew.store.index.tokens import ENGLISH
from clew.store.index.vector_store import RELATIONS, VectorStore, remembered_embedder, remove_stores
from clew.store.index.vectors import DiskVectors, VectorIndex, drop_rows, rows_files

INDEX, LEXICAL, NAMES, VECTORS = "index", "lexical", "names", "vectors"
WITH_RELATIONS = "lexical_relations"
"""Words of documents with relations, in addition to the documents without relations."""
MOST_INDEXED = 200
"""Maximum number of neighbours by one relation to index. The neighbours of a hub say little about it."""
BLOCK = 100_000
"""Number of nodes whose documents are rendered at once."""


def build_indexes(kb: ArrayKnowledgeBase, folder: Path) -> str:
    """Write all indexes of a base. Return the language of most of its texts."""
    columns = kb.columns()
    shown = {attribute for node_type in kb.schema.node_types for attribute in node_type.attributes}
    language = written_in(searchable(columns.take(sampled(len(kb))), shown))
    LexicalIndex.write(folder / LEXICAL, _documents(kb, shown), language)
    if kb.edge_count:
        LexicalIndex.write(folder / WITH_RELATIONS, _documents(kb, shown, relations=True), language)
    NameIndex.write(folder / NAMES, *_aliases(columns))
    return language


def _documents(kb: ArrayKnowledgeBase, shown: Collection[str], *, relations: bool = False) -> Iterator[pa.Array]:
    """Yield the words of all documents block by block, with `relations` also the names of neighbours."""
    for first in range(0, len(kb), BLOCK):
        block = searchable(kb.columns().slice(first, BLOCK), shown)
        if relations:
            names = kb.neighbour_names(first, first + len(block), MOST_INDEXED)
            block = pc.binary_join_element_wise(block, names, pa.scalar(SEPARATOR, pa.large_string()))
        yield block


def open_lexical(kb: ArrayKnowledgeBase, *, relations: bool = False) -> LexicalIndex:
    """Open the index of node documents, with `relations` of documents that contain the names of neighbours."""
    if not relations or not kb.edge_count:
        return LexicalIndex.open(kb.generation / INDEX / LEXICAL, kb.language)
    folder = kb.generation / INDEX / WITH_RELATIONS
    if not folder.is_dir():
        raise FormatError(
            f"{kb.folder} has no index of documents with relations: build it again, or add -O with_relations=false"
        )
    return LexicalIndex.open(folder, kb.language)


def open_vectors(
    kb: ArrayKnowledgeBase, embedder: Embedder, lexical: Index, *, spec: str = "minilm", relations: bool = False
) -> VectorIndex:
    """Open the vectors of a base. `spec` is the name of the embedder."""
    store = VectorStore.open(vector_folder(kb.folder), embedder, spec=spec)
    return index_vectors(kb, embedder, store, lexical, relations=relations)


def index_vectors(
    kb: ArrayKnowledgeBase, embedder: Embedder, store: VectorStore, lexical: Index, *, relations: bool = False
) -> VectorIndex:
    """Open the vectors of a base in a store or in Qdrant, of documents with or without relations."""
    text = partial(kb.text, relations=relations)
    state = f"{kb.generation.name}{RELATIONS}" if relations else kb.generation.name
    address = Settings.load().vectors
    if address:
        from clew.store.index.qdrant import QdrantStore, QdrantVectors  # an extra

        kept = QdrantStore(address, address.partition("#")[2] or kb.folder.name, embedder, store.spec)
        return QdrantVectors(len(kb), text, embedder, kept, lexical, generation=state)
    return DiskVectors(len(kb), text, embedder, store, lexical, generation=state)


def name_tables(kb: ArrayKnowledgeBase) -> tuple[NameTable, TrigramIndex]:
    """Open the names of a base in a folder, and their trigrams."""
    folder = kb.generation / INDEX / NAMES
    return NameTable.open(folder), TrigramIndex.open(folder)


def open_names(
    kb: StoredKnowledgeBase,
    tables: tuple[NameTable, TrigramIndex],
    lexical: LexicalIndex,
    vectors: Callable[[], Index] | None = None,
    graph: KnowledgeBase | None = None,
) -> NameIndex:
    """Open the names of a base from its tables. Words of its texts never count as misspelt names.

    `vectors` opens the index of meanings when it is needed. `graph` has the edges if the base has none itself.
    """

    def frequency(word: str) -> int:
        return max(map(lexical.frequency, lexical.terms(word)), default=0)

    return NameIndex(
        *tables,
        kb.types,
        (graph or kb).schema,
        vectors=vectors,
        name_of=lambda node: kb.refs([node])[0].name,
        prominence=(graph or kb).degrees,
        frequency=frequency,
        language=kb.language,
    )


def vector_folder(folder: Path) -> Path:
    """Return the folder for the vectors of all generations. Raise an error if it is a link."""
    refuse_link(folder / VECTORS)
    return folder / VECTORS


def have_all_vectors(kb: ArrayKnowledgeBase, *, relations: bool | None = None) -> bool:
    """Return whether every node had a vector, as after `clew embed`, in this state or in a replaced state.

    An update that was stopped before its vectors leaves the rows of the previous state.
    """
    return any(rows_files(place, relations=relations) for place in vector_folder(kb.folder).glob("*"))


def vectors_are_behind(folder: Path) -> bool:
    """Return whether only an earlier state of a base has all vectors, since a change was killed before its vectors."""
    rows = {file.name for place in vector_folder(folder).glob("*") for file in rows_files(place)}
    return bool(rows) and not any(read_manifest(folder).generation in name for name in rows)


def forget_rows(folder: Path) -> None:
    """Remove the rows of deleted states. A rebuilt base computes its vectors on demand."""
    for place in vector_folder(folder).glob("*"):
        if place.is_dir() and not place.is_symlink():
            drop_rows(place, folder)


def forget_old_rows(folder: Path) -> None:
    """Remove the rows of deleted states, unless only they show that every node had a vector."""
    if not vectors_are_behind(folder):
        forget_rows(folder)


def embedder_of(kb: ArrayKnowledgeBase) -> str:
    """Return the embedder of a base: the embedder of its vectors, or else the default for its content."""
    made_for = PASSAGES if "passage" in kb.schema.type_names else None
    if kb.language != ENGLISH and has_multilingual():  # the included embedders support only English
        made_for = MULTILINGUAL
    return trusted_embedder(remembered_embedder(vector_folder(kb.folder)) or made_for, kb.folder)


def renew_vectors(kb: ArrayKnowledgeBase) -> int:
    """Compute the missing vectors of a changed base, for the kinds of documents that had vectors.

    Return their number.
    """
    spec = embedder_of(kb)
    kinds = [relations for relations in (False, True) if have_all_vectors(kb, relations=relations)]
    return embed_documents(kb, spec, kinds)


def embed_documents(kb: ArrayKnowledgeBase, spec: str, kinds: Iterable[bool]) -> int:
    """Compute all missing vectors of documents with relations (True) or without. Return their number."""
    embedder = open_embedder(spec)
    lexical = open_lexical(kb)  # precomputed vectors do not depend on words
    return sum(open_vectors(kb, embedder, lexical, spec=spec, relations=kind).embed_all() for kind in kinds)


def discard_vectors(folder: Path) -> None:
    """Remove all vectors of a base. They are computed again on demand."""
    remove_stores(vector_folder(folder))


def _aliases(columns: pa.RecordBatch) -> tuple[pa.Array, IntArray, NDArray[np.bool_]]:
    """Return names, other names, and keys that contain a letter and differ from the name."""
    names, keys, others = columns["name"], columns["key"], columns["aliases"]
    with_key = np.flatnonzero(
        pc.and_(pc.match_substring_regex(keys, "[A-Za-z]"), pc.not_equal(keys, names)).to_numpy(zero_copy_only=False)
    )
    owners = pc.list_parent_indices(others).to_numpy(zero_copy_only=False)
    aliases = pa.concat_arrays([names, pc.list_flatten(others), keys.take(with_key)])
    nodes = np.concatenate((np.arange(len(names)), owners, with_key)).astype(np.int32)
    valid = np.flatnonzero(pc.is_valid(aliases).to_numpy(zero_copy_only=False))
    return aliases.take(valid), nodes[valid], np.arange(len(nodes))[valid] < len(names)
