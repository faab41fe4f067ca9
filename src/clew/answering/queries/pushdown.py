"""A whole query put to an endpoint at once: it joins, and only what the variables stand for travels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from clew.answering.queries.claims import Block, as_block, claimed_names
from clew.answering.queries.grounding import Groundings
from clew.answering.queries.problem import Problem
from clew.answering.queries.solutions import Solution, Solver, connected, solve
from clew.answering.queries.sparql_text import sparql_of_block
from clew.core.query import TripletQuery
from clew.core.types import EMPTY, NodeSet
from clew.store.graph.protocol import KnowledgeBase
from clew.store.remote.remote import is_sparql

if TYPE_CHECKING:
    from clew.store.remote.sparql import SparqlKnowledgeBase

MOST_LISTED = 2_000
"""A constant that stands for more nodes by a hierarchy is not sent as a list of them: the endpoint follows it again."""

MOST_AHEAD = 2_000
"""Edges that are read ahead; of nodes with more, those of each answer are asked for alone."""


def solver(
    graph: KnowledgeBase, query: TripletQuery, groundings: Groundings, *, hierarchical: bool = False, exact: bool = True
) -> Solver:
    """Solves the problems that a query poses: edge by edge in a base that Clew keeps, in one query at an endpoint."""
    if is_sparql(graph):
        return partial(_solve_there, graph, query, groundings, hierarchical)
    return partial(solve, graph, exact=exact)


def _solve_there(
    kb: SparqlKnowledgeBase, query: TripletQuery, groundings: Groundings, hierarchical: bool, problem: Problem
) -> Solution:
    """The nodes of the target, then those of each variable tied to it: a query each, exact also on cycles."""
    block = as_block(query, problem, groundings, kb.schema, hierarchical=hierarchical, spelled_out=MOST_LISTED)
    if not _can_be_asked(block, kb):
        return solve(kb, problem)
    group, names = connected(problem, problem.target), claimed_names(query)
    domains: dict[str, NodeSet | None] = dict.fromkeys(group, EMPTY)
    for variable in (problem.target, *sorted(group - {problem.target})):
        domains[variable] = _nodes(kb, block, names[variable])
        if not len(domains[problem.target] or EMPTY):
            break
    _read_ahead(kb, problem, domains)
    return Solution(domains[problem.target], domains, problem, group)


def _can_be_asked(block: Block, kb: SparqlKnowledgeBase) -> bool:
    """Whether something is required of the target, and something says which nodes it may be at all."""
    kind = block.types[block.target]
    is_bound = bool(block.required or block.only or block.conditions) or (kind is not None and kb.type_iri(kind))
    return bool(is_bound) and bool(block.required or block.only or block.conditions or block.absences or block.counts)


def _nodes(kb: SparqlKnowledgeBase, block: Block, variable: str) -> NodeSet:
    rows = kb.endpoint.rows(sparql_of_block(block, kb, variable), ordered_by=f"?{variable}")
    found = NodeSet.of(kb.intern(row[variable] for row in rows if variable in row))
    return found if kb.described is None else found & kb.described.nodes()  # not what came after they were read


def _read_ahead(kb: SparqlKnowledgeBase, problem: Problem, domains: dict[str, NodeSet | None]) -> None:
    """The edges that the evidence of few answers will be read from, for all of them at once."""
    for constraint in problem.constraints:
        for variable in () if constraint.negated or constraint.relation is None else constraint.variables:
            domain = domains.get(variable)
            if domain is None or not 0 < len(domain) <= kb.reading.batch:
                continue
            if kb.degrees(domain.array).sum() <= MOST_AHEAD:
                kb.edges(domain, constraint.relation, constraint.away(variable))
