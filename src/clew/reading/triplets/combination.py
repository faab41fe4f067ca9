"""Combining the branches of all mentions: which of them to take together, and which mentions to leave to the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.reading.triplets.alignment import Matches, Weights
from clew.reading.triplets.assembly import Branch
from clew.reading.triplets.mentions import Named
from clew.reading.triplets.reading import Phrase, Reading

SAME_PATH = 0.4
"""Worth of two mentions side by side being connected in the same way."""
COVERED = 0.8
"""Worth of explaining every word of the question."""
DESCRIBES = 0.3
"""Most that it costs to leave out a name in small letters of the asked-for type: it may describe or be the answer."""
REUSED = 0.8
"""Cost of a phrase that is taken for two different triplets."""
MOST_BRANCHES = 5
MOST_COMBINATIONS = 30


@dataclass(frozen=True)
class Combination:
    """One way to connect mentions with a target of one type."""

    target: str | None
    branches: tuple[Branch, ...]
    spans: tuple[tuple[int, int], ...]
    """The mention of each branch."""
    score: float
    left_out: tuple[Named, ...] = ()
    asked: Phrase | None = None
    """The phrase that names the target's type, where no branch has taken it."""

    def covered(self) -> set[int]:
        """Places of the words that its branches and the asked-for type explain."""
        found = {place for branch in self.branches for place in branch.covered()}
        return found | (set(range(self.asked.first, self.asked.last)) if self.asked else set())


def combine(
    reading: Reading,
    matches: Matches,
    names: Sequence[Named],
    branches: Sequence[Sequence[Branch]],
    ends: frozenset[str],
    weights: Weights,
) -> list[Combination]:
    """The best combinations over all target types, best first."""
    found: list[Combination] = []
    for target in sorted(ends):
        phrase, worth = _asked(reading, matches, target)
        grown = [Combination(target, (), (), 0.0)]
        for name, own in zip(names, branches, strict=True):
            fitting = sorted(
                (branch for branch in own if branch.alignment.path.end == target),
                key=lambda branch: -branch.alignment.score,
            )[:MOST_BRANCHES]
            grown = [new for one in grown for new in _extended(reading, one, name, fitting)]
            grown = sorted(grown, key=lambda one: -one.score)[:MOST_COMBINATIONS]
        for one in grown:
            asked = [branch.alignment.asked for branch in one.branches if branch.alignment.types[-1]]
            if asked:
                one = replace(one, score=one.score + max(asked))
            elif worth:
                one = replace(one, score=one.score + worth * (1 + weights.asked), asked=phrase)
            found.append(replace(one, score=one.score + COVERED * _coverage(reading, matches, one)))
    return sorted(found, key=lambda one: -one.score)[:MOST_COMBINATIONS]


def _extended(reading: Reading, one: Combination, name: Named, fitting: Sequence[Branch]) -> list[Combination]:
    """The combination with each branch of one more mention, and without that mention."""
    may_describe = one.target in name.nodes and not name.is_written_as_name
    cost = min(name.weight, DESCRIBES) if may_describe else name.weight
    without = replace(one, score=one.score - cost, left_out=(*one.left_out, name))
    before = one.spans[-1] if one.spans else None
    joined = before is not None and reading.joined(before, name.span)
    parallel = before is not None and reading.parallel(before, name.span)
    found = [without]
    for branch in fitting:
        score = (
            one.score
            + branch.alignment.score
            - branch.alignment.asked
            - REUSED * sum(_reused(branch, other) for other in one.branches)
        )
        if parallel and one.branches[-1].alignment.path == branch.alignment.path:
            score += SAME_PATH
        if joined and branch.negated is None:  # "without A or B"
            branch = replace(branch, negated=one.branches[-1].negated)
        found.append(replace(one, branches=(*one.branches, branch), spans=(*one.spans, name.span), score=score))
    return found


def _reused(branch: Branch, other: Branch) -> int:
    """How many phrases speak for a triplet of each of two branches that is not the same triplet."""
    mine, theirs = branch.alignment, other.alignment
    count = 0
    for number, phrase in enumerate(mine.relations):
        for place, taken in enumerate(theirs.relations):
            if phrase is not None and phrase == taken:
                steps = mine.path.hops[number:] == theirs.path.hops[place:]  # the same way from the target
                count += not (steps and (number > 0) == (place > 0))
    return count


def _asked(reading: Reading, matches: Matches, target: str) -> tuple[Phrase | None, float]:
    """The phrase that best names a target type among what is asked for."""
    best: tuple[Phrase | None, float] = (None, 0.0)
    for row, phrase in enumerate(reading.phrases):
        score = float(matches.types[row, matches.type_code[target]]) * (1.0 if reading.is_head(phrase) else 0.5)
        if reading.is_asked(phrase) and score >= 0.4 and score > best[1]:
            best = phrase, score
    return best


def _coverage(reading: Reading, matches: Matches, one: Combination) -> float:
    """The part of the words of content that is explained; the type of a named node beside its name counts too."""
    if not reading.content:
        return 0.0
    covered = one.covered()
    for branch, span in zip(one.branches, one.spans, strict=True):
        code = matches.type_code[branch.alignment.path.start]
        for row, phrase in enumerate(reading.phrases):
            beside = phrase.last == span[0] or phrase.first == span[1]
            if beside and matches.types[row, code] >= 0.8:
                covered |= set(range(phrase.first, phrase.last))
    return len(covered & reading.content) / len(reading.content)
