"""Substitution, Algorithm 2 of 4StepFocus: shrink the variables' domains until all triplets are pairwise consistent.

Conditions and negations, which the paper does not have, restrict the domains at the start. On a cycle of triplets the
fixpoint may contain nodes that satisfy each triplet but not all of them together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from clew.answering.queries.execution import satisfying
from clew.answering.queries.pushdown import found_nodes
from clew.core.query import Edge, Nodes, Pattern, find, names_used
from clew.core.types import Direction, NodeSet
from clew.store.graph.protocol import KnowledgeBase
from clew.store.remote.remote import is_sparql

EdgeTypes = Literal["ignore", "prefer", "strict"]
DirectionRule = Literal["any", "strict"]


def loosened(pattern: Pattern, edge_types: EdgeTypes, direction: DirectionRule) -> Pattern:
    """Ignore relations or directions as the options request, and remove unusable triplets."""

    def loose(edge: Edge) -> Edge:
        relation = None if edge_types == "ignore" else edge.relation
        return replace(edge, relation=relation, directed=direction == "strict" and relation is not None)

    usable = [edge for edge in pattern.edges if edge.variables and len({edge.head, edge.tail}) == 2]
    named = [
        edge for edge in usable if not any(isinstance(end, Nodes) and not end.keys for end in (edge.head, edge.tail))
    ]
    return replace(pattern, edges=tuple(map(loose, named)))


def substitute(kb: KnowledgeBase, pattern: Pattern, target: str) -> NodeSet | None:
    """Return the domain of the target, or None if there are no requirements."""
    edges = _tied(pattern, target)
    names = {target, *(name for edge in edges for name in edge.variables)}
    own = [formula for formula in pattern.where if names_used(formula) & names]
    if not edges and not own:
        return None
    if is_sparql(kb):  # an endpoint computes the join itself
        return found_nodes(kb, find(target, None, pattern))
    domains: dict[str, NodeSet] = {}  # lines 1-4: a domain for each variable
    for name in names:
        alone = tuple(formula for formula in own if names_used(formula) & set(pattern.types) == {name})
        variables = tuple(variable for variable in pattern.variables if variable.name == name)
        domains[name] = satisfying(kb, Pattern(variables, (), alone), name)
    changed = True
    while changed:  # lines 5-15: until no domain changes
        changed = False
        for edge in edges:
            for here, there, forward in ((edge.head, edge.tail, True), (edge.tail, edge.head, False)):
                if not isinstance(there, str):
                    continue
                start = domains[here] if isinstance(here, str) else NodeSet.of([kb.find(key) for key in _keys(here)])
                direction: Direction = "any" if not edge.directed else "out" if forward else "in"
                left = domains[there] & kb.neighbors(start, edge.relation, direction)
                changed = changed or len(left) < len(domains[there])
                domains[there] = left
    return domains[target]


def is_exact(pattern: Pattern, target: str) -> bool:
    """Check whether the triplets form no cycle, so that the fixpoint is exact."""
    edges = [edge for edge in _tied(pattern, target) if len(edge.variables) == 2]
    names = {name for edge in edges for name in edge.variables}
    return len(edges) < max(1, len(names))


def _tied(pattern: Pattern, target: str) -> list[Edge]:
    """Return the edges that are connected to the target."""
    tied = {target}
    while more := {n for edge in pattern.edges if tied & {*edge.variables} for n in edge.variables} - tied:
        tied |= more
    return [edge for edge in pattern.edges if tied & {*edge.variables}]


def _keys(constant: object) -> tuple[str, ...]:
    assert isinstance(constant, Nodes)
    return constant.keys
