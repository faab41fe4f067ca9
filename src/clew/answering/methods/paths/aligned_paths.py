"""Rank relation paths without a model, by the encoders of the learned reader.

1  topic entities, given or linked, masked in the question
2  explore their relation paths up to `depth` hops, and score each by its match with the question
3  answer with the ends of the best path. Intersect the ends of several topics

Explores the paths of `tournament_on_path` without tournaments, and learns from `feedback`.
"""

from __future__ import annotations

from dataclasses import dataclass

from clew.answering.methods.paths.execution import Scored, answer_refined, best_ends, nothing_found, several
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import path_ranker_of
from clew.answering.reading.mentions import Topic, find_topics, mask_topic
from clew.answering.reading.path_ranker import PathRanker
from clew.core.types import Answer
from clew.store.open_base import OpenBase


@dataclass(frozen=True)
class AlignedPaths(Method):
    """Relation paths from the topic entities, ranked by their match with the question."""

    name = "aligned_paths"
    depth: int = 3
    width: int = 3
    """Number of paths per topic to combine."""
    topics: tuple[str, ...] = ()

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return the ends of the best path, all with the same score, each with its walk."""
        ranker = path_ranker_of(tools)
        found = find_topics(question, tools.names, self.topics)  # 1
        answered = [self._ranked(question, topic, ranker) for topic in several(found.topics)]  # 2
        answered = [ranked for ranked in answered if ranked]
        if not answered:
            return nothing_found(question, named=bool(found.topics))
        paths, ends = best_ends(answered)
        return answer_refined(tools, ranker.explorer, question, self.name, paths, ends)  # 3

    def _ranked(self, question: str, topic: Topic, ranker: PathRanker) -> Scored:
        ranked = ranker.rank(mask_topic(question, [topic.text]), topic.nodes, self.depth)
        return [(one.path, one.score, one.ends) for one in ranked[: self.width]]
