"""Trails: walks from a topic, a fact at a time, that a beam search over the graph keeps or drops."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.core.types import Answer, Candidate, Direction, Fact, Judgement, NodeSet, Path, RelationUse
from clew.kb.protocol import KnowledgeBase
from clew.queries.certificates import certificate
from clew.queries.path_claims import claim_of_paths
from clew.queries.relation_paths import Explorer, RelationPath
from clew.reading.paths.topics import Topic

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


def evidence(explorer: Explorer, path: RelationPath, answers: list[int]) -> list[Path]:
    """For each answer one walk from the topic to it, as facts."""
    layers = [path.topic]
    for move in path.moves:
        layers.append(explorer.walk(layers[-1], move))
    return paths(explorer.kb, [_trail(explorer, path, layers, answer) for answer in answers])


def _trail(explorer: Explorer, path: RelationPath, layers: list[NodeSet], answer: int) -> Trail:
    steps: list[Step] = []
    here = answer
    for place in reversed(range(len(path.moves))):
        move = path.moves[place]
        steps.append(Step(move.relation, move.direction, here))
        earlier = explorer.walk(NodeSet.of([here]), move.back) & layers[place]
        elsewhere = earlier - path.topic if place else earlier
        here = int((elsewhere if len(elsewhere) else earlier).array[0])
    return Trail(here, tuple(reversed(steps)))


MOST_SHOWN = 1000
WITH_EVIDENCE = 20
PAIRED = 20
"""Of several topics so many paths each are tried together."""
Scored = list[tuple[RelationPath, float, NodeSet]]
"""Paths with their scores and where they lead, best first."""


def answer_paths(
    explorer: Explorer, question: str, by: str, best: list[RelationPath], ends: NodeSet, nodes: list[int]
) -> Answer:
    """The ends of paths, all with the same score, each with the walk that leads to it; `nodes` are those to show."""
    kb, shown = explorer.kb, nodes[:WITH_EVIDENCE]
    threads = [evidence(explorer, path, shown) for path in best]
    candidates = [
        Candidate(ref, 1.0, tuple(thread[place] for thread in threads) if place < len(shown) else ())
        for place, ref in enumerate(kb.refs(nodes))
    ]
    said = "; ".join(path.in_words() for path in best)
    query = {"path": said, **certificate(claim_of_paths(explorer, best, ends), kb), "matches": len(ends)}
    return Answer(question, tuple(candidates), evidence=(Judgement(by, None, said),), query=query)


def several(topics: Sequence[Topic]) -> list[Topic]:
    """At most three topics, the longest names first: they say most about what is meant."""
    return sorted(topics, key=lambda topic: -len(topic.text))[:3]


def best_ends(answered: Sequence[Scored]) -> tuple[list[RelationPath], NodeSet]:
    """The best path and where it leads; where there are several topics, the best pair that leads to the same nodes."""
    best, _, ends = max((ranked[0] for ranked in answered), key=lambda one: one[1])
    both = _intersected(answered) if len(answered) > 1 else None
    return ([best], ends) if both is None else both


def _intersected(answered: Sequence[Scored]) -> tuple[list[RelationPath], NodeSet] | None:
    """The best pair of paths from different topics that lead to the same nodes, and those nodes."""
    options = [
        (one[1] + other[1], one[0], other[0], one[2] & other[2])
        for one in answered[0][:PAIRED]
        for other in answered[1][:PAIRED]
    ]
    joint = [option for option in options if len(option[3])]
    if not joint:
        return None
    _, first, second, both = max(joint, key=lambda option: option[0])
    return [first, second], both


def nothing_found(named: bool) -> str:
    """Why there is no answer."""
    if named:
        return "no path leads from the topic to an answer"
    return "no topic entity was found: mark it as [Name] or give it with -O topics=NAME"
