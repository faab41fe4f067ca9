"""The indexes of a generation, written beside its graph."""

from __future__ import annotations

from pathlib import Path

from clew.index.lexical import LexicalIndex
from clew.kb import render
from clew.kb.arrays import ArrayKnowledgeBase

LEXICAL = "lexical"


def build_indexes(kb: ArrayKnowledgeBase, folder: Path) -> None:
    """Write every index that a base is searched by."""
    LexicalIndex.write(folder / LEXICAL, render.searchable(kb.columns()))
