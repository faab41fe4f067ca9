"""Words of a question aligned with the hops of a path: outwards from the topic, each chunk for one hop at most.

A monotone dynamic programme over the chunks in reading order. All hops that may follow a path are scored together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.reading.paths.question_reading import QuestionReading
from clew.reading.paths.relation_lexicon import Floats

Doubles = NDArray[np.float64]
UNALIGNED = 0.4
"""What a hop without a word costs."""
COVERED = 0.8
"""What it is worth to explain all words of the question."""
LINKED = 0.3
"""What it is worth to explain a chunk that is linked to the topic."""
SURE = 0.35
"""Strength from which a word counts as explained."""
EXCUSED = 0.4
"""The strength of a hop that only the name of the type behind it speaks of."""
STRENGTH, LINKS, BARE, SQUARES, WEAKEST = range(5)
"""What is remembered of the best alignment."""


@dataclass(frozen=True, slots=True)
class State:
    """For each order of reading: the best score up to each chunk, and what its alignment consists of."""

    scores: tuple[Doubles, ...]
    found: tuple[Doubles, ...]


class Alignment:
    """The words of one question against the relations of a base."""

    def __init__(self, reading: QuestionReading, strength: Floats) -> None:
        """`strength` has a row per span of the reading and a column per relation."""
        self.reading = reading
        self.strength = strength.astype(np.float64)
        content = {place: row for row, place in enumerate(reading.words)}
        sure = np.clip(self.strength / SURE, 0.0, 1.0)
        inside = [
            [content[span.side, place] for place in range(span.start, span.end) if (span.side, place) in content]
            for span in reading.spans
        ]
        covered = np.array([len(rows) for rows in inside], dtype=np.float64) / max(len(content), 1)
        self._linked = np.array([span.linked for span in reading.spans], dtype=np.float64)
        self._gain = self.strength + COVERED * covered[:, None] * sure + LINKED * self._linked[:, None]
        self._explained = np.zeros((len(content), strength.shape[1]))
        for row, rows in enumerate(inside):
            self._explained[rows] = np.maximum(self._explained[rows], sure[row])
        self._shares: dict[frozenset[int], float] = {}
        self._begins = [np.array(order.begins, dtype=np.int64) for order in reading.orders]
        self._by_end = [_by_end(order.ends) for order in reading.orders]
        self.best = self.strength.max(axis=0) if len(reading.spans) else np.zeros(strength.shape[1])
        """How well any words match each relation."""

    def start(self) -> State:
        """Before the first hop."""
        nothing = np.zeros((self.reading.chunks + 1, 5))
        nothing[:, WEAKEST] = 1.0
        return State(
            tuple(np.zeros(self.reading.chunks + 1) for _ in self.reading.orders),
            tuple(nothing for _ in self.reading.orders),
        )

    def extend(
        self, state: State, hops: Sequence[Sequence[int]], free: Doubles, excused: NDArray[np.bool_]
    ) -> list[tuple[float, Doubles, State]]:
        """For each hop, given by relation codes: score, what the best alignment consists of, and how to go on.

        `free` is what a hop costs that no word speaks of; it is `excused` where the question names the type behind it.
        """
        longest = max(map(len, hops))
        codes = np.array([[*hop, *[hop[-1]] * (longest - len(hop))] for hop in hops])
        rows = np.arange(len(self.reading.spans))[:, None]
        if len(rows):
            chosen = np.take_along_axis(
                np.broadcast_to(codes, (len(rows), *codes.shape)), self.strength[:, codes].argmax(axis=2)[:, :, None], 2
            )[:, :, 0]
            gain, strength = self._gain[rows, chosen], self.strength[rows, chosen]
        else:
            gain = strength = np.zeros((0, len(hops)))
        orders = [
            self._extended(order, state.scores[order], state.found[order], gain, strength, free, excused)
            for order in range(len(self.reading.orders))
        ]
        finals = np.stack([scores[-1] for scores, _ in orders])
        winners = finals.argmax(axis=0)
        return [
            (
                float(finals[winners[hop], hop]),
                orders[winners[hop]][1][-1, hop],
                State(tuple(scores[:, hop] for scores, _ in orders), tuple(found[:, hop] for _, found in orders)),
            )
            for hop in range(len(hops))
        ]

    def _extended(
        self,
        order: int,
        scores: Doubles,
        found: Doubles,
        gain: Doubles,
        strength: Doubles,
        free: Doubles,
        excused: NDArray[np.bool_],
    ) -> tuple[Doubles, Doubles]:
        count = gain.shape[1]
        grown = scores[:, None] - free[None, :]
        kept = np.repeat(found[:, None, :], count, axis=1)
        kept[:, :, BARE] += ~excused
        kept[:, :, WEAKEST] = np.minimum(kept[:, :, WEAKEST], np.where(excused, EXCUSED, 0.0))
        begins = self._begins[order]
        columns = np.arange(count)
        for end, spans in self._by_end[order]:
            values = scores[begins[spans]][:, None] + gain[spans]
            best = values.argmax(axis=0)
            better = np.flatnonzero(values[best, columns] > grown[end])
            if len(better):
                used = spans[best[better]]
                grown[end, better] = values[best[better], better]
                after = found[begins[used]].copy()
                power = strength[used, better]
                after[:, STRENGTH] += power
                after[:, LINKS] += self._linked[used]
                after[:, SQUARES] += power * power
                after[:, WEAKEST] = np.minimum(after[:, WEAKEST], power)
                kept[end, better] = after
        for place in range(1, len(grown)):
            behind = grown[place - 1] > grown[place]
            grown[place, behind] = grown[place - 1, behind]
            kept[place, behind] = kept[place - 1, behind]
        return grown, kept

    def explained(self, codes: Sequence[int]) -> float:
        """The share of the question's words that these relations explain, in whatever order."""
        if not len(self._explained):
            return 1.0
        distinct = frozenset(codes)
        if distinct not in self._shares:
            self._shares[distinct] = float(self._explained[:, sorted(distinct)].max(axis=1).mean())
        return self._shares[distinct]


def _by_end(ends: Sequence[int]) -> list[tuple[int, NDArray[np.int64]]]:
    places = np.array(ends, dtype=np.int64)
    return [(end, np.flatnonzero(places == end)) for end in sorted(set(ends))]
