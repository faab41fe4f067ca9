"""Who decides where a reasoning path goes next: missing evidence, words, meaning, or evidence that a model writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from clew.core.types import IntArray
from clew.index.vectors import VectorIndex
from clew.models.protocol import Embedder
from clew.steps.passages.missing_evidence import added_share
from clew.steps.passages.passage_search import AskedPassages
from clew.steps.passages.traversal import ReasoningPath
from clew.steps.roles.protocol import Draft, Writer

FLOOR = 0.2
"""What a tie is worth although the neighbour adds no word of the question."""
MEANING = 0.2
"""What the neighbour's similarity with the question adds."""

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """Paths and the neighbours of their last passages: nodes[i], tied by strengths[i], may follow paths[owners[i]]."""

    paths: Sequence[ReasoningPath]
    owners: IntArray
    nodes: IntArray
    strengths: Scores


class Traverser(Protocol):
    """Scores where paths may go."""

    def score(self, asked: AskedPassages, frontier: Frontier) -> Scores:
        """One score per neighbour; minus infinity for one that must not be visited."""
        ...


@dataclass(frozen=True)
class MissingEvidence:
    """The worth of the path, times the strength of the tie, times what the neighbour adds to the path."""

    def score(self, asked: AskedPassages, frontier: Frontier) -> Scores:
        """Similarity counts only where all passages have vectors, so that none has to be computed."""
        covered = np.array([asked.terms.presence(_nodes(path)).any(axis=0) for path in frontier.paths])
        worth = np.array([path.worth for path in frontier.paths])
        added = added_share(covered[frontier.owners], asked.terms.presence(frontier.nodes), asked.terms.weights)
        meaning = asked.cosines(frontier.nodes) if asked.has_all_vectors else np.zeros(len(frontier.nodes))
        scores: Scores = worth[frontier.owners] * frontier.strengths * (FLOOR + added + MEANING * meaning)
        return scores


@dataclass(frozen=True)
class LexicalTraverser:
    """Words shared with the question, whatever the path: the paper's "w/o LM"."""

    def score(self, asked: AskedPassages, frontier: Frontier) -> Scores:
        """BM25 of each neighbour."""
        return asked.words(frontier.nodes)


@dataclass(frozen=True)
class EmbeddingTraverser:
    """Similarity with question and path together, as MDR searches its next hop."""

    vectors: VectorIndex
    embedder: Embedder
    text: Callable[[int], str]

    def score(self, asked: AskedPassages, frontier: Frontier) -> Scores:
        """The inner product of the embedded question and path with each neighbour."""
        texts = ["\n".join([asked.question, *map(self.text, path.nodes)]) for path in frontier.paths]
        return _similarities(self.vectors, self.embedder.embed(texts, role="query"), frontier)


@dataclass(frozen=True)
class GenerativeTraverser:
    """A model writes the next evidence; the neighbours nearest to it win."""

    writer: Writer
    vectors: VectorIndex
    embedder: Embedder
    text: Callable[[int], str]

    def score(self, asked: AskedPassages, frontier: Frontier) -> Scores:
        """All paths are asked about at once; a path with enough evidence goes nowhere."""
        drafts = [Draft(asked.question, tuple(map(self.text, path.nodes))) for path in frontier.paths]
        written = [draft.texts[0] if draft.texts else "" for draft in self.writer.next_evidence(drafts)]
        ended = np.array([not text for text in written])
        scores = _similarities(self.vectors, self.embedder.embed(written, role="query"), frontier)
        return np.where(ended[frontier.owners], -np.inf, scores)


def _similarities(vectors: VectorIndex, asking: NDArray[np.float32], frontier: Frontier) -> Scores:
    nodes, places = np.unique(frontier.nodes, return_inverse=True)
    near = vectors.vectors(nodes.astype(np.int32))[places]
    return np.asarray(np.einsum("ij,ij->i", near, asking[frontier.owners]), dtype=np.float64)


def _nodes(path: ReasoningPath) -> IntArray:
    return np.array(path.nodes, dtype=np.int32)
