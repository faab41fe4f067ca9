"""Trails: walks from a topic, a fact at a time, that a beam search over the graph keeps or drops."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.core.types import Direction, Fact, NodeSet, Path, RelationUse
from clew.kb.protocol import KnowledgeBase

MANY = 20
SAMPLED = 5
"""Of at least `MANY` neighbours behind a relation this many are looked at, as in Think-on-Graph."""


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of a trail, walked from its head ("out") or from its tail ("in")."""

    relation: str
    direction: Direction
    end: int


@dataclass(frozen=True, slots=True)
class Trail:
    """Where a walk began and the steps it took."""

    start: int
    steps: tuple[Step, ...] = ()

    @property
    def end(self) -> int:
        """The node the walk has reached."""
        return self.steps[-1].end if self.steps else self.start

    def visits(self, node: int) -> bool:
        """Whether the walk has been at a node."""
        return node == self.start or any(step.end == node for step in self.steps)


def leads(kb: KnowledgeBase, trail: Trail) -> list[RelationUse]:
    """The relations that go on from the end of a trail, both directions."""
    return list(kb.relations(NodeSet.of([trail.end])))


def extend(kb: KnowledgeBase, trail: Trail, use: RelationUse, rng: random.Random) -> list[Trail]:
    """The trail by one step over a relation to every new neighbour, or to a sample of very many."""
    reached = [n for n in kb.neighbors(NodeSet.of([trail.end]), use.relation, use.direction) if not trail.visits(n)]
    if len(reached) >= MANY:
        reached = sorted(rng.sample(reached, SAMPLED))
    return [replace(trail, steps=(*trail.steps, Step(use.relation, use.direction, node))) for node in reached]


def in_words(use: RelationUse) -> str:
    """A relation as an option to choose: its direction is part of its meaning."""
    return use.relation if use.direction == "out" else f"{use.relation} (reversed: leads to the subject)"


def paths(kb: KnowledgeBase, trails: Sequence[Trail]) -> list[Path]:
    """Each trail as evidence, its facts in their stored direction."""
    nodes = sorted({node for trail in trails for node in (trail.start, *(step.end for step in trail.steps))})
    refs = {ref.id: ref for ref in kb.refs(nodes)}
    found = []
    for trail in trails:
        facts, here = [], trail.start
        for step in trail.steps:
            head, tail = (here, step.end) if step.direction == "out" else (step.end, here)
            attributes = next(iter(kb.edge_attributes(head, step.relation, tail)), {})
            facts.append(Fact(refs[head], step.relation, refs[tail], attributes))
            here = step.end
        found.append(Path(tuple(facts)))
    return found
