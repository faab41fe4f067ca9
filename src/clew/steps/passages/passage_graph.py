"""The graph of passages as a traverser sees it: neighbours, how strongly each is tied, and by what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from clew.core.types import IntArray, NodeSet, Ranking
from clew.kb.arrays import ArrayKnowledgeBase

READABLE = ("passage", "table")
"""Types whose nodes are read and cited."""
CONTENTS = ("has_passage", "has_table")
STRENGTH = {"mentions": 1.0, "entity": 0.6, "tfidf": 0.3, "knn": 0.3, "mdr": 0.3, "next": 0.2}
"""How much a tie of each kind is worth; found on development data, flat around these values."""
MENTIONED_BY = 0.5
"""The same for the other direction of a mention."""
FULL_WEIGHT = {"entity": 1.0, "tfidf": 20.0}
"""The weight of an edge from which on a tie counts fully."""
MOST_MENTIONS = 200
"""Of passages that mention one thing, so many are looked at."""
KINDS = tuple(STRENGTH)


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """The neighbours of a passage, each once, and the strength of the strongest tie to each."""

    nodes: IntArray
    strengths: NDArray[np.float64]


def readable_nodes(kb: ArrayKnowledgeBase) -> NodeSet:
    """Passages and tables; in a base that has neither, every node that may be an answer."""
    types = [name for name in READABLE if name in kb.schema.type_names] or kb.schema.answer_types
    return NodeSet.of(np.concatenate([kb.nodes(name).array for name in types]))


class PassageGraph:
    """Neighbours by the kinds of edges asked for; `nearest` finds those by vector where no knn edges are stored."""

    def __init__(
        self,
        kb: ArrayKnowledgeBase,
        kinds: Sequence[str] = KINDS,
        nearest: Callable[[int], Ranking] | None = None,
    ) -> None:
        stored = kb.schema.relation_names
        is_documents = any(name in kb.schema.type_names for name in READABLE)
        self.kb = kb
        self.kinds = tuple(kind for kind in kinds if kind in stored) if is_documents else stored
        self.nearest = nearest if "knn" in kinds and "knn" not in stored else None
        self.is_readable = np.zeros(len(kb), dtype=np.bool_)
        self.is_readable[readable_nodes(kb).array] = True
        self.ties = lru_cache(maxsize=10_000)(self._ties)
        self._contents = tuple(relation for relation in CONTENTS if relation in stored)

    def contents(self, node: int) -> IntArray:
        """The passages and tables of a document, a page or a section."""
        parts = [self.kb.neighbors(_one(node), relation, "out").array for relation in self._contents]
        inside = np.concatenate([np.empty(0, dtype=np.int32), *parts])
        return NodeSet.of(inside[self.is_readable[inside]]).array

    def _ties(self, node: int) -> Ties:
        found = [
            part
            for kind in self.kinds
            for part in (self._mentions(node) if kind == "mentions" else self._stored(node, kind))
        ]
        if self.nearest is not None:
            near = self.nearest(node)
            found.append((near.nodes, STRENGTH["knn"] * np.maximum(near.scores, 0)))
        nodes = np.concatenate([np.empty(0, dtype=np.int32), *(nodes for nodes, _ in found)])
        strengths = np.concatenate([np.empty(0), *(strengths for _, strengths in found)])
        kept = self.is_readable[nodes] & (nodes != node)
        nodes, strengths = nodes[kept], strengths[kept]
        order = np.lexsort((-strengths, nodes))  # of several ties the strongest counts
        first = np.append(True, nodes[order][1:] != nodes[order][:-1])[: len(order)]
        return Ties(nodes[order][first], strengths[order][first])

    def _stored(self, node: int, kind: str) -> list[tuple[IntArray, NDArray[np.float64]]]:
        edges = self.kb.edges(_one(node), kind)
        weights = np.nan_to_num(self.kb.edge_numbers(edges, "weight"), nan=1.0) / FULL_WEIGHT.get(kind, 1.0)
        others = np.where(edges.heads == node, edges.tails, edges.heads)
        return [(others, STRENGTH.get(kind, 0.6) * np.minimum(weights, 1.0))]

    def _mentions(self, node: int) -> list[tuple[IntArray, NDArray[np.float64]]]:
        """What a passage names, the contents of what it names, and what names it or its document."""
        found = []
        for target in self.kb.neighbors(_one(node), "mentions", "out"):
            if self.is_readable[target]:
                found.append(_tied([target], STRENGTH["mentions"]))
            elif len(contents := self.contents(target)):
                found.append(_tied(contents, STRENGTH["mentions"]))
            else:  # an entity of another base: its other mentions are neighbours
                others = self._mentioning(target)
                found.append(_tied(others, STRENGTH["entity"] / float(np.log1p(1 + len(others)))))
        found.append(_tied(self._mentioning(node), MENTIONED_BY))
        for relation in self._contents:
            for owner in self.kb.neighbors(_one(node), relation, "in"):
                if self.kb.type_of(owner) == "document":
                    found.append(_tied(self._mentioning(owner), MENTIONED_BY))
        return found

    def _mentioning(self, target: int) -> IntArray:
        return self.kb.neighbors(_one(target), "mentions", "in").array[:MOST_MENTIONS]


def _tied(nodes: Sequence[int] | IntArray, strength: float) -> tuple[IntArray, NDArray[np.float64]]:
    return np.asarray(nodes, dtype=np.int32), np.full(len(nodes), strength)


def _one(node: int) -> NodeSet:
    return NodeSet(np.array([node], dtype=np.int32))
