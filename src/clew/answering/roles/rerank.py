"""Rerank the best candidates: one by one, as a list, or in pairs, with a model or by similarity.

A candidate that cannot be judged stays at its rank and does not affect the other candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, Protocol

from clew.core.roles import Choice, Chooser, Claim, Scorer
from clew.store.graph.protocol import KnowledgeBase

RerankerName = Literal["auto", "none", "pointwise", "likelihood", "listwise", "pairwise", "embedding"]
PLACE_WEIGHT = 0.1
"""Weight of the earlier rank. STaRK adds 0.1 · (K - rank) / K to the model's score, so that ties stay in order."""
SHOWN = 600
"""Maximum characters of a document in a list or a pair."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A node after reranking, with the score and the reason, if there are any."""

    node: int
    score: float | None = None
    reason: str = ""


class Reranker(Protocol):
    """Reorders candidates."""

    @property
    def name(self) -> str:
        """Name of the judge, shown next to a score."""
        ...

    def rerank(self, question: str, nodes: Sequence[int]) -> list[Judged]:
        """Return the same nodes in a new order."""
        ...


@dataclass(frozen=True)
class KeepOrder:
    """No reranking."""

    name: str = "none"

    def rerank(self, question: str, nodes: Sequence[int]) -> list[Judged]:
        """Return the nodes in the given order."""
        del question
        return [Judged(node) for node in nodes]


@dataclass(frozen=True)
class Pointwise:
    """Scores each candidate separately (STaRK §4.1, step 4 of 4StepFocus)."""

    kb: KnowledgeBase
    scorer: Scorer
    name: str = "pointwise"
    relations: bool = True
    """Whether to show a candidate with its relations."""

    def rerank(self, question: str, nodes: Sequence[int]) -> list[Judged]:
        """Sort by score plus a small bonus for the earlier rank."""
        claims = [
            Claim(question, self.kb.refs([node])[0].name, self.kb.text(node, relations=self.relations))
            for node in nodes
        ]
        scores = self.scorer.score(claims)
        fused = [
            None if score is None else score + PLACE_WEIGHT * (len(nodes) - place) / len(nodes)
            for place, score in enumerate(scores)
        ]
        return [Judged(nodes[place], scores[place]) for place in keep_unjudged(fused)]


@dataclass(frozen=True)
class Listwise:
    """Orders the best candidates at once."""

    kb: KnowledgeBase
    chooser: Chooser
    name: str = "listwise"
    depth: int = 20
    """Number of best candidates to order. The remaining candidates follow in their old order."""

    def rerank(self, question: str, nodes: Sequence[int]) -> list[Judged]:
        """Return the order of the chooser."""
        best = list(nodes[: self.depth])
        options = tuple(_short(self.kb, node) for node in best)
        chosen = self.chooser.choose([Choice(question, options, len(best), "candidate answer")])[0] if best else None
        kept = [best[place] for place in chosen.kept] if chosen else []
        return [Judged(node) for node in dict.fromkeys([*kept, *nodes])]


@dataclass(frozen=True)
class Pairwise:
    """Compares the best candidates in pairs, as one batch. More wins rank higher."""

    kb: KnowledgeBase
    chooser: Chooser
    name: str = "pairwise"
    depth: int = 8
    """Number of best candidates to compare. The remaining candidates follow in their old order."""

    def rerank(self, question: str, nodes: Sequence[int]) -> list[Judged]:
        """Sort by the share of duels won."""
        best = list(nodes[: self.depth])
        shown = [_short(self.kb, node) for node in best]
        pairs = list(combinations(range(len(best)), 2))
        outcomes = self.chooser.choose(
            [Choice(question, (shown[i], shown[j]), 1, "candidate answer") for i, j in pairs]
        )
        wins = [0.0] * len(best)
        for pair, outcome in zip(pairs, outcomes, strict=True):
            winner = outcome.kept[0]
            wins[pair[winner]] += outcome.sure
            wins[pair[1 - winner]] += 1.0 - outcome.sure
        duels = max(1, len(best) - 1)
        order = sorted(range(len(best)), key=lambda place: (-wins[place], place))
        judged = [Judged(best[place], wins[place] / duels, f"won {wins[place]:g} of {duels} duels") for place in order]
        return judged + [Judged(node) for node in nodes[self.depth :]]


def keep_unjudged(scores: Sequence[float | None]) -> list[int]:
    """Return the indices by descending score. Indices without a score stay at their position."""
    judged = sorted((p for p, score in enumerate(scores) if score is not None), key=lambda p: (-(scores[p] or 0.0), p))
    following = iter(judged)
    return [place if score is None else next(following) for place, score in enumerate(scores)]


def _short(kb: KnowledgeBase, node: int) -> str:
    text = kb.text(node)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
