"""Find nodes that are the same thing by their names, neighbours, values and texts.

1. Collect pairs of one type whose names or aliases are equal or misspelt, or whose vectors are similar.
2. Score the evidence for and against each pair as a sum of log odds.
3. Select pairs above the threshold, and the groups they form.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import rustworkx
from rapidfuzz.distance import Levenshtein

from clew.core.types import IntArray, NodeRef, NodeSet
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.tables import GROUPS
from clew.store.graph.visibility import audience, audience_text
from clew.store.index.vectors import VectorIndex
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


PRIOR = -3.0
"""Log odds of a pair without evidence. With it, the same name alone (5.0) gives 0.88, just below `LEAST`."""
SAME_NAME, SAME_FORM, NAME_IS_ALIAS, MISSPELT, NEAR, SAME_ALIAS = 5.0, 4.0, 3.5, 2.0, 1.0, 0.0
"""Log odds of each reason to compare two nodes. A shared alias of different names is weak evidence."""
LARGEST_BLOCK = 20
"""Maximum number of nodes that share a name. A more frequent name is not evidence."""
SHORT, SHORT_ALIAS = 5, 1.0
"""Maximum length of a short alias in letters, and its log odds. Short aliases are often ambiguous abbreviations."""
LEAST = 0.9
"""Minimum probability of a pair."""
CLOSE = 0.95
"""Minimum cosine of two documents that form a pair."""
MOST_COMPARED = 30_000
"""Maximum number of nodes of a type for which all pairs of documents are compared."""
_BLOCK = 1024
"""Number of nodes compared with all others at once. With `MOST_COMPARED` nodes, the cosines take about 120 MB."""

Candidates = dict[tuple[int, int], Sign]


@dataclass(frozen=True)
class DuplicatePair:
    """Two nodes that may be the same, the probability, and the evidence."""

    first: NodeRef
    second: NodeRef
    certainty: float
    evidence: tuple[str, ...]
    obstacle: str | None = None
    """Reason why the pair must not be merged. None if it may be merged."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        shown = {"first": self.first.to_dict(), "second": self.second.to_dict()}
        return shown | {"certainty": self.certainty, "evidence": list(self.evidence), "obstacle": self.obstacle}


def find_duplicates(tools: OpenBase, type: str | None = None, *, least: float = LEAST) -> list[DuplicatePair]:
    """Return all pairs of nodes of one type that are probably the same thing, most probable first."""
    kb = tools.local
    candidates: Candidates = {}
    for kind in kb.schema.type_names if type is None else (kb.schema.node_type(type).name,):
        candidates |= _by_meaning(tools.vectors, kb.nodes(kind).array) | _by_name(kb, kb.nodes(kind).array)
    likeness = Likeness(kb)
    signs = {pair: [why, *likeness.of(*pair)] for pair, why in candidates.items()}
    hopeful = [pair for pair, found in signs.items() if _certainty(found, NEAREST) >= least]  # texts are slow
    written = alike(tools, hopeful)
    pairs = []
    for pair in hopeful:
        found = signs[pair] + ([written[pair]] if pair in written else [])
        if (certainty := _certainty(found)) >= least:
            first, second = kb.refs(pair)
            evidence = tuple(sign.said for sign in found)
            pairs.append(DuplicatePair(first, second, round(certainty, 4), evidence, _obstacle(kb, pair)))
    return sorted(pairs, key=lambda pair: (-pair.certainty, pair.first.key, pair.second.key))


def _obstacle(kb: ArrayKnowledgeBase, pair: tuple[int, int]) -> str | None:
    """Return why two nodes cannot be merged: their content would become visible to other groups."""
    first, second = (audience(groups) for groups in kb.values(NodeSet.of(pair), GROUPS))
    if first == second:
        return None
    return f"their groups differ: {audience_text(first)} and {audience_text(second)}"


def _certainty(signs: Iterable[Sign], more: float = 0.0) -> float:
    return 1 / (1 + math.exp(-PRIOR - more - sum(sign.odds for sign in signs)))


def groups(kb: ArrayKnowledgeBase, pairs: Iterable[DuplicatePair]) -> list[tuple[NodeRef, ...]]:
    """Return groups of nodes connected by pairs without an obstacle, starting with the node with the most edges."""
    ends = [(pair.first.id, pair.second.id) for pair in pairs if pair.obstacle is None]
    nodes = sorted({node for pair in ends for node in pair})
    number = {node: position for position, node in enumerate(nodes)}
    graph: rustworkx.PyGraph[int, None] = rustworkx.PyGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from_no_data([(number[first], number[second]) for first, second in ends])
    joined = sorted(sorted(nodes[member] for member in group) for group in rustworkx.connected_components(graph))
    return [tuple(kb.refs(sorted(group, key=lambda node: (-len(kb.triples(node)), node)))) for group in joined]


def _by_name(kb: ArrayKnowledgeBase, nodes: IntArray) -> Candidates:
    """Return pairs that share a name or an alias, each with its strongest evidence."""
    forms: dict[str, list[tuple[int, str]]] = {}
    names, aliases = (kb.columns().column(name).take(pa.array(nodes)).to_pylist() for name in ("name", "aliases"))
    called_first = dict(zip(nodes.tolist(), names, strict=True))
    for (node, name), others in zip(called_first.items(), aliases, strict=True):
        for called in dict.fromkeys([name, *(others or ())]):
            if shared := form(called):
                forms.setdefault(shared, []).append((node, called))
    found: Candidates = {}
    for holders in forms.values():
        _join(combinations(holders, 2) if len(holders) <= LARGEST_BLOCK else (), called_first, found)
    for one, other in close_forms(list(forms)):
        near = ((ours, theirs) for ours in forms[one] for theirs in forms[other])
        _join(near if len(forms[one]) * len(forms[other]) <= LARGEST_BLOCK else (), called_first, found, misspelt=True)
    return found


def _join(
    pairs: Iterable[tuple[tuple[int, str], tuple[int, str]]],
    names: dict[int, str],
    found: Candidates,
    *,
    misspelt: bool = False,
) -> None:
    for (one, ours), (other, theirs) in pairs:
        if one == other:
            continue
        sign = _sign_of_names(ours, theirs, ours == names[one], theirs == names[other], misspelt)
        pair = (min(one, other), max(one, other))
        if pair not in found or sign.odds > found[pair].odds:
            found[pair] = sign


def _sign_of_names(ours: str, theirs: str, is_name: bool, is_other_name: bool, misspelt: bool) -> Sign:
    if misspelt:
        return Sign(MISSPELT, f"names nearly the same: {ours!r} and {theirs!r}")
    same = words(ours) == words(theirs)
    if is_name and is_other_name:
        return Sign(SAME_NAME, f"the same name: {ours!r}") if same else Sign(SAME_FORM, f"{ours!r} is {theirs!r}")
    if not (is_name or is_other_name):
        return Sign(SAME_ALIAS, f"an alias of both: {ours!r}")
    odds = SHORT_ALIAS if len(ours) <= SHORT else NAME_IS_ALIAS
    return Sign(odds, f"the name of one and an alias of the other: {ours!r}")


def _by_meaning(vectors: VectorIndex, nodes: IntArray) -> Candidates:
    """Return pairs with similar documents, if every node already has a vector."""
    found: Candidates = {}
    if not vectors.is_complete or len(nodes) > MOST_COMPARED:
        return found
    every = vectors.vectors(nodes)
    for start in range(0, len(nodes), _BLOCK):
        cosines = every[start : start + _BLOCK] @ every[start:].T
        for row, column in np.argwhere(cosines >= CLOSE).tolist():
            if column > row:
                pair = int(nodes[start + row]), int(nodes[start + column])
                found[pair] = Sign(NEAR, f"documents close in meaning: {cosines[row, column]:.2f}")
    return found


_WORD = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+")
_EMPTY = frozenset({"the", "a", "an", "of", "and", "in", "with"})
_ORDERED = frozenset({"to", "from", "by", "into", "over", "under", "than", "before", "after", "versus", "vs"})
"""Words after which word order matters, like a slash: a right-to-left shunt is not a left-to-right shunt."""
_HABITS = (("ae", "e"), ("oe", "e"), ("our", "or"), ("isation", "ization"), ("ise", "ize"))
WINDOW = 4
"""Maximum distance of two names in alphabetical order to be compared letter by letter."""
LONG_ENOUGH = 6
"""Minimum length of a misspelt word, in letters. Shorter words that differ are different words."""


def words(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case, without punctuation and with normalised accents."""
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", name).casefold()))


def form(name: str) -> str:
    """Return a form that ignores word order, plural, small words and British or American spelling."""
    found = words(name)
    folded = [_folded(word) for word in found if word not in _EMPTY or len(found) == 1]
    return " ".join(folded if "/" in name or _ORDERED & set(found) else sorted(folded))


def _folded(word: str) -> str:
    for habit, instead in _HABITS:
        word = word.replace(habit, instead)
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def misspelt(first: str, second: str) -> bool:
    """Return whether two forms differ in one long word, by a letter missing inside it: `Alzheimer` and `Alzeimer`.

    A different letter, a letter at an end or a short word often distinguishes things: `intra` and `infra`, `type 1`
    and `type 2`.
    """
    ours, theirs = first.split(), second.split()
    only_ours, only_theirs = set(ours) - set(theirs), set(theirs) - set(ours)
    if len(ours) != len(theirs) or len(only_ours) != 1 or len(only_theirs) != 1:
        return False
    short, long = sorted((*only_ours, *only_theirs), key=len)
    if len(short) < LONG_ENOUGH or len(long) != len(short) + 1 or not long.isalpha():
        return False
    return (short[0], short[-1]) == (long[0], long[-1]) and Levenshtein.distance(short, long) == 1


def close_forms(forms: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of forms that may be misspelt, among neighbours in alphabetical order from either end."""
    found = set()
    for ordered in (sorted(forms), sorted(forms, key=lambda form: form[::-1])):
        for index in range(len(ordered)):
            near = ordered[index : index + WINDOW]
            found |= {tuple(sorted(pair)) for pair in combinations(near, 2) if misspelt(*pair)}
    return sorted((first, second) for first, second in found)
