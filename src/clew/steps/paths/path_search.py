"""The search of Tournament on Path with a chooser: grow the kept paths by a hop, filter, hold a tournament, repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from clew.core.trace import span
from clew.core.types import NodeSet
from clew.steps.language.phrase_matching import PhraseVectors
from clew.steps.paths.path_filter import Filter, prefilter
from clew.steps.paths.path_judging import PathJudge
from clew.steps.paths.relation_paths import Explorer, RelationPath
from clew.steps.paths.tournament import ChunkedTournament, PairwiseTournament
from clew.steps.roles.protocol import Choice, Chooser

Stop = Literal["depth", "answered", "converged"]
Mode = Literal["chunked", "pairwise", "none"]


@dataclass(frozen=True)
class PathSearch:
    """How paths are explored and chosen; every choice of the thesis is a field."""

    mode: Mode = "pairwise"
    filter: Filter = "semantic"
    stop: Stop = "answered"
    width: int = 3
    chunk: int = 4
    filtered: int = 30
    depth: int = 3
    seed: int = 0

    def select(self, paths: Sequence[RelationPath], judge: PathJudge) -> list[RelationPath]:
        """The best `width` paths; without a tournament the judge orders all of them at once."""
        if self.mode == "pairwise":
            return PairwiseTournament(self.width).run(paths, judge.first_is_better)
        if self.mode == "chunked":
            return ChunkedTournament(self.width, self.chunk).run(paths, judge.keep_best)
        if not paths:
            return []
        [kept] = judge.keep_best([paths], [min(self.width, len(paths))])
        return [paths[place] for place in kept]

    def grow(
        self,
        explorer: Explorer,
        topic: NodeSet,
        question: str,
        vectors: PhraseVectors,
        judge: PathJudge,
        enough: Callable[[RelationPath], bool],
    ) -> list[RelationPath]:
        """Hop by hop from the topic; a kept path competes with the paths that continue it."""
        kept: list[RelationPath] = []
        ends: NodeSet | None = None
        for depth in range(self.depth):
            with span("tournament", depth=depth + 1) as opened:
                grown = [longer for path in kept or [RelationPath(topic)] for longer in _longer(explorer, path)]
                shown = prefilter(question, grown, self.filtered, self.filter, vectors, self.seed)
                winners = self.select([*kept, *(path for path in shown if path not in kept)], judge)
                opened.note(candidates=len(grown), shown=len(shown), best=[path.in_words() for path in winners])
            if not winners or winners == kept:
                break
            kept = winners
            reached = explorer.execute(kept[0])
            if self.stop == "answered" and enough(kept[0]):
                break
            if self.stop == "converged" and ends is not None and reached == ends:
                break
            ends = reached
        return kept


def _longer(explorer: Explorer, path: RelationPath) -> list[RelationPath]:
    """The paths one hop longer that lead somewhere."""
    nodes = explorer.execute(path) if path.hops else path.topic
    if path.moves and explorer.leads_to_values(path.moves[-1], nodes):
        return []
    found = []
    for lead in explorer.leads(nodes):
        before = path.hops[-1] if path.hops else None
        if len(explorer.ends(nodes, lead, before, path.topic)):
            found.append(path.then(lead.hop))
    return found


def asks_whether_enough(chooser: Chooser, question: str, topic: str) -> Callable[[RelationPath], bool]:
    """Whether the nodes at the end of a path answer the question, as a chooser sees it."""

    def enough(path: RelationPath) -> bool:
        options = (
            "its last nodes are what the question asks for",
            "it has to be continued before it reaches what the question asks for",
        )
        given = f"the path {topic} {path.in_words()}"
        [chosen] = chooser.choose([Choice(question, options, 1, "statement about the path", given)])
        return chosen.kept[0] == 0

    return enough
