"""Messages through the graph around the topics, without a language model (STaRK's QA-GNN baseline).

1  topic entities, given or linked, masked in the question
2  the graph network scores the nodes around them (`clew.reading.graph_network`)
3  answer with the likeliest nodes, each with the walk that the question opened furthest

`clew train qa_gnn` trains such weights, on a person's own base or on many; a base it has not seen can be asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from clew.core.types import Answer, Candidate, NodeSet
from clew.kb.protocol import KnowledgeBase
from clew.methods.paths.execution import Step, Trail, nothing_found, path_of, paths
from clew.methods.protocol import Method
from clew.models.embedding.words import DIMENSION
from clew.queries.certificates import certificate
from clew.queries.path_claims import claim_of_walks
from clew.queries.relation_paths import nameless_of
from clew.reading.encoders import Floats
from clew.reading.graph_network import (
    SHIPPED_GRAPH,
    GraphNetwork,
    HopPlaces,
    Surroundings,
    masked_question,
    surroundings,
)
from clew.reading.topics import find_topics
from clew.reading.vocabulary import Hop, Vocabulary
from clew.toolbox import Toolbox

AS_LIKELY = 0.5
"""Nodes that are at least this much as likely as the best one are answers beside it."""


@dataclass(frozen=True)
class QaGnn(Method):
    """Nodes around the topics, by a network that passes messages along what the question asks for."""

    name = "qa_gnn"
    k: int = 20
    topics: tuple[str, ...] = ()
    weights: str = ""
    """A folder that `clew train qa_gnn` wrote; by default the weights that ship with Clew."""

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """The likeliest nodes, each with the walk that leads to it."""
        asking = tools.keep(f"graph network {self.weights}", lambda: self._asking(tools))
        found = find_topics(question, tools.names, self.topics)  # 1
        if not found.topics:
            return Answer(question, notes=(nothing_found(named=False),))
        kb, vocabulary = tools.kb, asking.places.vocabulary
        kinds = [vocabulary.type_words(kb.refs([int(topic.nodes.array[0])])[0].type) for topic in found.topics]
        topics = NodeSet.of([int(node) for topic in found.topics for node in topic.nodes])
        around = surroundings(kb, asking.places, topics, asking.network.layers)
        used, types, around = around.among_used()
        words = asking.vectors([vocabulary.hop_texts[place] for place in used])
        types_in_words = asking.vectors([vocabulary.type_text(vocabulary.schema.type_names[place]) for place in types])
        masked = masked_question(question, found.topics, kinds)
        heard = asking.network.hear(masked, around, words, types_in_words)  # 2
        hidden = nameless_of(kb).among(NodeSet.of(around.nodes))
        scores = np.where(np.isin(around.nodes, hidden.array), -np.inf, heard.scores)
        best = [int(place) for place in np.argsort(-scores, kind="stable")[: self.k] if np.isfinite(scores[place])]
        if not best:
            return Answer(question, notes=(nothing_found(named=True),))
        hops = [vocabulary.hops[place] for place in used]
        trails = [_trail(around, hops, walk) for walk in map(heard.walks(around).to, best)]
        return _told(question, kb, trails, np.exp(heard.scores[best]))  # 3

    def _asking(self, tools: Toolbox) -> _Asking:
        return _Asking(GraphNetwork(_folder(self.weights)), HopPlaces(Vocabulary(tools.kb.schema)))

    def learned(self, tools: Toolbox) -> Mapping[str, Any]:  # noqa: ARG002 - the weights are not the base's
        """Which weights answer."""
        return {"graph network": GraphNetwork(_folder(self.weights)).version}


def _trail(around: Surroundings, hops: Sequence[Hop], walk: Sequence[int]) -> Trail:
    steps = [
        Step(
            hops[around.hops[edge]].relation, hops[around.hops[edge]].direction, int(around.nodes[around.targets[edge]])
        )
        for edge in walk
    ]
    return Trail(int(around.nodes[around.sources[walk[0]]]), tuple(steps))


def _told(question: str, kb: KnowledgeBase, trails: Sequence[Trail], chances: Floats) -> Answer:
    """Where the trails end, likeliest first; what is about as likely as the first is put forward with it."""
    count = int((chances >= AS_LIKELY * chances[0]).sum())
    refs, threads = kb.refs([trail.end for trail in trails]), paths(kb, trails)
    candidates = [
        Candidate(ref, float(chance), (thread,)) for ref, chance, thread in zip(refs, chances, threads, strict=True)
    ]
    answers = [(path_of(trail), trail.end) for trail in trails[:count]]
    said = "; ".join(dict.fromkeys(path.in_words() for path, _ in answers))
    query = {"path": said, **certificate(claim_of_walks(answers), kb), "matches": count}
    certainty = min(1.0, float(chances[:count].sum()))
    return Answer(question, tuple(candidates), query=query, answer_count=count, certainty=certainty)


def _folder(weights: str) -> Path:
    return Path(weights).expanduser() if weights else SHIPPED_GRAPH


@dataclass(frozen=True, eq=False)
class _Asking:
    """The network over one base; what its relations and types are called is read when a question comes by them."""

    network: GraphNetwork
    places: HopPlaces
    _read: dict[str, Floats] = field(default_factory=dict)

    def vectors(self, texts: Sequence[str]) -> Floats:
        """A row for each text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._read]
        self._read.update(zip(new, self.network.vectors(new), strict=True))
        return np.array([self._read[text] for text in texts], dtype=np.float32).reshape(-1, DIMENSION)
