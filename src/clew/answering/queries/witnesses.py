"""Witnesses: for an answer, concrete nodes and edges that satisfy the query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, pairwise

import numpy as np

from clew.answering.queries.grounding import below, chain_up, hierarchies
from clew.answering.queries.problem import Constraint
from clew.answering.queries.solutions import Solution, connected, depths
from clew.core.types import Fact, NodeSet, Path
from clew.store.graph.protocol import KnowledgeBase

Assignment = Mapping[str, int]
"""Variable → the node it stands for."""
Edge = tuple[int, str, int]


def assignments(graph: KnowledgeBase, solution: Solution, answer: int) -> Iterator[Assignment]:
    """Every way to fill the variables tied to the target, given one answer: backtracking inside the domains."""
    problem = solution.problem
    group = connected(problem, problem.target)
    away = depths(problem.bundles(group), problem.target)
    order = sorted(group - {problem.target}, key=lambda variable: (away[variable], variable))

    def candidates(variable: str, chosen: Assignment) -> NodeSet:
        nodes = solution.domains.get(variable)
        kind = problem.types.get(variable) if nodes is None else None  # a domain holds nodes of its type only
        for constraint in sorted(problem.constraints, key=lambda constraint: constraint.negated):
            other = constraint.other(variable)
            if variable in constraint.variables and isinstance(other, str) and other in chosen:
                near = graph.neighbors(NodeSet.of([chosen[other]]), constraint.relation, constraint.toward(variable))
                nodes = near if nodes is None else nodes - near if constraint.negated else nodes & near
        assert nodes is not None, "the order follows required triplets from the target outward"
        return nodes if kind is None else nodes & graph.nodes(kind)

    def extend(chosen: Assignment, left: list[str]) -> Iterator[Assignment]:
        if not left:
            yield chosen
            return
        for node in candidates(left[0], chosen):
            yield from extend({**chosen, left[0]: node}, left[1:])

    yield from extend({problem.target: answer}, order)


def witnesses(
    kb: KnowledgeBase, solution: Solution, named: Mapping[int, NodeSet], answer: int, limit: int = 3
) -> tuple[Path, ...]:
    """Up to `limit` paths, each with one edge per required triplet, from the answer outward.

    `named` gives for each triplet the nodes its constant names; where an edge ends below them in a hierarchy, the
    steps up to them follow.
    """
    found = []
    for chosen in islice(assignments(kb, solution, answer), limit):
        edges: list[Edge] = []
        for constraint in _outward(solution, chosen):
            edges += _edges(kb, constraint, chosen, named.get(constraint.triplet))
        found.append(Path(_facts(kb, dict.fromkeys(edges))))
    return tuple(found)


def _outward(solution: Solution, chosen: Assignment) -> list[Constraint]:
    """The required constraints, those nearest to the target first."""
    problem = solution.problem
    away = depths(problem.bundles(frozenset(chosen)), problem.target)
    inside = [c for c in problem.constraints if not c.negated and chosen.keys() >= set(c.variables)]
    return sorted(inside, key=lambda c: (len(c.variables) == 1, min(away[v] for v in c.variables), c.triplet))


def _edges(kb: KnowledgeBase, constraint: Constraint, chosen: Assignment, named: NodeSet | None) -> list[Edge]:
    """One edge that meets the constraint, and the way up a hierarchy from its end to what the question names."""
    variable = constraint.variables[0]
    other = constraint.other(variable)
    partners = NodeSet.of([chosen[other]]) if isinstance(other, str) else other
    node = chosen[variable]
    found = kb.edges_to(NodeSet.of([node]), partners, constraint.relation, constraint.away(variable))
    ends = np.where(found.heads == node, found.tails, found.heads)
    meeting = np.flatnonzero(partners.holds(ends))
    if not len(meeting):
        return []
    direct = meeting if named is None else meeting[named.holds(ends[meeting])]
    place = int(direct[0] if len(direct) else meeting[0])
    edge = (int(found.heads[place]), kb.schema.relation_names[int(found.relations[place])], int(found.tails[place]))
    return [edge, *(_climb(kb, int(ends[place]), named) if named is not None and not len(direct) else ())]


def _climb(kb: KnowledgeBase, node: int, named: NodeSet) -> Iterator[Edge]:
    """The way up a hierarchy between a node and one that the question names, whichever of the two is above."""
    for relation in hierarchies(kb.schema, kb.node(node).type):
        down = (chain_up(kb, one, NodeSet.of([node]), relation) for one in named)
        way = chain_up(kb, node, named, relation) or next(filter(None, down), [])
        if way:
            for lower, upper in pairwise(way):
                ends = (lower, upper) if below(relation) == "in" else (upper, lower)
                yield ends[0], relation.name, ends[1]
            return


def _facts(kb: KnowledgeBase, edges: Mapping[Edge, None]) -> tuple[Fact, ...]:
    facts = []
    for head, relation, tail in edges:
        first, second = kb.refs([head, tail])
        attributes = kb.edge_attributes(head, relation, tail)
        facts.append(Fact(first, relation, second, attributes[0] if attributes else {}))
    return tuple(facts)
