"""Tournament on Path (Xiang & Wu, Chalmers 2026): rank abstract relation paths by tournaments instead of scores.

1  topic entities, given or linked; System 2 masks them in everything a model sees
2  explore relation paths, entity-agnostic, and pre-filter them
3  tournament: chunked (System 1) or pairwise with diff prompting (System 2)
4  stop at a fixed depth, when the path answers the question, or when its answers no longer change
5  answer with the ends of the best path, several topics intersected; System 1 may choose among the entities

Without a model phrases of the question are aligned with the relations of the paths, and the tournaments compare those
scores; with one, `prefilter=aligned` holds a single tournament over the paths that are aligned best. Deviation from the
thesis: the path and its end set are the answer; no model writes one from its memory.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from clew.core.roles import Choice, Chooser
from clew.core.types import Answer, Candidate, Judgement, NodeSet
from clew.index.protocol import Names
from clew.kb.arrays import ArrayKnowledgeBase
from clew.methods.paths.execution import MANY, SAMPLED, evidence, formal_query
from clew.methods.paths.feedback import read_weights
from clew.methods.paths.search import (
    ChoosingJudge,
    Filter,
    Mode,
    PathJudge,
    PathSearch,
    ScoreJudge,
    Stop,
    asks_whether_enough,
    prefilter,
)
from clew.queries.relation_paths import RelationPath
from clew.reading.paths.relation_aligner import RelationAligner
from clew.reading.paths.topic_mask import MASK, mask_topic
from clew.reading.paths.topics import Topic, find_topics
from clew.roles.choose import ModelChooser
from clew.toolbox import Toolbox

MOST_SHOWN = 1000
WITH_EVIDENCE = 20
PAIRED = 20
"""Of several topics so many paths each are tried together."""
Scored = list[tuple[RelationPath, float, NodeSet]]
"""Paths with their scores and where they lead, best first."""


@dataclass(frozen=True)
class TournamentOnPath:
    """Relation paths from the topic entities, the best one found by a tournament."""

    names: Names
    aligner: RelationAligner
    chooser: Chooser | None
    search: PathSearch
    explore: Literal["paths", "entities"] = "paths"
    choose_entities: bool = False
    diff: bool = True
    mask: bool = True
    few_shot: bool = False
    topics: tuple[str, ...] = ()
    model: str = "none"

    @classmethod
    def build(
        cls,
        toolbox: Toolbox,
        system: Literal[1, 2] = 2,
        explore: Literal["paths", "entities"] = "paths",
        prefilter: Filter | None = None,
        tournament: Mode | None = None,
        diff: bool | None = None,
        mask: bool | None = None,
        shots: Literal["few", "zero"] | None = None,
        stop: Stop | None = None,
        depth: int | None = None,
        width: int = 3,
        chunk: int = 4,
        filtered: int = 30,
        seed: int = 0,
        topics: tuple[str, ...] = (),
    ) -> TournamentOnPath:
        """System 1 or 2 of the thesis; each further option changes one of its choices."""
        first, model = system == 1, toolbox.model
        usual: Filter = "aligned" if model is None else "rrf" if first else "semantic"
        search = PathSearch(
            tournament or ("chunked" if first else "pairwise"),
            prefilter or usual,
            stop or ("depth" if first else "answered"),
            width,
            chunk,
            filtered,
            depth or (3 if first or model is None else 4),
            seed,
        )
        return cls(
            toolbox.names,
            RelationAligner(toolbox.kb, toolbox.embedder, _weights(toolbox)),
            None if model is None else ModelChooser(model),
            search,
            explore,
            first and model is not None,
            not first if diff is None else diff,
            not first if mask is None else mask,
            first if shots is None else shots == "few",
            topics,
            "none" if model is None else model.name,
        )

    def answer(self, question: str) -> Answer:
        """The ends of the best path, all with the same score, each with the walk that leads to it."""
        found = find_topics(question, self.names, self.topics)  # 1
        answered = [self._paths(question, topic) for topic in _several(found.topics)]  # 2, 3, 4
        answered = [ranked for ranked in answered if ranked]
        if not answered:
            return Answer(question, "tournament_on_path", (), self.model, notes=(_nothing(bool(found.topics)),))
        best, _, ends = max((ranked[0] for ranked in answered), key=lambda one: one[1])
        both = _intersected(answered) if len(answered) > 1 else None
        paths, ends = ([best], ends) if both is None else both
        return self._answered(question, paths, self._chosen(question, ends))  # 5

    def _paths(self, question: str, topic: Topic) -> Scored:
        masked = mask_topic(question, [topic.text])
        if self.chooser is None:
            return self._aligned(masked, topic.nodes, None)
        shown = f"[{topic.nodes.array[0]}]" if self.mask else topic.text
        asked = masked.replace(MASK, shown) if MASK in masked else question
        judge = ChoosingJudge(self.chooser, asked, shown, self.diff, self.few_shot)
        if self.search.filter == "aligned":
            return self._aligned(masked, topic.nodes, judge)
        enough = asks_whether_enough(self.chooser, asked, shown)
        vectors = self.aligner.lexicon.vectors
        kept = self.search.grow(self.aligner.explorer, topic.nodes, asked, vectors, judge, enough)
        execute = self.aligner.explorer.execute
        return [(path, 1.0 / (1 + place), execute(path)) for place, path in enumerate(kept)]

    def _aligned(self, masked: str, topic: NodeSet, judge: PathJudge | None) -> Scored:
        """Whole paths, the best aligned of them in one tournament, judged by their scores or by a model."""
        ranked = self.aligner.rank(masked, topic, self.search.depth)
        scores = {one.path: one.score for one in ranked}
        vectors = self.aligner.lexicon.vectors
        shown = prefilter(masked, list(scores), self.search.filtered, self.search.filter, vectors, self.search.seed)
        ends = {one.path: one.ends for one in ranked}
        if self.explore == "entities":
            ends = self._walks({path: scores[path] for path in shown}, topic)
            shown = [path for path in shown if path in ends]
        best = self.search.select(shown, judge or ScoreJudge(scores))
        return [(path, scores[path], ends[path]) for path in best]

    def _walks(self, scores: Mapping[RelationPath, float], topic: NodeSet) -> dict[RelationPath, NodeSet]:
        """Without abstraction: a beam of single walks, entities sampled as in Think-on-Graph; where those kept end."""
        rng = random.Random(self.search.seed)
        beam = [(RelationPath(topic), node) for node in topic][: self.search.width]
        kept: list[tuple[RelationPath, int]] = []
        for _ in range(self.search.depth):
            grown = []
            for path, node in beam:
                here = NodeSet.of([node])
                for lead in self.aligner.explorer.leads(here):
                    longer = path.then(lead.hop)
                    if longer in scores:
                        before = path.hops[-1] if path.hops else None
                        reached = list(self.aligner.explorer.ends(here, lead, before, topic))
                        few = sorted(rng.sample(reached, SAMPLED)) if len(reached) >= MANY else reached
                        grown += [(longer, end) for end in few]
            beam = sorted(grown, key=lambda walk: -scores[walk[0]])[: self.search.width]
            kept += beam
        best = sorted(kept, key=lambda walk: -scores[walk[0]])[: self.search.width]
        return {path: NodeSet.of([end for other, end in best if other == path]) for path, _ in best}

    def _chosen(self, question: str, ends: NodeSet) -> list[int]:
        """System 1 may put some of the ends first; all of them stay."""
        nodes = [int(node) for node in ends.array[:MOST_SHOWN]]
        if not self.choose_entities or self.chooser is None or len(nodes) < 2:
            return nodes
        names = tuple(ref.name for ref in self.aligner.kb.refs(nodes[:40]))
        [chosen] = self.chooser.choose([Choice(question, names, self.search.width, "entity")])
        first = [nodes[place] for place in chosen.kept]
        return first + [node for node in nodes if node not in first]

    def _answered(self, question: str, best: list[RelationPath], nodes: list[int]) -> Answer:
        kb = self.aligner.kb
        shown = nodes[:WITH_EVIDENCE]
        threads = [evidence(self.aligner.explorer, path, shown) for path in best]
        candidates = [
            Candidate(ref, 1.0, tuple(thread[place] for thread in threads) if place < len(shown) else ())
            for place, ref in enumerate(kb.refs(nodes))
        ]
        judgement = Judgement("tournament_on_path", None, "; ".join(path.in_words() for path in best))
        answer = Answer(question, "tournament_on_path", tuple(candidates), self.model, evidence=(judgement,))
        return replace(answer, query=formal_query(kb, best[0]))


def _weights(toolbox: Toolbox) -> Mapping[str, float] | None:
    """What was learned from confirmed answers, where the base is embedded and something was."""
    return read_weights(toolbox.kb.folder) if isinstance(toolbox.kb, ArrayKnowledgeBase) else None


def _several(topics: Sequence[Topic]) -> list[Topic]:
    """At most three topics, the longest names first: they say most about what is meant."""
    return sorted(topics, key=lambda topic: -len(topic.text))[:3]


def _intersected(answered: Sequence[Scored]) -> tuple[list[RelationPath], NodeSet] | None:
    """The best pair of paths from different topics that lead to the same nodes, and those nodes."""
    options = [
        (one[1] + other[1], one[0], other[0], one[2] & other[2])
        for one in answered[0][:PAIRED]
        for other in answered[1][:PAIRED]
    ]
    joint = [option for option in options if len(option[3])]
    if not joint:
        return None
    _, first, second, both = max(joint, key=lambda option: option[0])
    return [first, second], both


def _nothing(named: bool) -> str:
    if named:
        return "no path leads from the topic to an answer"
    return "no topic entity was found: mark it as [Name] or give it with -O topics=NAME"
