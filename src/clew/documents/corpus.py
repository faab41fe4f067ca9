"""A corpus of titled texts as a knowledge base: one passage node each, joined by the edges asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from clew.documents.graph import passage_graph
from clew.documents.graph.edges import EdgeOptions
from clew.documents.graph.entity import subjects
from clew.kb.tables import Piece, Tables
from clew.models.protocol import Embedder

STRING = pa.large_string()


class TitledText(Protocol):
    """A text with a title and a key of its own."""

    @property
    def key(self) -> str:
        """Unique in the corpus."""
        ...

    @property
    def title(self) -> str:
        """What the text is about, or nothing usable."""
        ...

    @property
    def text(self) -> str:
        """The text itself."""
        ...


def corpus_tables(
    texts: Sequence[TitledText], edges: EdgeOptions | None = None, embedder: Embedder | None = None
) -> Tables:
    """Each text is a passage named by its title; `embedder` is needed for knn edges alone."""
    keys = pa.array([text.key for text in texts], STRING)
    names = [text.title or text.key for text in texts]
    titles = _titles([text.title for text in texts], [text.text for text in texts])
    nodes = pa.table(
        {
            "key": keys,
            "type": pa.repeat(pa.scalar("passage", STRING), len(texts)),
            "name": pa.array(names, STRING),
            "aliases": pa.array(_aliases(titles, len(texts)), pa.large_list(STRING)),
            "text": pa.array([text.text for text in texts], STRING),
        }
    )
    graph = passage_graph(
        names,
        [text.text for text in texts],
        np.arange(len(texts), dtype=np.int32),
        titles=titles,
        owners=[(place,) for place in range(len(texts))],
        options=edges or EdgeOptions(),
        embedder=embedder,
    )
    return Tables((Piece(nodes, "corpus"),), tuple(Piece(kind.table(keys), "corpus") for kind in graph))


def _titles(titles: Sequence[str], texts: Sequence[str]) -> list[tuple[str, int]]:
    return [*((title, place) for place, title in enumerate(titles)), *subjects(titles, texts)]


def _aliases(titles: Sequence[tuple[str, int]], count: int) -> list[list[str]]:
    """What a text is about where its title does not say it."""
    aliases: list[list[str]] = [[] for _ in range(count)]
    for name, place in titles[count:]:
        aliases[place].append(name)
    return aliases
