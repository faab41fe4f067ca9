"""Algorithm 1 of Knowledge Graph Prompting: reasoning paths grow over a graph of passages, best neighbours first.

Pure: the graph and whoever ranks the neighbours come in as callables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReasoningPath:
    """Passages in the order in which they were visited; `gain` is what the ranker gave the last of them."""

    nodes: tuple[int, ...]
    gain: float
    worth: float
    """How promising it is to go on from here."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A neighbour that a path may visit next."""

    node: int
    gain: float
    worth: float


Rank = Callable[[Sequence[ReasoningPath]], Sequence[Sequence[Hop]]]
"""For each path its possible hops, best first; whole rounds at once, so that a model is asked in batches."""


def traverse(
    seeds: Sequence[Hop], rank: Rank, *, branching: int, hops: int, budget: int, beam: int | None = None
) -> list[ReasoningPath]:
    """Every path, seeds first; ends after `hops` rounds (the seeds are the first), at `budget` passages, or at a wall.

    `beam` None goes on from every path, in order, as the paper's queue does; a number goes on from the most promising.
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


def best_gains(paths: Sequence[ReasoningPath]) -> dict[int, float]:
    """For every passage visited after a seed the best gain with which it was."""
    gains: dict[int, float] = {}
    for path in paths:
        if len(path.nodes) > 1:
            node = path.nodes[-1]
            gains[node] = max(gains.get(node, path.gain), path.gain)
    return gains
