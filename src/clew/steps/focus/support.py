"""Which nodes of one domain have a partner in another: the edge-level part of substitution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clew.core.types import NodeSet
from clew.steps.focus.constraints import Constraint, Graph

Pairs = NDArray[np.int64]
"""Pairs of nodes packed into one number each, sorted and different: first << 32 | second."""
LOW = (1 << 32) - 1


def pairs(graph: Graph, constraint: Constraint, variable: str, domain: NodeSet, partners: NodeSet) -> Pairs:
    """The pairs (node of the variable's domain, partner) that an edge of the constraint connects."""
    found = graph.edges(domain, constraint.relation, constraint.away(variable))
    first, second = (found.heads, found.tails) if constraint.away(variable) != "in" else (found.tails, found.heads)
    if constraint.any_direction:
        first, second = np.concatenate((first, second)), np.concatenate((second, first))
        inside = domain.holds(first) & partners.holds(second)
    else:
        inside = partners.holds(second)
    packed = (first[inside].astype(np.int64) << 32) | second[inside]
    return np.unique(packed)


def supported(graph: Graph, constraint: Constraint, variable: str, domain: NodeSet, partners: NodeSet) -> NodeSet:
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


def partnered(graph: Graph, bundle: Sequence[Constraint], variable: str, domain: NodeSet, partners: NodeSet) -> NodeSet:
    """The nodes of the domain that have one partner with whom they meet every constraint between the two variables."""
    if all(constraint.negated for constraint in bundle):  # out unless some partner is not connected
        forbidden = [pairs(graph, constraint, variable, domain, partners) for constraint in bundle]
        return NodeSet(domain.array[numbers(np.unique(np.concatenate(forbidden)), domain) < len(partners)])
    return firsts(bundle_pairs(graph, bundle, variable, domain, partners))


def bundle_pairs(
    graph: Graph, bundle: Sequence[Constraint], variable: str, domain: NodeSet, partners: NodeSet
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
