"""Which gold answers a candidate names: by key, by normalised name, or by the lenient rule of Think-on-Graph."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from clew.core.types import Candidate, NodeRef
from clew.datasets.questions import Match

NamesOf = Callable[[NodeRef], Iterable[str]]
"""All names of a node beside the one it shows: its aliases."""


@lru_cache(maxsize=1 << 16)
def normalise_name(name: str) -> str:
    """Case, width and accents' encoding, underscores and spaces do not matter; every other character does."""
    plain = name if name.isascii() else unicodedata.normalize("NFKC", name)
    return " ".join(plain.replace("_", " ").split()).casefold()


_NOTHING: frozenset[int] = frozenset()


class Gold:
    """The gold answers of one question; wordings that are the same after normalisation are one answer."""

    def __init__(self, answers: Sequence[str], aliases: Mapping[str, Sequence[str]], match: Match) -> None:
        self.match = match
        self._form = _FORMS[match]
        self._count = 0
        self._numbers: dict[str, frozenset[int]] = {}
        firsts: set[str] = set()
        for answer in answers:
            first = self._form(answer)
            if not first or first in firsts:
                continue
            firsts.add(first)
            number = frozenset((self._count,))
            self._count += 1
            for name in (first, *map(self._form, aliases[answer])) if answer in aliases else (first,):
                if name:
                    self._numbers[name] = self._numbers[name] | number if name in self._numbers else number

    def __len__(self) -> int:
        return self._count

    def named_by(self, node: NodeRef, names_of: NamesOf) -> frozenset[int]:
        """The numbers of the gold answers that this node is."""
        if self.match == "key":
            return self._numbers.get(node.key, _NOTHING)
        names = (node.key, *names_of(node)) if node.key == node.name else (node.key, node.name, *names_of(node))
        found = _NOTHING
        for form in map(self._form, names):
            if form in self._numbers:
                found |= self._numbers[form]
            if form and self.match == "lenient":
                found = found.union(*(n for name, n in self._numbers.items() if name in form or form in name))
        return found

    def find(self, candidates: Iterable[Candidate], names_of: NamesOf) -> list[frozenset[int]]:
        """For each candidate the gold answers it names."""
        return [self.named_by(candidate.node, names_of) for candidate in candidates]


def _squeezed(name: str) -> str:
    """Think-on-Graph compares without case and spaces; empty names never match, unlike in its evaluator."""
    return normalise_name(name).replace(" ", "")


def _as_it_is(name: str) -> str:
    return name


_FORMS: Mapping[Match, Callable[[str], str]] = {"key": _as_it_is, "strict": normalise_name, "lenient": _squeezed}
