"""The search of Tournament on Path over whole relation paths: hop by hop, filtered, decided by a tournament.

System 2 ranks what is kept once more with the entities at the ends in sight, and asks whether the best path answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from clew.core.trace import span
from clew.core.types import NodeSet
from clew.methods.paths.judges import Mode, PathJudge, Shown, select
from clew.methods.paths.prefilter import Filter, PhraseVectors, path_text, prefilter
from clew.queries.relation_paths import Explorer, RelationPath

Stop = Literal["depth", "answered", "converged"]
NAMED_ENDS = 10
"""Entities at the end of a path that a judge is shown."""


@dataclass(frozen=True)
class PathSearch:
    """How paths are explored and chosen."""

    mode: Mode = "pairwise"
    filter: Filter = "semantic"
    stop: Stop = "answered"
    width: int = 3
    chunk: int = 4
    filtered: int = 30
    depth: int = 4
    whole: bool = True
    """Whether a judge sees whole paths, or only the last relation of each."""
    seed: int = 0

    def shown(self, path: RelationPath, topic: str) -> Shown:
        """A path without its entities."""
        parts = tuple(move.in_words() for move in path.moves)
        return Shown(topic, parts if self.whole else parts[-1:])

    def filter_paths(self, question: str, paths: Sequence[RelationPath], vectors: PhraseVectors) -> list[RelationPath]:
        """The paths that a judge gets to see."""
        texts = list(map(path_text, paths))
        return [paths[at] for at in prefilter(question, texts, self.filtered, self.filter, vectors, self.seed)]

    def tournament(self, paths: Sequence[RelationPath], topics: Sequence[str], judge: PathJudge) -> list[RelationPath]:
        """The best `width` paths, best first; topics[i] is what the topic of paths[i] is called."""
        shown = [self.shown(path, topic) for path, topic in zip(paths, topics, strict=True)]
        return [paths[place] for place in select(shown, judge, self.mode, self.width, self.chunk)]


@dataclass(frozen=True)
class Asked:
    """A question as its judges see it, and who they are."""

    question: str
    label: Callable[[int], str]
    """The name of a node, or what stands for it where it is masked."""
    judge: PathJudge
    answered: Callable[[str], bool] | None = None
    """Whether a path, with its ends in words, answers the question; None where nobody can say."""


def grow(
    search: PathSearch, explorer: Explorer, topic: NodeSet, asked: Asked, vectors: PhraseVectors, *, final: bool
) -> list[RelationPath]:
    """Hop by hop from the topic; a kept path competes with the paths that continue it.

    `final` ranks the kept paths with the entities at their ends, as System 2 does.
    """
    kept: list[RelationPath] = []
    ends: NodeSet | None = None
    called = asked.label(int(topic.array[0]))
    for depth in range(search.depth):
        with span("tournament", depth=depth + 1) as opened:
            grown = [longer for path in kept or [RelationPath(topic)] for longer in _longer(explorer, path)]
            shown = search.filter_paths(asked.question, grown, vectors)
            pool = [*kept, *(path for path in shown if path not in kept)]
            winners = search.tournament(pool, [called] * len(pool), asked.judge)
            opened.note(candidates=len(grown), shown=len(shown), best=[path.in_words() for path in winners])
        if not winners or winners == kept:
            break
        kept = winners
        aware = [_with_ends(explorer, path, called, asked.label) for path in kept]
        if final and len(kept) > 1:
            order = select(aware, asked.judge, search.mode, search.width, search.chunk)
            kept, aware = [kept[place] for place in order], [aware[place] for place in order]
        if search.stop == "answered" and asked.answered is not None and asked.answered(aware[0].text):
            break
        reached = explorer.execute(kept[0])
        if search.stop == "converged" and ends is not None and reached == ends:
            break
        ends = reached
    return kept


def _with_ends(explorer: Explorer, path: RelationPath, topic: str, label: Callable[[int], str]) -> Shown:
    """A path with the entities it leads to, as its last part."""
    ends = explorer.execute(path)
    named = ", ".join(label(int(node)) for node in ends.array[:NAMED_ENDS])
    more = f", … ({len(ends)} in all)" if len(ends) > NAMED_ENDS else ""
    return Shown(topic, (*(move.in_words() for move in path.moves), f"= {named}{more}"))


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
