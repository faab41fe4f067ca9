"""Tournaments: keep the best few of many by comparing only a few at a time (Tournament on Path, section 3.3).

`chunked` and `pairwise` take the judge as a callable over a batch of independent matches, so that a model may be asked
about a whole round at once, and so that they can be tested without one. A judge need not be consistent: a > b > c > a
is allowed. It is a model that is shown paths, or likeness to the question where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from clew.core.errors import InputError
from clew.core.roles import Choice, Claim, Scorer
from clew.methods.paths.asking import Pair, first_is_better, pick_chains, rate_paths
from clew.models.protocol import LanguageModel
from clew.roles.choose import ModelChooser

T = TypeVar("T")

KeepBest = Callable[[Sequence[Sequence[T]], Sequence[int]], Sequence[Sequence[int]]]
"""Chunks and how many to keep of each → for every chunk the positions kept, best first."""
FirstIsBetter = Callable[[Sequence[tuple[T, T]]], Sequence[bool]]
"""Pairs → for every pair whether its first is the better one."""


def chunked(candidates: Sequence[T], keep_best: KeepBest[T], k: int = 3, size: int = 4) -> list[T]:
    """The k best, best first: of chunks of `size` the better half goes on, until one chunk is left.

    The thesis leaves two cases open: an odd chunk keeps its larger half, and a round that would leave fewer than k is
    not played: all who are left meet in the final.
    """
    left = list(candidates)
    while len(left) > size:
        chunks = [left[start : start + size] for start in range(0, len(left), size)]
        wanted = [(len(chunk) + 1) // 2 for chunk in chunks]
        if sum(wanted) < k:
            break
        playing = [number for number, chunk in enumerate(chunks) if len(chunk) > wanted[number]]
        verdicts = keep_best([chunks[number] for number in playing], [wanted[number] for number in playing])
        kept = [list(range(len(chunk))) for chunk in chunks]
        for number, verdict in zip(playing, verdicts, strict=True):
            kept[number] = _valid(verdict, wanted[number], len(chunks[number]))
        left = [chunk[place] for chunk, places in zip(chunks, kept, strict=True) for place in places]
    if len(left) < 2:
        return left
    wanted_last = min(k, len(left))
    [verdict] = keep_best([left], [wanted_last])
    return [left[place] for place in _valid(verdict, wanted_last, len(left))]


def _valid(verdict: Sequence[int], wanted: int, size: int) -> list[int]:
    """The first `wanted` distinct positions that exist; where the judge named too few, the earlier order fills up."""
    named = [place for place in dict.fromkeys(verdict) if 0 <= place < size]
    return [*named, *(place for place in range(size) if place not in set(named))][:wanted]


def pairwise(candidates: Sequence[T], first_is_better: FirstIsBetter[T], k: int = 3) -> list[T]:
    """The k best, best first: merge sort whose merges stop once k are out, as the rest can never be among them.

    All merges of a level advance together, one comparison of each per batch.
    """
    runs = [[candidate] for candidate in candidates]
    while len(runs) > 1:
        merges = [_merge(runs[number], runs[number + 1], k) for number in range(0, len(runs) - 1, 2)]
        runs = _in_lockstep(merges, first_is_better) + runs[len(merges) * 2 :]
    return runs[0] if runs else []


def _merge(left: Sequence[T], right: Sequence[T], k: int) -> Generator[tuple[T, T], bool, list[T]]:
    merged: list[T] = []
    i = j = 0
    while len(merged) < k and i < len(left) and j < len(right):
        if (yield left[i], right[j]):
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return (merged + list(left[i:]) + list(right[j:]))[:k]


def _in_lockstep(
    merges: Sequence[Generator[tuple[T, T], bool, list[T]]], first_is_better: FirstIsBetter[T]
) -> list[list[T]]:
    results: list[list[T]] = [[] for _ in merges]
    waiting: dict[int, tuple[T, T]] = {}
    replies: dict[int, bool | None] = dict.fromkeys(range(len(merges)))
    while replies:
        for place, reply in replies.items():
            try:
                waiting[place] = merges[place].send(reply) if reply is not None else next(merges[place])
            except StopIteration as finished:
                results[place] = finished.value
        verdicts = first_is_better(list(waiting.values())) if waiting else []
        replies = dict(zip(waiting, verdicts, strict=True))
        waiting = {}
    return results


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


PathJudge = ModelJudge | LikenessJudge


def select(shown: Sequence[Shown], judge: PathJudge, mode: Mode, keep: int, size: int) -> list[int]:
    """The positions of the best `keep`, best first; `size` is that of chunks."""
    if keep < 1 or size < 2:
        raise InputError(f"a tournament keeps at least 1 (width) of chunks of at least 2 (chunk), not {keep} of {size}")
    places = range(len(shown))
    if len(shown) < 2:
        return list(places)
    if mode == "pairwise":
        return pairwise(places, lambda pairs: judge.first_is_better([(shown[a], shown[b]) for a, b in pairs]), keep)
    if mode == "chunked":
        return chunked(
            places,
            lambda chunks, counts: judge.keep_best([[shown[place] for place in chunk] for chunk in chunks], counts),
            keep,
            size,
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
