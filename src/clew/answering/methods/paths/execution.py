"""Turn trails and relation paths into answers: single walks, the ends of paths, and filters on the ends."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, combinations, product
from operator import and_
from typing import Any

from clew.answering.methods.role_choice import reader_parser
from clew.answering.queries.certificates import certificate
from clew.answering.queries.execution import found_nodes, satisfying
from clew.answering.queries.linking import keys_of
from clew.answering.queries.relation_paths import TARGET, Explorer, Move, RelationPath, paths_query, walks_query
from clew.answering.queries.schema_words import conditions_in_words
from clew.answering.queries.words import Words
from clew.answering.reading.mentions import Topic
from clew.core.query import Attribute, Compare, Formula, Missing, Not, Order, Pattern, Value, Var, find, rewrite, walk
from clew.core.roles import Interpretation
from clew.core.types import Answer, Candidate, Direction, Fact, Judgement, NodeSet, Path, RelationUse
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.protocol import Names
from clew.store.open_base import OpenBase

MANY, SAMPLED = 20, 5
"""Number of neighbours from which on a sample is used, and its size, as in Think-on-Graph."""


@dataclass(frozen=True, slots=True)
class TrailStep:
    """One edge of a trail, followed from its head ("out") or from its tail ("in")."""

    relation: str
    direction: Direction
    end: int


@dataclass(frozen=True, slots=True)
class Trail:
    """Start and steps of a walk."""

    start: int
    steps: tuple[TrailStep, ...] = ()

    @property
    def end(self) -> int:
        """Last node of the walk."""
        return self.steps[-1].end if self.steps else self.start

    def visits(self, node: int) -> bool:
        """Check whether the walk contains a node."""
        return node == self.start or any(step.end == node for step in self.steps)


def extend(kb: KnowledgeBase, trail: Trail, use: RelationUse, rng: random.Random) -> list[Trail]:
    """Extend the trail by one step to every new neighbour, or to a sample if there are many."""
    reached = [n for n in kb.neighbors(NodeSet.of([trail.end]), use.relation, use.direction) if not trail.visits(n)]
    if len(reached) >= MANY:
        reached = sorted(rng.sample(reached, SAMPLED))
    return [replace(trail, steps=(*trail.steps, TrailStep(use.relation, use.direction, node))) for node in reached]


def in_words(use: RelationUse) -> str:
    """Return a relation as an option text, with its direction."""
    return use.relation if use.direction == "out" else f"{use.relation} (reversed: leads to the subject)"


def paths(kb: KnowledgeBase, trails: Sequence[Trail]) -> list[Path]:
    """Return each trail as evidence. The facts have their stored direction."""
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
    """Return for each answer one walk from the topic, as facts."""
    layers = list(accumulate(path.moves, explorer.walk, initial=path.topic))
    return paths(explorer.kb, [_trail(explorer, path, layers, answer) for answer in answers])


def _trail(explorer: Explorer, path: RelationPath, layers: list[NodeSet], answer: int) -> Trail:
    steps: list[TrailStep] = []
    here = answer
    for place in reversed(range(len(path.moves))):
        move = path.moves[place]
        steps.append(TrailStep(move.relation, move.direction, here))
        earlier = explorer.walk(NodeSet.of([here]), move.back) & layers[place]
        elsewhere = earlier - path.topic if place else earlier
        here = int((elsewhere if len(elsewhere) else earlier).array[0])
    return Trail(here, tuple(reversed(steps)))


WITH_EVIDENCE = 20
"""Maximum number of answers with a walk as evidence. Finding a walk takes time."""
MOST_TOPICS = 3
"""Maximum number of topics in a conjunction, longest names first."""
TOGETHER = 20
"""Maximum number of paths per topic to combine."""
Scored = list[tuple[RelationPath, float, NodeSet]]
"""Paths with their scores and end nodes, best first."""


def answer_paths(
    explorer: Explorer,
    question: str,
    by: str,
    best: list[RelationPath],
    ends: NodeSet,
    conditions: tuple[Formula, ...] = (),
    most: Order | None = None,
) -> Answer:
    """Return the ends of paths, all with the same score, each with its walk.

    `conditions` and `most` are the filters of the ends. They become part of the formal query.
    """
    kb, nodes = explorer.kb, ends.array.tolist()
    shown = nodes[:WITH_EVIDENCE]
    threads = [evidence(explorer, path, shown) for path in best]
    candidates = [
        Candidate(ref, 1.0, tuple(thread[place] for thread in threads) if place < len(shown) else ())
        for place, ref in enumerate(kb.refs(nodes))
    ]
    said = "; ".join(path.in_words() for path in best)
    found = paths_query(explorer, best, None if conditions or most else ends, conditions)
    if most is not None:
        found = replace(found, order=(most,), first=1, ties=True)
    query = {"path": said, **certificate(Interpretation(found), kb)}
    shown_by = (Judgement(by, None, said),)
    return Answer(question, tuple(candidates), evidence=shown_by, query=query, answer_count=len(nodes))


def several(topics: Sequence[Topic]) -> list[Topic]:
    """Return at most three topics. Longer names come first because they are more specific."""
    return sorted(topics, key=lambda topic: -len(topic.text))[:MOST_TOPICS]


def best_ends(answered: Sequence[Scored]) -> tuple[list[RelationPath], NodeSet]:
    """Return the best conjunction of paths and its nodes. It covers as many topics as share end nodes."""
    for size in range(len(answered), 1, -1):
        joint = [found for some in combinations(answered, size) if (found := _conjunction(some)) is not None]
        if joint:
            _, paths, ends = max(joint, key=lambda one: one[0])
            return paths, ends
    best, _, ends = max((ranked[0] for ranked in answered), key=lambda one: one[1])
    return [best], ends


def _conjunction(answered: Sequence[Scored]) -> tuple[float, list[RelationPath], NodeSet] | None:
    """Return the best combination of one path per topic with shared end nodes: total score, paths and nodes."""
    best: tuple[float, list[RelationPath], NodeSet] | None = None
    for chosen in product(*(ranked[:TOGETHER] for ranked in answered)):
        score = sum(one[1] for one in chosen)
        if best is None or score > best[0]:
            both = reduce(and_, (one[2] for one in chosen))
            if len(both):
                best = (score, [one[0] for one in chosen], both)
    return best


def answer_read(
    kb: KnowledgeBase, question: str, by: str, trails: Sequence[Trail], read: Sequence[str], memory: Names | None
) -> Answer:
    """Return the names read from trails, each with its walk, then the ends of the trails.

    A name outside the trails comes from the model's memory. With `memory` it counts if the base has it, without
    evidence. The formal query contains the walks.
    """
    stops = [replace(trail, steps=trail.steps[:count]) for trail in trails for count in range(len(trail.steps), 0, -1)]
    names = {ref.id: _plain(ref.name) for ref in kb.refs(sorted({stop.end for stop in stops}))}
    walks: dict[int, Trail] = {}
    remembered: list[int] = []
    for name in dict.fromkeys(map(_plain, read)):
        there = [stop for stop in stops if names[stop.end] == name]
        for stop in there:
            walks.setdefault(stop.end, stop)
        if not there and memory is not None:
            remembered += [link.node for link in memory.link(name, k=5) if link.how == "exact"]
    answers = list(dict.fromkeys((*walks, *remembered)))
    ends = {trail.end: trail for trail in trails if trail.end not in answers}
    shown = {**walks, **ends}
    found = dict(zip(shown, paths(kb, list(shown.values())), strict=True))
    recalled = (Judgement(by, None, "from the model's memory, not from the graph"),)
    ordered = [*answers, *ends]
    candidates = tuple(
        Candidate(ref, 1 / (1 + max(0, place - len(answers) + 1)), (found[ref.id],) if ref.id in found else recalled)
        for place, ref in enumerate(kb.refs(ordered))
    )
    query = query_of_walks(kb, [(path_of(walk), node) for node, walk in walks.items()]) if walks else {}
    text = ", ".join(read) if read else None
    return Answer(question, candidates, text=text, answer_count=len(answers), query=query)


def query_of_walks(kb: KnowledgeBase, walks: Sequence[tuple[RelationPath, int]]) -> dict[str, str]:
    """Return the paths to some nodes in words, and the formal query for these nodes."""
    said = "; ".join(dict.fromkeys(path.in_words() for path, _ in walks))
    return {"path": said, **certificate(Interpretation(walks_query(kb, walks)), kb)}


def path_of(trail: Trail) -> RelationPath:
    """Return the relation path of a trail."""
    moves = tuple((Move(step.relation, "out" if step.direction == "out" else "in"),) for step in trail.steps)
    return RelationPath(NodeSet.of([trail.start]), moves)


def triples(kb: KnowledgeBase, trails: Sequence[Trail], label: Callable[[int], str]) -> list[str]:
    """Return the distinct facts of trails in the format of Think-on-Graph."""
    facts = [fact for path in paths(kb, trails) for fact in path.facts]
    return list(dict.fromkeys(f"{label(fact.head.id)}, {fact.relation}, {label(fact.tail.id)}" for fact in facts))


def _plain(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold()


def nothing_found(question: str, *, named: bool) -> Answer:
    """Return an answer with the reason why there is none. `named` tells whether there was a topic."""
    unnamed = "no topic entity was found: mark it as [Name] or give it with -O topics=NAME"
    return Answer(question, notes=("no path leads from the topic to an answer" if named else unnamed,))


# Filters on attributes of the nodes on a path: conditions, and the largest or smallest value. The thesis names this as
# future work (1a): "the nationality of the tallest person" needs the tallest person before the next hop. The learned
# reader finds the words. If the ends of a path have the attribute, they are filtered, and so is the formal query. If
# nodes on the way have it, the path restarts at the matching nodes.


@dataclass(frozen=True)
class Refined:
    """The remaining paths and ends, the filters of the ends, and a note if a path restarts."""

    paths: list[RelationPath]
    ends: NodeSet
    conditions: tuple[Formula, ...] = ()
    best: Order | None = None
    notes: tuple[str, ...] = ()


def answer_refined(
    tools: OpenBase, explorer: Explorer, question: str, by: str, paths: list[RelationPath], ends: NodeSet
) -> Answer:
    """Answer with the ends of paths, filtered by attributes in the question if the base has attributes."""
    refined = Refined(paths, ends)
    if explorer.kb.schema.attribute_types:
        asked = reader_parser(tools).parse(question, explorer.kb.schema).interpretation
        refined = refine(explorer, paths, ends, asked)
    answer = answer_paths(explorer, question, by, refined.paths, refined.ends, refined.conditions, refined.best)
    return replace(answer, notes=(*answer.notes, *refined.notes))


def refine(explorer: Explorer, paths: list[RelationPath], ends: NodeSet, asked: Interpretation) -> Refined:
    """Filter the ends by conditions and by the largest or smallest value. If none remains, restart or return all."""
    conditions = [part for part in asked.query.pattern.where if isinstance(part, Compare) and _is_about_value(part)]
    best = next((key for key in asked.query.order if _attribute(key.expression) is not None), None)
    if best is None and not conditions:
        return Refined(paths, ends)
    left, met, best_used = _narrowed(explorer.kb, ends, conditions, best)
    if len(left) and (met or best_used is not None):
        return Refined(paths, left, met, best_used)
    if len(paths) == 1:
        return _begun_anew(explorer, paths[0], ends, conditions, best)
    return Refined(paths, ends)


def _begun_anew(
    explorer: Explorer, path: RelationPath, ends: NodeSet, conditions: Sequence[Compare], best: Order | None
) -> Refined:
    """Restart the path at the last nodes on the way that the filters apply to."""
    for count in range(len(path.hops) - 1, 0, -1):
        on_the_way = explorer.execute(RelationPath(path.topic, path.hops[:count]))
        left, _, _ = _narrowed(explorer.kb, on_the_way, conditions, best)
        if len(left) and len(left) < len(on_the_way):
            onward = RelationPath(left, path.hops[count:])
            reached = explorer.execute(onward)
            if len(reached):
                words = Words(explorer.kb.schema)
                limits = conditions_in_words(conditions, words.schema)
                said = " and ".join([*limits, *([f"that {words.best(best)}"] if best else [])])
                first = " ".join(move.in_words() for hop in path.hops[:count] for move in hop)
                return Refined([onward], reached, notes=(f"of the nodes after {first}, those {said}: {len(left)}",))
    return Refined([path], ends)


def _attribute(expression: object) -> str | None:
    return next((part.name for part in walk(expression) if isinstance(part, Attribute)), None)


def _is_about_value(part: Compare) -> bool:
    return isinstance(part.left, Attribute) and isinstance(part.right, Value)


def _narrowed(
    kb: KnowledgeBase, nodes: NodeSet, conditions: Sequence[Compare], best: Order | None
) -> tuple[NodeSet, tuple[Formula, ...], Order | None]:
    """Return the remaining nodes and the filters that applied: their attribute occurs among the nodes."""

    def about_ends(part: Any) -> Any:
        return replace(part, variable=TARGET) if isinstance(part, Attribute) else part

    def has(attribute: str | None) -> bool:
        is_known = Not(Missing(Attribute(TARGET, attribute or "")))
        return bool(len(satisfying(kb, Pattern((), (), (is_known,)), TARGET, nodes)))

    met = tuple(rewrite(one, about_ends) for one in conditions if has(_attribute(one)))
    if met:
        nodes = satisfying(kb, Pattern((), (), met), TARGET, nodes)
    if best is not None and len(nodes) and has(_attribute(best)):
        best = rewrite(best, about_ends)
        among = Pattern((), (), (Compare(Var(TARGET), "=", keys_of(kb, nodes)),))
        chosen = found_nodes(kb, replace(find(TARGET, None, among), order=(best,), first=1, ties=True))
        if len(chosen):
            return chosen, met, best
    return nodes, met, None
