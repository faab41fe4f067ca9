"""The subgraph between question entities and a candidate: all shortest paths, and every edge among their nodes.

Salnikov et al., Reranking Answers of Large Language Models with Knowledge Graphs, algorithm 1. Deviations from the
paper: paths are bounded in length and number (`PathLimits`), starting with paths through nodes with few edges. An
entity without a path stays in the subgraph as a flagged single node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from clew.core.trace import span
from clew.core.types import Fact, IntArray, NodeSet, Path
from clew.store.graph.adjacency import LongArray
from clew.store.graph.paths import Ball, PathLimits, ShortestPaths, UndirectedGraph, shortest_paths, undirected
from clew.store.graph.protocol import Edges, KnowledgeBase

DEFAULT_LIMITS = PathLimits()


@dataclass(frozen=True, eq=False)
class Subgraph:
    """Nodes on the shortest paths from each question entity to a candidate, and all edges between those nodes."""

    entities: tuple[int, ...]
    candidate: int
    nodes: IntArray
    """Question entities first, then the nodes between by id, then the candidate."""
    edges: Edges
    """Edges in their stored direction, sorted, including parallel edges."""
    paths: tuple[ShortestPaths, ...]
    """Paths of each question entity."""
    most_hops: int = DEFAULT_LIMITS.most_hops

    @property
    def unreached(self) -> tuple[int, ...]:
        """Question entities without a path to the candidate."""
        return tuple(found.source for found in self.paths if found.distance is None)

    @property
    def disconnected(self) -> bool:
        """Whether no question entity reaches the candidate."""
        return all(found.distance is None for found in self.paths)

    @property
    def complete(self) -> bool:
        """Whether it contains every shortest path. False if the limit cut them off."""
        return all(found.complete for found in self.paths)

    @property
    def triples(self) -> list[tuple[int, int, int]]:
        """Edges as head, relation code and tail."""
        edges = self.edges
        return list(zip(edges.heads.tolist(), edges.relations.tolist(), edges.tails.tolist(), strict=True))

    @cached_property
    def ends(self) -> tuple[LongArray, LongArray]:
        """Heads and tails of the edges as indices into `nodes`."""
        order = np.argsort(self.nodes)
        found = (self.nodes[order].searchsorted(ids) for ids in (self.edges.heads, self.edges.tails))
        heads, tails = (order[places] for places in found)
        return heads, tails


@dataclass(frozen=True)
class SubgraphExtractor:
    """Extracts the subgraphs of many candidates. They share the data read around a question entity."""

    kb: KnowledgeBase
    limits: PathLimits = DEFAULT_LIMITS

    @cached_property
    def graph(self) -> UndirectedGraph:
        """The undirected view of the base."""
        return undirected(self.kb)

    def extract(self, entities: Sequence[int], candidates: Sequence[int]) -> list[Subgraph]:
        """Return one subgraph for each candidate, in order."""
        with span("extract", entities=len(entities), candidates=len(candidates)):
            sources = [Ball(self.graph, entity) for entity in dict.fromkeys(entities)]
            return [self._one(sources, Ball(self.graph, candidate)) for candidate in candidates]

    def _one(self, sources: Sequence[Ball], target: Ball) -> Subgraph:
        found = tuple(shortest_paths(source, target, self.limits) for source in sources)
        entities = tuple(source.center for source in sources)
        union = NodeSet.of([target.center, *(node for paths in found for node in paths.nodes())])
        ends = NodeSet.of([*entities, target.center])
        first = [entity for entity in entities if entity != target.center]
        nodes = np.array([*first, *(union - ends), target.center], dtype=np.int32)
        edges = self.graph.induced(union)
        return Subgraph(entities, target.center, nodes, edges, found, self.limits.most_hops)


def path_evidence(kb: KnowledgeBase, subgraph: Subgraph, most: int = 3) -> tuple[Path, ...]:
    """Return the first paths as facts in their stored direction, distributed over the question entities."""
    chosen = [paths.paths[rank] for rank in range(most) for paths in subgraph.paths if rank < len(paths.paths)][:most]
    refs = dict(zip(subgraph.nodes.tolist(), kb.refs(subgraph.nodes), strict=True))
    names = kb.schema.relation_names
    between: dict[frozenset[int], Fact] = {}
    for head, relation, tail in subgraph.triples:
        between.setdefault(frozenset((head, tail)), Fact(refs[head], names[relation], refs[tail]))
    return tuple(Path(tuple(between[frozenset(pair)] for pair in pairwise(path))) for path in chosen if len(path) > 1)
