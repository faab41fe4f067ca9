"""Which gold answers a candidate names: by key, by normalised name, or by the lenient rule of Think-on-Graph."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence

from clew.datasets.questions import Match
from clew.types import Candidate, NodeRef

NamesOf = Callable[[NodeRef], Iterable[str]]
"""All names of a node beside the one it shows: its aliases."""

_SPACE = re.compile(r"[\s_]+")


def normalise_name(name: str) -> str:
    """Case, width and accents' encoding, underscores and spaces do not matter; every other character does."""
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", name)).strip().casefold()


class Gold:
    """The gold answers of one question; wordings that are the same after normalisation are one answer."""

    def __init__(self, answers: Sequence[str], aliases: Mapping[str, Sequence[str]], match: Match) -> None:
        self.match = match
        self.names: list[tuple[str, ...]] = []
        self._numbers: dict[str, set[int]] = {}
        firsts: set[str] = set()
        for answer in answers:
            accepted = tuple(dict.fromkeys(map(self._form, (answer, *aliases.get(answer, ())))))
            if not accepted[0] or accepted[0] in firsts:
                continue
            firsts.add(accepted[0])
            for name in accepted:
                self._numbers.setdefault(name, set()).add(len(self.names))
            self.names.append(accepted)

    def __len__(self) -> int:
        return len(self.names)

    def _form(self, name: str) -> str:
        if self.match == "key":
            return name
        return normalise_name(name) if self.match == "strict" else _squeezed(name)

    def named_by(self, node: NodeRef, names_of: NamesOf) -> frozenset[int]:
        """The numbers of the gold answers that this node is."""
        if self.match == "key":
            return frozenset(self._numbers.get(node.key, ()))
        forms = {self._form(name) for name in (node.key, node.name, *names_of(node))} - {""}
        found = {number for form in forms for number in self._numbers.get(form, ())}
        if self.match == "lenient":
            found |= {
                number
                for name, numbers in self._numbers.items()
                for number in numbers
                if any(name in form or form in name for form in forms)
            }
        return frozenset(found)

    def find(self, candidates: Iterable[Candidate], names_of: NamesOf) -> list[frozenset[int]]:
        """For each candidate the gold answers it names."""
        return [self.named_by(candidate.node, names_of) for candidate in candidates]


def _squeezed(name: str) -> str:
    """Think-on-Graph compares without case and spaces; empty names never match, unlike in its evaluator."""
    return normalise_name(name).replace(" ", "")
