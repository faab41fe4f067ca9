"""Triplet queries as queries of the algebra, until everything speaks the algebra itself."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from clew.answering.queries.algebra.values import (
    Aggregate,
    Attribute,
    Call,
    Column,
    Compare,
    Edge,
    Either,
    Exists,
    Expression,
    Formula,
    Nodes,
    Not,
    Order,
    Pattern,
    Query,
    Subquery,
    Value,
    Var,
    Variable,
)
from clew.answering.queries.grounding import DirectionRule, EdgeTypes, Groundings, expansions, follows, is_usable
from clew.core.query import Best, Constant, Triplet, TripletQuery
from clew.core.query import Variable as OldVariable
from clew.core.types import NodeSet
from clew.store.graph.protocol import KnowledgeBase

TARGET = "x"
"""What the answers are called."""
Readings = Sequence[tuple[TripletQuery, Groundings]]
"""A triplet query and those that may hold instead, each with the nodes of its constants."""


def from_triplets(
    kb: KnowledgeBase,
    readings: Readings,
    *,
    hierarchical: bool = False,
    edge_types: EdgeTypes = "strict",
    direction: DirectionRule = "strict",
    never: Sequence[NodeSet] = (),
    asked: NodeSet | None = None,
) -> Query:
    """Return the query that gives what solving and finishing the readings gives.

    `never` are nodes that are no answers of each reading. `asked` are the nodes that a question about the best names.
    """
    writers = [_Reading(kb, *reading, hierarchical, edge_types, direction) for reading in readings]
    patterns = [writer.pattern() for writer in writers]
    for number, nodes in enumerate(never):
        if len(nodes):
            left_out = Compare(Var(TARGET), "!=", Nodes(_keys(kb, nodes)))
            one = patterns[number]
            patterns[number] = Pattern(one.variables, one.edges, (*one.where, left_out))
    whole = patterns[0]
    if len(patterns) > 1:
        whole = Pattern((Variable(TARGET),), (), (Either(tuple(map(Exists, patterns))),))
    query = readings[0][0]
    found = Query((Column(Var(TARGET)),), whole, distinct=True)
    if query.best is not None:
        order = Order(_amount(kb, query.best), query.best.most)
        found = Query((Column(Var(TARGET)),), whole, True, order=(order,), first=1, ties=True)
    return _finished(kb, query, found, asked)


def _finished(kb: KnowledgeBase, query: TripletQuery, found: Query, asked: NodeSet | None) -> Query:
    """Return the nodes, their number, or a value of each."""
    if query.asks == "nodes":
        return found
    pattern = found.pattern
    if found.first is not None:
        pattern = Pattern((Variable(TARGET),), (), (Compare(Var(TARGET), "in", Subquery(found)),))
    if asked is not None:
        among = Compare(Var(TARGET), "=", Nodes(_keys(kb, asked)))
        pattern = Pattern(pattern.variables, pattern.edges, (*pattern.where, among))
    if query.asks == "value" and query.attribute is not None:
        columns = Column(Var(TARGET)), Column(Attribute(TARGET, query.attribute))
        return Query(columns, pattern, distinct=True)
    return Query((Column(Aggregate("count", Var(TARGET), distinct=True)),), pattern)


def _amount(kb: KnowledgeBase, best: Best) -> Expression:
    """Return what the best answers have most or least of."""
    if best.attribute is not None:
        attribute = Attribute(TARGET, best.attribute)
        is_text = kb.schema.attribute_types.get(best.attribute, "text") == "text"
        return Call("number", (attribute,)) if is_text else attribute
    head, tail = (TARGET, "other") if best.is_head else ("other", TARGET)
    over = Pattern((Variable("other", best.of),), (Edge(head, best.relation, tail),))
    return Aggregate("count", Var("other"), distinct=True, over=over)


def _keys(kb: KnowledgeBase, nodes: NodeSet) -> tuple[str, ...]:
    return tuple(ref.key for ref in kb.refs(nodes.array))


class _Reading:
    """One triplet query with its constants."""

    def __init__(
        self,
        kb: KnowledgeBase,
        query: TripletQuery,
        groundings: Groundings,
        hierarchical: bool,
        edge_types: EdgeTypes,
        direction: DirectionRule,
    ) -> None:
        self.kb, self.query, self.groundings, self.hierarchical = kb, query, groundings, hierarchical
        self.edge_types, self.direction = edge_types, direction
        self.types = {name: variable.type for name, variable in query.variables().items()}
        self.numbers = count(1)

    def pattern(self) -> Pattern:
        """Return what is required of the answers."""
        triplets = [triplet for triplet in self.query.triplets if is_usable(triplet, self.groundings)]
        target = self.query.target.name
        whole = self.block(target, triplets, {target: TARGET})
        if not self.query.among:
            return whole
        named = NodeSet.of([node for constant in self.query.among for node in self.groundings[constant].nodes])
        among = Compare(Var(TARGET), "=", Nodes(_keys(self.kb, named)))
        return Pattern(whole.variables, whole.edges, (*whole.where, among))

    def block(self, target: str, triplets: Sequence[Triplet], names: dict[str, str], *, counts: bool = True) -> Pattern:
        """Return the part of the query that required triplets tie to a variable. `names` are those given already."""
        group = _group(target, triplets)
        names = {**{name: f"y{next(self.numbers)}" for name in sorted(group)}, **names}
        rest = [triplet for triplet in triplets if not group & set(_variables(triplet))]
        variables = {names[name]: self.types.get(name) for name in sorted(group)}
        edges: list[Edge] = []
        where: list[Formula] = []
        for triplet in triplets:
            ends = _variables(triplet)
            if not group & set(ends):
                continue
            if not triplet.negated:
                more, own = self.edge(triplet, names)
                edges += more
                variables |= own
                continue
            outside = [name for name in ends if name not in group]
            inner_names = {**names, **{name: f"y{next(self.numbers)}" for name in outside}}
            more, own = self.edge(triplet, inner_names)
            absent = Pattern(tuple(Variable(*one) for one in own.items()), tuple(more))
            if outside:
                inner = self.block(outside[0], rest, {outside[0]: inner_names[outside[0]]})
                absent = Pattern((*inner.variables, *absent.variables), (*inner.edges, *absent.edges), inner.where)
            where.append(Not(Exists(absent)))
        for condition in self.query.conditions:
            if condition.variable in group:
                value = condition.value.isoformat() if isinstance(condition.value, datetime.date) else condition.value
                attribute = Attribute(names[condition.variable], condition.attribute)
                where.append(Compare(attribute, condition.comparison, Value(value)))
        if counts:
            where += self.counts(target, triplets, group, names)
        return Pattern(tuple(Variable(*one) for one in variables.items()), tuple(edges), tuple(where))

    def counts(
        self, target: str, triplets: Sequence[Triplet], group: set[str], names: dict[str, str]
    ) -> Iterator[Formula]:
        """Yield the conditions on numbers of nodes: they are counted over the block without such conditions."""
        for number in self.query.counts:
            if {number.variable, number.of} <= group:
                fresh = {name: f"y{next(self.numbers)}" for name in sorted(group)}
                fresh[number.variable] = names[number.variable]
                over = self.block(target, triplets, fresh, counts=False)
                amount = Aggregate("count", Var(fresh[number.of]), distinct=True, over=over)
                yield Compare(amount, number.comparison, Value(number.value))

    def edge(self, triplet: Triplet, names: dict[str, str]) -> tuple[list[Edge], dict[str, str | None]]:
        """Return the edges of a triplet. A constant may also stand for what is below it, by walks to it."""
        edges: list[Edge] = []
        own: dict[str, str | None] = {}
        ends: list[Any] = []
        for term in (triplet.head, triplet.tail):
            if isinstance(term, OldVariable):
                ends.append(names[term.name])
                continue
            end: str | Nodes = Nodes(_keys(self.kb, self.groundings[term].nodes))
            for expansion in self.widened(triplet, term):
                wider = f"c{next(self.numbers)}"
                own[wider] = None
                down = follows(expansion.relation, upward=expansion.upward)
                head, tail = (wider, end) if down else (end, wider)
                edges.append(Edge(head, expansion.relation.name, tail, least=0, most=None))
                end = wider
            ends.append(end)
        relation = None if self.edge_types == "ignore" else triplet.relation
        directed = self.direction != "any" and relation is not None
        edges.append(Edge(ends[0], relation, ends[1], directed))
        return edges, own

    def widened(self, triplet: Triplet, term: Constant) -> Sequence[Any]:
        return expansions(triplet, term, self.kb.schema) if self.hierarchical or triplet.negated else ()


def _variables(triplet: Triplet) -> list[str]:
    return [term.name for term in (triplet.head, triplet.tail) if isinstance(term, OldVariable)]


def _group(target: str, triplets: Sequence[Triplet]) -> set[str]:
    """Return the variables that required triplets tie to the target."""
    group = {target}
    links = [set(_variables(triplet)) for triplet in triplets if not triplet.negated]
    while more := {name for ends in links if len(ends) == 2 and ends & group for name in ends} - group:
        group |= more
    return group
