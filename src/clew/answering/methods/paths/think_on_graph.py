"""Think-on-Graph (Sun et al., ICLR 2024): beam search over the graph, with a model that judges the next step.

1  start at the topic entities of the question
2  relations: select the best `width` of those that leave or enter the end of each trail
3  entities: select the best `width` trails in all (from a sample of 5 if a relation has 20 or more entities)
4  enough? Ask whether the facts of the trails suffice. Stop if they do, or at `depth`
5  answer from the facts

With `prune=score` the model rates relations and entities from 0 to 1, as in the paper. The score of an entity is
multiplied by that of its relation. With `prune=choose` the model names the best instead. Without a model, similarity
decides. Deviations from the paper: numbers are JSON, and the model's memory counts only with `memory=true`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clew.answering.methods.paths.asking import answers_from, is_enough, rate_entities, rate_relations
from clew.answering.methods.paths.execution import Trail, answer_read, extend, in_words, nothing_found, paths, triples
from clew.answering.methods.paths.search import best_places
from clew.answering.methods.protocol import WITHOUT_MODEL, Method
from clew.answering.methods.role_choice import chooser_for, reader_for
from clew.answering.reading.mentions import find_topics
from clew.answering.roles.score import FusedScorer
from clew.core.roles import Choice, Claim, Reading, Source
from clew.core.trace import span
from clew.core.types import Answer, NodeSet, RelationUse
from clew.store.graph.protocol import KnowledgeBase
from clew.store.open_base import OpenBase

Rated = tuple[Trail, float]
"""A trail and the score of its last relation."""


@dataclass(frozen=True)
class ThinkOnGraph(Method):
    """A beam of walks from the topic entities, a model scoring relations and entities."""

    name = "think_on_graph"
    prune: Literal["score", "choose"] = "score"
    """Whether a model rates relations and entities, as in the paper, or names the best."""
    memory: bool = False
    """Whether the model may answer from its own knowledge, as in the paper."""
    width: int = 3
    depth: int = 3
    seed: int = 0
    topics: tuple[str, ...] = ()

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return the answers read from the facts, then the ends of the trails."""
        if tools.model is None:
            self.refuse(("memory", "prune"), WITHOUT_MODEL)
        rng = random.Random(self.seed)
        found = find_topics(question, tools.names, self.topics)
        trails = [Trail(node) for topic in found.topics for node in topic.nodes][: self.width]  # 1
        if not trails and not self.memory:
            return nothing_found(question, named=False)
        kept: list[Trail] = []
        for depth in range(self.depth):
            with span("think", depth=depth + 1, trails=len(trails)):
                leading = self._relations(found.question, trails, rng, tools)  # 2
                trails = self._entities(found.question, leading, tools)  # 3
            if not trails:
                break
            kept += trails
            if self._is_enough(found.question, kept, tools):  # 4
                break
        return self._answered(question, found.question, kept, tools)  # 5

    def _relations(self, question: str, trails: Sequence[Trail], rng: random.Random, tools: OpenBase) -> list[Rated]:
        kb = tools.kb
        uses = [list(kb.relations(NodeSet.of([trail.end]))) for trail in trails]
        ends = [ref.name for ref in kb.refs([trail.end for trail in trails])]
        grown: list[Rated] = []
        for trail, use, scores in zip(trails, uses, self._rated_relations(question, ends, uses, tools), strict=True):
            for place in best_places(scores, self.width):
                if scores[place] > 0 or tools.model is None:
                    grown += [(longer, scores[place]) for longer in extend(kb, trail, use[place], rng)]
        return grown

    def _rated_relations(
        self, question: str, ends: Sequence[str], uses: Sequence[Sequence[RelationUse]], tools: OpenBase
    ) -> list[list[float]]:
        words = [tuple(map(in_words, use)) for use in uses]
        if tools.model is not None and self.prune == "score":
            return rate_relations(tools.model, question, list(zip(ends, words, strict=True)), self.width)
        choices = [
            Choice(question, options, self.width, "relation", f"standing at {end}")
            for options, end in zip(words, ends, strict=True)
        ]
        chosen = chooser_for(tools).choose(choices)
        return [_as_scores(one.kept, len(options)) for one, options in zip(chosen, words, strict=True)]

    def _entities(self, question: str, rated: Sequence[Rated], tools: OpenBase) -> list[Trail]:
        """Return the best trails in all. Up to `width` trails need no judgement."""
        trails = [trail for trail, _ in rated]
        if len(trails) <= self.width:
            return trails
        if tools.model is not None and self.prune == "score":
            scores = self._scored_entities(question, rated, tools)
        elif tools.model is not None:
            options = tuple(path.in_words() for path in paths(tools.kb, trails))
            [chosen] = chooser_for(tools).choose([Choice(question, options, self.width, "fact")])
            return [trails[place] for place in chosen.kept]
        else:
            claims = [Claim(question, path.in_words()) for path in paths(tools.kb, trails)]
            scores = [score or 0.0 for score in FusedScorer(tools.embedder).score(claims)]
        return [trails[place] for place in best_places(scores, self.width) if scores[place] > 0]

    def _scored_entities(self, question: str, rated: Sequence[Rated], tools: OpenBase) -> list[float]:
        """Score the entities per relation, and multiply by the score of the relation."""
        assert tools.model is not None
        groups: dict[tuple[Trail, str, str], list[int]] = {}
        for place, (trail, _) in enumerate(rated):
            last = trail.steps[-1]
            before = Trail(trail.start, trail.steps[:-1])
            groups.setdefault((before, last.relation, last.direction), []).append(place)
        names = [ref.name for ref in tools.kb.refs([trail.end for trail, _ in rated])]
        shown = [(key[1], [names[place] for place in places]) for key, places in groups.items()]
        several = [number for number, (_, entities) in enumerate(shown) if len(entities) > 1]
        found = rate_entities(tools.model, question, [shown[number] for number in several])
        by_group = dict(zip(several, found, strict=True))
        scores = [0.0] * len(rated)
        for number, places in enumerate(groups.values()):
            own = by_group.get(number, [1.0] * len(places))  # a single entity gets the full score of its relation
            for place, score in zip(places, own, strict=True):
                scores[place] = score * rated[place][1]
        return scores

    def _is_enough(self, question: str, kept: Sequence[Trail], tools: OpenBase) -> bool:
        if tools.model is None:
            return bool(_named_by_span(question, kept, tools))
        return is_enough(tools.model, question, _facts(tools.kb, kept), self.memory)

    def _answered(self, question: str, plain: str, kept: Sequence[Trail], tools: OpenBase) -> Answer:
        if tools.model is None:
            read = _named_by_span(plain, kept, tools) or [tools.kb.refs([trail.end])[0].name for trail in kept[:1]]
        else:
            read = answers_from(tools.model, plain, _facts(tools.kb, kept), self.memory)
        return answer_read(tools.kb, question, self.name, kept, read, tools.names if self.memory else None)


def _facts(kb: KnowledgeBase, trails: Sequence[Trail]) -> list[str]:
    nodes = NodeSet.of([node for trail in trails for node in (trail.start, *(step.end for step in trail.steps))])
    names = {ref.id: ref.name for ref in kb.refs(nodes.array)}
    return triples(kb, trails, names.__getitem__)


def _named_by_span(question: str, trails: Sequence[Trail], tools: OpenBase) -> list[str]:
    """Return the end of a trail that the extractive reader names, for use without a model."""
    sources = tuple(Source(path.in_words()) for path in paths(tools.kb, trails))
    [read] = reader_for(tools).read([Reading(question, sources)])
    ends = {ref.name.casefold(): ref.name for ref in tools.kb.refs([trail.end for trail in trails])}
    found = ends.get((read.text or "").strip().casefold())
    return [] if found is None else [found]


def _as_scores(kept: Sequence[int], options: int) -> list[float]:
    """Convert a choice to scores, best first."""
    scores = [0.0] * options
    for place, option in enumerate(kept):
        scores[option] = 1 / (1 + place)
    return scores
