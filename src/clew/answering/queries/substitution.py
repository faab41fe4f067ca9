"""Which nodes of one domain have a partner in another: the edge-level part of substitution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clew.answering.queries.problem import Constraint, Domains, Problem
from clew.core.types import EMPTY, NodeSet, distinct
from clew.store.graph.protocol import KnowledgeBase

Pairs = NDArray[np.int64]
"""Pairs of nodes packed into one number each, sorted and different: first << 32 | second."""


def pairs(graph: KnowledgeBase, constraint: Constraint, variable: str, domain: NodeSet, partners: NodeSet) -> Pairs:
    """The pairs (node of the variable's domain, partner) that an edge of the constraint connects."""
    found = graph.edges(domain, constraint.relation, constraint.away(variable))
    first, second = (found.heads, found.tails) if constraint.away(variable) != "in" else (found.tails, found.heads)
    if constraint.any_direction:
        first, second = np.concatenate((first, second)), np.concatenate((second, first))
        inside = domain.holds(first) & partners.holds(second)
    else:
        inside = partners.holds(second)
    packed = (first[inside].astype(np.int64) << 32) | second[inside]
    return distinct(np.sort(packed))


def supported(
    graph: KnowledgeBase, constraint: Constraint, variable: str, domain: NodeSet, partners: NodeSet
) -> NodeSet:
    """The nodes of the domain that have an edge to one of the partners."""
    away = constraint.away(variable)
    marks = np.zeros(int(domain.array[-1]) + 1 if len(domain) else 0, dtype=np.bool_)
    if away != "in":
        found = graph.edges(domain, constraint.relation, "out")
        marks[found.heads[partners.holds(found.tails)]] = True
    if away != "out":
        found = graph.edges(domain, constraint.relation, "in")
        marks[found.tails[partners.holds(found.heads)]] = True
    return NodeSet(np.flatnonzero(marks).astype(np.int32))


def partnered(
    graph: KnowledgeBase, bundle: Sequence[Constraint], variable: str, domain: NodeSet, partners: NodeSet
) -> NodeSet:
    """The nodes of the domain that have one partner with whom they meet every constraint between the two variables."""
    if all(constraint.negated for constraint in bundle):  # out unless some partner is not connected
        forbidden = [pairs(graph, constraint, variable, domain, partners) for constraint in bundle]
        return NodeSet(domain.array[numbers(distinct(np.sort(np.concatenate(forbidden))), domain) < len(partners)])
    return firsts(bundle_pairs(graph, bundle, variable, domain, partners))


def bundle_pairs(
    graph: KnowledgeBase, bundle: Sequence[Constraint], variable: str, domain: NodeSet, partners: NodeSet
) -> Pairs:
    """The pairs that meet every constraint of a bundle, at least one of which is required."""
    required = [pairs(graph, c, variable, domain, partners) for c in bundle if not c.negated]
    allowed = required[0]
    for more in required[1:]:
        allowed = np.intersect1d(allowed, more, assume_unique=True)
    for constraint in bundle:
        if constraint.negated:
            forbidden = pairs(graph, constraint, variable, domain, partners)
            allowed = np.setdiff1d(allowed, forbidden, assume_unique=True)
    return allowed


def firsts(packed: Pairs) -> NodeSet:
    """The first nodes of some pairs."""
    nodes = (packed >> 32).astype(np.int32)
    keep = np.empty(len(nodes), dtype=np.bool_)
    keep[:1] = True
    np.not_equal(nodes[1:], nodes[:-1], out=keep[1:])
    return NodeSet(nodes[keep])


def numbers(packed: Pairs, domain: NodeSet) -> NDArray[np.int64]:
    """How many partners each node of the domain has."""
    return np.bincount(domain.array.searchsorted(packed >> 32), minlength=len(domain)).astype(np.int64)


class Arc(NamedTuple):
    """Nodes of `side` need a partner among those of `source`; `needed` is false where that only saves work."""

    pair: tuple[str, str]
    side: str
    source: str
    needed: bool


def narrow(
    graph: KnowledgeBase,
    problem: Problem,
    variables: frozenset[str],
    domains: Domains,
    depths: Mapping[str, int] | None = None,
) -> Domains:
    """The fixpoint over one connected group of variables, starting from the given domains.

    With `depths`, the distances from the root of a group without cycles, only the root's domain becomes final: one
    pass from the leaves suffices. A domain that becomes empty empties the whole group.
    """
    state = _Narrowing(graph, problem, dict(domains))
    bundles = problem.bundles(variables)
    for constraint, variable in _constants(problem, variables):
        state.enter(variable, state.reach(constraint, variable))
        if state.is_empty(variable):
            return dict.fromkeys(variables, EMPTY)
    arcs = [arc for pair in bundles for arc in _arcs(pair, depths)]
    waiting = set(arcs)
    while waiting:
        arc = min(waiting, key=lambda arc: (*state.cost(arc, waiting), arc))
        waiting.discard(arc)
        if not arc.needed and not state.pays(arc, arcs):
            continue
        before = state.domains.get(arc.side)
        state.enter(arc.side, state.revise(arc, bundles[arc.pair]))
        if state.is_empty(arc.side):
            return dict.fromkeys(variables, EMPTY)
        after = state.domains[arc.side]
        if before is None or after is None or len(after) < len(before):
            waiting.update(other for other in arcs if other.source == arc.side and other.pair != arc.pair)
    for variable in sorted(variables & problem.filters.keys()):
        if not len(state.known(variable)):
            return dict.fromkeys(variables, EMPTY)
    return state.domains


class _Narrowing:
    """The domains while they shrink."""

    def __init__(self, graph: KnowledgeBase, problem: Problem, domains: dict[str, NodeSet | None]) -> None:
        self.graph, self.problem, self.domains = graph, problem, domains

    def everything(self, variable: str) -> NodeSet:
        return self.graph.nodes(self.problem.types.get(variable))

    def known(self, variable: str) -> NodeSet:
        """The domain, spelled out."""
        domain = self.domains.get(variable)
        if domain is None:
            domain = self.everything(variable)
            if variable in self.problem.filters:
                self.enter(variable, domain)
                return self.known(variable)
        return domain

    def is_empty(self, variable: str) -> bool:
        domain = self.domains.get(variable)
        return domain is not None and not len(domain)

    def enter(self, variable: str, nodes: NodeSet) -> None:
        """Keep what was known already and what a variable's own conditions allow."""
        before = self.domains.get(variable)
        if before is None:
            for keep in self.problem.filters.get(variable, ()):
                nodes = keep(nodes)
            self.domains[variable] = nodes
        else:
            self.domains[variable] = nodes if nodes is before else nodes & before

    def reach(self, constraint: Constraint, variable: str) -> NodeSet:
        """The nodes of a variable's type next to a constant, or those of its domain where they are fewer."""
        constant, domain = constraint.other(variable), self.domains.get(variable)
        assert isinstance(constant, NodeSet)
        if domain is not None and len(domain) < len(constant):
            return supported(self.graph, constraint, variable, domain, constant)
        reached = self.graph.neighbors(constant, constraint.relation, constraint.toward(variable))
        return self.typed(constraint, variable, reached)

    def typed(self, constraint: Constraint, variable: str, nodes: NodeSet) -> NodeSet:
        """Enforce a variable's type, unless the relation reaches no other type."""
        kind = self.problem.types.get(variable)
        if kind is None or self.domains.get(variable) is not None:  # a domain holds nodes of its type only
            return nodes
        if constraint.relation is not None and not constraint.any_direction:
            rows = self.graph.schema.relation_rows(constraint.relation)
            at_tail = constraint.toward(variable) == "out"
            if all((row.tail if at_tail else row.head) == kind for row in rows):
                return nodes
        return nodes & self.graph.nodes(kind)

    def revise(self, arc: Arc, bundle: tuple[Constraint, ...]) -> NodeSet:
        """The nodes of one side that have a partner on the other, found from the smaller of the two."""
        side, source = self.domains.get(arc.side), self.domains.get(arc.source)
        if len(bundle) > 1 or bundle[0].negated:
            return partnered(self.graph, bundle, arc.side, self.known(arc.side), self.known(arc.source))
        constraint = bundle[0]
        if source is None or (side is not None and len(side) < len(source)):
            return supported(self.graph, constraint, arc.side, self.known(arc.side), self.known(arc.source))
        reached = self.graph.neighbors(source, constraint.relation, constraint.toward(arc.side))
        return self.typed(constraint, arc.side, reached)

    def cost(self, arc: Arc, waiting: set[Arc]) -> tuple[bool, bool, int]:
        """Later: what would have to be done again, then what needs all nodes of a type; the smallest side first."""
        unfinished = arc.needed and any(other.side == arc.source and other.needed for other in waiting)
        sizes = [len(domain) for end in arc.pair if (domain := self.domains.get(end)) is not None]
        if sizes:
            return unfinished, False, min(sizes)
        return unfinished, True, min(len(self.everything(end)) for end in arc.pair)

    def pays(self, arc: Arc, arcs: list[Arc]) -> bool:
        """Whether narrowing a variable from the root's side first makes the way back cheaper."""
        source, side = self.domains.get(arc.source), self.domains.get(arc.side)
        if source is None or not any(other.side == arc.side and other.needed for other in arcs):
            return False
        return side is None or FEWER * len(source) < len(side)


FEWER = 8
"""How many times smaller a domain must be before its neighbours are worth finding ahead of time."""


def _constants(problem: Problem, variables: frozenset[str]) -> Iterator[tuple[Constraint, str]]:
    """Required constraints between a constant and a variable of the group, the smallest constant first."""
    found: list[tuple[int, int, Constraint, str]] = []
    for place, constraint in enumerate(problem.constraints):
        ends = constraint.variables
        if len(ends) == 1 and ends[0] in variables and not constraint.negated:
            constant = constraint.other(ends[0])
            found.append((len(constant), place, constraint, ends[0]))
    for _, _, constraint, variable in sorted(found, key=lambda entry: entry[:2]):
        yield constraint, variable


def _arcs(pair: tuple[str, str], depths: Mapping[str, int] | None) -> tuple[Arc, Arc]:
    """Both arcs of a pair; in a group without cycles only the one toward the root is needed."""
    first, second = pair
    return (
        Arc(pair, first, second, depths is None or depths[first] < depths[second]),
        Arc(pair, second, first, depths is None or depths[second] < depths[first]),
    )
