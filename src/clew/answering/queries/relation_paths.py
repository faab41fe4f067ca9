"""Relation paths, and nodes without a name, which represent facts such as a marriage or a term of office."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Literal

from clew.answering.queries.linking import keys_of
from clew.core import query as ql
from clew.core.texts import OPAQUE
from clew.core.types import EMPTY, Direction, NodeSet
from clew.store.graph.protocol import KnowledgeBase, StoredKnowledgeBase

NAMES_LOOKED_AT = 500
"""Maximum number of nodes whose names are requested from a remote base."""
ENOUGH = 30
"""Number of named nodes after which a relation counts as leading to named nodes only."""
Via = tuple[str, Direction]
"""A relation and its direction."""


class Nameless:
    """Nameless nodes of a remote base, found by looking at each name once."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self._known: dict[int, bool] = {}
        self._named_behind: Counter[Via] = Counter()
        self._nameless_behind: set[Via] = set()

    def behind(self, relation: str, direction: Direction) -> bool:
        """Return whether a relation may lead to nameless nodes."""
        via = (relation, direction)
        return via in self._nameless_behind or self._named_behind[via] < ENOUGH

    def among(self, nodes: NodeSet, via: Via | None = None) -> NodeSet:
        """Return the nameless nodes among `nodes`. `via` is the relation that led to them."""
        new = [node for node in nodes.array[:NAMES_LOOKED_AT].tolist() if node not in self._known]
        if new:
            self._known.update((ref.id, OPAQUE.fullmatch(ref.name) is not None) for ref in self.kb.refs(new))
        nameless = NodeSet.of([node for node in nodes if self._known.get(node, False)])
        if via is not None:
            self._named_behind[via] += len(nodes) - len(nameless)
            self._nameless_behind |= {via} if len(nameless) else set()
        return nameless


class KnownNameless(Nameless):
    """Nameless nodes of a local base, found once by a pattern."""

    def __init__(self, kb: StoredKnowledgeBase) -> None:
        self._nodes = kb.named_like(OPAQUE.pattern)
        turned = {"out": "in", "in": "out"}
        self._behind = {(use.relation, turned[use.direction]) for use in kb.relations(self._nodes)}

    def behind(self, relation: str, direction: Direction) -> bool:
        """Return whether a relation leads to a nameless node anywhere in the base."""
        return (relation, direction) in self._behind

    def among(self, nodes: NodeSet, via: Via | None = None) -> NodeSet:  # noqa: ARG002 - known without
        """Return the nameless nodes among `nodes`."""
        return nodes & self._nodes if self._behind else EMPTY


def nameless_of(kb: KnowledgeBase) -> Nameless:
    """Return the nameless nodes of a base."""
    return Nameless(kb) if kb.stored is None else KnownNameless(kb.stored)


VALUE = re.compile(r"[-+]?\d[\d.,/:T-]*Z?")
"""Years, dates and numbers. Many unrelated nodes share them, so paths end there."""
LOOKED_AT = 12
"""Number of end nodes to check for the values of a relation."""


@dataclass(frozen=True, slots=True, order=True)
class Move:
    """One relation, walked from its head ("out") or from its tail ("in")."""

    relation: str
    direction: Literal["out", "in"]

    @property
    def back(self) -> Move:
        """Return the move in the opposite direction."""
        return Move(self.relation, "in" if self.direction == "out" else "out")

    def in_words(self) -> str:
        """Return an arrow and the relation, the format of paths in the thesis' prompts."""
        return f"{'->' if self.direction == 'out' else '<-'} {self.relation}"


Hop = tuple[Move, ...]
"""One step of a path: one move, or two with a nameless node between them."""


@dataclass(frozen=True, slots=True)
class RelationPath:
    """A topic and the hops from it."""

    topic: NodeSet
    hops: tuple[Hop, ...] = ()

    @property
    def moves(self) -> tuple[Move, ...]:
        """Return the moves of all hops in order."""
        return tuple(move for hop in self.hops for move in hop)

    def then(self, hop: Hop) -> RelationPath:
        """Return the path with one more hop."""
        return RelationPath(self.topic, (*self.hops, hop))

    def in_words(self) -> str:
        """Return the moves as arrows."""
        return " ".join(move.in_words() for move in self.moves)


def is_return(before: Hop | None, hop: Hop) -> bool:
    """Return whether a hop reverses the relation of the previous hop: films by the same director."""
    if before is None or len(hop) != 1 or len(before) != 1:
        return False
    return hop[0].relation == before[0].relation and hop[0].direction != before[0].direction


@dataclass(frozen=True, slots=True)
class Lead:
    """A hop from a set of nodes, and its ends if they are known."""

    hop: Hop
    ends: NodeSet | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """The nodes that a move leads to, the nodes it avoids, and whether it keeps nameless nodes."""

    nodes: NodeSet
    left_out: NodeSet = EMPTY
    nameless: bool | None = None


class Explorer:
    """Finds the ends of relation paths. Nameless nodes represent facts and cannot be ends."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb = kb
        self._nameless = nameless_of(kb)
        self._values: dict[Move, bool] = {}

    def leads(self, nodes: NodeSet) -> list[Lead]:
        """Return every hop from these nodes. Paths pass through nameless nodes."""
        found = []
        for use in self.kb.relations(nodes):
            move = Move(use.relation, "out" if use.direction == "out" else "in")
            if not self._nameless.behind(move.relation, move.direction):
                found.append(Lead((move,)))
                continue
            reached = self.walk(nodes, move)
            middle = self._nameless.among(reached, (move.relation, move.direction))
            if len(middle) < len(reached):
                found.append(Lead((move,), reached - middle if len(middle) else reached))
            if not len(middle):
                continue
            for second in self.kb.relations(middle):
                onward = Move(second.relation, "out" if second.direction == "out" else "in")
                ends = self._named(self.walk(middle, onward) - nodes)
                if len(ends):
                    found.append(Lead((move, onward), ends))
        return found

    def walk(self, nodes: NodeSet, move: Move) -> NodeSet:
        """Return the nodes one move away."""
        return self.kb.neighbors(nodes, move.relation, move.direction)

    def ends(self, nodes: NodeSet, lead: Lead, path: RelationPath) -> NodeSet:
        """Return the ends of a hop after a path. Its topic is excluded only if the hop reverses the last relation."""
        reached = lead.ends if lead.ends is not None else self.walk(nodes, lead.hop[0])
        return reached - path.topic if path.hops and is_return(path.hops[-1], lead.hop) else reached

    def execute(self, path: RelationPath) -> NodeSet:
        """Return the nodes at the end of a path."""
        return self.layers(path)[-1].nodes if path.hops else path.topic

    def layers(self, path: RelationPath) -> list[Layer]:
        """Return the nodes that each move of a path leads to, and the nodes it skips."""
        found: list[Layer] = []
        here, before = path.topic, None
        for hop in path.hops:
            reached = self.walk(here, hop[0])
            if len(hop) == 2:
                middle = self._nameless.among(reached)
                found.append(Layer(middle, nameless=True if len(middle) < len(reached) else None))
                reached = self.walk(middle, hop[1])
            passed = reached & here if len(hop) == 2 else EMPTY
            passed = passed | (reached & path.topic) if is_return(before, hop) else passed
            left = reached - passed
            here = self._named(left)
            found.append(Layer(here, passed, False if len(here) < len(left) else None))
            before = hop
        return found

    def leads_to_values(self, move: Move, nodes: NodeSet) -> bool:
        """Return whether a relation leads to years, dates or numbers. Checks only LOOKED_AT end nodes."""
        known = self._values.get(move)
        if known is None:
            few = self.walk(nodes, move).array[:LOOKED_AT]
            known = self._values[move] = are_values([ref.name for ref in self.kb.refs(few)])
        return known

    def _named(self, nodes: NodeSet) -> NodeSet:
        return nodes - self._nameless.among(nodes)


def are_values(names: Sequence[str]) -> bool:
    """Return whether most names are years, dates or numbers."""
    return sum(VALUE.fullmatch(name) is not None for name in names) * 2 > len(names)


TARGET = "x"
"""The variable of the nodes at the end of paths."""


def paths_query(
    explorer: Explorer, paths: Sequence[RelationPath], ends: NodeSet | None, conditions: Sequence[ql.Formula] = ()
) -> ql.Query:
    """Return a query for the nodes to which every path leads. If `ends` are fewer, it finds only those.

    `conditions` are further conditions on these nodes.
    """
    walked = [explorer.layers(path) for path in paths]
    where = list(conditions)
    for number, (path, layers) in enumerate(zip(paths, walked, strict=True)):
        for name, layer in zip(_names(path, number), layers, strict=True):
            if len(layer.left_out):
                where.append(ql.Compare(ql.Var(name), "!=", keys_of(explorer.kb, layer.left_out)))
            if layer.nameless is not None:
                is_nameless = ql.Compare(ql.Attribute(name, "name"), "matches", ql.Value(OPAQUE.pattern))
                where.append(is_nameless if layer.nameless else ql.Not(is_nameless))
    reached = reduce(and_, (layers[-1].nodes for layers in walked))
    if ends is not None and reached != ends:
        where.append(ql.Compare(ql.Var(TARGET), "=", keys_of(explorer.kb, ends)))
    return ql.find(TARGET, None, ql.requiring(_chains(explorer.kb, paths), *where))


def walks_query(kb: KnowledgeBase, walks: Sequence[tuple[RelationPath, int]]) -> ql.Query:
    """Return a query for the given nodes, each at the end of a path that may have other ends."""
    ends: dict[RelationPath, list[int]] = {}
    for path, end in walks:
        ends.setdefault(path, []).append(end)
    patterns = [
        ql.requiring(_chains(kb, [path]), ql.Compare(ql.Var(TARGET), "=", keys_of(kb, NodeSet.of(own))))
        for path, own in ends.items()
    ]
    if len(patterns) == 1:
        return ql.find(TARGET, None, patterns[0])
    return ql.find(TARGET, None, ql.Pattern((), (), (ql.Either(tuple(map(ql.Exists, patterns))),)))


def _chains(kb: KnowledgeBase, paths: Sequence[RelationPath]) -> ql.Pattern:
    """Return the moves of all paths as edges. The paths share only their end."""
    edges: list[ql.Edge] = []
    for number, path in enumerate(paths):
        here: str | ql.Nodes = keys_of(kb, path.topic)
        for move, there in zip(path.moves, _names(path, number), strict=True):
            head, tail = (here, there) if move.direction == "out" else (there, here)
            edges.append(ql.Edge(head, move.relation, tail))
            here = there
    return ql.Pattern((), tuple(edges))


def _names(path: RelationPath, number: int) -> list[str]:
    return [*(f"{'yzuvw'[number]}{place}" for place in range(1, len(path.moves))), TARGET]
