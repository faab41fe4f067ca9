"""Grounding: which nodes the constants of a query stand for, and the problem that is to be solved with them.

A constant may stand for what is below it in a hierarchy as well: a relation that the schema marks as transitive.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Literal

from clew.answering.queries.problem import OPPOSITE, Constraint, Filter, Problem, condition_filter
from clew.core.query import Constant, Term, Triplet, TripletQuery, Variable
from clew.core.schema import Relation, Schema, leads_down
from clew.core.types import EMPTY, Direction, NodeSet, UnknownName
from clew.store.graph.protocol import KnowledgeBase, Linked
from clew.store.index.linking import LINKED as LIKELY
from clew.store.index.linking import link_probability
from clew.store.index.name_table import form_of
from clew.store.index.protocol import Link, Names


def below(relation: Relation) -> Direction:
    """How edges are followed from a broader node to the narrower ones."""
    return "out" if leads_down(relation.name) else "in"


def follows(relation: Relation, *, upward: bool) -> bool:
    """Whether edges lead from what a widened constant stands for, below it or `upward`, to what it names."""
    return (below(relation) == "in") != upward


def hierarchies(schema: Schema, type: str | None = None) -> tuple[Relation, ...]:
    """The transitive relations that begin or end at the nodes of one type, or of any, each once."""
    rows = (row for row in schema.relations if row.transitive and type in (None, row.head, row.tail))
    return tuple({row.name: row for row in rows}.values())


def descendants(graph: Linked, nodes: NodeSet, relation: Relation) -> NodeSet:
    """The nodes themselves and all below them."""
    return graph.closure(nodes, relation.name, below(relation))


def chain_up(graph: Linked, node: int, top: NodeSet, relation: Relation) -> list[int]:
    """A shortest way from a node up to one of the top nodes, both included; empty where there is none."""
    up = OPPOSITE[below(relation)]
    levels = [NodeSet.of([node])]
    seen = levels[0]
    while not len(levels[-1] & top):
        following = graph.neighbors(levels[-1], relation.name, up) - seen
        if not len(following):
            return []
        levels.append(following)
        seen = seen | following
    way = [int((levels[-1] & top).array[0])]
    for level in reversed(levels[:-1]):
        lower = graph.neighbors(NodeSet.of([way[-1]]), relation.name, below(relation)) & level
        way.append(int(lower.array[0]))
    return way[::-1]


EdgeTypes = Literal["ignore", "prefer", "strict"]
DirectionRule = Literal["any", "strict"]
Unmatched = Literal["vector", "drop"]
LINKED = 12
"""Nodes that a name may stand for, the likeliest first."""
CLOSE = 3
"""Maximum number of close names that are shown for an unknown one."""
NAMESAKES = 1000
"""Nodes that one name stands for, where all of the likeliest bear just that one."""


@dataclass(frozen=True)
class Grounding:
    """The nodes a constant stands for, how they were found, and which others it may mean."""

    constant: Constant
    links: tuple[Link, ...]
    """The nodes it stands for."""
    alternatives: tuple[Link, ...] = ()

    @property
    def nodes(self) -> NodeSet:
        """The nodes as a set."""
        return NodeSet.of([link.node for link in self.links]) if self.links else EMPTY


Groundings = Mapping[Constant, Grounding]


def ground(query: TripletQuery, names: Names, *, unmatched: Unmatched = "drop") -> Groundings:
    """Exact names first, then likely ones of like spelling, both of the stated type; then exact names of other types.

    A constant without any stands for nothing or, with `unmatched="vector"`, for the nearest node by meaning.
    Deviation from the paper: an alias of several nodes stands for all of them.
    """
    return {constant: _ground(constant, names, unmatched) for constant in query.constants()}


def _ground(constant: Constant, names: Names, unmatched: Unmatched) -> Grounding:
    look_up = names.link if unmatched == "vector" else names.spelled
    inside = look_up(constant.text, type=constant.type, k=LINKED)
    if len(inside) == LINKED and all(link.how == "exact" for link in inside):
        inside = look_up(constant.text, type=constant.type, k=NAMESAKES)
    exact = [link for link in inside if link.how == "exact"]
    is_likely = not exact and link_probability(constant.text, inside) >= LIKELY
    if not exact and not is_likely and constant.type is not None:
        exact = [link for link in names.spelled(constant.text, k=NAMESAKES) if link.how == "exact"]
    spelled = [link for link in exact if link.score == 1.0]
    exact = spelled or exact  # a name spelled just so is meant before one that differs in case or accents
    if exact:
        return Grounding(constant, tuple(exact), tuple(link for link in inside if link not in exact))
    nearest = inside[:1] if unmatched == "vector" else ()
    same = [link for link in inside if is_likely and form_of(link.alias) == form_of(inside[0].alias)]
    chosen = tuple(same) or tuple(nearest)
    return Grounding(constant, chosen, tuple(link for link in inside if link not in chosen))


def unknown_names(query: TripletQuery, names: Names) -> tuple[UnknownName, ...]:
    """The constants of a query, and of those that may be satisfied instead, that stand for nothing in the base."""
    constants = dict.fromkeys(constant for one in (query, *query.either) for constant in one.constants())
    inexact = [one for one in constants if not any(link.how == "exact" for link in names.spelled(one.text, k=1))]
    lacking = [one for one in (_ground(constant, names, "drop") for constant in inexact) if not one.links]
    near = [[link.alias for link in one.alternatives] for one in lacking]
    return tuple(
        UnknownName(one.constant.text, tuple(dict.fromkeys(close))[:CLOSE])
        for one, close in zip(lacking, near, strict=True)
    )


def widened(groundings: Groundings, size: int, constants: Collection[Constant]) -> Groundings:
    """The given constants stand for their `size` best nodes, or for all exact ones where they are more."""
    wider: dict[Constant, Grounding] = {}
    for constant, grounding in groundings.items():
        missing = max(0, size - len(grounding.links)) if constant in constants else 0
        more, rest = grounding.alternatives[:missing], grounding.alternatives[missing:]
        wider[constant] = Grounding(constant, (*grounding.links, *more), rest)
    return wider


def pose(
    query: TripletQuery,
    groundings: Groundings,
    graph: KnowledgeBase,
    *,
    edge_types: EdgeTypes = "ignore",
    direction: DirectionRule = "any",
    hierarchical: bool = False,
) -> Problem:
    """The problem a grounded query stands for.

    Triplets between two constants, between a variable and itself, and with a constant that names nothing are left out,
    as in the paper. With `hierarchical`, a constant also stands for everything below it; where it is forbidden, always.
    """
    constraints = []
    for place, triplet in enumerate(query.triplets):
        if is_usable(triplet, groundings):
            widen = hierarchical or triplet.negated
            head, tail = (_end(term, triplet, groundings, graph, widen) for term in (triplet.head, triplet.tail))
            relation = None if edge_types == "ignore" else triplet.relation
            any_direction = direction == "any" or relation is None
            constraints.append(Constraint(head, relation, tail, any_direction, triplet.negated, place))
    filters: dict[str, tuple[Filter, ...]] = {}
    for condition in query.conditions:
        keep = condition_filter(graph, condition)
        filters[condition.variable] = (*filters.get(condition.variable, ()), keep)
    if query.among:
        named = reduce(or_, (groundings[constant].nodes for constant in query.among))
        filters[query.target.name] = (*filters.get(query.target.name, ()), named.__and__)
    types = {name: variable.type for name, variable in query.variables().items()}
    return Problem(query.target.name, types, tuple(constraints), filters, query.counts)


def is_usable(triplet: Triplet, groundings: Groundings) -> bool:
    """Whether a triplet ties a variable to another one or to a constant that names something."""
    ends = (triplet.head, triplet.tail)
    variables = {end.name for end in ends if isinstance(end, Variable)}
    named = all(len(groundings[end].nodes) for end in ends if isinstance(end, Constant))
    return named and (len(variables) == 2 or (len(variables) == 1 and any(isinstance(end, Constant) for end in ends)))


@dataclass(frozen=True, slots=True)
class Expansion:
    """A hierarchy along which a constant also stands for what is below it, or above it."""

    relation: Relation
    upward: bool


def expansions(triplet: Triplet, term: Constant, schema: Schema) -> tuple[Expansion, ...]:
    """The hierarchies that widen a constant of a triplet.

    "What is polydactyly a kind of?" asks for everything above; any other triplet takes in what is below.
    """
    return tuple(
        Expansion(row, triplet.relation == row.name and (term is triplet.head) == (below(row) == "in"))
        for row in hierarchies(schema, term.type)
    )


def _end(term: Term, triplet: Triplet, groundings: Groundings, graph: KnowledgeBase, widen: bool) -> str | NodeSet:
    if isinstance(term, Variable):
        return term.name
    nodes = groundings[term].nodes
    for expansion in expansions(triplet, term, graph.schema) if widen else ():
        down = below(expansion.relation)
        nodes = graph.closure(nodes, expansion.relation.name, OPPOSITE[down] if expansion.upward else down)
    return nodes
