"""Trails: walks from a topic, a fact at a time, that a beam search over the graph keeps or drops."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.core.types import Answer, Candidate, Direction, Fact, Judgement, NodeSet, Path, RelationUse
from clew.kb.iris import node_iri, relation_iri
from clew.kb.protocol import KnowledgeBase
from clew.queries.relation_paths import Explorer, RelationPath, is_return
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


MOST_KEYS = 50
"""A formal query names at most this many nodes of a topic."""


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


def formal_query(kb: KnowledgeBase, path: RelationPath) -> dict[str, str]:
    """The path in words, as SPARQL and as Cypher."""
    keys = [ref.key for ref in kb.refs(path.topic.array[:MOST_KEYS])]
    return {"path": path.in_words(), "sparql": _sparql(path, keys), "cypher": _cypher(path, keys)}


def _apart(path: RelationPath) -> set[int]:
    """The variables that must not be the topic: where the path takes a relation back, or passes a nameless node."""
    apart, place = set(), 0
    before = None
    for hop in path.hops:
        place += len(hop)
        if is_return(before, hop) or len(hop) == 2:
            apart.add(place)
        before = hop
    return apart


def _sparql(path: RelationPath, keys: list[str]) -> str:
    topic = " ".join(f"<{node_iri(key)}>" for key in keys)
    lines = [f"  VALUES ?x0 {{ {topic} }}"]
    apart = _apart(path)
    for place, move in enumerate(path.moves, 1):
        ends = (place - 1, place) if move.direction == "out" else (place, place - 1)
        lines.append(f"  ?x{ends[0]} <{relation_iri(move.relation)}> ?x{ends[1]} .")
        if place in apart:
            lines.append(f"  FILTER(?x{place} NOT IN ({topic.replace(' ', ', ')}))")
    return "\n".join([f"SELECT DISTINCT ?x{len(path.moves)} WHERE {{", *lines, "}"])


def _cypher(path: RelationPath, keys: list[str]) -> str:
    pattern = "(x0)"
    for place, move in enumerate(path.moves, 1):
        name = move.relation.replace("`", "``")
        pattern += f"-[:`{name}`]->(x{place})" if move.direction == "out" else f"<-[:`{name}`]-(x{place})"
    listed = json.dumps(keys, ensure_ascii=False)
    conditions = [f"x0.key IN {listed}", *(f"NOT x{place}.key IN {listed}" for place in sorted(_apart(path)))]
    return f"MATCH {pattern}\nWHERE {' AND '.join(conditions)}\nRETURN DISTINCT x{len(path.moves)}.key AS key"


MOST_SHOWN = 1000
WITH_EVIDENCE = 20
PAIRED = 20
"""Of several topics so many paths each are tried together."""
Scored = list[tuple[RelationPath, float, NodeSet]]
"""Paths with their scores and where they lead, best first."""


def answer_paths(explorer: Explorer, question: str, by: str, best: list[RelationPath], nodes: list[int]) -> Answer:
    """The ends of paths, all with the same score, each with the walk that leads to it."""
    kb, shown = explorer.kb, nodes[:WITH_EVIDENCE]
    threads = [evidence(explorer, path, shown) for path in best]
    candidates = [
        Candidate(ref, 1.0, tuple(thread[place] for thread in threads) if place < len(shown) else ())
        for place, ref in enumerate(kb.refs(nodes))
    ]
    judgement = Judgement(by, None, "; ".join(path.in_words() for path in best))
    return Answer(question, tuple(candidates), evidence=(judgement,), query=formal_query(kb, best[0]))


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
