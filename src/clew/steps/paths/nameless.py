"""Nodes without a name of their own: such a node stands for a fact with several parts, a marriage or a term of office.

A base that is at hand tells them all at once; of another one the names are looked at where a path comes by.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Protocol

import numpy as np
import pyarrow.compute as pc

from clew.core.types import EMPTY, Direction, NodeSet
from clew.kb.arrays import ArrayKnowledgeBase
from clew.kb.protocol import KnowledgeBase

OPAQUE = re.compile(r"[a-z]\.[0-9a-z_]{3,}|_:\S+|[0-9a-f]{16,}|[0-9a-f]{8}-[0-9a-f-]{20,}")
"""Names that only a machine reads: blank nodes and identifiers."""
LOOKED_AT = 500
"""So many nodes are asked for their names where not all are known."""
ENOUGH = 30
"""So many named nodes behind a relation, and none without a name, tell what it leads to."""
Via = tuple[str, Direction]
"""A relation and the direction in which it was taken."""


class Nameless(Protocol):
    """Which nodes have no name."""

    def behind(self, relation: str, direction: Direction) -> bool:
        """Whether a relation may lead to such nodes."""
        ...

    def among(self, nodes: NodeSet, via: Via | None = None) -> NodeSet:
        """Those of some nodes that have no name; `via` is the relation that led to them."""
        ...


def nameless_of(kb: KnowledgeBase) -> Nameless:
    """The nameless nodes of a base."""
    return KnownNameless(kb) if isinstance(kb, ArrayKnowledgeBase) else NamelessOnSight(kb)


class KnownNameless:
    """All of them, found once by the pattern of their names."""

    def __init__(self, kb: ArrayKnowledgeBase) -> None:
        matches = pc.match_substring_regex(kb.columns()["name"], f"^(?:{OPAQUE.pattern})$")
        self._nodes = NodeSet.of(np.flatnonzero(matches.to_numpy(zero_copy_only=False)))
        turned = {"out": "in", "in": "out"}
        self._behind = {(use.relation, turned[use.direction]) for use in kb.relations(self._nodes)}

    def behind(self, relation: str, direction: Direction) -> bool:
        """Whether a relation leads to some of them anywhere in the base."""
        return (relation, direction) in self._behind

    def among(self, nodes: NodeSet, via: Via | None = None) -> NodeSet:  # noqa: ARG002 - known without
        """Those of some nodes that have no name."""
        return nodes & self._nodes if self._behind else EMPTY


class NamelessOnSight:
    """Told from the names of the nodes in question, each looked at once."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self._known: dict[int, bool] = {}
        self._named_behind: Counter[Via] = Counter()
        self._nameless_behind: set[Via] = set()

    def behind(self, relation: str, direction: Direction) -> bool:
        """Perhaps, until enough named nodes and none without a name were seen there."""
        via = (relation, direction)
        return via in self._nameless_behind or self._named_behind[via] < ENOUGH

    def among(self, nodes: NodeSet, via: Via | None = None) -> NodeSet:
        """Those of some nodes that have no name."""
        new = [node for node in nodes.array[:LOOKED_AT].tolist() if node not in self._known]
        if new:
            self._known.update((ref.id, OPAQUE.fullmatch(ref.name) is not None) for ref in self.kb.refs(new))
        found = NodeSet.of([node for node in nodes if self._known.get(node, False)])
        if via is not None:
            self._named_behind[via] += len(nodes) - len(found)
            self._nameless_behind |= {via} if len(found) else set()
        return found
