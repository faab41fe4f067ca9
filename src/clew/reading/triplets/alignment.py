"""Aligning a schema path with the words around a mention: each relation and type on the way takes a phrase or none.

Words are taken in the order in which one moves away from the mention: to the left and then right of it, or right
first. Along that order the phrases of a path never cross; a hop that no phrase speaks for costs the more the less it
goes without saying.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clew.reading.triplets.reading import RETURNS, Phrase, Reading
from clew.reading.triplets.schema_paths import Hop, SchemaPath, is_generic

Scores = NDArray[np.float32]


@dataclass(frozen=True)
class Weights:
    """What the parts of an alignment are worth; found on development questions of several bases."""

    least_relation: float = 0.4
    """A phrase speaks for a relation from this score on."""
    least_type: float = 0.4
    silent_relation: float = 0.5
    """Cost of a relation no phrase speaks for …"""
    share: float = 0.35
    """… less this much where all edges between the two types have it."""
    rare: float = 0.2
    """Cost of a relation that only a tenth of these edges have, where a phrase speaks for it."""
    silent_type: float = 0.3
    silent_target: float = 0.1
    unsaid: float = 0.4
    """Cost of a longer path of which no phrase says anything."""
    silent_return: float = 0.25
    """Cost of going back along the relation one came by …"""
    return_word: float = 0.3
    """… times this where a word such as "together" hints at it …"""
    unhinted_return: float = 0.6
    """… and so much more where none does, and again where no phrase names the type one comes back to."""
    least_return: float = 0.5
    """Without such a word a phrase speaks for going back from this score on."""
    longer: float = 0.1
    asked: float = 0.45
    """Worth of a match with what the question asks for …"""
    unasked: float = 0.4
    """… and cost of an end that has nothing to do with it …"""
    wrong: float = 0.5
    """… and so much more if the end has a type of its own."""
    unusual: float = 0.3
    """Cost of a type to which only a tenth of the relation's edges lead."""
    both: float = 0.25
    """Part of the lesser score that counts where one phrase names relation and type."""
    again: float = 0.5
    """Part of the score that counts where a phrase repeats what another has said."""
    beside: float = 0.7
    """From this score on a phrase right beside a mention names its type."""
    across: float = 0.25
    """Cost of a relation's phrase for each other name between it and the mention."""
    far: float = 0.03
    """Cost of each word between a mention and the type it is silently connected with …"""
    most_far: float = 0.35
    """… but no more than this."""
    distance: float = 0.01
    """Cost of each word between a phrase and the phrase or mention before it."""


@dataclass(frozen=True)
class Matches:
    """How well each phrase of a question matches each relation and each type of a schema."""

    relations: Scores
    types: Scores
    relation_code: dict[str, int]
    type_code: dict[str, int]


@dataclass(frozen=True, slots=True)
class Alignment:
    """A path with the phrase that speaks for each relation and for each type it reaches, None where none does."""

    path: SchemaPath
    score: float
    relations: tuple[Phrase | None, ...] = ()
    types: tuple[Phrase | None, ...] = ()
    again: tuple[Phrase, ...] = ()
    """Further phrases that say the same."""
    asked: float = 0.0
    """The part of the score that comes from naming what is asked for: other paths to it gain the same."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A phrase in the order in which words are taken: from `begin` to `end`."""

    begin: int
    end: int
    phrase: Phrase
    asked: bool
    across: int
    """Other names between it and the mention."""


@dataclass(frozen=True, slots=True)
class _State:
    """The best way to explain the hops so far that has taken words up to `end`."""

    end: int
    score: float
    relations: tuple[Phrase | None, ...]
    types: tuple[Phrase | None, ...]


class Aligner:
    """Aligns paths with the words around the mentions of one question."""

    def __init__(self, reading: Reading, matches: Matches, weights: Weights) -> None:
        self.reading, self.matches, self.weights = reading, matches, weights
        self.asks = any(reading.is_head(phrase) for phrase in reading.phrases)
        self.returns = any(word.text in RETURNS for word in reading.words)
        self._best_relations: list[float] = matches.relations.max(axis=0, initial=0.0).tolist()
        self._best_types: list[float] = matches.types.max(axis=0, initial=0.0).tolist()
        self._places: dict[tuple[int, int], tuple[list[_Place], ...]] = {}

    def judge(self, hop: Hop) -> float:
        """How good a hop looks when words may be taken in any order."""
        relation = self._best_relations[self.matches.relation_code[hop.relation]]
        kind = self._best_types[self.matches.type_code[hop.type]]
        spoken = relation if relation >= self.weights.least_relation else -self._silent(hop)
        known = kind if kind >= self.weights.least_type else 0.0 if is_generic(hop.type) else -0.2
        return spoken + known - self.weights.longer - self._unusual(hop)

    def align(self, path: SchemaPath, mention: tuple[int, int]) -> Alignment:
        """The best alignment of a path with the words around a mention."""
        beside = self.beside(mention, path.start)
        orders = self._orders(mention)
        if beside:
            orders = tuple([p for p in order if not _overlap(p.phrase, beside)] for order in orders)
        best = max((self._follow(path, order) for order in orders), key=lambda state: state.score)
        cost = self.weights.longer * (len(path.hops) - 1) + sum(map(self._unusual, path.hops))
        if len(path.hops) > 1 and not any((*best.relations, *best.types[:-1])):
            cost += self.weights.unsaid
        again, gain = self._said_again(path, best, beside)
        return Alignment(path, best.score - cost + gain, best.relations, best.types, again, self._asked(path, best))

    def _asked(self, path: SchemaPath, best: _State) -> float:
        target = best.types[-1]
        if target is None or not self.reading.is_head(target) or best.relations[-1] == target:
            return 0.0
        score = float(self.matches.types[self._row[target], self.matches.type_code[path.end]])
        return score * (1.0 + self.weights.asked)

    def _said_again(self, path: SchemaPath, best: _State, beside: Sequence[Phrase]) -> tuple[tuple[Phrase, ...], float]:
        """Further phrases for relations of the path, as in "the director that directed X"."""
        used = [phrase for phrase in (*best.relations, *best.types, *beside) if phrase is not None]
        columns = [self.matches.relation_code[hop.relation] for hop in path.hops]
        found, gain = [], 0.0
        for row, phrase in enumerate(self.reading.phrases):
            score = float(self.matches.relations[row, columns].max())
            if score >= self.weights.least_return and not _overlap(phrase, used):
                found.append(phrase)
                used.append(phrase)
                gain += self.weights.again * score
        return tuple(found), gain

    def beside(self, mention: tuple[int, int], kind: str) -> tuple[Phrase, ...]:
        """Phrases right beside a mention that name its type, as in "the film X" or "the X gene"."""
        column = self.matches.types[:, self.matches.type_code[kind]]
        near = [
            (score, phrase)
            for phrase, score in zip(self.reading.phrases, column.tolist(), strict=True)
            if score >= self.weights.beside and (phrase.last == mention[0] or phrase.first == mention[1])
        ]
        best = max((score for score, _ in near), default=0.0)
        return tuple(phrase for score, phrase in near if score == best)

    def _orders(self, mention: tuple[int, int]) -> tuple[list[_Place], ...]:
        known = self._places.get(mention)
        if known is None:
            first, last = mention
            count, right = len(self.reading.words), len(self.reading.words) - last
            left_first, right_first = [], []
            for phrase in self.reading.phrases:
                rest = phrase, self.reading.is_head(phrase), self.reading.names_between(phrase, mention)
                if phrase.last <= first:
                    left_first.append(_Place(first - phrase.last, first - phrase.first, *rest))
                    begin = right + first - phrase.last
                    right_first.append(_Place(begin, begin + phrase.last - phrase.first, *rest))
                elif phrase.first >= last:
                    begin = phrase.first - last
                    left_first.append(_Place(first + begin, first + phrase.last - last, *rest))
                    right_first.append(_Place(begin, phrase.last - last, *rest))
            owned = last < count and self.reading.words[last].text == "s"
            known = (right_first,) if owned else (left_first, right_first)
            self._places[mention] = known
        return known

    def _follow(self, path: SchemaPath, places: Sequence[_Place]) -> _State:
        states = [_State(0, 0.0, (), ())]
        for number, hop in enumerate(path.hops):
            final = number == len(path.hops) - 1
            back = number > 0 and _returns(path.hops[number - 1], hop)
            states = _best([new for state in states for new in self._hop(state, hop, places, final, back)])
        return max(states, key=lambda state: state.score)

    def _hop(self, state: _State, hop: Hop, places: Sequence[_Place], final: bool, back: bool) -> list[_State]:
        """Every way to explain one more hop."""
        weights, found = self.weights, []
        no_relation, least_relation = self._silent(hop), weights.least_relation
        unhinted = back and not self.returns
        if back:
            no_relation = weights.silent_return * (weights.return_word if self.returns else 1.0)
            if unhinted:
                least_relation = weights.least_return
                no_relation += weights.unhinted_return
        no_type = 0.0 if is_generic(hop.type) else weights.silent_target if final else weights.silent_type
        no_type += weights.unhinted_return if unhinted else 0.0
        relations = [(place, self._relation(hop, place, final)) for place in places if place.begin >= state.end]
        spoken = [(place, score - self._rare(hop)) for place, score in relations if score >= least_relation]
        types = [(place, self._type(hop, place, final)) for place in places if place.begin >= state.end]
        named = [(place, score) for place, score in types if score >= weights.least_type]
        found.append(self._next(state, hop, None, None, -no_relation - no_type, final))
        for place, score in spoken:
            found.append(self._next(state, hop, place, None, score - no_type, final))
            for other, more in named:
                if other.begin >= place.end:
                    found.append(self._next(state, hop, place, other, score + more, final))
        for place, score in named:
            found.append(self._next(state, hop, None, place, score - no_relation, final))
            same = self._relation(hop, place, final)
            if same >= least_relation and not unhinted:
                both = max(score, same) + weights.both * min(score, same)
                found.append(self._next(state, hop, place, place, both, final))
        return found

    def _next(
        self, state: _State, hop: Hop, relation: _Place | None, kind: _Place | None, gain: float, final: bool
    ) -> _State:
        end, walked = state.end, 0
        if relation is None and kind is not None:
            gain -= min(self.weights.far * max(0, kind.begin - end), self.weights.most_far)
        if final and self.asks and not any(place is not None and place.asked for place in (relation, kind)):
            gain -= self.weights.unasked + (0.0 if is_generic(hop.type) else self.weights.wrong)
        for place in dict.fromkeys((relation, kind)):
            if place is not None:
                walked += max(0, place.begin - end)
                end = max(end, place.end)
        return _State(
            end,
            state.score + gain - self.weights.distance * walked,
            (*state.relations, relation.phrase if relation else None),
            (*state.types, kind.phrase if kind else None),
        )

    def _relation(self, hop: Hop, place: _Place, final: bool) -> float:
        score = self._score(self.matches.relations, self.matches.relation_code[hop.relation], place, final)
        if place.asked and final and hop.forward == hop.relation.endswith("of"):
            return score * 0.2  # a director is what directed_by leads to, not where it comes from
        return score if place.asked else score - self.weights.across * place.across

    def _type(self, hop: Hop, place: _Place, final: bool) -> float:
        if is_generic(hop.type):
            return 0.0
        return self._score(self.matches.types, self.matches.type_code[hop.type], place, final)

    def _score(self, scores: Scores, column: int, place: _Place, final: bool) -> float:
        score = float(scores[self._row[place.phrase], column])
        if place.asked:  # what is asked for is the end of the path and nothing before it
            return score * (1.0 + self.weights.asked) if final else score * 0.5
        return score

    @cached_property
    def _row(self) -> dict[Phrase, int]:
        return {phrase: row for row, phrase in enumerate(self.reading.phrases)}

    def _unusual(self, hop: Hop) -> float:
        return -self.weights.unusual * math.log10(max(hop.usual, 1e-6))

    def _rare(self, hop: Hop) -> float:
        """Among relations that a phrase names about equally well the more usual one is meant."""
        return -self.weights.rare * math.log10(max(hop.share, 1e-3)) if hop.share else 0.0

    def _silent(self, hop: Hop) -> float:
        return self.weights.silent_relation - self.weights.share * hop.share


def _overlap(phrase: Phrase, others: Sequence[Phrase]) -> bool:
    return any(phrase.first < other.last and other.first < phrase.last for other in others)


def _returns(before: Hop, hop: Hop) -> bool:
    return before.relation == hop.relation and before.forward != hop.forward


def _best(states: list[_State]) -> list[_State]:
    """States that no other beats with fewer words taken."""
    kept: list[_State] = []
    for state in sorted(states, key=lambda state: (state.end, -state.score)):
        if not kept or state.score > kept[-1].score:
            kept.append(state)
    return kept
