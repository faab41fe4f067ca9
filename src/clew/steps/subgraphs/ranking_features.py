"""The columns that a ranker reads for each candidate (Salnikov et al., section 3.2), and two groups of our own.

text    the embedding of `question ; answer`
graph   the numbers of graph_features
g2t     the embedding of the subgraph in words
match   cosines of the question with the answer, the subgraph in words, and the relations of the clearest path
source  how the source of candidates ranked them
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import InputError
from clew.kb.protocol import KnowledgeBase
from clew.models.protocol import Embedder
from clew.steps.subgraphs.graph_features import GRAPH_FEATURES, graph_features
from clew.steps.subgraphs.graph_to_text import linearize, relation_labels
from clew.steps.subgraphs.subgraph import Subgraph

FloatArray = NDArray[np.float64]
GROUPS = ("text", "graph", "g2t", "match", "source")
SEPARATOR = " ; "


@dataclass(frozen=True, eq=False)
class Pool:
    """The candidates of one question in the order of their source, each with its subgraph."""

    question: str
    names: tuple[str, ...]
    subgraphs: tuple[Subgraph, ...]
    graph_texts: tuple[str, ...]
    """Each subgraph in words."""
    path_texts: tuple[str, ...]
    """The relations of the clearest path to each candidate."""

    def __len__(self) -> int:
        return len(self.names)


def make_pool(
    kb: KnowledgeBase,
    question: str,
    subgraphs: Sequence[Subgraph],
    write: Callable[[Sequence[Subgraph]], Sequence[str]] | None = None,
) -> Pool:
    """Everything a ranker may ask about the candidates; `write` puts subgraphs into words, row by row by default."""
    names = tuple(ref.name for ref in kb.refs([subgraph.candidate for subgraph in subgraphs]))
    texts = write(subgraphs) if write else [linearize(kb, subgraph) for subgraph in subgraphs]
    return Pool(question, names, tuple(subgraphs), tuple(texts), tuple(_path_text(kb, s) for s in subgraphs))


@dataclass(frozen=True)
class FeaturePipeline:
    """Chosen groups of features, in the order of `GROUPS`; the embedder serves all texts."""

    groups: tuple[str, ...]
    embedder: Embedder

    def __post_init__(self) -> None:
        """Refuse unknown groups."""
        unknown = [group for group in self.groups if group not in GROUPS]
        if unknown or not self.groups:
            wrong = f"no feature group {', '.join(unknown)}" if unknown else "no feature group given"
            raise InputError(f"{wrong}; choose among {', '.join(GROUPS)}")
        ordered = tuple(group for group in GROUPS if group in self.groups)
        object.__setattr__(self, "groups", ordered)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The name of every column: `group` or `group:feature`; the columns of one embedding share their name."""
        embedded = self.embedder.dimension
        names: Mapping[str, tuple[str, ...]] = {
            "text": ("text",) * embedded,
            "graph": tuple(f"graph:{name}" for name in GRAPH_FEATURES),
            "g2t": ("g2t",) * embedded,
            "match": ("match:answer", "match:g2t", "match:path"),
            "source": ("source:reciprocal_rank", "source:rank"),
        }
        return tuple(name for group in self.groups for name in names[group])

    def matrix(self, pool: Pool) -> FloatArray:
        """One row per candidate."""
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

    def _match(self, pool: Pool, in_words: FloatArray) -> FloatArray:
        question = self.embedder.embed([pool.question], role="query")[0]
        vectors = (self._vectors(pool.names), in_words, self._vectors(pool.path_texts))
        return np.stack([part @ question for part in vectors], axis=1)

    def _vectors(self, texts: Sequence[str]) -> FloatArray:
        return self.embedder.embed(texts, role="document").astype(np.float64)


def _source(count: int) -> FloatArray:
    ranks = np.arange(1, count + 1, dtype=np.float64)
    return np.stack((1 / ranks, ranks), axis=1)


def _path_text(kb: KnowledgeBase, subgraph: Subgraph) -> str:
    """The relations along the first path of the first entity that has one; empty where nothing is connected."""
    labels = relation_labels(kb)
    path = next((found.paths[0] for found in subgraph.paths if found.paths), ())
    between: dict[frozenset[int], list[str]] = {}
    for head, code, tail in subgraph.triples:
        label = labels[kb.schema.relation_names[code]]
        found = between.setdefault(frozenset((head, tail)), [])
        if label not in found:
            found.append(label)
    return ", ".join(" and ".join(between[frozenset(pair)]) for pair in pairwise(path))
