"""Tournament on Path (Xiang & Wu, Chalmers 2026): rank abstract relation paths by tournaments instead of scores.

1  topic entities, given or linked; System 2 masks them in everything a model sees
2  explore relation paths, entity-agnostic, and pre-filter them
3  tournament: chunked (System 1) or pairwise with diff prompting (System 2)
4  stop at a fixed depth, when the path answers the question, or when its answers no longer change
5  answer with the ends of the best path, several topics intersected; System 1 may choose among the entities

Without a model an embedder judges the matches. `prefilter=aligned` holds one tournament over the whole paths whose
relations fit the words of the question best. Deviation from the thesis: the path and its end set are the answer; no
model writes one from its memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clew.core.roles import Choice, Chooser
from clew.core.types import Answer, NodeSet
from clew.methods.paths.aligned_paths import aligner_of
from clew.methods.paths.execution import MOST_SHOWN, Scored, answer_paths, best_ends, nothing_found, several
from clew.methods.paths.search import (
    ChoosingJudge,
    Filter,
    Mode,
    PathSearch,
    Stop,
    asks_whether_enough,
    prefilter,
)
from clew.methods.protocol import Method
from clew.methods.role_choice import chooser_for
from clew.reading.paths.topic_mask import MASK, mask_topic
from clew.reading.paths.topics import Topic, find_topics
from clew.toolbox import Toolbox

MOST_CHOSEN = 40
"""Entities among which System 1 chooses."""


@dataclass(frozen=True)
class TournamentOnPath(Method):
    """Relation paths from the topic entities, the best one found by a tournament."""

    name = "tournament_on_path"
    system: Literal[1, 2] = 2
    """System 1 or 2 of the thesis; each further option changes one of its choices."""
    prefilter: Filter | None = None
    tournament: Mode | None = None
    diff: bool | None = None
    mask: bool | None = None
    shots: Literal["few", "zero"] | None = None
    stop: Stop | None = None
    depth: int | None = None
    width: int = 3
    chunk: int = 4
    filtered: int = 30
    seed: int = 0
    topics: tuple[str, ...] = ()

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """The ends of the best path, all with the same score, each with the walk that leads to it."""
        chooser = chooser_for(tools)
        found = find_topics(question, tools.names, self.topics)  # 1
        answered = [self._paths(question, topic, chooser, tools) for topic in several(found.topics)]  # 2, 3, 4
        answered = [ranked for ranked in answered if ranked]
        if not answered:
            return Answer(question, notes=(nothing_found(bool(found.topics)),))
        paths, ends = best_ends(answered)
        nodes = self._chosen(question, ends, chooser, tools)
        return answer_paths(aligner_of(tools).explorer, question, self.name, paths, ends, nodes)  # 5

    @property
    def _search(self) -> PathSearch:
        first = self.system == 1
        return PathSearch(
            self.tournament or ("chunked" if first else "pairwise"),
            self.prefilter or ("rrf" if first else "semantic"),
            self.stop or ("depth" if first else "answered"),
            self.width,
            self.chunk,
            self.filtered,
            self.depth or (3 if first else 4),
            self.seed,
        )

    def _paths(self, question: str, topic: Topic, chooser: Chooser, tools: Toolbox) -> Scored:
        first, search, aligner = self.system == 1, self._search, aligner_of(tools)
        masked = mask_topic(question, [topic.text])
        shown = f"[{topic.nodes.array[0]}]" if _default(self.mask, not first) else topic.text
        asked = masked.replace(MASK, shown) if MASK in masked else question
        few_shot = first if self.shots is None else self.shots == "few"
        judge = ChoosingJudge(chooser, asked, shown, _default(self.diff, not first), few_shot)
        vectors = aligner.lexicon.vectors
        if search.filter == "aligned":
            ranked = {one.path: one for one in aligner.rank(masked, topic.nodes, search.depth)}
            kept = prefilter(masked, list(ranked), search.filtered, search.filter, vectors, search.seed)
            return [(path, ranked[path].score, ranked[path].ends) for path in search.select(kept, judge)]
        enough = asks_whether_enough(chooser, asked, shown)
        kept = search.grow(aligner.explorer, topic.nodes, asked, vectors, judge, enough)
        return [(path, 1.0 / (1 + place), aligner.explorer.execute(path)) for place, path in enumerate(kept)]

    def _chosen(self, question: str, ends: NodeSet, chooser: Chooser, tools: Toolbox) -> list[int]:
        """System 1 may put some of the ends first; all of them stay."""
        nodes = [int(node) for node in ends.array[:MOST_SHOWN]]
        if self.system != 1 or tools.model is None or len(nodes) < 2:
            return nodes
        names = tuple(ref.name for ref in tools.kb.refs(nodes[:MOST_CHOSEN]))
        [chosen] = chooser.choose([Choice(question, names, self.width, "entity")])
        first = [nodes[place] for place in chosen.kept]
        return first + [node for node in nodes if node not in first]


def _default(given: bool | None, usual: bool) -> bool:
    return usual if given is None else given
