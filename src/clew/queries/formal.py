"""A query as nested blocks: what must hold, and inside it what must not, as formal query languages write it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from clew.core.query import Condition, Constant, Count, TripletQuery
from clew.core.schema import Schema
from clew.kb.iris import attribute_iri, node_iri, relation_iri, type_iri
from clew.kb.protocol import KnowledgeBase
from clew.queries.grounding import Expansion, Groundings, expansions
from clew.queries.hierarchies import below
from clew.queries.problem import Constraint, Problem
from clew.queries.solutions import connected


@dataclass(frozen=True)
class Named:
    """A constant: the nodes it names and the hierarchies along which it stands for more."""

    nodes: tuple[int, ...]
    expansions: tuple[Expansion, ...]


@dataclass(frozen=True)
class Requirement:
    """An edge between two ends, each a variable's name or a constant; `relation` None means any."""

    head: str | Named
    relation: str | None
    tail: str | Named
    any_direction: bool


@dataclass(frozen=True)
class Absence:
    """An edge that must not be there, and what else would have to hold of its far end."""

    edge: Requirement
    inner: Block | None


@dataclass(frozen=True)
class Block:
    """Typed variables, edges that must be there, what must not, conditions and counts."""

    types: Mapping[str, str | None]
    required: tuple[Requirement, ...]
    absences: tuple[Absence, ...]
    conditions: tuple[Condition, ...]
    counts: tuple[Count, ...]


def as_block(
    query: TripletQuery, problem: Problem, groundings: Groundings, schema: Schema, *, hierarchical: bool
) -> Block:
    """A query as it was solved: relaxed triplets appear as they were relaxed, ignored ones not at all."""

    def requirement(constraint: Constraint) -> Requirement:
        triplet = query.triplets[constraint.triplet]
        widen = hierarchical or triplet.negated

        def end(term: object, position: object) -> str | Named:
            if isinstance(position, str):
                return position
            assert isinstance(term, Constant)
            nodes = tuple(groundings[term].nodes)
            return Named(nodes, expansions(triplet, term, schema) if widen else ())

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
            {variable: problem.types.get(variable) for variable in sorted(group)},
            tuple(required),
            tuple(absences),
            tuple(condition for condition in query.conditions if condition.variable in group),
            tuple(count for count in query.counts if group.issuperset((count.variable, count.of))),
        )

    return block(problem)


def sparql(block: Block, target: str, kb: KnowledgeBase) -> str:
    """A SPARQL 1.1 query whose results are the IRIs of the answers."""
    writer = _Sparql(kb)
    writer.block(block, "  ")
    return "\n".join([f"SELECT DISTINCT ?{target} WHERE {{", *writer.lines, "}"])


def cypher(block: Block, target: str, kb: KnowledgeBase) -> str:
    """A Cypher query whose results are the keys of the answers."""
    writer = _Cypher(kb)
    writer.block(block)
    return "\n".join([*writer.lines, f"RETURN DISTINCT {_name(target)}.key AS key"])


@dataclass
class _Writer:
    kb: KnowledgeBase
    lines: list[str] = field(default_factory=list)
    numbers: count[int] = field(default_factory=lambda: count(1))

    def keys(self, named: Named) -> list[str]:
        return [ref.key for ref in self.kb.refs(named.nodes)]

    def is_date(self, condition: Condition) -> bool:
        return self.kb.schema.attribute_types.get(condition.attribute) == "date"


class _Sparql(_Writer):
    def block(self, block: Block, indent: str) -> None:
        for number in block.counts:
            self.lines.append(f"{indent}{{ SELECT ?{number.variable} WHERE {{")
            self.body(block, indent + "  ")
            having = f"COUNT(DISTINCT ?{number.of}) {number.comparison} {number.value}"
            self.lines.append(f"{indent}}} GROUP BY ?{number.variable} HAVING ({having}) }}")
        self.body(block, indent)

    def body(self, block: Block, indent: str) -> None:
        for variable, kind in block.types.items():
            shown = f"?type{next(self.numbers)}" if kind is None else f"<{type_iri(kind)}>"
            self.lines.append(f"{indent}?{variable} a {shown} .")
        for requirement in block.required:
            self.edge(requirement, indent)
        for condition in block.conditions:
            value = f"?value{next(self.numbers)}"
            self.lines.append(f"{indent}?{condition.variable} <{attribute_iri(condition.attribute)}> {value} .")
            self.lines.append(f"{indent}FILTER({_compared(value, condition, _SPARQL, self.is_date(condition))})")
        for absence in block.absences:
            self.lines.append(f"{indent}FILTER NOT EXISTS {{")
            self.edge(absence.edge, indent + "  ")
            if absence.inner is not None:
                self.block(absence.inner, indent + "  ")
            self.lines.append(f"{indent}}}")

    def edge(self, requirement: Requirement, indent: str) -> None:
        head, tail = (self.end(end, indent) for end in (requirement.head, requirement.tail))
        if requirement.relation is not None:
            iri = f"<{relation_iri(requirement.relation)}>"
            path = f"({iri}|^{iri})" if requirement.any_direction else iri
            self.lines.append(f"{indent}{head} {path} {tail} .")
            return
        relation = f"?relation{next(self.numbers)}"
        either = f" UNION {{ {tail} {relation} {head} }}" if requirement.any_direction else ""
        self.lines.append(f"{indent}{{ {head} {relation} {tail} }}{either}")

    def end(self, end: str | Named, indent: str) -> str:
        if isinstance(end, str):
            return f"?{end}"
        keys = [f"<{node_iri(key)}>" for key in self.keys(end)]
        top = keys[0]
        if len(keys) > 1:
            top = f"?constant{next(self.numbers)}"
            self.lines.append(f"{indent}VALUES {top} {{ {' '.join(keys)} }}")
        if not end.expansions:
            return top
        steps = [
            f"<{relation_iri(e.relation.name)}>*" if _follows(e) else f"(^<{relation_iri(e.relation.name)}>)*"
            for e in reversed(end.expansions)
        ]
        widened = f"?constant{next(self.numbers)}"
        self.lines.append(f"{indent}{widened} {'/'.join(steps)} {top} .")
        return widened


class _Cypher(_Writer):
    def block(self, block: Block) -> None:
        kept: list[str] = []
        for place, number in enumerate(block.counts, 1):
            self.body(block)
            variable, amount, name = _name(number.variable), f"amount{place}", f"kept{place}"
            carried = "".join(f"{other}, " for other in kept)
            self.lines.append(f"WITH {carried}{variable}, count(DISTINCT {_name(number.of)}) AS {amount}")
            comparison = {"!=": "<>"}.get(number.comparison, number.comparison)
            self.lines.append(f"WHERE {amount} {comparison} {number.value}")
            self.lines.append(f"WITH {carried}collect({variable}.key) AS {name}")
            kept.append(name)
        self.body(block)
        tests = [f"{_name(c.variable)}.key IN {name}" for c, name in zip(block.counts, kept, strict=True)]
        if tests:
            self.lines.append("WITH * WHERE " + " AND ".join(tests))

    def body(self, block: Block) -> None:
        tests = [self.condition(condition) for condition in block.conditions]
        self.lines += [f"MATCH {self.node(variable, kind)}" for variable, kind in block.types.items()]
        for requirement in block.required:
            patterns, where = self.edge(requirement)
            self.lines += [f"MATCH {pattern}" for pattern in patterns]
            tests += where
        tests += [self.absence(absence) for absence in block.absences]
        if tests:
            self.lines.append("WITH * WHERE " + " AND ".join(tests))

    def absence(self, absence: Absence) -> str:
        patterns, tests = self.edge(absence.edge)
        inner = absence.inner
        if inner is not None:
            patterns = [*(self.node(variable, kind) for variable, kind in inner.types.items()), *patterns]
            for requirement in inner.required:
                more, where = self.edge(requirement)
                patterns, tests = [*patterns, *more], [*tests, *where]
            tests += [self.condition(condition) for condition in inner.conditions]
            tests += [self.absence(deeper) for deeper in inner.absences]
        only = f" WHERE {' AND '.join(tests)}" if tests else ""
        return f"NOT EXISTS {{ MATCH {', '.join(patterns)}{only} }}"

    def node(self, variable: str, kind: str | None) -> str:
        return f"({_name(variable)})" if kind is None else f"({_name(variable)}:{_name(kind)})"

    def edge(self, requirement: Requirement) -> tuple[list[str], list[str]]:
        """Patterns and tests; every edge has a MATCH of its own: inside one, Cypher uses no edge twice."""
        patterns, tests = [], []
        ends = []
        for end in (requirement.head, requirement.tail):
            if isinstance(end, str):
                ends.append(f"({_name(end)})")
                continue
            place = f"constant{next(self.numbers)}"
            ends.append(f"({place})")
            for expansion in reversed(end.expansions):
                upper, name = f"constant{next(self.numbers)}", _name(expansion.relation.name)
                arrow = f"-[:{name}*0..]->" if _follows(expansion) else f"<-[:{name}*0..]-"
                patterns.append(f"({place}){arrow}({upper})")
                place = upper
            tests.append(f"{place}.key IN {json.dumps(self.keys(end), ensure_ascii=False)}")
        relation = "" if requirement.relation is None else f":{_name(requirement.relation)}"
        arrow = "-" if requirement.any_direction else "->"
        return [f"{ends[0]}-[{relation}]{arrow}{ends[1]}", *patterns], tests

    def condition(self, condition: Condition) -> str:
        value = f"{_name(condition.variable)}.{_name(condition.attribute)}"
        return _compared(value, condition, _CYPHER, self.is_date(condition))


def _name(text: str) -> str:
    """A name that is no plain word is quoted."""
    return text if text.isidentifier() and text.isascii() else "`" + text.replace("`", "``") + "`"


def _follows(expansion: Expansion) -> bool:
    """Whether edges lead from what a widened constant stands for to what the question names."""
    return (below(expansion.relation) == "in") != expansion.upward


@dataclass(frozen=True)
class _Language:
    lower: Callable[[str], str]
    prefix: Callable[[str, int], str]
    contains: Callable[[str, str], str]
    unequal: str


_SPARQL = _Language(
    lambda value: f"LCASE(STR({value}))",
    lambda value, length: f"SUBSTR(STR({value}), 1, {length})",
    lambda value, part: f"CONTAINS({value}, {part})",
    "!=",
)
_CYPHER = _Language(
    lambda value: f"toLower(toString({value}))",
    lambda value, length: f"left(toString({value}), {length})",
    lambda value, part: f"{value} CONTAINS {part}",
    "<>",
)


def _compared(value: str, condition: Condition, language: _Language, is_date: bool) -> str:
    """A comparison as `clew.queries.problem` makes it: words without case, dates as far as they are given."""
    wanted = condition.value
    comparison = language.unequal if condition.comparison == "!=" else condition.comparison
    if condition.comparison == "contains":
        return language.contains(language.lower(value), json.dumps(str(wanted).lower(), ensure_ascii=False))
    if is_date:
        text = wanted.isoformat() if isinstance(wanted, datetime.date) else str(wanted)
        return f"{language.prefix(value, len(text))} {comparison} {json.dumps(text)}"
    if isinstance(wanted, str):
        return f"{language.lower(value)} {comparison} {json.dumps(wanted.lower(), ensure_ascii=False)}"
    return f"{value} {comparison} {json.dumps(wanted)}"
