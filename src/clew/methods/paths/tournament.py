"""Tournaments: keep the best few of many by comparing only a few at a time (Tournament on Path, section 3.3).

Both take the judge as a callable over a batch of independent matches, so that a model may be asked about a whole round
at once, and so that the algorithms can be tested without one. A judge need not be consistent: a > b > c > a is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

KeepBest = Callable[[Sequence[Sequence[T]], Sequence[int]], Sequence[Sequence[int]]]
"""Chunks and how many to keep of each → for every chunk the positions kept, best first."""
FirstIsBetter = Callable[[Sequence[tuple[T, T]]], Sequence[bool]]
"""Pairs → for every pair whether its first is the better one."""


@dataclass(frozen=True)
class ChunkedTournament:
    """Chunks of `chunk` candidates; the better half of each goes on, until one chunk is left."""

    k: int = 3
    chunk: int = 4

    def __post_init__(self) -> None:
        if self.k < 1 or self.chunk < 2:
            raise ValueError(f"a tournament keeps at least 1 of chunks of at least 2, not {self.k} of {self.chunk}")

    def run(self, candidates: Sequence[T], keep_best: KeepBest[T]) -> list[T]:
        """The k best, best first.

        The thesis leaves two cases open: an odd chunk keeps its larger half, and a round that would leave fewer than
        k is not played: all who are left meet in the final.
        """
        left = list(candidates)
        while len(left) > self.chunk:
            chunks = [left[start : start + self.chunk] for start in range(0, len(left), self.chunk)]
            wanted = [(len(chunk) + 1) // 2 for chunk in chunks]
            if sum(wanted) < self.k:
                break
            playing = [place for place, chunk in enumerate(chunks) if len(chunk) > wanted[place]]
            verdicts = keep_best([chunks[place] for place in playing], [wanted[place] for place in playing])
            kept = [list(range(len(chunk))) for chunk in chunks]
            for place, verdict in zip(playing, verdicts, strict=True):
                kept[place] = _valid(verdict, wanted[place], len(chunks[place]))
            left = [chunk[place] for chunk, places in zip(chunks, kept, strict=True) for place in places]
        if len(left) < 2:
            return left
        wanted_last = min(self.k, len(left))
        verdict = keep_best([left], [wanted_last])[0]
        return [left[place] for place in _valid(verdict, wanted_last, len(left))]


@dataclass(frozen=True)
class PairwiseTournament:
    """Merge sort whose merges stop once k are out: the rest can never be among the k best."""

    k: int = 3

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ValueError(f"a tournament keeps at least 1, not {self.k}")

    def run(self, candidates: Sequence[T], first_is_better: FirstIsBetter[T]) -> list[T]:
        """The k best, best first; all merges of a level advance together, one comparison of each per batch."""
        runs = [[candidate] for candidate in candidates]
        while len(runs) > 1:
            merges = [self._merge(runs[place], runs[place + 1]) for place in range(0, len(runs) - 1, 2)]
            merged = _in_lockstep(merges, first_is_better)
            runs = merged + runs[len(merges) * 2 :]
        return runs[0] if runs else []

    def _merge(self, left: Sequence[T], right: Sequence[T]) -> Generator[tuple[T, T], bool, list[T]]:
        merged: list[T] = []
        i = j = 0
        while len(merged) < self.k and i < len(left) and j < len(right):
            if (yield left[i], right[j]):
                merged.append(left[i])
                i += 1
            else:
                merged.append(right[j])
                j += 1
        return (merged + list(left[i:]) + list(right[j:]))[: self.k]


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


def _valid(verdict: Sequence[int], wanted: int, size: int) -> list[int]:
    """The first `wanted` distinct positions that exist; where the judge named too few, the earlier order fills up."""
    named = [place for place in dict.fromkeys(verdict) if 0 <= place < size]
    return [*named, *(place for place in range(size) if place not in set(named))][:wanted]
