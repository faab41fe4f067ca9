"""Protocols of the indexes over the nodes of a knowledge base, and names that the user has corrected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from clew.core.types import NodeSet, Ranking


class Index(Protocol):
    """Ranks nodes against a text."""

    def search(self, query: str, k: int, *, among: NodeSet | None = None) -> Ranking:
        """Return the k best nodes. `among` None means all nodes, an empty set means none."""


@dataclass(frozen=True, slots=True)
class Link:
    """A possible node of a name, with the alias, the kind of match, and a score from 0 to 1."""

    node: int
    alias: str
    how: Literal["exact", "fuzzy", "vector"]
    score: float


@dataclass(frozen=True, slots=True)
class Mention:
    """A span of text that refers to one or more nodes."""

    start: int
    end: int
    text: str
    links: tuple[Link, ...]


class Names(Protocol):
    """Finds nodes by name: exact, then fuzzy, then by vector."""

    def link(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        """Return the possible nodes of a name, best first, up to k."""

    def spelled(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        """Return links to nodes with the same or similar spelling, ignoring meaning."""

    def mentions(self, text: str, *, fuzzy: bool = True) -> Sequence[Mention]:
        """Return the names in a text: longest matches without overlaps, in reading order."""

    def has_word(self, word: str) -> bool:
        """Return whether a name, a value or a text of the base contains a word."""


@dataclass(frozen=True)
class CorrectedNames:
    """Names with user corrections. Other names keep their meaning."""

    names: Names
    fixes: Mapping[str, tuple[int, ...]]
    """Nodes of each name, ignoring case. Empty if the name refers to nothing."""

    def link(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        """Return all corrected nodes of any type, or else the usual links of the name."""
        fixed = self._fixed(text)
        return self.names.link(text, type=type, k=k) if fixed is None else fixed

    def spelled(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        """Return the corrected nodes, or else nodes with similar names."""
        fixed = self._fixed(text)
        return self.names.spelled(text, type=type, k=k) if fixed is None else fixed

    def mentions(self, text: str, *, fuzzy: bool = True) -> Sequence[Mention]:
        """Return the names in a text, except names corrected to refer to nothing."""
        found = []
        for mention in self.names.mentions(text, fuzzy=fuzzy):
            fixed = self._fixed(mention.text)
            if fixed is None:
                found.append(mention)
            elif fixed:
                found.append(replace(mention, links=fixed))
        return found

    def has_word(self, word: str) -> bool:
        """Return whether the base or a correction contains a word."""
        return self.names.has_word(word) or any(word in name.casefold().split() for name in self.fixes)

    def is_excluded(self, text: str) -> bool:
        """Return whether a text is part of a name corrected to refer to nothing."""
        excluded = [name.casefold() for name, nodes in self.fixes.items() if not nodes]
        return any(text.strip().casefold() in name for name in excluded)

    def _fixed(self, text: str) -> tuple[Link, ...] | None:
        wanted = text.strip().casefold()
        for name, nodes in self.fixes.items():
            if name.strip().casefold() == wanted:
                return tuple(Link(node, text, "exact", 1.0) for node in nodes)
        return None
