"""Names as a reader corrected them: what was linked to the wrong node, or should not have been linked at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from clew.index.protocol import Link, Mention, Names


@dataclass(frozen=True)
class CorrectedNames:
    """Other names stand for what they stood for before."""

    names: Names
    fixes: Mapping[str, tuple[int, ...]]
    """Name, case aside → the nodes it stands for; none where it names nothing."""

    def link(self, text: str, *, type: str | None = None, k: int = 5) -> tuple[Link, ...]:
        """The corrected nodes, whatever their type, or else what the name stood for before."""
        fixed = self._fixed(text)
        return self.names.link(text, type=type, k=k) if fixed is None else fixed[:k]

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

    def _fixed(self, text: str) -> tuple[Link, ...] | None:
        wanted = text.strip().casefold()
        for name, nodes in self.fixes.items():
            if name.strip().casefold() == wanted:
                return tuple(Link(node, text, "exact", 1.0) for node in nodes)
        return None
