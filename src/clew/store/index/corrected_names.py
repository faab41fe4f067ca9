"""Names that the user has corrected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from clew.store.index.protocol import Link, Mention, Names


@dataclass(frozen=True)
class CorrectedNames:
    """Other names stand for what they stood for before."""

    names: Names
    fixes: Mapping[str, tuple[int, ...]]
    """Name, case aside → the nodes it stands for; none where it names nothing."""

    def link(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        """The corrected nodes, all of them and whatever their type, or else what the name stood for before."""
        fixed = self._fixed(text)
        return self.names.link(text, type=type, k=k) if fixed is None else fixed

    def spelled(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        """The corrected nodes, or else those of like names."""
        fixed = self._fixed(text)
        return self.names.spelled(text, type=type, k=k) if fixed is None else fixed

    def mentions(self, text: str, *, fuzzy: bool = True) -> Sequence[Mention]:
        """The names in a text, those that name nothing left out."""
        found = []
        for mention in self.names.mentions(text, fuzzy=fuzzy):
            fixed = self._fixed(mention.text)
            if fixed is None:
                found.append(mention)
            elif fixed:
                found.append(replace(mention, links=fixed))
        return found

    def has_word(self, word: str) -> bool:
        """Whether the base has a word, or a correction says what it stands for."""
        return self.names.has_word(word) or any(word in name.casefold().split() for name in self.fixes)

    def is_excluded(self, text: str) -> bool:
        """Whether a text is, or is part of, what names nothing."""
        excluded = [name.casefold() for name, nodes in self.fixes.items() if not nodes]
        return any(text.strip().casefold() in name for name in excluded)

    def _fixed(self, text: str) -> tuple[Link, ...] | None:
        wanted = text.strip().casefold()
        for name, nodes in self.fixes.items():
            if name.strip().casefold() == wanted:
                return tuple(Link(node, text, "exact", 1.0) for node in nodes)
        return None
