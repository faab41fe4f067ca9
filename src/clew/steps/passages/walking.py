"""A walk over the graph of passages for one question, and the ranking it leads to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clew.core import trace
from clew.core.types import Ranking
from clew.steps.passages.passage_graph import PassageGraph
from clew.steps.passages.passage_search import AskedPassages
from clew.steps.passages.traversal import Hop, ReasoningPath, best_gains, traverse
from clew.steps.passages.traversers import Frontier, Traverser

TRAVERSED = 0.6
"""How much the best gain of a walk adds to how well a passage fits by itself."""


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a walk goes."""

    seeds: int = 8
    branching: int = 4
    """Neighbours that join each path."""
    hops: int = 3
    """Passages on a path at most, its seed included."""
    budget: int = 60
    """Passages visited at most."""
    beam: int | None = 8
    """Paths that go on after each round; None lets every path go on, as in the paper."""


def walk(asked: AskedPassages, graph: PassageGraph, traverser: Traverser, how: Walk) -> list[ReasoningPath]:
    """Every path from the best passages on."""
    with trace.span("walk") as span:
        seeds = [Hop(node, score, score) for node, score in asked.pool.top(how.seeds)]
        paths = traverse(
            seeds,
            lambda frontier: hops_from(asked, graph, traverser, frontier, how.branching),
            branching=how.branching,
            hops=how.hops,
            budget=how.budget,
            beam=how.beam,
        )
        span.note(seeds=len(seeds), paths=len(paths))
    return paths


def hops_from(
    asked: AskedPassages, graph: PassageGraph, traverser: Traverser, paths: Sequence[ReasoningPath], branching: int
) -> list[list[Hop]]:
    """The best neighbours of each path's last passage."""
    ties = [graph.ties(path.nodes[-1]) for path in paths]
    owners = np.repeat(np.arange(len(paths), dtype=np.int32), [len(own.nodes) for own in ties])
    nodes = np.concatenate([own.nodes for own in ties])
    gains = traverser.score(asked, Frontier(paths, owners, nodes, np.concatenate([own.strengths for own in ties])))
    spare = branching + max(len(path.nodes) for path in paths)  # some may be on their own path already
    chosen = []
    for owner in range(len(paths)):
        own = np.flatnonzero((owners == owner) & np.isfinite(gains))
        chosen.append(own[np.lexsort((nodes[own], -gains[own]))[:spare]])
    priors = asked.prior(nodes[np.concatenate(chosen)])
    by_path = np.split(priors, np.cumsum([len(places) for places in chosen])[:-1])
    return [
        [Hop(int(nodes[at]), float(gains[at]), float(gains[at] + prior)) for at, prior in zip(places, own, strict=True)]
        for places, own in zip(chosen, by_path, strict=True)
    ]


def fused(asked: AskedPassages, paths: Sequence[ReasoningPath], k: int) -> Ranking:
    """The pool and everything visited: how well each fits by itself, and the best gain with which it was reached."""
    gains = best_gains(paths)
    visited = np.fromiter(gains, dtype=np.int32, count=len(gains))
    nodes = np.union1d(asked.pool.nodes, visited).astype(np.int32)
    most = max(gains.values(), default=0.0)
    reached = np.array([max(gains.get(node, 0.0), 0.0) for node in nodes.tolist()])
    return Ranking.of(nodes, asked.prior(nodes) + TRAVERSED * reached / (most if most > 0 else 1.0), k)
