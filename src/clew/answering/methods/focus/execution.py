"""Queries carried out: everything that satisfies one, and what comes near it.

What satisfies a query is one set. Where the base has a hierarchy, a name stands for what lies below it as well: who
asks for the diseases with an abnormal thumb means those with a short thumb, too. Near are, in this order, what the
query finds with names that are like the given ones, and what it finds with a requirement relaxed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from clew.answering.methods.focus.evidence import Focus
from clew.answering.queries.claims import Claim
from clew.answering.queries.finishing import best_of, finish
from clew.answering.queries.grounding import Groundings, ground, hierarchies, pose, widened
from clew.answering.queries.pushdown import solver
from clew.answering.queries.solutions import Step, solve_relaxed
from clew.core.query import Constant, TripletQuery
from clew.core.types import NodeSet, Value
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.protocol import Names

SIZES = (2, 3, 5, 8, 12)
"""How many nodes a name stands for, step by step (Fibonacci-like, as in FocusedRetriever)."""


@dataclass(frozen=True)
class Execution:
    """A query carried out to its end, and the claim that says so."""

    query: TripletQuery
    readings: tuple[Focus, ...]
    """The query itself and those that may be satisfied instead of it."""
    nodes: NodeSet
    """Everything that satisfies it, or the best of that."""
    direct: NodeSet
    """What of it does so without what lies below names in a hierarchy."""
    value: Value | None
    claim: Claim

    @property
    def is_restricted(self) -> bool:
        """Whether anything is required of the answers."""
        return self.query.best is not None or any(focus.nodes is not None for focus in self.readings)

    @property
    def is_answer(self) -> bool:
        """Whether it found what was asked for: a number is one even where it is zero."""
        if self.query.asks == "value":
            return self.value is not None
        return self.query.asks in ("number", "truth") or len(self.nodes) > 0

    def focus_of(self, node: int) -> Focus:
        """The reading that a node satisfies."""
        return next((one for one in self.readings if one.nodes is None or node in one.nodes), self.readings[0])


def execute(kb: KnowledgeBase, names: Names, query: TripletQuery, *, kinds: bool = True) -> Execution:
    """What a query asks for: its nodes, the best of them, their number, whether there are any, a value of theirs.

    With `kinds`, names stand for what lies below them in a hierarchy, too.
    """
    grounded = [(one, ground(one, names)) for one in (query, *query.either)]
    wide = kinds and bool(hierarchies(kb.schema))
    readings = tuple(_solved(kb, *one, hierarchical=wide) for one in grounded)
    every = [focus.nodes if focus.nodes is not None else kb.nodes(focus.query.target.type) for focus in readings]
    kept = list(map(_without_named, every, readings))
    nodes = reduce(or_, kept)
    direct = nodes
    if wide and query.best is None and any(focus.is_widened for focus in readings):
        strict = (_solved(kb, *one, hierarchical=False).nodes for one in grounded)
        direct = nodes & reduce(
            or_, (all_of if found is None else found for found, all_of in zip(strict, every, strict=True))
        )
    if query.best is not None:
        nodes = direct = best_of(kb, query.best, nodes)
    is_one = query.asks == "truth" and query.best is not None and bool(query.among)
    asked = readings[0].groundings[query.among[0]].nodes if is_one else None
    blocks = tuple(focus.block(kb, never=a - b) for focus, a, b in zip(readings, every, kept, strict=True))
    claim = Claim(blocks, query.best, query.asks, query.attribute, asked)
    return Execution(query, readings, nodes, direct, finish(kb, query, nodes, asked).value, claim)


def _without_named(nodes: NodeSet, focus: Focus) -> NodeSet:
    """What a question names is not its answer, unless it asks about that or there is no other."""
    if focus.query.among:
        return nodes
    for grounding in focus.groundings.values():
        others = nodes - grounding.nodes
        nodes = others if len(others) else nodes
    return nodes


@dataclass(frozen=True)
class Near:
    """Nodes that satisfy a query in a looser way, and how."""

    focus: Focus
    nodes: NodeSet
    how: str


def near(kb: KnowledgeBase, execution: Execution, enough: int, *, kinds: bool = True) -> Iterator[Near]:
    """What comes near a query, nearest first, until there is enough of it; each time what is not there yet."""
    known, found = execution.nodes, 0
    for focus, how in _looser(kb, execution, kinds and bool(hierarchies(kb.schema))):
        if focus.nodes is None:  # nothing is required of the answers: their documents alone decide
            return
        fresh = _without_named(focus.nodes, focus) - known
        if len(fresh):
            known, found = known | fresh, found + len(fresh)
            yield Near(focus, fresh, how)
        if found >= enough:
            return


def _looser(kb: KnowledgeBase, execution: Execution, wide: bool) -> Iterator[tuple[Focus, str]]:
    query, groundings = execution.query, execution.readings[0].groundings
    required = {
        term
        for triplet in query.triplets
        if not triplet.negated
        for term in (triplet.head, triplet.tail)
        if isinstance(term, Constant)
    }
    if len(execution.nodes):
        last = groundings
        for size in SIZES:
            wider = widened(groundings, size, required)
            if wider != last:
                last = wider
                yield _solved(kb, query, wider, hierarchical=wide), f"satisfies the query with {size} near names"
        return
    relaxed = _solved(kb, query, groundings, hierarchical=wide, steps=("loosen", "drop"))
    yield relaxed, "satisfies the query with a requirement relaxed"


def first_found(kb: KnowledgeBase, names: Names, queries: Sequence[TripletQuery], *, kinds: bool = True) -> Execution:
    """The first reading of a question that has an answer, or else the first of all.

    What other readings find says nothing about how many or whether: a number is an answer where it is zero, too.
    """
    executions: list[Execution] = []
    for query in queries:
        executions.append(execute(kb, names, query, kinds=kinds))
        if executions[-1].is_answer:
            return executions[-1]
    return executions[0]


def _solved(
    kb: KnowledgeBase, query: TripletQuery, groundings: Groundings, *, hierarchical: bool, steps: tuple[Step, ...] = ()
) -> Focus:
    problem = pose(query, groundings, kb, edge_types="strict", direction="strict", hierarchical=hierarchical)
    relaxed = solve_relaxed(solver(kb, query, groundings, hierarchical=hierarchical), problem, steps)
    return Focus(query, groundings, relaxed.solution, relaxed.relaxations, hierarchical)
