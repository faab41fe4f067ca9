"""The search of Tournament on Path, hop by hop: candidates filtered, then decided by a tournament.

`prefilter` chooses which of many candidates a judge gets to see.
System 2, `grow`: over whole relation paths; what is kept is ranked once more with the entities at the ends in sight,
and the model is asked whether the best path answers.
System 1, `grow_walks`: over paths and entities:
1  relation chains that go on from the walks kept so far, merged where topic and relations are the same
2  pre-filter and tournament over the chains
3  entities behind the best chains, shown in groups by the path that leads to them; the model keeps `width` in all
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from clew.core.schema import words_of
from clew.core.trace import span
from clew.core.types import NodeSet, Ranking
from clew.index.fusion import reciprocal_rank_fusion
from clew.index.tokens import stem
from clew.methods.paths.asking import Group
from clew.methods.paths.execution import Step, Trail
from clew.methods.paths.tournament import Mode, PathJudge, Shown, best_places, select
from clew.models.protocol import Embedder
from clew.queries.relation_paths import Explorer, Hop, Lead, Move, RelationPath
from clew.reading.topics import Topic

MOST_EMBEDDED = 300
"""Of more candidates only so many are embedded, those that share most words with the question: a hub has thousands."""
K1, B = 1.2, 0.75
"""The usual constants of BM25."""
Filter = Literal["aligned", "lexical", "semantic", "rrf", "random", "none"]


def path_text(path: RelationPath) -> str:
    """A path as one text to embed or to search: the words of its relations, in order."""
    return " ".join(words_of(move.relation) for move in path.moves)


def prefilter(
    question: str, texts: Sequence[str], kept: int, how: Filter, embedder: Embedder, seed: int = 0
) -> list[int]:
    """The positions of the `kept` texts most like the question, best first; each text is embedded as a whole.

    "aligned" and "none" keep the order in which they come, and "none" keeps them all.
    """
    if how in ("semantic", "rrf") and len(texts) > MOST_EMBEDDED:
        first = sorted(best_places(lexical(question, texts), MOST_EMBEDDED))
        kept_of = prefilter(question, [texts[place] for place in first], kept, how, embedder, seed)
        return [first[place] for place in kept_of]
    places = range(len(texts))
    if how == "random":
        return random.Random(seed).sample(places, min(kept, len(texts)))
    if how in ("aligned", "none") or not texts:
        return list(places[: kept if how == "aligned" else None])
    rankings = []
    if how in ("lexical", "rrf"):
        rankings.append(Ranking.of(places, lexical(question, texts)))
    if how in ("semantic", "rrf"):
        cosines = embedder.embed(texts, role="query") @ embedder.embed([question], role="query")[0]
        rankings.append(Ranking.of(places, cosines.tolist()))
    return [place for place, _ in reciprocal_rank_fusion(rankings, k=kept)]


def lexical(question: str, documents: Sequence[str]) -> list[float]:
    """BM25 of a question over a few short texts."""
    bags = [Counter(stem(word) for word in document.split()) for document in documents]
    terms = [stem(word) for word in re.findall(r"\w+", question.lower())]
    usual = max(sum(map(len, bags)) / max(len(bags), 1), 1e-9)
    seen = Counter(term for bag in bags for term in bag)
    scores = []
    for bag in bags:
        weight = K1 * (1 - B + B * bag.total() / usual)
        known = [term for term in terms if bag[term]]
        rarity = [np.log(1 + (len(bags) - seen[term] + 0.5) / (seen[term] + 0.5)) for term in known]
        parts = [rare * bag[term] * (K1 + 1) / (bag[term] + weight) for term, rare in zip(known, rarity, strict=True)]
        scores.append(float(sum(parts)))
    return scores


Stop = Literal["depth", "answered", "converged"]
NAMED_ENDS = 10
"""Entities at the end of a path that a judge is shown."""


@dataclass(frozen=True)
class PathSearch:
    """How paths are explored and chosen."""

    mode: Mode = "pairwise"
    filter: Filter = "semantic"
    stop: Stop = "answered"
    width: int = 3
    chunk: int = 4
    filtered: int = 30
    depth: int = 4
    whole: bool = True
    """Whether a judge sees whole paths, or only the last relation of each."""
    seed: int = 0

    def shown(self, path: RelationPath, topic: str) -> Shown:
        """A path without its entities."""
        parts = tuple(move.in_words() for move in path.moves)
        return Shown(topic, parts if self.whole else parts[-1:])

    def filter_paths(self, question: str, paths: Sequence[RelationPath], embedder: Embedder) -> list[RelationPath]:
        """The paths that a judge gets to see."""
        texts = list(map(path_text, paths))
        return [paths[at] for at in prefilter(question, texts, self.filtered, self.filter, embedder, self.seed)]

    def tournament(self, paths: Sequence[RelationPath], topics: Sequence[str], judge: PathJudge) -> list[RelationPath]:
        """The best `width` paths, best first; topics[i] is what the topic of paths[i] is called."""
        shown = [self.shown(path, topic) for path, topic in zip(paths, topics, strict=True)]
        return [paths[place] for place in select(shown, judge, self.mode, self.width, self.chunk)]


@dataclass(frozen=True)
class Asked:
    """A question as its judges see it, and who they are."""

    question: str
    label: Callable[[int], str]
    """The name of a node, or what stands for it where it is masked."""
    judge: PathJudge
    answered: Callable[[str], bool] | None = None
    """Whether a path, with its ends in words, answers the question; None where nobody can say."""


def grow(
    search: PathSearch, explorer: Explorer, topic: NodeSet, asked: Asked, embedder: Embedder, *, final: bool
) -> list[RelationPath]:
    """Hop by hop from the topic; a kept path competes with the paths that continue it.

    `final` ranks the kept paths with the entities at their ends, as System 2 does.
    """
    kept: list[RelationPath] = []
    ends: NodeSet | None = None
    called = asked.label(int(topic.array[0]))
    for depth in range(search.depth):
        with span("tournament", depth=depth + 1) as opened:
            grown = [longer for path in kept or [RelationPath(topic)] for longer in _longer(explorer, path)]
            shown = search.filter_paths(asked.question, grown, embedder)
            pool = [*kept, *(path for path in shown if path not in kept)]
            winners = search.tournament(pool, [called] * len(pool), asked.judge)
            opened.note(candidates=len(grown), shown=len(shown), best=[path.in_words() for path in winners])
        if not winners or winners == kept:
            break
        kept = winners
        aware = [_with_ends(explorer, path, called, asked.label) for path in kept]
        if final and len(kept) > 1:
            order = select(aware, asked.judge, search.mode, search.width, search.chunk)
            kept, aware = [kept[place] for place in order], [aware[place] for place in order]
        if search.stop == "answered" and asked.answered is not None and asked.answered(aware[0].text):
            break
        reached = explorer.execute(kept[0])
        if search.stop == "converged" and ends is not None and reached == ends:
            break
        ends = reached
    return kept


def _with_ends(explorer: Explorer, path: RelationPath, topic: str, label: Callable[[int], str]) -> Shown:
    """A path with the entities it leads to, as its last part."""
    ends = explorer.execute(path)
    named = ", ".join(label(int(node)) for node in ends.array[:NAMED_ENDS])
    more = f", … ({len(ends)} in all)" if len(ends) > NAMED_ENDS else ""
    return Shown(topic, (*(move.in_words() for move in path.moves), f"= {named}{more}"))


def _longer(explorer: Explorer, path: RelationPath) -> list[RelationPath]:
    """The paths one hop longer that lead somewhere."""
    nodes = explorer.execute(path) if path.hops else path.topic
    if path.moves and explorer.leads_to_values(path.moves[-1], nodes):
        return []
    found = []
    for lead in explorer.leads(nodes):
        before = path.hops[-1] if path.hops else None
        if len(explorer.ends(nodes, lead, before, path.topic)):
            found.append(path.then(lead.hop))
    return found


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
    embedder: Embedder,
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
            shown = search.filter_paths(asked.question, list(onward), embedder)
            called = [asked.label(int(path.topic.array[0])) for path in shown]
            chains = search.tournament(shown, called, asked.judge)  # 2
            grown = [
                longer for chain in chains for walk, lead in onward[chain] for longer in _steps(explorer, walk, lead)
            ]
            kept = _pruned(search, grown, asked, embedder, prune)  # 3
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


def _pruned(search: PathSearch, walks: Sequence[Walk], asked: Asked, embedder: Embedder, prune: Prune) -> list[Walk]:
    texts = [f"{path_text(walk.path)} {asked.label(walk.trail.end)}" for walk in walks]
    few = [walks[at] for at in prefilter(asked.question, texts, search.filtered, search.filter, embedder, search.seed)]
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
