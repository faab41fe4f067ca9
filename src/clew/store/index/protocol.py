"""What the indexes over the nodes of a knowledge base do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from clew.core.types import NodeSet, Ranking


class Index(Protocol):
    """Ranks nodes against a text."""

    def search(self, query: str, k: int, *, among: NodeSet | None = None) -> Ranking:
        """The k best nodes; `among` None means all, an empty set means none."""
        ...


@dataclass(frozen=True, slots=True)
class Link:
    """A node that a name may stand for: how it was found, through which alias, how sure (0..1)."""

    node: int
    alias: str
    how: Literal["exact", "fuzzy", "vector"]
    score: float


@dataclass(frozen=True, slots=True)
class Mention:
    """A span of a text that names one or more nodes."""

    start: int
    end: int
    text: str
    links: tuple[Link, ...]


class Names(Protocol):
    """Finds nodes by name: exact, then fuzzy, then by vector."""

    def link(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        """The nodes a name may stand for, best first; an alias of many nodes gives them all (up to k)."""
        ...

    def spelled(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        """The links to nodes whose names are the same or alike in spelling, whatever they mean."""
        ...

    def mentions(self, text: str, *, fuzzy: bool = True) -> Sequence[Mention]:
        """The names that occur in a text: longest match first, never overlapping, in reading order."""
        ...

    def has_word(self, word: str) -> bool:
        """Whether a name, a value or a text of the base has a word."""
        ...
