"""The exact answers of a problem: substitution, then what a fixpoint alone cannot decide.

Forbidden triplets   a variable that only forbidden triplets tie to the target stands for no node: its own group is
                     solved first, and what it would connect to is taken away.
Cycles               a fixpoint keeps nodes that satisfy the triplets only pair by pair; fixing one variable of each
                     cycle leaves a tree, for which it is exact.
Counts               are taken over all solutions, then the group is narrowed once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, combinations
from typing import Literal

import numpy as np

from clew.answering.queries.problem import Constraint, Domains, Filter, Problem, holds
from clew.answering.queries.substitution import bundle_pairs, narrow, numbers, supported
from clew.core.query import Count, TripletQuery
from clew.core.types import EMPTY, NodeSet
from clew.store.graph.protocol import KnowledgeBase


@dataclass(frozen=True)
class Solution:
    """The nodes of the target, the domains of the variables tied to it, and the variables that are not."""

    target: NodeSet | None
    """None where nothing is required of the target: every node of its type."""
    domains: Domains
    problem: Problem
    """The problem as solved, with forbidden triplets and counts turned into filters."""
    used: frozenset[str]
    """Variables that had a say; any other is tied to the target by no triplet and was ignored."""
    is_exact: bool = True
    """False where a cycle was left at its fixpoint, which may keep more nodes than satisfy the problem."""

    @property
    def is_empty(self) -> bool:
        """Whether no node satisfies the problem."""
        return self.target is not None and not len(self.target)


def solve(graph: KnowledgeBase, problem: Problem, *, exact: bool = True) -> Solution:
    """The nodes of the target that satisfy every constraint; `exact` False stops at the paper's fixpoint."""
    group = connected(problem, problem.target)
    rest = tuple(constraint for constraint in problem.constraints if group.isdisjoint(constraint.variables))
    filters = {name: problem.filters[name] for name in problem.filters.keys() & group}
    used, is_exact = group, exact or not cyclic(problem.bundles(group))
    for constraint in problem.constraints:
        ends = constraint.variables
        if not constraint.negated or group.isdisjoint(ends) or (len(ends) == 2 and group.issuperset(ends)):
            continue
        variable = ends[0] if ends[0] in group else ends[1]
        others = constraint.other(variable)
        if isinstance(others, str):
            inner = solve(graph, replace(problem, target=others, constraints=rest), exact=exact)
            used |= inner.used
            is_exact = is_exact and inner.is_exact
            others = graph.nodes(problem.types.get(others)) if inner.target is None else inner.target
        filters[variable] = (*filters.get(variable, ()), without(graph, constraint, variable, others))
    problem = replace(problem, filters=filters)
    counts = [count for count in problem.counts if group.issuperset((count.variable, count.of))]
    if counts:
        complete = _domains(graph, problem, group, exact, complete=True)
        kept = [(count.variable, _counted(graph, problem, group, complete, count)) for count in counts]
        problem = replace(problem, filters=_with_members(filters, kept))
    domains = _domains(graph, problem, group, exact)
    return Solution(domains.get(problem.target), domains, problem, used, is_exact)


def _with_members(
    filters: Mapping[str, tuple[Filter, ...]], members: Iterable[tuple[str, NodeSet]]
) -> dict[str, tuple[Filter, ...]]:
    extended = dict(filters)
    for variable, nodes in members:
        extended[variable] = (*extended.get(variable, ()), nodes.__and__)
    return extended


def connected(problem: Problem, root: str) -> frozenset[str]:
    """The variables that required triplets tie to the root, the root included."""
    group, frontier = {root}, {root}
    links = [c.variables for c in problem.constraints if len(c.variables) == 2 and not c.negated]
    while frontier:
        frontier = {end for ends in links if not frontier.isdisjoint(ends) for end in ends} - group
        group |= frontier
    return frozenset(group)


def without(graph: KnowledgeBase, constraint: Constraint, variable: str, others: NodeSet) -> Filter:
    """Keeps the nodes that have no edge of the constraint to any of the others."""

    def keep(nodes: NodeSet) -> NodeSet:
        if len(nodes) < len(others):
            return nodes - supported(graph, constraint, variable, nodes, others)
        return nodes - graph.neighbors(others, constraint.relation, constraint.toward(variable))

    return keep


def cyclic(pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The variables that remain when those with a single neighbour are taken away again and again."""
    left = set(pairs)
    while True:
        ends = list(chain.from_iterable(left))
        leaves = {pair for pair in left if ends.count(pair[0]) == 1 or ends.count(pair[1]) == 1}
        if not leaves:
            return frozenset(ends)
        left -= leaves


def depths(pairs: Iterable[tuple[str, str]], root: str) -> Mapping[str, int]:
    """How many triplets each variable is away from the root."""
    known, links = {root: 0}, list(pairs)
    while True:
        reached = {
            (second if first in known else first): min(known.get(first, 1 << 30), known.get(second, 1 << 30)) + 1
            for first, second in links
            if (first in known) != (second in known)
        }
        if not reached:
            return known
        known.update(reached)


def _domains(
    graph: KnowledgeBase, problem: Problem, group: frozenset[str], exact: bool, *, complete: bool = False
) -> Domains:
    bundles = problem.bundles(group)
    if not cyclic(bundles):
        return narrow(graph, problem, group, {}, None if complete else depths(bundles, problem.target))
    domains = narrow(graph, problem, group, {})
    return _conditioned(graph, problem, group, domains, frozenset()) if exact else domains


def _conditioned(
    graph: KnowledgeBase, problem: Problem, group: frozenset[str], domains: Domains, fixed: frozenset[str]
) -> Domains:
    """Fix the variable of a cycle that has the fewest nodes to each of them in turn, and unite what remains."""

    def spelled_out(variable: str) -> NodeSet:
        domain = domains.get(variable)
        return graph.nodes(problem.types.get(variable)) if domain is None else domain

    core = cyclic(pair for pair in problem.bundles(group) if fixed.isdisjoint(pair))
    if not core or any(not len(spelled_out(variable)) for variable in core):
        return domains
    chosen = min(core, key=lambda variable: (len(spelled_out(variable)), variable))
    parts = []
    for node in spelled_out(chosen):
        part = narrow(graph, problem, group, {**domains, chosen: NodeSet(np.array([node], dtype=np.int32))})
        parts.append(_conditioned(graph, problem, group, part, fixed | {chosen}))
    return {variable: _united([part.get(variable) for part in parts]) for variable in group}


def _united(parts: list[NodeSet | None]) -> NodeSet | None:
    known = [part for part in parts if part is not None]
    return reduce(NodeSet.__or__, known, EMPTY) if len(known) == len(parts) else None


def _counted(graph: KnowledgeBase, problem: Problem, group: frozenset[str], domains: Domains, count: Count) -> NodeSet:
    """The nodes of a variable for which the number of different nodes of another is right."""
    domain, others = domains.get(count.variable), domains.get(count.of)
    bundles = problem.bundles(group)
    first, second = sorted((count.variable, count.of))
    if domain is None or others is None:
        return EMPTY
    if (first, second) in bundles and not cyclic(bundles):
        found = bundle_pairs(graph, bundles[first, second], count.variable, domain, others)
        sizes = numbers(found, domain).tolist()
    else:
        sizes = [_number(graph, problem, group, {**domains, count.variable: NodeSet.of([n])}, count) for n in domain]
    right = [holds(size, count.comparison, count.value) for size in sizes]
    return NodeSet(domain.array[np.array(right, dtype=np.bool_)])


def _number(graph: KnowledgeBase, problem: Problem, group: frozenset[str], domains: Domains, count: Count) -> int:
    narrowed = _conditioned(graph, problem, group, narrow(graph, problem, group, domains), frozenset((count.variable,)))
    return len(narrowed[count.of] or ())


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


Solver = Callable[[Problem], Solution]


def solve_relaxed(solve: Solver, problem: Problem, steps: tuple[Step, ...]) -> Relaxed:
    """The problem itself where it has answers; else the fewest relaxed triplets, and among them the fewest answers.

    The choice does not depend on the order of triplets. Forbidden triplets are never relaxed: that would turn the
    question round. A target of which nothing is required any more counts as no answer.
    """
    solution = solve(problem)
    if not solution.is_empty:
        return Relaxed(solution)
    for step in steps:
        for together in _sizes(problem, step):
            found = []
            for chosen in combinations(_candidates(problem, step), together):
                relaxed = solve(_relaxed(problem, chosen, step))
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
