"""Pass messages through the graph around the topics, without a language model (STaRK's QA-GNN baseline).

1  topic entities, given or linked, masked in the question
2  the graph network scores the nodes around them (`clew.answering.reading.graph_network`)
3  answer with the likeliest nodes and their best walks. Network and reader together give the certainty

Counts, comparisons and negations are left to other methods. `clew train qa_gnn` trains the weights, on one base or on
many. They also work on bases outside the training data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from clew.answering.methods.paths.execution import Trail, TrailStep, nothing_found, path_of, paths, query_of_walks
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import reader_parser
from clew.answering.reading.encoders import Floats
from clew.answering.reading.graph_network import SHIPPED_GRAPH, GraphNetwork, GraphReader, Told
from clew.answering.reading.mentions import find_topics
from clew.core.roles import Parse
from clew.core.types import Answer, Candidate
from clew.store.graph.protocol import KnowledgeBase
from clew.store.open_base import OpenBase

AS_LIKELY = 0.5
"""Minimum probability of further answers, relative to the best node."""


NOT_PLAIN = "the question asks for more than connections: use the method focus_plus"


@dataclass(frozen=True)
class QaGnn(Method):
    """Nodes around the topics, scored by a network that passes messages along the requested relations."""

    name = "qa_gnn"
    k: int = 20
    topics: tuple[str, ...] = ()
    sure: float = 0.2
    """Minimum certainty of an answer. Below it, results are shown as close matches."""
    weights: str = ""
    """A folder of `clew train qa_gnn`. By default the weights that ship with Clew."""

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return the likeliest nodes, each with its walk."""
        reader = tools.get_or_create(
            f"graph network {self.weights}", lambda: GraphReader(tools.kb, _folder(self.weights))
        )
        found = find_topics(question, tools.names, self.topics)  # 1
        if not found.topics:
            return nothing_found(question, named=False)
        told = reader.read(question, found.topics)  # 2
        best = np.flatnonzero(told.chances > 0)
        if not len(best):
            return nothing_found(question, named=True)
        best = best[np.argsort(-told.chances[best], kind="stable")]
        count = int((told.chances[best] >= AS_LIKELY * told.chances[best[0]]).sum())
        best = best[: max(self.k, count)]
        walks = told.heard.walks(told.around)
        trails = [_trail(told, walks.to(int(place))) for place in best]
        answer = _answer(question, tools.kb, trails, told.chances[best], count)  # 3
        return self._judged(answer, reader_parser(tools).parse(question, tools.kb.schema))

    def _judged(self, answer: Answer, parse: Parse) -> Answer:
        """Combine the certainties of network and reader. The network does not see the form of the question."""
        if not parse.interpretation.is_plain:
            return replace(answer, certainty=0.0, answer_count=0, query={}, notes=(NOT_PLAIN,))
        certainty = math.sqrt((answer.certainty or 0.0) * (parse.certainty or 0.0))
        if certainty < self.sure:
            return replace(answer, certainty=certainty, answer_count=0, query={})
        return replace(answer, certainty=certainty)

    def learned(self, tools: OpenBase) -> Mapping[str, Any]:  # noqa: ARG002 - the weights are not part of the base
        """Return the version of the weights."""
        return {"graph network": GraphNetwork(_folder(self.weights)).version}


def _trail(told: Told, walk: Sequence[int]) -> Trail:
    around = told.around
    taken = [(told.hops[around.hops[edge]], int(around.nodes[around.targets[edge]])) for edge in walk]
    steps = [TrailStep(hop.relation, hop.direction, end) for hop, end in taken]
    return Trail(int(around.nodes[around.sources[walk[0]]]), tuple(steps))


def _answer(question: str, kb: KnowledgeBase, trails: Sequence[Trail], chances: Floats, count: int) -> Answer:
    """Build the answer from the ends of the trails, likeliest first. The first `count` are answers."""
    refs, threads = kb.refs([trail.end for trail in trails]), paths(kb, trails)
    candidates = [
        Candidate(ref, float(chance), (thread,)) for ref, chance, thread in zip(refs, chances, threads, strict=True)
    ]
    query = query_of_walks(kb, [(path_of(trail), trail.end) for trail in trails[:count]])
    certainty = min(1.0, float(chances[:count].sum()))
    return Answer(question, tuple(candidates), query=query, answer_count=count, certainty=certainty)


def _folder(weights: str) -> Path:
    return Path(weights).expanduser() if weights else SHIPPED_GRAPH
