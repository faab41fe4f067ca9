"""An opened knowledge base: its graph, its indexes, an embedder and optionally a language model."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from clew.core import trace
from clew.core.addresses import is_bolt, is_remote
from clew.core.errors import EmbedderMismatch, InputError, NotFoundError
from clew.core.roles import Parser
from clew.core.texts import MOST_ASKED, asked_text
from clew.models.embedding.opening import (
    DEFAULT,
    PASSAGES,
    REMOTE_EMBEDDERS,
    CachedEmbedder,
    open_embedder,
    trusted_embedder,
)
from clew.models.protocol import Embedder, LanguageModel
from clew.models.settings import Settings
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.description import describe, described_schema
from clew.store.graph.protocol import KnowledgeBase, StoredKnowledgeBase, is_sparql
from clew.store.index.build import (
    embedder_of,
    have_all_vectors,
    index_vectors,
    name_tables,
    open_lexical,
    open_names,
    open_vectors,
    vector_folder,
)
from clew.store.index.lexical import LexicalIndex
from clew.store.index.protocol import CorrectedNames, Names
from clew.store.index.vector_store import VectorStore, remembered_embedder
from clew.store.index.vectors import EmbedBatches, VectorIndex
from clew.store.remote_bases import RemoteAddress, open_remote, open_stored

if TYPE_CHECKING:  # extras, and types of optional features
    from clew.core.workers import Workers
    from clew.store.index.names import NameTable
    from clew.store.index.strings import TrigramIndex
    from clew.store.postgres.knowledge_base import PostgresKnowledgeBase
    from clew.store.remote.remote import RemoteKnowledgeBase

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Callback with the amount done and the total."""
Adopt = Callable[[], object]
"""Function that puts prepared vectors in use."""


@dataclass(frozen=True)
class OpenBase:
    """An opened base whose parts are loaded on demand. A method without vectors does not load the embedder."""

    kb: KnowledgeBase
    model: LanguageModel | None = None
    embedder_given: str | Embedder | None = None
    """Embedder or its specification. None means the base's own embedder, or the default for its content."""
    parser: Parser | None = None
    """Parser for all questions. None lets each method choose."""
    _kept: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)
    _lock: RLock = field(default_factory=RLock, repr=False, compare=False)

    @classmethod
    def open(
        cls, folder: str | Path, *, model: LanguageModel | None = None, embedder: str | Embedder | None = None
    ) -> OpenBase:
        """Open the knowledge base in a folder, or at an address: postgresql://…, sparql+http://…, bolt://…."""
        if is_remote(folder):
            return OpenRemoteBase(open_remote(str(folder)), model, embedder)
        return open_base_of(open_stored(folder), model, embedder)

    @property
    def identity(self) -> str:
        """Identifies the content of this base."""
        return self.stored.identity

    def describe(self) -> dict[str, Any]:
        """Return counts, schema, degrees, size, source notes, and the locations of texts and vectors."""
        place = str(self.local.folder)
        vectors = {"place": Settings.load().vectors or place, "complete": have_all_vectors(self.local)}
        return {"kind": "folder", **describe(self.local), "texts": place, "vectors": vectors}

    @property
    def described(self) -> StoredKnowledgeBase:
        """Base with the names, texts and groups of all nodes."""
        return self.stored

    def opens(self, view: str | Path) -> str | Path:
        """Return the address that opens this base restricted to a view of its description."""
        return view

    @property
    def place(self) -> str | Path:
        """Address to open this base again."""
        return self.local.folder

    @property
    def model_name(self) -> str:
        """The model's name, or "none"."""
        return "none" if self.model is None else self.model.name

    def get_or_create(self, what: Hashable, make: Callable[[], T]) -> T:
        """Return a costly part of the opened base. It is made at the first call and cached."""
        with self._lock:
            if what not in self._kept:
                self._kept[what] = make()
            kept: T = self._kept[what]
            return kept

    def required_model(self, who: str) -> LanguageModel:
        """Return the model. Raise InputError if there is none."""
        if self.model is None:
            raise InputError(f"{who} needs a language model: name one with --model, or model= in Python")
        return self.model

    @property
    def stored(self) -> StoredKnowledgeBase:
        """The base, if Clew stores it in a folder or a database. Otherwise raise InputError."""
        if self.kb.stored is None:
            raise InputError(f"{self.kb!r} is remote: use a base built with `clew build`")
        return self.kb.stored

    @property
    def local(self) -> ArrayKnowledgeBase:
        """The base as arrays. Raise InputError if it is not in a folder."""
        if self.kb.arrays is None:
            raise InputError(f"{self.kb!r} is remote: use a knowledge base in a folder, built with `clew build`")
        return self.kb.arrays

    @classmethod
    def switch_embedder(
        cls,
        folder: str | Path,
        spec: str,
        progress: Progress = lambda _done, _total: None,
        *,
        relations: bool = False,
        workers: Workers | None = None,
    ) -> int:
        """Switch a knowledge base to another embedder. Return the number of vectors computed, by workers or here.

        The old vectors stay in use until all new vectors are computed, so an interruption has no effect.
        """
        opened, embedder = cls.open(folder), open_embedder(spec)
        embed = embedding_by(workers, spec, embedder.name)
        indexes, adopt = opened._prepare(embedder, spec, relations=relations)
        computed = sum(index.embed_all(progress, embed) for index in indexes)
        adopt()
        return computed

    def _prepare(self, embedder: Embedder, spec: str, *, relations: bool) -> tuple[Sequence[VectorIndex], Adopt]:
        """Return empty indexes for another embedder, and the function that puts them in use."""
        store = VectorStore.open(vector_folder(self.local.folder), embedder, spec=spec, in_use=False)
        kinds = {False, relations or have_all_vectors(self.local, relations=True)}
        indexes = [index_vectors(self.local, embedder, store, self.lexical, relations=kind) for kind in sorted(kinds)]
        return indexes, store.adopt

    def embed_all(
        self,
        progress: Progress = lambda _done, _total: None,
        *,
        relations: bool = False,
        workers: Workers | None = None,
    ) -> int:
        """Compute all missing vectors, by workers or here. Return their number."""
        embed = embedding_by(workers, self._embedder_spec, self.embedder.name)
        kinds = [self.vectors, self.vectors_with_relations] if relations else [self.vectors]
        return sum(vectors.embed_all(progress, embed) for vectors in kinds)

    @property
    def embeds_here(self) -> bool:
        """Whether texts are embedded on this machine, not by a service that may cost money."""
        return not self._embedder_spec.startswith(REMOTE_EMBEDDERS)

    @cached_property
    def embedder(self) -> Embedder:
        """The embedder. Query vectors are cached."""
        given = self.embedder_given
        return CachedEmbedder(open_embedder(self._embedder_spec) if given is None or isinstance(given, str) else given)

    @cached_property
    def lexical(self) -> LexicalIndex:
        """BM25 over the node documents."""
        return open_lexical(self.local)

    @cached_property
    def lexical_with_relations(self) -> LexicalIndex:
        """BM25 over node documents that include the names of neighbours."""
        return open_lexical(self.local, relations=True)

    @cached_property
    def vectors(self) -> VectorIndex:
        """Vectors of the node documents, computed on demand."""
        return open_vectors(self.local, self.embedder, self.lexical, spec=self._embedder_spec)

    @cached_property
    def vectors_with_relations(self) -> VectorIndex:
        """Vectors of node documents that include relations."""
        words = self.lexical_with_relations
        return open_vectors(self.local, self.embedder, words, spec=self._embedder_spec, relations=True)

    @cached_property
    def names(self) -> Names:
        """Index of all aliases of all nodes."""
        return self.names_in(None)

    def names_in(self, graph: KnowledgeBase | None) -> Names:
        """Return the name index, with `graph` as the source of edges."""
        return open_names(self.stored, self._name_tables, self.lexical, lambda: self.vectors, graph)

    @property
    def _name_tables(self) -> tuple[NameTable, TrigramIndex]:
        return name_tables(self.local)

    def find_node(self, text: str) -> int:
        """Find a node by key, or else by name. Raise InputError with a list if several nodes have the name."""
        text = text if len(text) <= MOST_ASKED else asked_text(text, "name")
        try:
            return self.kb.find(text)
        except NotFoundError:
            padded = re.sub(r"(?<=#page=)\d{1,4}$", lambda page: page[0].zfill(5), text)
            if padded != text:
                return self.find_node(padded)
            links = [link for link in self.names.link(text, k=10) if link.how != "vector"]
        exact = [link for link in links if link.how == "exact"]
        if not exact:  # a key must match exactly
            near = "; ".join(f"{ref.name} ({ref.key})" for ref in self.kb.refs([link.node for link in links[:3]]))
            hint = f"did you mean {near}?" if near else "`clew find` looks names up"
            raise NotFoundError(f"no node has the key or the name {text[:200]!r}: {hint}")
        if len(exact) > 1:
            several = "; ".join(f"{ref.key} ({ref.type})" for ref in self.kb.refs([link.node for link in exact]))
            raise InputError(f"several nodes are called {text!r}: use one of the keys {several}")
        return exact[0].node

    def with_model(self, model: LanguageModel | None) -> OpenBase:
        """Return this base with another model, sharing all opened parts."""
        return self._sharing(model=model)

    def corrected(self, fixes: Mapping[str, tuple[str, ...]]) -> OpenBase:
        """Return this base with corrected names: each name refers to the nodes with these keys, or to none."""
        if not fixes:
            return self
        nodes = {name: tuple(self.kb.find(key) for key in keys) for name, keys in fixes.items()}
        return self._sharing(names=CorrectedNames(self.names, nodes), _kept={})

    def with_parser(self, parser: Parser) -> OpenBase:
        """Return this base with a parser for all questions."""
        return self._sharing(parser=parser)

    def _sharing(self, **changes: object) -> OpenBase:
        copied = copy.copy(self)
        vars(copied).update(changes)  # the fields and cached properties of a frozen dataclass are in its dictionary
        return copied

    @property
    def _embedder_spec(self) -> str:
        given = self.embedder_given
        return self._own_embedder() if given is None else given if isinstance(given, str) else given.name

    def _own_embedder(self) -> str:
        """Return the base's embedder, or the default for its content."""
        return embedder_of(self.local)

    @property
    def remembered_embedder(self) -> str | None:
        """Embedder of the base's vectors. None if it has no vectors."""
        return remembered_embedder(vector_folder(self.local.folder))


WITHOUT_RELATIONS = (
    "documents with relations",
    "only a base in a folder has them indexed (-O with_relations=false asks for the others)",
    "documents without relations are searched",
)


class OpenBaseElsewhere(OpenBase):
    """An opened base outside a folder, whose documents are indexed without relations."""

    @property
    def lexical_with_relations(self) -> LexicalIndex:
        """BM25 over the documents without relations."""
        trace.fallback(*WITHOUT_RELATIONS)
        return self.lexical

    @property
    def vectors_with_relations(self) -> VectorIndex:
        """Vectors of the documents without relations."""
        trace.fallback(*WITHOUT_RELATIONS)
        return self.vectors


class OpenPostgresBase(OpenBaseElsewhere):
    """An opened base in PostgreSQL, with the same indexes in tables."""

    kb: PostgresKnowledgeBase

    def _prepare(self, embedder: Embedder, spec: str, *, relations: bool) -> tuple[Sequence[VectorIndex], Adopt]:  # noqa: ARG002 - documents have none
        from clew.store.postgres.vectors import PostgresVectors, PostgresVectorStore

        store = PostgresVectorStore(self.kb, embedder, spec, in_use=False)
        return [PostgresVectors(self.kb, embedder, store, self.lexical)], store.adopt

    def describe(self) -> dict[str, Any]:
        """Return counts, schema, degrees, size, source notes, and the locations of texts and vectors."""
        from clew.store.postgres.vectors import have_all_vectors

        place = str(self.kb.address)
        vectors = {"place": place, "complete": have_all_vectors(self.kb)}
        return {"kind": "postgresql", **self.kb.describe(), "texts": place, "vectors": vectors}

    @property
    def place(self) -> str:
        """The address with its password, which must not be shown."""
        return self.kb.address.url

    @cached_property
    def lexical(self) -> LexicalIndex:
        """BM25 over the node documents."""
        from clew.store.postgres.names import PostgresLexical

        return PostgresLexical(self.kb)

    @cached_property
    def vectors(self) -> VectorIndex:
        """Vectors of the node documents, computed on demand and shared by all servers."""
        from clew.store.postgres.vectors import PostgresVectors, PostgresVectorStore

        store = PostgresVectorStore(self.kb, self.embedder, self._embedder_spec)
        return PostgresVectors(self.kb, self.embedder, store, self.lexical)

    @property
    def _name_tables(self) -> tuple[NameTable, TrigramIndex]:
        from clew.store.postgres.names import PostgresNameTable, PostgresTrigrams

        return PostgresNameTable(self.kb), PostgresTrigrams(self.kb)

    def _own_embedder(self) -> str:
        made_for = PASSAGES if "passage" in self.kb.schema.type_names else None
        return trusted_embedder(self.remembered_embedder or made_for, self.kb.address)

    @property
    def remembered_embedder(self) -> str | None:
        """Embedder of the base's vectors. None if it has no vectors."""
        from clew.store.postgres.vectors import remembered_embedder

        return remembered_embedder(self.kb)


class OpenRemoteBase(OpenBaseElsewhere):
    """An opened graph in a remote store. Names, words and vectors come from its description."""

    kb: RemoteKnowledgeBase

    def _prepare(self, embedder: Embedder, spec: str, *, relations: bool) -> tuple[Sequence[VectorIndex], Adopt]:
        return self.texts._prepare(embedder, spec, relations=relations)

    @cached_property
    def texts(self) -> OpenBase:
        """The opened description of its nodes, in a folder or in PostgreSQL."""
        if self.kb.described is None:
            raise InputError(
                f"{self.kb!r} is too large to read its texts on demand: read them with "
                "`clew build … --nodes-only` to search words and meanings (docs/guides/sources.md)"
            )
        return open_base_of(self.kb.described, None, self.embedder_given)

    @property
    def described(self) -> StoredKnowledgeBase:
        """The description of its nodes."""
        return self.texts.stored

    def describe(self) -> dict[str, Any]:
        """Return counts, schema, and the locations of graph, texts and vectors. None for unknown counts."""
        schema = self.kb.schema
        edges = sum(relation.count for relation in schema.relations)
        told = {"texts": None, "vectors": None} if self.kb.described is None else self.texts.describe()
        return {
            "kind": "bolt" if is_bolt(self.place) else "sparql",
            "graph": self.kb.address,
            "nodes": None if self.kb.described is None else self.described.count,
            "edges": edges or None,
            **described_schema(schema),
            "texts": told["texts"],
            "vectors": told["vectors"],
        }

    @property
    def place(self) -> str:
        """Address to open this base again, which must not be shown."""
        return self.kb.place

    def opens(self, view: str | Path) -> str:
        """Return the address of the same graph with only the nodes of the view."""
        return RemoteAddress.parse(self.place).described_by(str(view), is_part=True)

    @cached_property
    def embedder(self) -> Embedder:
        """The embedder. Query vectors are cached."""
        return super().embedder if self.kb.described is None else self.texts.embedder

    @property
    def lexical(self) -> LexicalIndex:
        """BM25 over the node documents."""
        return self.texts.lexical

    @property
    def vectors(self) -> VectorIndex:
        """Vectors of the node documents, computed on demand."""
        return self.texts.vectors

    @cached_property
    def names(self) -> Names:
        """Index of all aliases, or of labels at the endpoint if nodes were not read."""
        from clew.store.index.remote_names import RemoteNames

        if is_sparql(self.kb) and self.kb.described is None:
            return RemoteNames(self.kb)
        return self.texts.names_in(self.kb)

    @property
    def identity(self) -> str:
        """The address of the graph, and the identity of its description."""
        return repr(self.kb) if self.kb.described is None else f"{self.kb!r} {self.described.identity}"

    def _own_embedder(self) -> str:
        return DEFAULT if self.kb.described is None else self.texts._own_embedder()

    @property
    def remembered_embedder(self) -> str | None:
        """Embedder of its texts' vectors. None if it has no vectors."""
        return None if self.kb.described is None else self.texts.remembered_embedder


def open_base_of(
    kb: StoredKnowledgeBase, model: LanguageModel | None = None, embedder: str | Embedder | None = None
) -> OpenBase:
    """Open a base that Clew stores, in a folder or in PostgreSQL."""
    return (OpenPostgresBase if kb.arrays is None else OpenBase)(kb, model, embedder)


@dataclass(frozen=True)
class EmbedTexts:
    """Task that workers receive to embed documents."""

    spec: str
    name: str

    def open(self) -> Callable[[list[str]], NDArray[np.float32]]:
        """Return the embedder of the base with one thread, since a worker has one processor."""
        embedder = open_embedder(self.spec, threads=1)
        if embedder.name != self.name:
            raise EmbedderMismatch(f"{self.spec} is {embedder.name} on this worker, but {self.name} at the base")
        return partial(embedder.embed, role="document")


def embedding_by(workers: Workers | None, spec: str, name: str) -> EmbedBatches | None:
    """Return a function that embeds batches with workers, or None without workers."""
    if workers is None:
        return None
    if spec.startswith(REMOTE_EMBEDDERS):
        raise InputError(f"{spec} needs the key of this machine: omit --ray")
    return partial(workers.ordered, EmbedTexts(spec, name))
