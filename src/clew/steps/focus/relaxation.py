"""Relaxation: where a problem has no answer, ask for a little less, and say what was given up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from clew.core.query import TripletQuery
from clew.steps.focus.constraints import Constraint, Graph, Problem
from clew.steps.focus.solutions import Solution, solve

Step = Literal["loosen", "drop"]
MOST_TOGETHER = 2
"""So many triplets are relaxed together before all are."""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A triplet of which less was asked: any relation in either direction, or nothing at all."""

    triplet: int
    step: Step

    def in_words(self, query: TripletQuery) -> str:
        """What was given up."""
        triplet = query.triplets[self.triplet]
        shown = str(replace(query, triplets=(triplet,), conditions=(), counts=())).partition(" where ")[2]
        return f"{shown}: " + ("any relation will do" if self.step == "loosen" else "left out")


@dataclass(frozen=True)
class Relaxed:
    """A solution and what was given up for it."""

    solution: Solution
    relaxations: tuple[Relaxation, ...] = ()


def solve_relaxed(graph: Graph, problem: Problem, steps: tuple[Step, ...], *, exact: bool = True) -> Relaxed:
    """The problem itself where it has answers; else the fewest relaxed triplets, and among them the fewest answers.

    The choice does not depend on the order of triplets. Forbidden triplets are never relaxed: that would turn the
    question round. A target of which nothing is required any more counts as no answer.
    """
    solution = solve(graph, problem, exact=exact)
    if not solution.is_empty:
        return Relaxed(solution)
    for step in steps:
        for together in _sizes(problem, step):
            found = []
            for chosen in combinations(_candidates(problem, step), together):
                relaxed = solve(graph, _relaxed(problem, chosen, step), exact=exact)
                if relaxed.target is not None and len(relaxed.target):
                    found.append((len(relaxed.target), _sorted_text(chosen), relaxed, chosen))
            if found:
                _, _, best, chosen = min(found, key=lambda entry: entry[:2])
                return Relaxed(best, tuple(Relaxation(constraint.triplet, step) for constraint in chosen))
    return Relaxed(solution)


def _candidates(problem: Problem, step: Step) -> list[Constraint]:
    return [
        constraint
        for constraint in problem.constraints
        if not constraint.negated and (step == "drop" or constraint.relation is not None)
    ]


def _sizes(problem: Problem, step: Step) -> Iterator[int]:
    count = len(_candidates(problem, step))
    yield from range(1, min(count, MOST_TOGETHER) + 1)
    if count > MOST_TOGETHER and step == "loosen":
        yield count


def _relaxed(problem: Problem, chosen: tuple[Constraint, ...], step: Step) -> Problem:
    kept = [
        replace(constraint, relation=None, any_direction=True) if constraint in chosen else constraint
        for constraint in problem.constraints
        if step == "loosen" or constraint not in chosen
    ]
    return replace(problem, constraints=tuple(kept))


def _sorted_text(chosen: tuple[Constraint, ...]) -> list[str]:
    return sorted(f"{constraint.head} {constraint.relation} {constraint.tail}" for constraint in chosen)
