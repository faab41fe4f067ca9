"""Tournament on Path (Xiang & Wu, Chalmers 2026): rank abstract relation paths by tournaments instead of scores.

1  topic entities, given or linked. System 2 masks all of them in the prompts
2  explore: whole relation paths (System 2), or paths and then their end entities (System 1)
3  pre-filter: words and meaning fused (System 1), or only meaning, with whole paths embedded (System 2)
4  tournament: chunks of four, few-shot (System 1), or pairs, zero-shot with differences and reasons (System 2)
5  rank the remaining paths with their end entities (System 2)
6  stop at a fixed depth (System 1), if the model accepts the best path (System 2), or by convergence
7  answer: read by the model from all selected walks (System 1), or the ends of the best path (System 2), intersected
   for several topics, then filtered by attributes in the question

Deviations from the thesis: the answer of System 2 is the whole end set of a path, so that its formal query returns it.
Memory is an option. Without a model, similarity to the question judges, and names are not masked. `prefilter=aligned`
runs one tournament over the paths whose relations match the question best.

`search.py` explores whole paths. System 1 explores paths and entities, one hop at a time (`grow_walks`):

a  relation chains that continue the selected walks, merged if topic and relations are equal
b  pre-filter and tournament over the chains
c  entities at the end of the best chains, grouped by their path. The model selects `width` in all
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from clew.answering.methods.paths.asking import Group, answers_from, is_answered, is_enough, pick_entities
from clew.answering.methods.paths.execution import (
    Scored,
    Trail,
    TrailStep,
    answer_read,
    answer_refined,
    best_ends,
    nothing_found,
    several,
    triples,
)
from clew.answering.methods.paths.search import (
    Filter,
    JudgedQuestion,
    LikenessJudge,
    Mode,
    ModelPathJudge,
    PathSearch,
    Shown,
    Stop,
    best_places,
    grow,
    path_text,
    prefilter,
)
from clew.answering.methods.protocol import WITHOUT_MODEL, Method
from clew.answering.methods.role_choice import path_ranker_of
from clew.answering.queries.relation_paths import Explorer, Hop, Lead, Move, RelationPath
from clew.answering.reading.mentions import Topic, Topics, find_topics, mask_topic, mask_topics
from clew.answering.roles.score import FusedScorer
from clew.core.trace import span
from clew.core.types import Answer, NodeSet
from clew.models.embedding.opening import CachedEmbedder
from clew.models.protocol import Embedder
from clew.store.open_base import OpenBase

CACHED = 50_000
"""Maximum number of cached phrase vectors per base. A hub has thousands of phrases."""


@dataclass(frozen=True)
class TournamentOnPath(Method):
    """Relation paths from the topic entities, the best one found by a tournament."""

    name = "tournament_on_path"
    system: Literal[1, 2] = 2
    """System 1 or 2 of the thesis. Each further option changes one of its choices."""
    explore: Literal["paths", "entities"] | None = None
    """`entities` selects single entities at each hop, shown in groups by their path."""
    prefilter: Filter | None = None
    tournament: Mode | None = None
    """`none` scores paths separately, five per prompt. `list` shows all of them at once."""
    path_pruning: bool = True
    """False shows only the last relation of each path."""
    diff: bool | None = None
    """Whether to show only the differences of two paths. Applies only to pairs."""
    reasons: bool | None = None
    """Whether to ask for reasons before [A] or [B]. False asks only for the letter, in both orders."""
    mask: bool | None = None
    shots: Literal["few", "zero"] | None = None
    """Whether to show an example before each chunk or list."""
    stop: Stop | None = None
    memory: bool = False
    """Whether the model may answer from its own knowledge. System 1 of the thesis does."""
    depth: int | None = None
    width: int = 3
    chunk: int | None = None
    filtered: int | None = None
    seed: int = 0
    topics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Reject options that have no effect with the other options."""
        super().__post_init__()
        search, entities = self._search, self._explore == "entities"
        if search.mode != "pairwise":
            self.refuse(("diff", "reasons"), f"with tournament={search.mode}")
        if search.mode not in ("chunked", "list"):
            self.refuse(("shots",), f"with tournament={search.mode}")
        if search.mode != "chunked":
            self.refuse(("chunk",), f"with tournament={search.mode}")
        if search.filter == "none":
            self.refuse(("filtered",), "with prefilter=none")
        if search.filter != "random":
            self.refuse(("seed",), f"with prefilter={search.filter}")
        if search.filter == "aligned":
            self.refuse(("stop", "explore"), "with prefilter=aligned")
        if not entities:
            self.refuse(("memory",), "with explore=paths")
        elif self.stop == "converged":
            self.refuse(("stop",), "with explore=entities")

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return the answers, all with the same score, each with its walk."""
        if tools.model is None:
            self.refuse(("memory", "mask", "diff", "reasons", "shots"), WITHOUT_MODEL)
            if self.stop == "answered":
                self.refuse(("stop",), WITHOUT_MODEL)
        found = find_topics(question, tools.names, self.topics)  # 1
        topics = several(found.topics)
        if not topics:
            return nothing_found(question, named=False)
        asked = self._asked(question, found, topics, tools)
        if self._explore == "entities":
            return self._read(question, topics, asked, tools)
        answered = [ranked for topic in topics if (ranked := self._paths(question, topic, asked, tools))]  # 2 to 6
        if not answered:
            return nothing_found(question, named=True)
        paths, ends = best_ends(answered)
        return answer_refined(tools, path_ranker_of(tools).explorer, question, self.name, paths, ends)  # 7

    @property
    def _explore(self) -> str:
        first = self.system == 1 and self.prefilter != "aligned"
        return self.explore or ("entities" if first else "paths")

    @property
    def _search(self) -> PathSearch:
        first = self.system == 1
        return PathSearch(
            self.tournament or ("chunked" if first else "pairwise"),
            self.prefilter or ("rrf" if first else "semantic"),
            self.stop or ("depth" if first else "answered"),
            self.width,
            self.chunk or 4,
            self.filtered or 30,
            self.depth or (3 if first else 4),
            self.path_pruning,
            self.seed,
        )

    def _asked(self, question: str, found: Topics, topics: Sequence[Topic], tools: OpenBase) -> JudgedQuestion:
        model, first = tools.model, self.system == 1
        hidden = model is not None and _default(self.mask, not first)
        masked = {int(node): f"E{topic.nodes.array[0]}" for topic in topics for node in topic.nodes} if hidden else {}
        names = [(topic.text, masked[int(topic.nodes.array[0])]) for topic in topics] if hidden else []
        shown = mask_topics(question, names) if hidden else found.question
        label = _labels(tools, masked)
        if model is None:
            return JudgedQuestion(shown, label, LikenessJudge(FusedScorer(tools.embedder), shown))
        few_shot = first if self.shots is None else self.shots == "few"
        judge = ModelPathJudge(model, shown, _default(self.diff, not first), few_shot, _default(self.reasons, True))
        return JudgedQuestion(shown, label, judge, lambda candidate: is_answered(model, shown, candidate))

    def _paths(self, question: str, topic: Topic, asked: JudgedQuestion, tools: OpenBase) -> Scored:
        search, ranker, embedder = self._search, path_ranker_of(tools), phrase_embedder(tools)
        if search.filter == "aligned":
            fitting = ranker.rank(mask_topic(question, [topic.text]), topic.nodes, search.depth)
            ranked = {aligned.path: aligned for aligned in fitting}
            few = search.filter_paths(asked.question, list(ranked), embedder)
            called = [asked.label(int(topic.nodes.array[0]))] * len(few)
            best = search.tournament(few, called, asked.judge)
            return [(path, ranked[path].score, ranked[path].ends) for path in best]
        kept = grow(
            search, ranker.explorer, topic.nodes, asked, embedder, final=self.system == 2 and tools.model is not None
        )
        return [(path, 1.0 / (1 + place), ranker.explorer.execute(path)) for place, path in enumerate(kept)]

    def _read(self, question: str, topics: Sequence[Topic], asked: JudgedQuestion, tools: OpenBase) -> Answer:
        """System 1: answer from all selected walks. Without a model, use the path most similar to the question."""
        kb, model, ranker = tools.kb, tools.model, path_ranker_of(tools)
        prune, enough = _prune_by_likeness(asked), None
        if model is not None:

            def prune(groups: Sequence[Group], keep: int) -> Sequence[int]:
                return pick_entities(model, asked.question, groups, keep)

            def enough(trails: Sequence[Trail]) -> bool:
                return is_enough(model, asked.question, triples(kb, trails, asked.label), self.memory)

        walks = grow_walks(
            self._search, ranker.explorer, topics, asked, phrase_embedder(tools), prune, enough
        )  # 2 to 6
        trails = [walk.trail for walk in walks]
        if not trails and not self.memory:
            return nothing_found(question, named=True)
        if model is None:
            scores = asked.judge.scores([self._search.shown(walk.path, "") for walk in walks])
            best = walks[best_places(scores, 1)[0]].path
            read = [asked.label(walk.trail.end) for walk in walks if walk.path == best]
        else:
            read = answers_from(model, asked.question, triples(kb, trails, asked.label), self.memory)
        return answer_read(kb, question, self.name, trails, read, tools.names if self.memory else None)  # 7


def phrase_embedder(tools: OpenBase) -> Embedder:
    """Return the embedder for the phrases of paths. It caches vectors per base."""
    return tools.get_or_create("phrase embedder", lambda: CachedEmbedder(tools.embedder, CACHED))


def _labels(tools: OpenBase, masked: Mapping[int, str]) -> Callable[[int], str]:
    """Return a function for the names of nodes. It replaces masked names."""
    return lambda node: masked[node] if node in masked else tools.kb.refs([node])[0].name


def _prune_by_likeness(asked: JudgedQuestion) -> Prune:
    """Return a function that selects the entities most similar to the question, together with their path."""

    def prune(groups: Sequence[Group], keep: int) -> Sequence[int]:
        shown = [Shown(group.explored, (f"-> {entity}",)) for group in groups for entity in group.entities]
        return best_places(asked.judge.scores(shown), keep)

    return prune


def _default(given: bool | None, usual: bool) -> bool:
    return usual if given is None else given


Prune = Callable[[Sequence[Group], int], Sequence[int]]
"""Groups of entities and the number to select → selected indices, counted across all groups."""


@dataclass(frozen=True, slots=True)
class Walk:
    """An instance of a relation path: its facts, from one node of the topic to one end."""

    path: RelationPath
    trail: Trail


def grow_walks(
    search: PathSearch,
    explorer: Explorer,
    topics: Sequence[Topic],
    asked: JudgedQuestion,
    embedder: Embedder,
    prune: Prune,
    enough: Callable[[Sequence[Trail]], bool] | None = None,
) -> list[Walk]:
    """Return all selected walks, longest last. The answer is read from all of them."""
    kept = [Walk(RelationPath(topic.nodes), Trail(node)) for topic in topics for node in topic.nodes]
    read: list[Walk] = []
    for depth in range(search.depth):
        with span("explore", depth=depth + 1, walks=len(kept)) as opened:
            onward: dict[RelationPath, list[tuple[Walk, Lead]]] = {}
            for walk in kept:  # a
                for lead in explorer.leads(NodeSet.of([walk.trail.end])):
                    if _reached(explorer, walk, lead):
                        onward.setdefault(walk.path.then(lead.hop), []).append((walk, lead))
            shown = search.filter_paths(asked.question, list(onward), embedder)
            called = [asked.label(int(path.topic.array[0])) for path in shown]
            chains = search.tournament(shown, called, asked.judge)  # b
            grown = [
                longer for chain in chains for walk, lead in onward[chain] for longer in _steps(explorer, walk, lead)
            ]
            kept = _pruned(search, grown, asked, embedder, prune)  # c
            opened.note(chains=[path.in_words() for path in chains], entities=len(grown), kept=len(kept))
        if not kept:
            break
        read += kept
        if search.stop == "answered" and enough is not None and enough([walk.trail for walk in read]):
            break
    return read


def explored(walk: Walk, label: Callable[[int], str]) -> str:
    """Return the walk up to its last relation, as System 1 shows it for a group of entities."""
    named = [f"[Entity] {label(walk.trail.start)}"]
    for place, step in enumerate(walk.trail.steps):
        arrow = "->" if step.direction == "out" else "<-"
        named.append(f"{arrow} [Relation] {step.relation}")
        if place < len(walk.trail.steps) - 1:
            named.append(f"-> [Entity] {label(step.end)}")
    return " ".join(named)


def _pruned(
    search: PathSearch, walks: Sequence[Walk], asked: JudgedQuestion, embedder: Embedder, prune: Prune
) -> list[Walk]:
    texts = [f"{path_text(walk.path)} {asked.label(walk.trail.end)}" for walk in walks]
    few = [walks[at] for at in prefilter(asked.question, texts, search.filtered, search.filter, embedder, search.seed)]
    groups: dict[str, list[Walk]] = {}
    for walk in few:
        groups.setdefault(explored(walk, asked.label), []).append(walk)
    shown = [Group(prefix, tuple(asked.label(walk.trail.end) for walk in own)) for prefix, own in groups.items()]
    ordered = [walk for own in groups.values() for walk in own]
    if len(ordered) <= search.width:
        return ordered
    return [ordered[place] for place in prune(shown, search.width)]


def _reached(explorer: Explorer, walk: Walk, lead: Lead) -> list[int]:
    """Return the nodes that a hop leads to and that are not on the walk."""
    reached = explorer.ends(NodeSet.of([walk.trail.end]), lead, walk.path)
    return [node for node in reached if not walk.trail.visits(node)]


def _steps(explorer: Explorer, walk: Walk, lead: Lead) -> list[Walk]:
    """Extend the walk over one hop to each of its new ends."""
    here, path = walk.trail.end, walk.path.then(lead.hop)
    return [
        Walk(path, Trail(walk.trail.start, (*walk.trail.steps, *_over(explorer, here, lead.hop, node))))
        for node in _reached(explorer, walk, lead)
    ]


def _over(explorer: Explorer, here: int, hop: Hop, end: int) -> tuple[TrailStep, ...]:
    """Return the edges of a hop: one, or two with an unnamed node between them."""
    if len(hop) == 1:
        return (_step(hop[0], end),)
    middle = explorer.walk(NodeSet.of([here]), hop[0]) & explorer.walk(NodeSet.of([end]), hop[1].back)
    return (_step(hop[0], int(middle.array[0])), _step(hop[1], end))


def _step(move: Move, end: int) -> TrailStep:
    return TrailStep(move.relation, move.direction, end)
