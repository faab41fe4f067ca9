"""Candidates with gold labels for training rankers, and what reranking gains: Hit@1 … Hit@N before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from clew.datasets.questions import Match, Question
from clew.evaluation.intervals import Interval, bootstrap
from clew.evaluation.matching import Gold, NamesOf
from clew.kb.protocol import KnowledgeBase
from clew.steps.subgraphs.candidate_answers import CandidateSource
from clew.steps.subgraphs.rankers import ranked
from clew.steps.subgraphs.ranking_features import FloatArray, make_pool
from clew.steps.subgraphs.subgraph import SubgraphExtractor
from clew.training.labelled import LabelledPool


@dataclass(frozen=True)
class PoolMaker:
    """Puts questions to a source of candidates and labels what it proposes."""

    kb: KnowledgeBase
    source: CandidateSource
    extractor: SubgraphExtractor
    match: Match
    names_of: NamesOf
    candidates: int = 20

    def pools(
        self, questions: Sequence[Question], progress: Callable[[int, int], None] = lambda _done, _all: None
    ) -> Iterator[LabelledPool]:
        """One pool per question; questions that share a topic entity share a group."""
        for done, question in enumerate(questions, start=1):
            yield self.pool(question)
            progress(done, len(questions))

    def pool(self, question: Question) -> LabelledPool:
        """The candidates of one question; none is dropped, and a question without a right one stays, as a miss."""
        proposal = self.source.propose(question.text, self.candidates)
        subgraphs = self.extractor.extract(proposal.entities, proposal.candidates)
        gold = Gold(question.answers, question.aliases, self.match)
        refs = self.kb.refs(proposal.candidates)
        right = np.array([bool(gold.named_by(ref, self.names_of)) for ref in refs], dtype=np.bool_)
        groups = question.topics or tuple(ref.key for ref in self.kb.refs(proposal.entities))
        pool = make_pool(self.kb, proposal.question, subgraphs)
        return LabelledPool(question.id, pool, right, question.type, groups)


@dataclass(frozen=True, slots=True)
class HitCurve:
    """The share of questions with a right answer among the first 1, 2, … N, and the interval of Hit@1."""

    hits: tuple[float, ...]
    interval: Interval
    first: tuple[float, ...]
    """1 or 0 for each question: whether its best candidate is right."""

    def at(self, n: int) -> float:
        """Hit@n; 0 where nothing was measured."""
        return self.hits[min(n, len(self.hits)) - 1] if self.hits else 0.0


def hit_curve(pools: Sequence[LabelledPool], scores: Sequence[FloatArray], most: int = 20) -> HitCurve:
    """Rank each pool by its scores; a question without candidates or right ones is a miss at every N."""
    places = [first_right(pool, own) for pool, own in zip(pools, scores, strict=True)]
    hits = tuple(
        float(np.mean([place is not None and place < n for place in places])) if places else 0.0
        for n in range(1, most + 1)
    )
    first = tuple(float(place == 0) for place in places)
    return HitCurve(hits, bootstrap(first), first)


def first_right(pool: LabelledPool, scores: FloatArray) -> int | None:
    """How many wrong candidates are ranked before the first right one."""
    return next((place for place, which in enumerate(ranked(scores)) if pool.right[which]), None)
