"""A query as nested blocks: what must hold, and inside it what must not, as formal query languages write it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from clew.core.query import Condition, Constant, Count, TripletQuery
from clew.kb.schema import Schema
from clew.steps.focus.constraints import Constraint, Problem
from clew.steps.focus.grounding import Expansion, Groundings, expansions
from clew.steps.focus.solutions import connected


@dataclass(frozen=True)
class Named:
    """A constant: the nodes it names and the hierarchies along which it stands for more."""

    nodes: tuple[int, ...]
    expansions: tuple[Expansion, ...]


@dataclass(frozen=True)
class Requirement:
    """An edge between two ends, each a variable's name or a constant; `relation` None means any."""

    head: str | Named
    relation: str | None
    tail: str | Named
    any_direction: bool


@dataclass(frozen=True)
class Absence:
    """An edge that must not be there, and what else would have to hold of its far end."""

    edge: Requirement
    inner: Block | None


@dataclass(frozen=True)
class Block:
    """Typed variables, edges that must be there, what must not, conditions and counts."""

    types: Mapping[str, str | None]
    required: tuple[Requirement, ...]
    absences: tuple[Absence, ...]
    conditions: tuple[Condition, ...]
    counts: tuple[Count, ...]


def as_block(
    query: TripletQuery, problem: Problem, groundings: Groundings, schema: Schema, *, hierarchical: bool
) -> Block:
    """A query as it was solved: relaxed triplets appear as they were relaxed, ignored ones not at all."""

    def requirement(constraint: Constraint) -> Requirement:
        triplet = query.triplets[constraint.triplet]
        widen = hierarchical or triplet.negated

        def end(term: object, position: object) -> str | Named:
            if isinstance(position, str):
                return position
            assert isinstance(term, Constant)
            nodes = tuple(groundings[term].nodes)
            return Named(nodes, expansions(triplet, term, schema) if widen else ())

        head, tail = end(triplet.head, constraint.head), end(triplet.tail, constraint.tail)
        return Requirement(head, constraint.relation, tail, constraint.any_direction)

    def block(problem: Problem) -> Block:
        group = connected(problem, problem.target)
        rest = tuple(c for c in problem.constraints if group.isdisjoint(c.variables))
        required, absences = [], []
        for constraint in problem.constraints:
            if group.isdisjoint(constraint.variables):
                continue
            outside = [variable for variable in constraint.variables if variable not in group]
            if not constraint.negated:
                required.append(requirement(constraint))
            else:
                inner = block(replace(problem, target=outside[0], constraints=rest)) if outside else None
                absences.append(Absence(requirement(constraint), inner))
        return Block(
            {variable: problem.types.get(variable) for variable in sorted(group)},
            tuple(required),
            tuple(absences),
            tuple(condition for condition in query.conditions if condition.variable in group),
            tuple(count for count in query.counts if group.issuperset((count.variable, count.of))),
        )

    return block(problem)
