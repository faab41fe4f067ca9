"""Who decides a tournament: a model that is shown paths, or likeness to the question where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from clew.core.roles import Choice, Claim, Scorer
from clew.methods.paths.asking import Pair, first_is_better, pick_chains, rate_paths
from clew.methods.paths.tournament import ChunkedTournament, PairwiseTournament
from clew.models.protocol import LanguageModel
from clew.roles.choose import ModelChooser

Mode = Literal["chunked", "pairwise", "list", "none"]
"""Tournaments of chunks or of pairs, one list of all, or none: scores, a few paths per prompt."""
SCORED_AT_ONCE = 5
"""Paths per prompt where each is scored by itself, as in the thesis."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A path as a judge sees it: its topic, and its parts in words."""

    topic: str
    parts: tuple[str, ...]

    @property
    def chain(self) -> str:
        """The parts alone."""
        return " ".join(self.parts)

    @property
    def text(self) -> str:
        """Topic and parts."""
        return f"{self.topic} {self.chain}".strip()


class PathJudge(Protocol):
    """What the kinds of tournament ask."""

    def keep_best(self, chunks: Sequence[Sequence[Shown]], counts: Sequence[int]) -> list[Sequence[int]]:
        """For every chunk the positions kept, best first."""
        ...

    def first_is_better(self, pairs: Sequence[tuple[Shown, Shown]]) -> list[bool]:
        """For every pair whether its first is the better one."""
        ...

    def scores(self, shown: Sequence[Shown]) -> list[float]:
        """How relevant each is, 0..1."""
        ...


@dataclass(frozen=True)
class ModelJudge:
    """Asks a model as the thesis does; `diff` shows of two paths where they differ, what they share being given."""

    model: LanguageModel
    question: str
    diff: bool = True
    few_shot: bool = False
    reasons: bool = True
    """Pairs as in the thesis: reasons, then [A] or [B]; without, the letter alone, asked in both orders."""

    def keep_best(self, chunks: Sequence[Sequence[Shown]], counts: Sequence[int]) -> list[Sequence[int]]:
        """One list of indexes per chunk, all in one batch."""
        texts = [_chains(chunk) for chunk in chunks]
        return list(pick_chains(self.model, self.question, texts, counts, self.few_shot))

    def first_is_better(self, pairs: Sequence[tuple[Shown, Shown]]) -> list[bool]:
        """One prompt per pair; of two that look the same the first stands unasked."""
        shown = [self._pair(*pair) for pair in pairs]
        verdicts = iter(self._better([pair for pair in shown if pair.first != pair.second]))
        return [pair.first == pair.second or next(verdicts) for pair in shown]

    def _better(self, pairs: Sequence[Pair]) -> list[bool]:
        if self.reasons:
            return first_is_better(self.model, self.question, pairs)
        chosen = ModelChooser(self.model).choose([self._choice(pair) for pair in pairs])
        return [
            (one.kept[0] == 0) == bool(pair.first or not pair.second) for one, pair in zip(chosen, pairs, strict=True)
        ]

    def scores(self, shown: Sequence[Shown]) -> list[float]:
        """Five paths per prompt."""
        texts = _chains(shown)
        batches = [texts[start : start + SCORED_AT_ONCE] for start in range(0, len(texts), SCORED_AT_ONCE)]
        return [score for batch in rate_paths(self.model, self.question, batches) for score in batch]

    def _pair(self, first: Shown, second: Shown) -> Pair:
        shared = 0
        if self.diff and first.topic == second.topic:
            while shared < min(len(first.parts), len(second.parts)) and first.parts[shared] == second.parts[shared]:
                shared += 1
        if first.topic != second.topic:
            return Pair("(none)", first.text, second.text)
        given = " ".join((f"-> GIVEN_TOPIC_ENTITY: {first.topic}", *first.parts[:shared]))
        return Pair(given, " ".join(first.parts[shared:]), " ".join(second.parts[shared:]))

    def _choice(self, pair: Pair) -> Choice:
        if pair.first and pair.second:
            return Choice(self.question, (pair.first, pair.second), 1, "candidate", pair.given)
        options = (f"[RELEVANT] {pair.first or pair.second}", "[NOT RELEVANT] nothing more is needed")
        return Choice(self.question, options, 1, "judgement of the candidate", pair.given)


@dataclass(frozen=True)
class LikenessJudge:
    """Compares by how like the question each path is: consistent, so that a tournament only sorts."""

    scorer: Scorer
    question: str
    _known: dict[Shown, float] = field(default_factory=dict, repr=False)

    def keep_best(self, chunks: Sequence[Sequence[Shown]], counts: Sequence[int]) -> list[Sequence[int]]:
        """By score, ties in the given order."""
        scored = [self.scores(chunk) for chunk in chunks]
        return [best_places(values, count) for values, count in zip(scored, counts, strict=True)]

    def first_is_better(self, pairs: Sequence[tuple[Shown, Shown]]) -> list[bool]:
        """By score; the first wins a tie."""
        self.scores([one for pair in pairs for one in pair])
        return [self._known[first] >= self._known[second] for first, second in pairs]

    def scores(self, shown: Sequence[Shown]) -> list[float]:
        """Each path once."""
        new = [one for one in dict.fromkeys(shown) if one not in self._known]
        scored = self.scorer.score([Claim(self.question, one.text) for one in new])
        self._known.update((one, score.value or 0.0) for one, score in zip(new, scored, strict=True))
        return [self._known[one] for one in shown]


def select(shown: Sequence[Shown], judge: PathJudge, mode: Mode, keep: int, chunk: int) -> list[int]:
    """The positions of the best `keep`, best first."""
    places = range(len(shown))
    if len(shown) < 2:
        return list(places)
    if mode == "pairwise":
        return PairwiseTournament(keep).run(
            places, lambda pairs: judge.first_is_better([(shown[a], shown[b]) for a, b in pairs])
        )
    if mode == "chunked":
        return ChunkedTournament(keep, chunk).run(
            places, lambda chunks, counts: judge.keep_best([[shown[at] for at in one] for one in chunks], counts)
        )
    if mode == "none":
        return best_places(judge.scores(shown), keep)
    [kept] = judge.keep_best([shown], [min(keep, len(shown))])
    return list(kept)[:keep]


def best_places(values: Sequence[float], count: int) -> list[int]:
    """The positions of the highest values, ties in the given order."""
    return sorted(range(len(values)), key=lambda place: -values[place])[:count]


def _chains(shown: Sequence[Shown]) -> list[str]:
    """As the thesis writes them, without the topic where all share it."""
    return [one.chain for one in shown] if len({one.topic for one in shown}) == 1 else [one.text for one in shown]
