"""Rank relation paths without a model, by the encoders of the learned reader.

1  topic entities, given or linked, masked in the question
2  explore their relation paths up to `depth` hops, and score each by its match with the question
3  answer with the ends of the best path. Intersect the ends of several topics

Explores the paths of `tournament_on_path` without tournaments, and learns from `feedback`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from clew.answering.methods.paths.execution import (
    MANY,
    SAMPLED,
    Scored,
    answer_refined,
    best_ends,
    nothing_found,
    several,
)
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import path_ranker_of
from clew.answering.queries.relation_paths import RelationPath
from clew.answering.reading.path_ranker import PathRanker
from clew.answering.reading.topic_mask import mask_topic
from clew.answering.reading.topics import Topic, find_topics
from clew.core.types import Answer, NodeSet
from clew.store.open_base import OpenBase


@dataclass(frozen=True)
class AlignedPaths(Method):
    """Relation paths from the topic entities, ranked by their match with the question."""

    name = "aligned_paths"
    depth: int = 3
    width: int = 3
    """Number of paths per topic to combine."""
    explore: Literal["paths", "entities"] = "paths"
    """`entities` follows single walks, sampled as in Think-on-Graph, instead of whole paths."""
    filtered: int = 30
    seed: int = 0
    topics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Reject options that only sampling needs."""
        super().__post_init__()
        if self.explore == "paths":
            self.refuse(("filtered", "seed"), "with explore=paths")

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return the ends of the best path, all with the same score, each with its walk."""
        ranker = path_ranker_of(tools)
        found = find_topics(question, tools.names, self.topics)  # 1
        answered = [self._ranked(question, topic, ranker) for topic in several(found.topics)]  # 2
        answered = [ranked for ranked in answered if ranked]
        if not answered:
            return Answer(question, notes=(nothing_found(bool(found.topics)),))
        paths, ends = best_ends(answered)
        return answer_refined(tools, ranker.explorer, question, self.name, paths, ends)  # 3

    def _ranked(self, question: str, topic: Topic, ranker: PathRanker) -> Scored:
        ranked = ranker.rank(mask_topic(question, [topic.text]), topic.nodes, self.depth)
        best = [(one.path, one.score, one.ends) for one in ranked]
        if self.explore == "entities":
            scores = {path: score for path, score, _ in best[: self.filtered]}
            ends = self._walks(scores, topic.nodes, ranker)
            best = [(path, score, ends[path]) for path, score, _ in best if path in ends]
        return best[: self.width]

    def _walks(
        self, scores: Mapping[RelationPath, float], topic: NodeSet, ranker: PathRanker
    ) -> dict[RelationPath, NodeSet]:
        """Return the ends by path of a beam of single walks, with entities sampled as in Think-on-Graph."""
        rng = random.Random(self.seed)
        beam = [(RelationPath(topic), node) for node in topic][: self.width]
        kept: list[tuple[RelationPath, int]] = []
        for _ in range(self.depth):
            grown = []
            for path, node in beam:
                here = NodeSet.of([node])
                for lead in ranker.explorer.leads(here):
                    longer = path.then(lead.hop)
                    if longer in scores:
                        before = path.hops[-1] if path.hops else None
                        reached = list(ranker.explorer.ends(here, lead, before, topic))
                        few = sorted(rng.sample(reached, SAMPLED)) if len(reached) >= MANY else reached
                        grown += [(longer, end) for end in few]
            beam = sorted(grown, key=lambda walk: -scores[walk[0]])[: self.width]
            kept += beam
        best = sorted(kept, key=lambda walk: -scores[walk[0]])[: self.width]
        return {path: NodeSet.of([end for other, end in best if other == path]) for path, _ in best}
