"""What methods are built from: a knowledge base, its indexes, an embedder and perhaps a language model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from clew.index.build import LEXICAL
from clew.index.lexical import LexicalIndex
from clew.kb.arrays import ArrayKnowledgeBase
from clew.models.protocol import LanguageModel


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

    @cached_property
    def lexical(self) -> LexicalIndex:
        """BM25 over the node documents."""
        return LexicalIndex.open(self.kb.generation / "index" / LEXICAL)
