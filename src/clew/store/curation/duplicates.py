"""Nodes that are the same thing: likely by their names, made sure by their neighbours, values and texts.

1. Pairs of one type whose names or aliases have one form, differ by a misspelling, or whose vectors are close.
2. What speaks for and against each pair, as a sum of log odds.
3. Pairs that are sure enough, and the groups that they form.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import rustworkx
from rapidfuzz.distance import Levenshtein

from clew.core.types import IntArray, NodeRef, NodeSet
from clew.store.curation.likeness import NEAREST, Likeness, Sign, alike
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.tables import GROUPS
from clew.store.graph.visibility import audience, audience_text
from clew.store.index.vectors import VectorIndex
from clew.store.open_base import OpenBase

PRIOR = -3.0
SAME_NAME, SAME_FORM, NAME_IS_ALIAS, MISSPELT, NEAR, SAME_ALIAS = 5.0, 4.0, 3.5, 2.0, 1.0, 0.0
"""Log odds of the ways in which two nodes come to be compared; that two different names share an alias says little."""
LARGEST_BLOCK = 20
"""A name that more nodes share says nothing."""
SHORT, SHORT_ALIAS = 5, 1.0
"""Aliases of so few letters are often abbreviations of several things."""
LEAST = 0.9
"""How sure a pair must be to be shown."""
CLOSE = 0.95
"""The cosine from which two documents make a pair."""
MOST_COMPARED = 30_000
"""Nodes of a type up to which all documents are compared with each other."""
_BLOCK = 1024

Candidates = dict[tuple[int, int], Sign]


@dataclass(frozen=True)
class Pair:
    """Two nodes that may be one, how likely that is, and why."""

    first: NodeRef
    second: NodeRef
    certainty: float
    evidence: tuple[str, ...]
    obstacle: str | None = None
    """The reason why the pair must not be merged. None if it may be merged."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        shown = {"first": self.first.to_dict(), "second": self.second.to_dict()}
        return shown | {"certainty": self.certainty, "evidence": list(self.evidence), "obstacle": self.obstacle}


def find_duplicates(tools: OpenBase, type: str | None = None, *, least: float = LEAST) -> list[Pair]:
    """Every pair of nodes of one type that is likely enough the same thing, the surest first."""
    kb = tools.local
    candidates: Candidates = {}
    for kind in kb.schema.type_names if type is None else (kb.schema.node_type(type).name,):
        candidates |= _by_meaning(tools.vectors, kb.nodes(kind).array) | _by_name(kb, kb.nodes(kind).array)
    likeness = Likeness(kb)
    signs = {pair: [why, *likeness.of(*pair)] for pair, why in candidates.items()}
    hopeful = [
        pair for pair, found in signs.items() if _certainty(found, NEAREST) >= least
    ]  # texts are costly to compare
    written = alike(tools, hopeful)
    pairs = []
    for place in hopeful:
        found = signs[place] + ([written[place]] if place in written else [])
        if (certainty := _certainty(found)) >= least:
            first, second = kb.refs(place)
            evidence = tuple(sign.said for sign in found)
            pairs.append(Pair(first, second, round(certainty, 4), evidence, _obstacle(kb, place)))
    return sorted(pairs, key=lambda pair: (-pair.certainty, pair.first.key, pair.second.key))


def _obstacle(kb: ArrayKnowledgeBase, pair: tuple[int, int]) -> str | None:
    """Return why two nodes must stay apart: a merge would show each one's content to the other's groups."""
    first, second = (audience(groups) for groups in kb.values(NodeSet.of(pair), GROUPS))
    if first == second:
        return None
    return f"their groups differ: {audience_text(first)} and {audience_text(second)}"


def _certainty(signs: Iterable[Sign], more: float = 0.0) -> float:
    return 1 / (1 + math.exp(-PRIOR - more - sum(sign.odds for sign in signs)))


def groups(kb: ArrayKnowledgeBase, pairs: Iterable[Pair]) -> list[tuple[NodeRef, ...]]:
    """Return the nodes that pairs without an obstacle join, the node with most edges first: the others go into it."""
    ends = [(pair.first.id, pair.second.id) for pair in pairs if pair.obstacle is None]
    nodes = sorted({node for pair in ends for node in pair})
    number = {node: position for position, node in enumerate(nodes)}
    graph: rustworkx.PyGraph[int, None] = rustworkx.PyGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from_no_data([(number[first], number[second]) for first, second in ends])
    joined = sorted(sorted(nodes[member] for member in group) for group in rustworkx.connected_components(graph))
    return [tuple(kb.refs(sorted(group, key=lambda node: (-len(kb.triples(node)), node)))) for group in joined]


def _by_name(kb: ArrayKnowledgeBase, nodes: IntArray) -> Candidates:
    """Pairs that a name or an alias joins; of several ways the one that says most."""
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
        place = (min(one, other), max(one, other))
        if place not in found or sign.odds > found[place].odds:
            found[place] = sign


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
    """Pairs whose documents are close, where every node has its vector already."""
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
"""Words that make the order of the others matter, as a slash does: a right-to-left shunt is no left-to-right shunt."""
_HABITS = (("ae", "e"), ("oe", "e"), ("our", "or"), ("isation", "ization"), ("ise", "ize"))
WINDOW = 4
"""How far apart two names may stand in an alphabetical list to be compared letter by letter."""
LONG_ENOUGH = 6
"""Words of fewer letters are others when a letter differs."""


def words(name: str) -> tuple[str, ...]:
    """The words of a name in lower case; accents' encoding and punctuation do not matter."""
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", name).casefold()))


def form(name: str) -> str:
    """What names share that are the same but for order, plural, small words and British or American spelling."""
    found = words(name)
    folded = [_folded(word) for word in found if word not in _EMPTY or len(found) == 1]
    return " ".join(folded if "/" in name or _ORDERED & set(found) else sorted(folded))


def _folded(word: str) -> str:
    for habit, instead in _HABITS:
        word = word.replace(habit, instead)
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def misspelt(first: str, second: str) -> bool:
    """Whether two forms differ in one long word, by a letter that is missing inside it: `Alzheimer` and `Alzeimer`.

    Another letter instead, one at an end, or a short word tell things apart more often: `intra` and `infra`, `type 1`
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
    """Pairs of forms that may be one misspelt, found among neighbours in alphabetical order from either end."""
    found = set()
    for ordered in (sorted(forms), sorted(forms, key=lambda form: form[::-1])):
        for place in range(len(ordered)):
            near = ordered[place : place + WINDOW]
            found |= {tuple(sorted(pair)) for pair in combinations(near, 2) if misspelt(*pair)}
    return sorted((first, second) for first, second in found)
