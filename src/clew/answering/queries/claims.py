"""What an answer claims, ready to be written down: in words, as SPARQL, as Cypher.

A claim is what was carried out, not what was asked: names stand for the nodes they were taken for, relaxed triplets
appear as they were relaxed, and what was left out is not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from clew.answering.queries.grounding import Expansion, Groundings, expansions
from clew.answering.queries.problem import Constraint, Problem
from clew.answering.queries.solutions import connected
from clew.core.query import Asks, Best, Condition, Constant, Count, TripletQuery
from clew.core.schema import Schema
from clew.core.types import EMPTY, NodeSet

if TYPE_CHECKING:
    from clew.answering.queries.relation_paths import Explorer, RelationPath

TARGET = "x"
"""What the answers are called in every claim."""


@dataclass(frozen=True)
class Named:
    """A constant: the nodes it names and the hierarchies along which it stands for more."""

    nodes: NodeSet
    expansions: tuple[Expansion, ...] = ()


@dataclass(frozen=True)
class Requirement:
    """An edge between two ends, each a variable's name or a constant; `relation` None means any."""

    head: str | Named
    relation: str | None
    tail: str | Named
    any_direction: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables among its ends."""
        return tuple(end for end in (self.head, self.tail) if isinstance(end, str))


@dataclass(frozen=True)
class Absence:
    """An edge that must not be there, and what else would have to hold of its far end."""

    edge: Requirement
    inner: Block | None = None


@dataclass(frozen=True)
class Block:
    """Typed variables, what must hold of them, and what must not."""

    target: str
    types: Mapping[str, str | None]
    required: tuple[Requirement, ...] = ()
    absences: tuple[Absence, ...] = ()
    conditions: tuple[Condition, ...] = ()
    counts: tuple[Count, ...] = ()
    only: Mapping[str, NodeSet] = field(default_factory=dict)
    """Variable → the nodes it must be one of."""
    never: Mapping[str, NodeSet] = field(default_factory=dict)
    """Variable → nodes it must not be."""
    nameless: Mapping[str, bool] = field(default_factory=dict)
    """Variable → whether its nodes must be without a name that people read, or must have one."""


@dataclass(frozen=True)
class Claim:
    """Blocks, each of which gives answers, and what is asked of all answers together."""

    blocks: tuple[Block, ...]
    best: Best | None = None
    asks: Asks = "nodes"
    attribute: str | None = None
    asked: NodeSet | None = None
    """Where one of several is asked about: "is it the highest of them?"."""

    @property
    def names_only(self) -> bool:
        """Whether nothing is required of the answers but to be among what the question names."""
        if len(self.blocks) != 1 or list(self.blocks[0].only) != [self.blocks[0].target]:
            return False
        block = self.blocks[0]
        return not (block.required or block.absences or block.conditions or block.counts or block.never)

    @property
    def type(self) -> str | None:
        """The type of the answers where it is one."""
        kinds = {block.types[block.target] for block in self.blocks}
        return kinds.pop() if len(kinds) == 1 else None


def claimed_names(query: TripletQuery) -> dict[str, str]:
    """What the variables of a query are called in its claim."""
    names = {query.target.name: TARGET}
    for name in query.variables():
        names.setdefault(name, f"y{len(names)}")
    return names


def as_block(
    query: TripletQuery,
    problem: Problem,
    groundings: Groundings,
    schema: Schema,
    *,
    hierarchical: bool,
    never: NodeSet = EMPTY,
    spelled_out: int = 0,
) -> Block:
    """A query as it was solved, its variables renamed: parsers call them what they like. `never` are no answers.

    Constants that stand for up to `spelled_out` nodes are given as these, not by a hierarchy that is to be followed.
    """
    names = claimed_names(query)

    def requirement(constraint: Constraint) -> Requirement:
        triplet = query.triplets[constraint.triplet]
        widen = hierarchical or triplet.negated

        def end(term: object, position: object) -> str | Named:
            if isinstance(position, str):
                return names[position]
            assert isinstance(term, Constant)
            assert isinstance(position, NodeSet)
            if len(position) <= spelled_out:
                return Named(position)
            named = groundings[term].nodes  # where nothing lies below it, there is no hierarchy to follow
            return Named(named, expansions(triplet, term, schema) if widen and len(position) > len(named) else ())

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
            names[problem.target],
            {names[variable]: problem.types.get(variable) for variable in sorted(group)},
            tuple(required),
            tuple(absences),
            tuple(replace(one, variable=names[one.variable]) for one in query.conditions if one.variable in group),
            tuple(
                replace(one, variable=names[one.variable], of=names[one.of])
                for one in query.counts
                if group.issuperset((one.variable, one.of))
            ),
        )

    whole = block(problem)
    named = NodeSet.of([node for constant in query.among for node in groundings[constant].nodes])
    return replace(whole, only={TARGET: named} if query.among else {}, never={TARGET: never} if len(never) else {})


def renamed(block: Block, names: Mapping[str, str]) -> Block:
    """The block with some variables called otherwise, in what it requires and what it forbids."""

    def name(text: str) -> str:
        return names.get(text, text)

    def edge(one: Requirement) -> Requirement:
        head, tail = (name(end) if isinstance(end, str) else end for end in (one.head, one.tail))
        return replace(one, head=head, tail=tail)

    return Block(
        name(block.target),
        {name(variable): kind for variable, kind in block.types.items()},
        tuple(map(edge, block.required)),
        tuple(Absence(edge(one.edge), one.inner and renamed(one.inner, names)) for one in block.absences),
        tuple(replace(one, variable=name(one.variable)) for one in block.conditions),
        tuple(replace(one, variable=name(one.variable), of=name(one.of)) for one in block.counts),
        {name(variable): nodes for variable, nodes in block.only.items()},
        {name(variable): nodes for variable, nodes in block.never.items()},
        {name(variable): wanted for variable, wanted in block.nameless.items()},
    )


def claim_of_paths(
    explorer: Explorer,
    paths: Sequence[RelationPath],
    ends: NodeSet | None,
    conditions: tuple[Condition, ...] = (),
    best: Best | None = None,
) -> Claim:
    """The nodes to which every path leads; where `ends` are fewer, only those.

    `conditions` and `best` say something about those nodes' attributes.
    """
    never: dict[str, NodeSet] = {}
    nameless: dict[str, bool] = {}
    walked = [explorer.layers(path) for path in paths]
    for number, (path, layers) in enumerate(zip(paths, walked, strict=True)):
        for name, layer in zip(_names(path, number), layers, strict=True):
            if len(layer.left_out):
                never[name] = layer.left_out | never.get(name, EMPTY)
            if layer.nameless is not None:
                nameless[name] = layer.nameless
    reached = reduce(and_, (layers[-1].nodes for layers in walked))
    only = {} if ends is None or reached == ends else {TARGET: ends}
    block = replace(_chains(paths), only=only, never=never, nameless=nameless, conditions=conditions)
    return Claim((block,), best=best)


def claim_of_walks(walks: Sequence[tuple[RelationPath, int]]) -> Claim:
    """Single nodes, each with a path that leads to it, whatever else that leads to."""
    ends: dict[RelationPath, list[int]] = {}
    for path, end in walks:
        ends.setdefault(path, []).append(end)
    return Claim(tuple(replace(_chains([path]), only={TARGET: NodeSet.of(own)}) for path, own in ends.items()))


def _chains(paths: Sequence[RelationPath]) -> Block:
    """The moves of all paths as edges; they share nothing but their end."""
    types: dict[str, None] = {}
    required: list[Requirement] = []
    for number, path in enumerate(paths):
        here: str | Named = Named(path.topic)
        for move, there in zip(path.moves, _names(path, number), strict=True):
            types[there] = None
            head, tail = (here, there) if move.direction == "out" else (there, here)
            required.append(Requirement(head, move.relation, tail))
            here = there
    return Block(TARGET, types, tuple(required))


def _names(path: RelationPath, number: int) -> list[str]:
    return [*(f"{'yzuvw'[number]}{place}" for place in range(1, len(path.moves))), TARGET]
