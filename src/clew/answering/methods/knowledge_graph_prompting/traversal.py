"""Walk a graph of passages: reasoning paths grow by their best neighbours.

`traverse` is Algorithm 1 and pure: the graph and the ranker of the neighbours are callables. `PassageGraph` returns the
neighbours of a passage and the strengths of their ties. The traversers rank them by the evidence that a path lacks, by
words, by meaning, or by the next evidence that a model writes. `walk` combines the three, `fused` ranks all visited
passages, and `with_paths` adds the paths to the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from clew.answering.reading.documents.search import CONTENTS, AskedPassages, contents, readable_nodes
from clew.core import trace
from clew.core.roles import Draft, Writer
from clew.core.scores import round_scores
from clew.core.types import Answer, Fact, IntArray, NodeSet, Path, Ranking
from clew.models.protocol import Embedder
from clew.store.graph.protocol import KnowledgeBase, StoredKnowledgeBase
from clew.store.index.vectors import VectorIndex


@dataclass(frozen=True, slots=True)
class ReasoningPath:
    """Passages in the order of their visit. `gain` is the score of the last passage."""

    nodes: tuple[int, ...]
    gain: float
    worth: float
    """Priority for continuing from here."""


@dataclass(frozen=True, slots=True)
class PossibleStep:
    """A neighbour that a path may visit next."""

    node: int
    gain: float
    worth: float


Rank = Callable[[Sequence[ReasoningPath]], Sequence[Sequence[PossibleStep]]]
"""Return the possible hops of each path, best first. Gets whole rounds at once, so that a model is asked in batches."""


def traverse(
    seeds: Sequence[PossibleStep], rank: Rank, *, branching: int, hops: int, budget: int, beam: int | None = None
) -> list[ReasoningPath]:
    """Return all paths, seeds first. The seeds count as the first of `hops` rounds.

    The walk also ends at `budget` passages, or if no path can continue. Each path gets at most `branching` neighbours.
    With `beam` None, every path continues in order, as in the paper's queue. Otherwise the `beam` best paths continue.
    """
    frontier = [ReasoningPath((seed.node,), seed.gain, seed.worth) for seed in seeds[:budget]]
    found = list(frontier)
    visited = {path.nodes[-1] for path in found}
    for _ in range(hops - 1):
        if not frontier or len(visited) >= budget:
            break
        grown = []
        for path, ranked in zip(frontier, rank(frontier), strict=True):
            fresh = [hop for hop in ranked if hop.node not in path.nodes][:branching]
            for hop in fresh:
                if hop.node not in visited and len(visited) >= budget:
                    return found
                visited.add(hop.node)
                grown.append(ReasoningPath((*path.nodes, hop.node), hop.gain, hop.worth))
                found.append(grown[-1])
        frontier = grown if beam is None else sorted(grown, key=lambda path: -path.worth)[:beam]
    return found


def best_paths(paths: Sequence[ReasoningPath]) -> dict[int, ReasoningPath]:
    """Return for each visited passage other than seeds the path with the highest gain."""
    best: dict[int, ReasoningPath] = {}
    for path in paths:
        last = path.nodes[-1]
        if len(path.nodes) > 1 and (last not in best or path.gain > best[last].gain):
            best[last] = path
    return best


STRENGTH = {"mentions": 1.0, "entity": 0.6, "tfidf": 0.3, "knn": 0.3, "mdr": 0.3, "next": 0.2}
"""Strength of each kind of tie. Tuned on development data, where nearby values score equally."""
MENTIONED_BY = 0.5
"""Strength of the reverse direction of a mention."""
FULL_WEIGHT = {"entity": 1.0, "tfidf": 20.0}
"""Minimum weight of an edge for the full strength."""
MOST_MENTIONS = 200
"""Maximum number of passages per mentioned thing."""
KINDS = tuple(STRENGTH)


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """The neighbours of a passage without duplicates, each with the strength of its strongest tie."""

    nodes: IntArray
    strengths: NDArray[np.float64]


class PassageGraph:
    """Neighbours by the given kinds of edges. `nearest` searches by vector if no knn edges are stored."""

    def __init__(
        self, kb: StoredKnowledgeBase, kinds: Sequence[str] = KINDS, nearest: Callable[[int], Ranking] | None = None
    ) -> None:
        stored = kb.schema.relation_names
        self.kb = kb
        self.kinds = tuple(kind for kind in kinds if kind in stored) if kb.schema.holds_passages else stored
        self.nearest = nearest if "knn" in kinds and "knn" not in stored else None
        self.is_readable = np.zeros(len(kb), dtype=np.bool_)
        self.is_readable[readable_nodes(kb).array] = True
        self.ties = lru_cache(maxsize=10_000)(self._ties)
        self._by_kind = lru_cache(maxsize=1_000)(self._found_by_kind)
        self._contents = tuple(relation for relation in CONTENTS if relation in stored)

    def kind(self, node: int, other: int) -> str:
        """Return the kind of the strongest tie between two neighbours."""
        tied = [
            (float(strengths[nodes == other].max()), kind)
            for kind, (nodes, strengths) in self._by_kind(node)
            if (nodes == other).any()
        ]
        return max(tied)[1]

    def _found_by_kind(self, node: int) -> list[tuple[str, tuple[IntArray, NDArray[np.float64]]]]:
        found = [
            (kind, part)
            for kind in self.kinds
            for part in (self._mentions(node) if kind == "mentions" else self._stored(node, kind))
        ]
        if self.nearest is not None:
            near = self.nearest(node)
            found.append(("knn", (near.nodes, STRENGTH["knn"] * np.maximum(near.scores, 0))))
        return found

    def _ties(self, node: int) -> Ties:
        found = [part for _, part in self._by_kind(node)]
        nodes = np.concatenate([np.empty(0, dtype=np.int32), *(nodes for nodes, _ in found)])
        strengths = np.concatenate([np.empty(0), *(strengths for _, strengths in found)])
        kept = self.is_readable[nodes] & (nodes != node)
        nodes, strengths = nodes[kept], strengths[kept]
        order = np.lexsort((-strengths, nodes))  # of several ties the strongest counts
        first = np.append(True, nodes[order][1:] != nodes[order][:-1])[: len(order)]
        return Ties(nodes[order][first], strengths[order][first])

    def _stored(self, node: int, kind: str) -> list[tuple[IntArray, NDArray[np.float64]]]:
        edges = self.kb.edges(NodeSet.of([node]), kind)
        weights = np.nan_to_num(self.kb.edge_numbers(edges, "weight"), nan=1.0) / FULL_WEIGHT.get(kind, 1.0)
        others = np.where(edges.heads == node, edges.tails, edges.heads)
        return [(others, STRENGTH.get(kind, 0.6) * np.minimum(weights, 1.0))]

    def _mentions(self, node: int) -> list[tuple[IntArray, NDArray[np.float64]]]:
        """Return the nodes that a passage mentions, or their contents, and passages that mention it or its document."""
        found = []
        for target in self.kb.neighbors(NodeSet.of([node]), "mentions", "out"):
            if self.is_readable[target]:
                found.append(_tied([target], STRENGTH["mentions"]))
            elif len(inside := contents(self.kb, target)):
                found.append(_tied(inside.array, STRENGTH["mentions"]))
            else:  # an entity of another base: its other mentions are neighbours
                others = self._mentioning(target)
                found.append(_tied(others, STRENGTH["entity"] / float(np.log1p(1 + len(others)))))
        found.append(_tied(self._mentioning(node), MENTIONED_BY))
        for relation in self._contents:
            for owner in self.kb.neighbors(NodeSet.of([node]), relation, "in"):
                if self.kb.type_of(owner) == "document":
                    found.append(_tied(self._mentioning(owner), MENTIONED_BY))
        return found

    def _mentioning(self, target: int) -> IntArray:
        return self.kb.neighbors(NodeSet.of([target]), "mentions", "in").array[:MOST_MENTIONS]


def _tied(nodes: Sequence[int] | IntArray, strength: float) -> tuple[IntArray, NDArray[np.float64]]:
    return np.asarray(nodes, dtype=np.int32), np.full(len(nodes), strength)


FLOOR = 0.2
"""Value of a tie to a neighbour that adds no word of the question."""
MEANING = 0.2
"""Weight of the neighbour's similarity with the question."""

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """Paths and their neighbours: nodes[i], tied by strengths[i], may follow paths[owners[i]]."""

    paths: Sequence[ReasoningPath]
    owners: IntArray
    nodes: IntArray
    strengths: Scores


Traverser = Callable[[AskedPassages, Frontier], Scores]
"""Return one score per neighbour. Minus infinity excludes a neighbour."""


def missing_evidence(asked: AskedPassages, frontier: Frontier) -> Scores:
    """Multiply the worth of the path, the strength of the tie, and the words that the neighbour adds.

    Similarity counts only if all passages have vectors, so that no vector must be computed.
    """
    covered = np.array([asked.terms.presence(_nodes(path)).any(axis=0) for path in frontier.paths])
    worth = np.array([path.worth for path in frontier.paths])
    added = added_share(covered[frontier.owners], asked.terms.presence(frontier.nodes), asked.terms.weights)
    meaning = asked.cosines(frontier.nodes) if asked.has_all_vectors else np.zeros(len(frontier.nodes))
    scores: Scores = worth[frontier.owners] * frontier.strengths * (FLOOR + added + MEANING * meaning)
    return scores


def added_share(
    covered: NDArray[np.bool_], present: NDArray[np.bool_], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return for each passage the weighted share of the question's terms that it has and its path (same row) lacks."""
    whole = weights.sum()
    if not whole:
        return np.zeros(len(present))
    share: NDArray[np.float64] = (present & ~covered) @ weights / whole
    return share


def shared_words(asked: AskedPassages, frontier: Frontier) -> Scores:
    """Return the BM25 score of each neighbour with the question, independent of the path: the paper's "w/o LM"."""
    return asked.words(frontier.nodes)


def by_meaning(vectors: VectorIndex, embedder: Embedder, text: Callable[[int], str]) -> Traverser:
    """Return a traverser by similarity with question and path together, as MDR searches its next hop."""

    def score(asked: AskedPassages, frontier: Frontier) -> Scores:
        texts = ["\n".join([asked.question, *map(text, path.nodes)]) for path in frontier.paths]
        return _similarities(vectors, embedder.embed(texts, role="query"), frontier)

    return score


def by_written_evidence(
    writer: Writer, vectors: VectorIndex, embedder: Embedder, text: Callable[[int], str]
) -> Traverser:
    """Return a traverser that selects neighbours similar to the next evidence, which a model writes.

    The model is asked about all paths at once. A path with enough evidence ends.
    """

    def score(asked: AskedPassages, frontier: Frontier) -> Scores:
        drafts = [Draft(asked.question, tuple(map(text, path.nodes))) for path in frontier.paths]
        written = [draft.texts[0] if draft.texts else "" for draft in writer.next_evidence(drafts)]
        ended = np.array([not sentence for sentence in written])
        scores = _similarities(vectors, embedder.embed(written, role="query"), frontier)
        return np.where(ended[frontier.owners], -np.inf, scores)

    return score


def _similarities(vectors: VectorIndex, asking: NDArray[np.float32], frontier: Frontier) -> Scores:
    nodes, places = np.unique(frontier.nodes, return_inverse=True)
    near = vectors.vectors(nodes.astype(np.int32))[places]
    return round_scores(np.einsum("ij,ij->i", near, asking[frontier.owners], dtype=np.float64)).astype(np.float64)


def _nodes(path: ReasoningPath) -> IntArray:
    return np.array(path.nodes, dtype=np.int32)


TRAVERSED = 0.6
"""Weight of the best gain of a walk, relative to the fit of the passage."""


def walk(
    asked: AskedPassages,
    graph: PassageGraph,
    traverser: Traverser,
    seeds: Ranking,
    *,
    branching: int,
    hops: int,
    budget: int,
    beam: int | None,
) -> list[ReasoningPath]:
    """Walk from the seeds and return all paths. `traverse` describes the limits."""
    with trace.span("walk") as span:
        first = [PossibleStep(node, score, score) for node, score in seeds]

        def rank(frontier: Sequence[ReasoningPath]) -> list[list[PossibleStep]]:
            return hops_from(asked, graph, traverser, frontier, branching)

        paths = traverse(first, rank, branching=branching, hops=hops, budget=budget, beam=beam)
        span.note(seeds=len(first), paths=len(paths))
    return paths


def hops_from(
    asked: AskedPassages, graph: PassageGraph, traverser: Traverser, paths: Sequence[ReasoningPath], branching: int
) -> list[list[PossibleStep]]:
    """Return the best neighbours of each path's last passage."""
    ties = [graph.ties(path.nodes[-1]) for path in paths]
    owners = np.repeat(np.arange(len(paths), dtype=np.int32), [len(own.nodes) for own in ties])
    nodes = np.concatenate([own.nodes for own in ties])
    gains = traverser(asked, Frontier(paths, owners, nodes, np.concatenate([own.strengths for own in ties])))
    spare = branching + max(len(path.nodes) for path in paths)  # some may already be on the path
    chosen = []
    for owner in range(len(paths)):
        own = np.flatnonzero((owners == owner) & np.isfinite(gains))
        chosen.append(own[np.lexsort((nodes[own], -gains[own]))[:spare]])
    priors = asked.prior(nodes[np.concatenate(chosen)])
    by_path = np.split(priors, np.cumsum([len(places) for places in chosen])[:-1])
    return [
        [
            PossibleStep(int(nodes[at]), float(gains[at]), float(gains[at] + prior))
            for at, prior in zip(places, own, strict=True)
        ]
        for places, own in zip(chosen, by_path, strict=True)
    ]


def fused(asked: AskedPassages, paths: Sequence[ReasoningPath], k: int) -> Ranking:
    """Rank search results and visited passages by their own fit plus their best gain."""
    gains = {node: path.gain for node, path in best_paths(paths).items()}
    visited = np.fromiter(gains, dtype=np.int32, count=len(gains))
    nodes = np.union1d(asked.pool.nodes, visited).astype(np.int32)
    most = max(gains.values(), default=0.0)
    reached = np.array([max(gains.get(node, 0.0), 0.0) for node in nodes.tolist()])
    return Ranking.of(nodes, asked.prior(nodes) + TRAVERSED * reached / (most if most > 0 else 1.0), k)


PATHS_SHOWN = 10
"""Maximum number of paths in the trace."""


def as_evidence(kb: KnowledgeBase, graph: PassageGraph, path: ReasoningPath) -> Path:
    """Return the steps of a path as facts. The relation is the kind of the edge."""
    refs = kb.refs(path.nodes)
    return Path(tuple(Fact(one, graph.kind(one.id, other.id), other) for one, other in pairwise(refs)))


def with_paths(kb: KnowledgeBase, graph: PassageGraph, answer: Answer, paths: Sequence[ReasoningPath]) -> Answer:
    """Add to each visited passage the path that led to it."""
    best = best_paths(paths)
    with trace.span("reasoning paths") as span:
        led = {
            one.node.id: as_evidence(kb, graph, best[one.node.id]) for one in answer.candidates if one.node.id in best
        }
        span.note(paths=[path.in_words() for path in list(led.values())[:PATHS_SHOWN]])
    candidates = tuple(
        replace(one, evidence=(*one.evidence, led[one.node.id])) if one.node.id in led else one
        for one in answer.candidates
    )
    return replace(answer, candidates=candidates)


def pairs_to_read(paths: Sequence[ReasoningPath], ranked: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """Return the paths to read, most promising first, as the paper's "path pairs".

    If fewer than `count` paths have a second passage, add the best passages that are on no path.
    """
    led = sorted((path for path in paths if len(path.nodes) > 1), key=lambda path: -path.worth)
    chosen = list(dict.fromkeys(path.nodes for path in led))[:count]
    read = {node for nodes in chosen for node in nodes}
    return (chosen + [(node,) for node in ranked if node not in read])[:count]
