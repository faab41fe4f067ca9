"""Answers in tiers: first those that satisfy the query as it stands, then those that satisfy it more loosely.

1  every constant stands for the nodes it names, relations and directions as the query has them
2  a constant also stands for everything below it in a hierarchy; where the question has a textual requirement too,
   both are on one level: what holds below a node holds for it, so the text has to decide (not so where the triplets
   ask about the hierarchy itself: its own edges come before what follows from them)
3  constants stand for growing lists of near names: 2, 3, 5, 8, 12
4  other readings of the question
5  one triplet after another asks for less: any relation, then nothing

Boer et al., FocusedRetriever and AF-Retriever (2025). Each tier adds only what no earlier one has; it stops as soon
as there are enough answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from clew.answering.methods.focus.evidence import Focus
from clew.answering.queries.claims import Claim
from clew.answering.queries.finishing import Outcome, best_of, finish
from clew.answering.queries.grounding import Groundings, ground, hierarchies, pose, widened
from clew.answering.queries.pushdown import solver
from clew.answering.queries.solutions import Step, solve_relaxed
from clew.core.query import Best, Constant, TripletQuery
from clew.core.types import NodeSet
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.protocol import Names
from clew.store.index.tokens import terms

SIZES = (2, 3, 5, 8, 12)
"""How many nodes a constant stands for, tier by tier (Fibonacci-like, as in the successors)."""


@dataclass(frozen=True)
class Tier:
    """Answers that come in with one way of reading the query."""

    focus: Focus
    nodes: NodeSet
    how: str
    level: int
    """Tiers on one level are ranked together."""


def tiers(kb: KnowledgeBase, names: Names, queries: Sequence[TripletQuery], enough: int) -> Iterator[Tier]:
    """Tiers until there are enough answers; `queries` are the readings of a question, best first."""
    found = 0
    known: NodeSet | None = None
    for level, readings in enumerate(_levels(kb, names, queries)):
        for focus, how in readings:
            nodes = focus.nodes
            if nodes is None:  # nothing is required of the answers: their documents alone decide
                return
            fresh = without_named(nodes, focus) if known is None else without_named(nodes, focus) - known
            if len(fresh):
                known = fresh if known is None else known | fresh
                found += len(fresh)
                yield Tier(focus, fresh, how, level)
        if found >= enough:
            return


def without_named(nodes: NodeSet, focus: Focus) -> NodeSet:
    """What a question names is not its answer, unless it asks about that or there is no other."""
    if focus.query.among:
        return nodes
    for grounding in focus.groundings.values():
        others = nodes - grounding.nodes
        nodes = others if len(others) else nodes
    return nodes


def asks_more(query: TripletQuery) -> bool:
    """Whether a question has a textual requirement too; a lone word left over is but a way of saying the rest."""
    return any(len(terms(piece)) > 1 for piece in query.unexplained)


def _levels(kb: KnowledgeBase, names: Names, queries: Sequence[TripletQuery]) -> Iterator[list[tuple[Focus, str]]]:
    """Ways to read the question, from strict to loose; looser ones are tried only where stricter ones find nothing."""
    transitive = {relation.name for relation in hierarchies(kb.schema)}
    hierarchical = bool(transitive)
    found_any = False
    as_first: Groundings = {}
    for place, query in enumerate(queries):
        readings = _grounded(query, names)
        _, groundings = readings[0]
        as_first = as_first or groundings
        how = "satisfies the query" if place == 0 else "satisfies another reading of the question"
        level = [(_solved(kb, *one, hierarchical=False), how) for one in readings]
        found_any = any(_finds(focus) for focus, _ in level)
        if hierarchical:
            asks_hierarchy = any(triplet.relation in transitive for triplet in query.triplets)
            if asks_hierarchy or not asks_more(query):
                yield level
                level = []
            how = "satisfies the query with what is below the named nodes in a hierarchy"
            wide = [_solved(kb, *one, hierarchical=True) for one in readings]
            level += [(focus, how) for focus in wide]
            found_any = found_any or any(map(_finds, wide))
        yield level
        if found_any:
            for near in _near_names(kb, query, groundings, hierarchical):
                yield [near]
            return
    for query in queries[:1]:
        relaxed = _solved(kb, query, as_first, hierarchical=hierarchical, steps=("loosen", "drop"))
        yield [(relaxed, "satisfies the query with a requirement relaxed")]


def _grounded(query: TripletQuery, names: Names) -> list[tuple[TripletQuery, Groundings]]:
    """A query and those that may be satisfied instead, each with what its constants stand for: costly to look up."""
    return [(one, ground(one, names)) for one in (query, *query.either)]


def _near_names(
    kb: KnowledgeBase, query: TripletQuery, groundings: Groundings, hierarchical: bool
) -> Iterator[tuple[Focus, str]]:
    required = {
        term
        for triplet in query.triplets
        if not triplet.negated
        for term in (triplet.head, triplet.tail)
        if isinstance(term, Constant)
    }
    last = groundings
    for size in SIZES:
        wider = widened(groundings, size, required)
        if wider != last:
            last = wider
            yield _solved(kb, query, wider, hierarchical=hierarchical), f"satisfies the query with {size} near names"


def _finds(focus: Focus) -> bool:
    return focus.nodes is not None and len(focus.nodes) > 0


def _solved(
    kb: KnowledgeBase, query: TripletQuery, groundings: Groundings, *, hierarchical: bool, steps: tuple[Step, ...] = ()
) -> Focus:
    problem = pose(query, groundings, kb, edge_types="strict", direction="strict", hierarchical=hierarchical)
    relaxed = solve_relaxed(solver(kb, query, groundings, hierarchical=hierarchical), problem, steps)
    return Focus(query, groundings, relaxed.solution, relaxed.relaxations, hierarchical)


@dataclass(frozen=True)
class Result:
    """All nodes that some readings of a question put forward, and the claim that says so."""

    nodes: NodeSet
    claim: Claim


def united(kb: KnowledgeBase, readings: Sequence[Focus], best: Best | None = None) -> Result:
    """What any of the readings finds, or the best of it; what the question names is left out, as the claim says."""
    every = [focus.nodes if focus.nodes is not None else kb.nodes(focus.query.target.type) for focus in readings]
    kept = list(map(without_named, every, readings))
    blocks = [focus.block(kb, never=a - b) for focus, a, b in zip(readings, every, kept, strict=True)]
    nodes = reduce(or_, kept)
    return Result(nodes if best is None else best_of(kb, best, nodes), Claim(tuple(blocks), best))


@dataclass(frozen=True)
class Finished:
    """A query carried out to its end: how it was read, what came of it, and the claim that says so."""

    readings: tuple[Focus, ...]
    outcome: Outcome
    claim: Claim


def finished(kb: KnowledgeBase, names: Names, query: TripletQuery) -> Finished:
    """What a query asks for: its nodes, the best of them, their number, whether there are any, a value of theirs."""
    readings = first_reading(kb, names, query)
    result = united(kb, readings, query.best)
    is_one = query.asks == "truth" and query.best is not None and bool(query.among)
    asked = readings[0].groundings[query.among[0]].nodes if is_one else None
    claim = replace(result.claim, asks=query.asks, attribute=query.attribute, asked=asked)
    return Finished(readings, finish(kb, query, result.nodes, asked), claim)


def first_reading(kb: KnowledgeBase, names: Names, query: TripletQuery) -> tuple[Focus, ...]:
    """What satisfies a query just as it stands, or with what lies below the named nodes where nothing else does."""
    readings = _grounded(query, names)
    strict = tuple(_solved(kb, *one, hierarchical=False) for one in readings)
    if any(_finds(focus) or focus.nodes is None for focus in strict) or not hierarchies(kb.schema):
        return strict
    return tuple(_solved(kb, *one, hierarchical=True) for one in readings)


def unrestricted(kb: KnowledgeBase, names: Names, query: TripletQuery) -> Focus:
    """A query as it was asked, where no tier has an answer."""
    return _solved(kb, query, ground(query, names), hierarchical=bool(hierarchies(kb.schema)))
