"""Evidence that two nodes are the same thing, in addition to names: neighbours, values, documents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.open_base import OpenBase

SHARED, NOTHING_SHARED, FEWEST = 4.0, -4.0, 2
"""Log odds if all neighbours are shared, if none is shared, and the minimum number of neighbours for the latter."""
JOINED = -4.0
"""Log odds of an edge between the two nodes, since related things are different things."""
SAME_AS = ("same", "equivalent", "exact match", "alias")
"""Words in relations that state that two things are the same."""
SAME_SOURCE = -2.0
"""Log odds of two keys from one of several sources, such as OMIM:1 and OMIM:2. Sources rarely list a thing twice."""
SAME_VALUE, OTHER_VALUE, MOST_SAME = 0.5, -1.5, 1.5
"""Log odds of each equal and each different value, and the maximum of all equal values. Many nodes share a category."""
CATEGORY = 0.5
"""Maximum share of distinct values of a compared attribute. Other attributes describe or identify a node."""
ALIKE, USUAL = 6.0, 0.85
"""Log odds per cosine above or below the usual cosine of two documents that share a name."""
FARTHEST, NEAREST = -1.5, 1.0
"""Limits of the log odds of two documents, so that similar texts alone do not decide."""
SHOWN = 3
"""Maximum number of common neighbours or values named in a reason."""

Link = tuple[int, int]
"""Relation and direction as one number, and the node at the other end."""


@dataclass(frozen=True)
class Sign:
    """One piece of evidence for or against two nodes being the same: its log odds and its text."""

    odds: float
    said: str


class Likeness:
    """Compares pairs of nodes by their edges and values."""

    def __init__(self, kb: ArrayKnowledgeBase) -> None:
        self.kb = kb
        self._degrees = kb.degrees(kb.nodes().array)
        self.links = cache(self._links)
        self._compared = cache(self._is_compared)
        self._sources = cache(self._sources_of)

    def of(self, first: int, second: int) -> Iterator[Sign]:
        """Yield all evidence about a pair."""
        for sign in (self._edge(first, second), self._neighbours(first, second), self._keys(first, second)):
            if sign is not None:
                yield sign
        yield from self._values(first, second)

    def _links(self, node: int) -> frozenset[Link]:
        found = set()
        for direction, side in enumerate((self.kb.outward, self.kb.inward)):
            start, end = side.slice_of(node)
            codes = side.relations_at(np.arange(start, end)).tolist()
            found |= {
                (2 * code + direction, other)
                for code, other in zip(codes, side.targets[start:end].tolist(), strict=True)
            }
        return frozenset(found)

    def _edge(self, first: int, second: int) -> Sign | None:
        between = [code // 2 for code, other in self.links(first) if other == second]
        if not between:
            return None
        names = sorted({self.kb.schema.relation_names[code] for code in between})
        spoken = " ".join(names).lower().replace("_", " ")
        odds = -JOINED if any(word in spoken for word in SAME_AS) else JOINED
        return Sign(odds, f"an edge joins them ({', '.join(names)})")

    def _neighbours(self, first: int, second: int) -> Sign | None:
        """Score shared neighbours by rarity. For example, a shared country is weak evidence."""
        ours, theirs = (
            {link for link in self.links(node) if link[1] not in (first, second)} for node in (first, second)
        )
        fewest = min(len(ours), len(theirs))
        if not fewest:
            return None
        both = ours & theirs
        if not both:
            return Sign(NOTHING_SHARED, "no neighbour in common") if fewest > FEWEST else None
        smaller = min(sum(map(self._weight, links)) for links in (ours, theirs))
        share = min(1.0, sum(map(self._weight, both)) / smaller) if smaller else 0.0
        sure = min(1.0, len(both) / FEWEST)
        rarest = sorted(both, key=lambda link: (-self._weight(link), link))[:SHOWN]
        names = ", ".join(ref.name for ref in self.kb.refs([other for _, other in rarest]))
        return Sign(SHARED * share * sure, f"{len(both)} of {fewest} neighbours in common: {names}")

    def _keys(self, first: int, second: int) -> Sign | None:
        one, other = self.kb.refs([first, second])
        source = one.key.partition(":")[0]
        if source != other.key.partition(":")[0] or len(self._sources(one.type)) < 2:
            return None
        return Sign(SAME_SOURCE, f"both keys are of {source}")

    def _sources_of(self, kind: str) -> set[str]:
        """Return the key prefixes of a type. Empty if some keys have no prefix."""
        keys = self.kb.columns().column("key").take(pa.array(self.kb.nodes(kind).array)).to_pylist()
        return {key.partition(":")[0] for key in keys} if all(":" in key for key in keys) else set()

    def _weight(self, link: Link) -> float:
        return math.log(self.kb.count / min(float(self._degrees[link[1]]) + 1, self.kb.count))

    def _values(self, first: int, second: int) -> Iterator[Sign]:
        ours, theirs = (self.kb.node(node).attributes for node in (first, second))
        same = []
        for name in sorted(ours.keys() & theirs.keys()):
            if not self._compared(name):
                continue
            if ours[name] == theirs[name]:
                same.append(f"{name} {ours[name]}")
            else:
                yield Sign(OTHER_VALUE, f"{name} differs: {ours[name]} and {theirs[name]}")
        if same:
            yield Sign(min(MOST_SAME, SAME_VALUE * len(same)), f"the same {', '.join(same[:SHOWN])}")

    def _is_compared(self, attribute: str) -> bool:
        if self.kb.schema.attribute_types.get(attribute) == "list":
            return False
        column = self.kb.columns().column(attribute)
        present = len(column) - column.null_count
        return bool(len(self.kb.distinct(attribute)) <= CATEGORY * present)


def alike(tools: OpenBase, pairs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Sign]:
    """Score the similarity of the texts of each pair, if both nodes have a text.

    Use stored vectors if every node has one. Otherwise compute vectors without storing them.
    """
    kb = tools.local
    both = [pair for pair in pairs if all(kb.node(node).text for node in pair)]
    nodes = sorted({node for pair in both for node in pair})
    if not nodes:
        return {}
    if tools.vectors.is_complete:
        vectors = tools.vectors.vectors(np.array(nodes, dtype=np.int32))
    else:
        vectors = tools.embedder.embed([kb.text(node) for node in nodes], role="document")
    row = {node: index for index, node in enumerate(nodes)}
    cosines = {pair: float(vectors[row[pair[0]]] @ vectors[row[pair[1]]]) for pair in both}
    return {
        pair: Sign(min(NEAREST, max(FARTHEST, ALIKE * (cosine - USUAL))), f"documents alike: {cosine:.2f}")
        for pair, cosine in cosines.items()
    }
