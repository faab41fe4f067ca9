"""Document data sets: paragraphs pooled into one corpus, each with a key of its own."""

from __future__ import annotations

from collections.abc import Iterable

from clew.datasets.questions import Paragraph


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
