"""Protocols of the indexes over the nodes of a knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from clew.core.types import NodeSet, Ranking


class Index(Protocol):
    """Ranks nodes against a text."""

    def search(self, query: str, k: int, *, among: NodeSet | None = None) -> Ranking:
        """Return the k best nodes. `among` None means all nodes, an empty set means none."""
        ...


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
        ...

    def spelled(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        """Return links to nodes with the same or similar spelling, ignoring meaning."""
        ...

    def mentions(self, text: str, *, fuzzy: bool = True) -> Sequence[Mention]:
        """Return the names in a text: longest matches without overlaps, in reading order."""
        ...

    def has_word(self, word: str) -> bool:
        """Return whether a name, a value or a text of the base contains a word."""
        ...
