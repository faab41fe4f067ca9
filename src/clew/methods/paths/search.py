"""The pre-filter of Tournament on Path: which of many relation paths a judge gets to see."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, Protocol

import numpy as np

from clew.core.roles import Choice, Chooser
from clew.core.trace import span
from clew.core.types import NodeSet, Ranking
from clew.index.fusion import reciprocal_rank_fusion
from clew.index.tokens import stem
from clew.methods.paths.tournament import ChunkedTournament, PairwiseTournament
from clew.queries.relation_paths import Explorer, Move, RelationPath, common_beginning
from clew.reading.language.phrases import PhraseVectors
from clew.reading.language.relation_words import words

Filter = Literal["aligned", "lexical", "semantic", "rrf", "random", "none"]


def prefilter(
    question: str,
    paths: Sequence[RelationPath],
    kept: int,
    how: Filter,
    vectors: PhraseVectors,
    seed: int = 0,
) -> list[RelationPath]:
    """The `kept` paths most like the question, best first; "aligned" and "none" keep the order in which they come."""
    if how == "random":
        return random.Random(seed).sample(list(paths), min(kept, len(paths)))
    if how in ("aligned", "none") or not paths:
        return list(paths[: kept if how == "aligned" else None])
    rankings = []
    if how in ("lexical", "rrf"):
        rankings.append(Ranking.of(range(len(paths)), lexical(question, [_text(path) for path in paths])))
    if how in ("semantic", "rrf"):
        vector = vectors.of([question])[0]
        hops = {" ".join(words(move.relation)) for path in paths for move in path.moves}
        near = dict(zip(hops, (vectors.of(list(hops)) @ vector).tolist(), strict=True))
        means = [float(np.mean([near[" ".join(words(move.relation))] for move in path.moves])) for path in paths]
        rankings.append(Ranking.of(range(len(paths)), means))
    return [paths[place] for place, _ in reciprocal_rank_fusion(rankings, k=kept)]


def lexical(question: str, documents: Sequence[str], k1: float = 1.2, b: float = 0.75) -> list[float]:
    """BM25 of a question over a few short texts."""
    bags = [Counter(stem(word) for word in document.split()) for document in documents]
    terms = [stem(word) for word in re.findall(r"\w+", question.lower())]
    usual = max(sum(map(len, bags)) / max(len(bags), 1), 1e-9)
    seen = Counter(term for bag in bags for term in bag)
    scores = []
    for bag in bags:
        weight = k1 * (1 - b + b * bag.total() / usual)
        scores.append(
            sum(
                np.log(1 + (len(bags) - seen[term] + 0.5) / (seen[term] + 0.5))
                * bag[term]
                * (k1 + 1)
                / (bag[term] + weight)
                for term in terms
                if bag[term]
            )
        )
    return [float(score) for score in scores]


def _text(path: RelationPath) -> str:
    return " ".join(" ".join(words(move.relation)) for move in path.moves)


EXAMPLE = files("clew.methods.paths").joinpath("path_example.txt").read_text("utf-8").strip()
"""What a few-shot prompt shows before the question."""


class PathJudge(Protocol):
    """What both kinds of tournament ask."""

    def keep_best(self, chunks: Sequence[Sequence[RelationPath]], counts: Sequence[int]) -> list[Sequence[int]]:
        """For every chunk the positions kept, best first."""
        ...

    def first_is_better(self, pairs: Sequence[tuple[RelationPath, RelationPath]]) -> list[bool]:
        """For every pair whether its first is the better one."""
        ...


@dataclass(frozen=True)
class ScoreJudge:
    """Compares by scores: what the aligner found, where there is no model."""

    scores: Mapping[RelationPath, float]

    def keep_best(self, chunks: Sequence[Sequence[RelationPath]], counts: Sequence[int]) -> list[Sequence[int]]:
        """By score, ties in the given order."""
        return [
            sorted(range(len(chunk)), key=lambda place: -self.scores[chunk[place]])[:count]
            for chunk, count in zip(chunks, counts, strict=True)
        ]

    def first_is_better(self, pairs: Sequence[tuple[RelationPath, RelationPath]]) -> list[bool]:
        """By score; the first wins a tie."""
        return [self.scores[first] >= self.scores[second] for first, second in pairs]


@dataclass(frozen=True)
class ChoosingJudge:
    """Shows paths to a chooser; with `diff`, only where two paths differ, what they share being given."""

    chooser: Chooser
    question: str
    topic: str
    diff: bool = True
    few_shot: bool = False

    def keep_best(self, chunks: Sequence[Sequence[RelationPath]], counts: Sequence[int]) -> list[Sequence[int]]:
        """One choice per chunk, all in one batch."""
        choices = [
            Choice(self.question, tuple(map(self._shown, chunk)), count, "relation path", self._before())
            for chunk, count in zip(chunks, counts, strict=True)
        ]
        return [chosen.kept for chosen in self.chooser.choose(choices)]

    def first_is_better(self, pairs: Sequence[tuple[RelationPath, RelationPath]]) -> list[bool]:
        """One choice per pair; where one path begins the other, whether what it adds is relevant."""
        choices, shorter_first = [], []
        for first, second in pairs:
            shared = common_beginning(first, second) if self.diff else ()
            given = f"{self.topic} {_moves(shared)}".strip()
            tails = _moves(first.moves[len(shared) :]), _moves(second.moves[len(shared) :])
            if all(tails):
                choices.append(Choice(self.question, tails, 1, "candidate", given))
            else:
                options = (f"[RELEVANT] {''.join(tails)}", "[NOT RELEVANT] nothing more is needed")
                choices.append(Choice(self.question, options, 1, "judgement of the candidate", given))
            shorter_first.append(not tails[0])
        chosen = self.chooser.choose(choices)
        return [(one.kept[0] == 0) != turned for one, turned in zip(chosen, shorter_first, strict=True)]

    def _shown(self, path: RelationPath) -> str:
        return f"{self.topic} {path.in_words()}"

    def _before(self) -> str:
        return EXAMPLE if self.few_shot else ""


def _moves(moves: Sequence[Move]) -> str:
    return " ".join(move.in_words() for move in moves)


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
