"""Features of a candidate for rankers: numbers of its subgraph (Salnikov et al., section 3.2.1), and feature groups.

A `Pool` contains the candidates of a question with their subgraphs. A `FeaturePipeline` turns each into a row:
embeddings of texts, numbers of the graph, cosines with the question, the rank among the candidates.

In the formulas the subgraph is a directed multigraph with n nodes, m edges and c components. Deviations from the
paper's code: cycles are counted by the cycle rank, because counting simple cycles takes exponential time. Bridges are
bridges, not 2-edge-connected components. Katz centrality uses an α that is safe for every subgraph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import rustworkx
from numpy.typing import NDArray

from clew.answering.methods.subgraph_reranking.graph_to_text import linearize, relation_labels
from clew.answering.methods.subgraph_reranking.subgraph import Subgraph
from clew.core.errors import InputError
from clew.models.protocol import Embedder
from clew.store.graph.protocol import KnowledgeBase

FloatArray = NDArray[np.float64]
HIGHEST_ALPHA = 0.1
"""Usual α of Katz centrality, the default of NetworkX. Dense subgraphs need a smaller one."""
DAMPING = 0.85
"""Usual damping of PageRank."""


def node_count(subgraph: Subgraph) -> float:
    """Return n."""
    return float(len(subgraph.nodes))


def edge_count(subgraph: Subgraph) -> float:
    """Return m, including parallel edges."""
    return float(len(subgraph.edges))


def cycle_rank(subgraph: Subgraph) -> float:
    """Return m - n + c, the number of independent cycles. A pair of parallel edges or a loop is a cycle."""
    components = rustworkx.number_connected_components(_simple_graph(subgraph))
    return float(len(subgraph.edges) - len(subgraph.nodes) + components)


def bridge_count(subgraph: Subgraph) -> float:
    """Return the number of edges whose removal disconnects the graph. Parallel edges do not count."""
    heads, tails = subgraph.ends
    repeats = Counter(frozenset(pair) for pair in zip(heads.tolist(), tails.tolist(), strict=True))
    return float(sum(repeats[frozenset(pair)] == 1 for pair in rustworkx.bridges(_simple_graph(subgraph))))


def average_shortest_path(subgraph: Subgraph) -> float:
    """Return the mean distance from question entity to candidate, in edges. Without a path it is most_hops + 1."""
    if not subgraph.paths:
        return float(subgraph.most_hops + 1)
    lengths = [subgraph.most_hops + 1 if p.distance is None else p.distance for p in subgraph.paths]
    return float(np.mean(lengths))


def density(subgraph: Subgraph) -> float:
    """Return m / (n (n - 1)), or 0 for a single node."""
    n = len(subgraph.nodes)
    return len(subgraph.edges) / (n * (n - 1)) if n > 1 else 0.0


def katz_centrality(subgraph: Subgraph) -> float:
    """Return the Katz centrality of the candidate: x = α Aᵀ x + 1, with α < 1 / λmax (Katz 1953).

    The largest row sum and the largest column sum both bound λmax, so 0.9 over the smaller is safe without eigenvalues.
    """
    into = _adjacency(subgraph).T
    bound = min(into.sum(axis=0).max(initial=0.0), into.sum(axis=1).max(initial=0.0))
    alpha = min(HIGHEST_ALPHA, 0.9 / bound) if bound else HIGHEST_ALPHA
    scores = np.linalg.solve(np.eye(len(into)) - alpha * into, np.ones(len(into)))
    return float(scores[-1])


def page_rank(subgraph: Subgraph) -> float:
    """Return the candidate's PageRank, damping 0.85. A node without outgoing edges links to all (Page et al. 1999)."""
    links = _adjacency(subgraph)
    n = len(links)
    leaving = links.sum(axis=1, keepdims=True)
    chances = np.divide(links, leaving, out=np.full((n, n), 1.0 / n), where=leaving > 0)
    scores = np.linalg.solve(np.eye(n) - DAMPING * chances.T, np.full(n, (1 - DAMPING) / n))
    return float(scores[-1])


def unreached_share(subgraph: Subgraph) -> float:
    """Return the share of question entities without a path to the candidate. 1 if there are no entities."""
    return len(subgraph.unreached) / len(subgraph.entities) if subgraph.entities else 1.0


GRAPH_FEATURES: Mapping[str, Callable[[Subgraph], float]] = {
    "nodes": node_count,
    "edges": edge_count,
    "cycles": cycle_rank,
    "bridges": bridge_count,
    "average_shortest_path": average_shortest_path,
    "density": density,
    "katz": katz_centrality,
    "pagerank": page_rank,
    "disconnected": unreached_share,
}
"""All features by name, in the order of a ranker's columns."""


def graph_features(subgraph: Subgraph) -> FloatArray:
    """Return all features of a subgraph."""
    return np.array([feature(subgraph) for feature in GRAPH_FEATURES.values()])


def _adjacency(subgraph: Subgraph) -> FloatArray:
    """Return the number of edges from each node (row) to each node (column)."""
    n = len(subgraph.nodes)
    heads, tails = subgraph.ends
    return np.bincount(heads * n + tails, minlength=n * n).reshape(n, n).astype(np.float64)


def _simple_graph(subgraph: Subgraph) -> rustworkx.PyGraph:
    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(len(subgraph.nodes)))
    heads, tails = subgraph.ends
    graph.add_edges_from_no_data([(h, t) for h, t in zip(heads.tolist(), tails.tolist(), strict=True) if h != t])
    return graph


GROUPS = ("text", "graph", "g2t", "match", "source")
SEPARATOR = " ; "


@dataclass(frozen=True, eq=False)
class CandidatePool:
    """The candidates of one question in the order of their source, each with its subgraph."""

    question: str
    names: tuple[str, ...]
    subgraphs: tuple[Subgraph, ...]
    graph_texts: tuple[str, ...]
    """Each subgraph as text."""
    path_texts: tuple[str, ...]
    """The relations of the first path to each candidate."""

    def __len__(self) -> int:
        return len(self.names)


def make_pool(
    kb: KnowledgeBase,
    question: str,
    subgraphs: Sequence[Subgraph],
    write: Callable[[Sequence[Subgraph]], Sequence[str]] | None = None,
) -> CandidatePool:
    """Build the pool of candidates. `write` converts subgraphs to text, by default fact by fact."""
    names = tuple(ref.name for ref in kb.refs([subgraph.candidate for subgraph in subgraphs]))
    texts = write(subgraphs) if write else [linearize(kb, subgraph) for subgraph in subgraphs]
    return CandidatePool(question, names, tuple(subgraphs), tuple(texts), tuple(_path_text(kb, s) for s in subgraphs))


@dataclass(frozen=True)
class FeaturePipeline:
    """Selected groups of features, in the order of `GROUPS`, with the embedder for all texts."""

    groups: tuple[str, ...]
    embedder: Embedder

    def __post_init__(self) -> None:
        """Reject unknown groups."""
        unknown = [group for group in self.groups if group not in GROUPS]
        if unknown or not self.groups:
            wrong = f"no feature group {', '.join(unknown)}" if unknown else "no feature group given"
            raise InputError(f"{wrong}: choose among {', '.join(GROUPS)}")
        object.__setattr__(self, "groups", tuple(group for group in GROUPS if group in self.groups))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The name of every column: `group` or `group:feature`. The columns of one embedding share their name."""
        embedded = self.embedder.dimension
        names: Mapping[str, tuple[str, ...]] = {
            "text": ("text",) * embedded,
            "graph": tuple(f"graph:{name}" for name in GRAPH_FEATURES),
            "g2t": ("g2t",) * embedded,
            "match": ("match:answer", "match:g2t", "match:path"),
            "source": ("source:reciprocal_rank", "source:rank"),
        }
        return tuple(name for group in self.groups for name in names[group])

    def matrix(self, pool: CandidatePool) -> FloatArray:
        """Return one row per candidate."""
        if not len(pool):
            return np.empty((0, len(self.columns)))
        in_words = self._vectors(pool.graph_texts) if {"g2t", "match"} & set(self.groups) else np.empty((0, 0))
        parts: Mapping[str, Callable[[], FloatArray]] = {
            "text": lambda: self._vectors([f"{pool.question}{SEPARATOR}{name}" for name in pool.names]),
            "graph": lambda: np.stack([graph_features(subgraph) for subgraph in pool.subgraphs]),
            "g2t": lambda: in_words,
            "match": lambda: self._match(pool, in_words),
            "source": lambda: _source(len(pool)),
        }
        return np.concatenate([parts[group]() for group in self.groups], axis=1)

    def _match(self, pool: CandidatePool, in_words: FloatArray) -> FloatArray:
        question = self.embedder.embed([pool.question], role="query")[0]
        vectors = (self._vectors(pool.names), in_words, self._vectors(pool.path_texts))
        return np.stack([part @ question for part in vectors], axis=1)

    def _vectors(self, texts: Sequence[str]) -> FloatArray:
        return self.embedder.embed(texts, role="document").astype(np.float64)


def _source(count: int) -> FloatArray:
    ranks = np.arange(1, count + 1, dtype=np.float64)
    return np.stack((1 / ranks, ranks), axis=1)


def _path_text(kb: KnowledgeBase, subgraph: Subgraph) -> str:
    """Return the relations along the first path of the first connected entity. Empty if there is no path."""
    labels = relation_labels(kb)
    path = next((found.paths[0] for found in subgraph.paths if found.paths), ())
    between: dict[frozenset[int], list[str]] = {}
    for head, code, tail in subgraph.triples:
        label = labels[kb.schema.relation_names[code]]
        found = between.setdefault(frozenset((head, tail)), [])
        if label not in found:
            found.append(label)
    return ", ".join(" and ".join(between[frozenset(pair)]) for pair in pairwise(path))
