"""The search of System 1: paths and entities. Chains win a tournament, then single entities behind them are kept.

1  relation chains that go on from the walks kept so far, merged where topic and relations are the same
2  pre-filter and tournament over the chains
3  entities behind the best chains, shown in groups by the path that leads to them; the model keeps `width` in all
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clew.core.trace import span
from clew.core.types import NodeSet
from clew.methods.paths.asking import Group
from clew.methods.paths.execution import Step, Trail
from clew.methods.paths.prefilter import PhraseVectors, path_text, prefilter
from clew.methods.paths.search import Asked, PathSearch
from clew.queries.relation_paths import Explorer, Hop, Lead, Move, RelationPath
from clew.reading.topics import Topic

Prune = Callable[[Sequence[Group], int], Sequence[int]]
"""Groups of entities and how many to keep → positions of those kept, counted through all groups."""


@dataclass(frozen=True, slots=True)
class Walk:
    """An instance of a relation path: its facts, from one node of the topic to one end."""

    path: RelationPath
    trail: Trail


def grow_walks(
    search: PathSearch,
    explorer: Explorer,
    topics: Sequence[Topic],
    asked: Asked,
    vectors: PhraseVectors,
    prune: Prune,
    enough: Callable[[Sequence[Trail]], bool] | None = None,
) -> list[Walk]:
    """Every walk that was kept, the longest last: the answer is read from all of them."""
    kept = [Walk(RelationPath(topic.nodes), Trail(node)) for topic in topics for node in topic.nodes]
    read: list[Walk] = []
    for depth in range(search.depth):
        with span("explore", depth=depth + 1, walks=len(kept)) as opened:
            onward: dict[RelationPath, list[tuple[Walk, Lead]]] = {}
            for walk in kept:  # 1
                for lead in explorer.leads(NodeSet.of([walk.trail.end])):
                    if _reached(explorer, walk, lead):
                        onward.setdefault(walk.path.then(lead.hop), []).append((walk, lead))
            shown = search.filter_paths(asked.question, list(onward), vectors)
            called = [asked.label(int(path.topic.array[0])) for path in shown]
            chains = search.tournament(shown, called, asked.judge)  # 2
            grown = [
                longer for chain in chains for walk, lead in onward[chain] for longer in _steps(explorer, walk, lead)
            ]
            kept = _pruned(search, grown, asked, vectors, prune)  # 3
            opened.note(chains=[path.in_words() for path in chains], entities=len(grown), kept=len(kept))
        if not kept:
            break
        read += kept
        if search.stop == "answered" and enough is not None and enough([walk.trail for walk in read]):
            break
    return read


def explored(walk: Walk, label: Callable[[int], str]) -> str:
    """The walk up to its last relation, as System 1 shows what leads to a group of entities."""
    named = [f"[Entity] {label(walk.trail.start)}"]
    for place, step in enumerate(walk.trail.steps):
        arrow = "->" if step.direction == "out" else "<-"
        named.append(f"{arrow} [Relation] {step.relation}")
        if place < len(walk.trail.steps) - 1:
            named.append(f"-> [Entity] {label(step.end)}")
    return " ".join(named)


def _pruned(
    search: PathSearch, walks: Sequence[Walk], asked: Asked, vectors: PhraseVectors, prune: Prune
) -> list[Walk]:
    texts = [f"{path_text(walk.path)} {asked.label(walk.trail.end)}" for walk in walks]
    few = [walks[at] for at in prefilter(asked.question, texts, search.filtered, search.filter, vectors, search.seed)]
    groups: dict[str, list[Walk]] = {}
    for walk in few:
        groups.setdefault(explored(walk, asked.label), []).append(walk)
    shown = [Group(prefix, tuple(asked.label(one.trail.end) for one in own)) for prefix, own in groups.items()]
    ordered = [walk for own in groups.values() for walk in own]
    if len(ordered) <= search.width:
        return ordered
    return [ordered[place] for place in prune(shown, search.width)]


def _reached(explorer: Explorer, walk: Walk, lead: Lead) -> list[int]:
    """Where a hop leads that the walk has not been."""
    before = walk.path.hops[-1] if walk.path.hops else None
    reached = explorer.ends(NodeSet.of([walk.trail.end]), lead, before, walk.path.topic)
    return [node for node in reached if not walk.trail.visits(node)]


def _steps(explorer: Explorer, walk: Walk, lead: Lead) -> list[Walk]:
    """The walk over one hop to each of its new ends."""
    here, path = walk.trail.end, walk.path.then(lead.hop)
    return [
        Walk(path, Trail(walk.trail.start, (*walk.trail.steps, *_over(explorer, here, lead.hop, node))))
        for node in _reached(explorer, walk, lead)
    ]


def _over(explorer: Explorer, here: int, hop: Hop, end: int) -> tuple[Step, ...]:
    """The edges of a hop: one, or two with a node without a name between them."""
    if len(hop) == 1:
        return (_step(hop[0], end),)
    middle = explorer.walk(NodeSet.of([here]), hop[0]) & explorer.walk(NodeSet.of([end]), hop[1].back)
    return (_step(hop[0], int(middle.array[0])), _step(hop[1], end))


def _step(move: Move, end: int) -> Step:
    return Step(move.relation, move.direction, end)
