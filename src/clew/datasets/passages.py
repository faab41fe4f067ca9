"""Document data sets: paragraphs pooled into one corpus, each with a key, and as the tables of a base."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from clew.datasets.questions import Paragraph
from clew.kb.tables import Piece, Tables


class Pool:
    """Collects paragraphs; the same title with the same text is one paragraph, another text gets another key."""

    def __init__(self) -> None:
        self._by_content: dict[tuple[str, tuple[str, ...]], Paragraph] = {}
        self._keys: set[str] = set()

    def add(self, title: str, sentences: Iterable[str]) -> Paragraph:
        """The paragraph with this title and text, new or known; its key is the title, numbered where that is taken."""
        content = (title, tuple(sentences))
        if content not in self._by_content:
            key, number = title, 1
            while key in self._keys:
                number += 1
                key = f"{title} #{number}"
            self._keys.add(key)
            self._by_content[content] = Paragraph(key, title, content[1])
        return self._by_content[content]

    def paragraphs(self) -> tuple[Paragraph, ...]:
        """All paragraphs in the order they came."""
        return tuple(self._by_content.values())


def passage_tables(paragraphs: Sequence[Paragraph]) -> Tables:
    """One node per paragraph: its title is the name, its text the text, its sentences an attribute."""
    table = pa.table(
        {
            "key": pa.array([paragraph.key for paragraph in paragraphs], pa.string()),
            "type": pa.array(["passage"] * len(paragraphs), pa.string()),
            "name": pa.array([paragraph.title for paragraph in paragraphs], pa.string()),
            "text": pa.array([paragraph.text for paragraph in paragraphs], pa.string()),
        }
    )
    return Tables((Piece(table, "corpus"),), ())
