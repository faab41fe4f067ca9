"""What methods are built from: a knowledge base, its indexes, an embedder and perhaps a language model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from clew.index.build import open_lexical, open_names, open_vectors, vector_folder
from clew.index.lexical import LexicalIndex
from clew.index.multi_vectors import MultiVectorIndex
from clew.index.names import NameIndex
from clew.index.protocol import Index
from clew.index.vector_store import VectorStore, remembered_embedder
from clew.index.vectors import VectorIndex
from clew.kb.arrays import ArrayKnowledgeBase
from clew.models.embedding.cached import CachedEmbedder
from clew.models.embedding.opening import DEFAULT, open_embedder
from clew.models.protocol import Embedder, LanguageModel
from clew.types import NodeSet, Ranking


@dataclass(frozen=True)
class Toolbox:
    """Opened on demand: a method that needs no vectors never loads the embedder."""

    kb: ArrayKnowledgeBase
    model: LanguageModel | None = None
    embedder_name: str | None = None
    """None means the one the base remembers, or the one that ships with Clew."""

    @classmethod
    def open(cls, folder: str | Path, *, model: LanguageModel | None = None, embedder: str | None = None) -> Toolbox:
        """The tools for the knowledge base in a folder."""
        return cls(ArrayKnowledgeBase.open(folder), model, embedder)

    @classmethod
    def switch_embedder(cls, folder: str | Path, spec: str) -> Toolbox:
        """Make a knowledge base use another embedder from now on; the vectors of the old one are removed."""
        place = vector_folder(ArrayKnowledgeBase.open(folder).folder)
        VectorStore.switch(place, open_embedder(spec), spec=spec)
        return cls.open(folder)

    @cached_property
    def embedder(self) -> Embedder:
        """Texts to vectors; queries are remembered."""
        return CachedEmbedder(open_embedder(self._embedder_spec))

    @cached_property
    def lexical(self) -> LexicalIndex:
        """BM25 over the node documents."""
        return open_lexical(self.kb)

    @cached_property
    def vectors(self) -> VectorIndex:
        """Vectors of the node documents, computed when they are first needed."""
        return open_vectors(self.kb, self.embedder, self.lexical, spec=self._embedder_spec)

    @cached_property
    def multi_vectors(self) -> MultiVectorIndex:
        """Vectors of the chunks of the best documents."""
        return MultiVectorIndex(self.vectors, self.kb.text, self.embedder, self.vectors.store)

    @cached_property
    def names(self) -> NameIndex:
        """Every alias of every node."""
        return open_names(self.kb, vectors=OpenedWhenAsked(lambda: self.vectors), lexical=self.lexical)

    @property
    def _embedder_spec(self) -> str:
        return self.embedder_name or remembered_embedder(vector_folder(self.kb.folder)) or DEFAULT


@dataclass(frozen=True)
class OpenedWhenAsked:
    """An index that is opened by its first search: names are looked up even where the embedder is out of reach."""

    open: Callable[[], Index]

    def search(self, query: str, k: int, *, among: NodeSet | None = None) -> Ranking:
        """The k best nodes."""
        return self.open().search(query, k, among=among)
