"""A template with its entities filled in: the gold query, and the nodes that executing it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clew.core.query import Constant, Term, Triplet, TripletQuery, Variable
from clew.core.types import NodeRef, NodeSet, Path
from clew.index.protocol import Link
from clew.kb.protocol import KnowledgeBase
from clew.queries.grounding import Grounding, Groundings, pose
from clew.queries.solutions import Solution, solve
from clew.queries.witnesses import witnesses
from clew.synthesis.templates import Branch, Template

TARGET = "answer"


@dataclass(frozen=True)
class Requirement:
    """What a question asks of the graph: a template, the entity behind each label, and every node that satisfies it."""

    template: Template
    entities: Mapping[str, NodeRef]
    candidates: NodeSet
    """What executing the query gives, the named entities included where they satisfy it themselves."""

    @property
    def query(self) -> TripletQuery:
        """The gold query."""
        return gold_query(self.template, self.entities)

    @property
    def possible(self) -> NodeSet:
        """The candidates that may be answers: nothing that the question itself names."""
        return self.candidates - NodeSet.of([ref.id for ref in self.entities.values()])

    @property
    def identity(self) -> str:
        """Two requirements with one identity ask the same."""
        named = ",".join(f"{label}={ref.key}" for label, ref in sorted(self.entities.items()))
        return f"{self.template}|{named}"


def gold_query(template: Template, entities: Mapping[str, NodeRef]) -> TripletQuery:
    """The branches of a template as triplets, each in its stored direction."""
    triplets: list[Triplet] = []
    for number, branch in enumerate(template.branches, 1):
        triplets += _triplets(branch, number, entities)
    return TripletQuery(tuple(triplets), Variable(TARGET, template.target))


def _triplets(branch: Branch, number: int, entities: Mapping[str, NodeRef]) -> list[Triplet]:
    start = branch.start
    near: Term = (
        Variable(f"any{number}", start.type) if start.anything else Constant(entities[start.label].name, start.type)
    )
    found = []
    for place, step in enumerate(branch.steps, 1):
        last = place == len(branch.steps)
        far: Term = Variable(TARGET, step.target) if last else Variable(f"via{number}_{place}", step.target)
        head, tail = (near, far) if step.direction == "out" else (far, near)
        found.append(Triplet(head, step.relation, tail, step.negated))
        near = far
    return found


def execute(kb: KnowledgeBase, query: TripletQuery, entities: Mapping[str, NodeRef]) -> Solution:
    """Every relation in its stored direction; each constant stands for the one entity it names."""
    return solve(kb, pose(query, groundings_of(query, entities), kb, edge_types="strict", direction="strict"))


def groundings_of(query: TripletQuery, entities: Mapping[str, NodeRef]) -> Groundings:
    """The constants of a gold query are known nodes."""
    known = {(ref.name, ref.type): ref for ref in entities.values()}
    found = {}
    for constant in query.constants():
        ref = known[constant.text, constant.type or ""]
        found[constant] = Grounding(constant, (Link(ref.id, ref.name, "exact", 1.0),))
    return found


def gold_paths(kb: KnowledgeBase, requirement: Requirement, answers: NodeSet) -> dict[int, tuple[Path, ...]]:
    """For each answer one way through the graph from it to what the question names."""
    solution = execute(kb, requirement.query, requirement.entities)
    return {answer: witnesses(kb, solution, {}, answer, limit=1) for answer in answers}


def query_to_json(query: TripletQuery) -> dict[str, Any]:
    """A gold query as plain values: `?name` for variables, names for entities."""

    def shown(term: Term) -> str:
        return f"?{term.name}" if isinstance(term, Variable) else term.text

    def row(triplet: Triplet) -> dict[str, Any]:
        kinds = {"head_type": triplet.head.type, "tail_type": triplet.tail.type}
        return {"head": shown(triplet.head), "relation": triplet.relation, "tail": shown(triplet.tail)} | kinds

    return {
        "answer": shown(query.target),
        "variables": {f"?{name}": variable.type for name, variable in query.variables().items()},
        "triplets": [row(triplet) for triplet in query.triplets if not triplet.negated],
        "absent": [row(triplet) for triplet in query.triplets if triplet.negated],
    }


def query_from_json(raw: Mapping[str, Any]) -> TripletQuery:
    """The query that `query_to_json` wrote."""
    kinds: Mapping[str, str | None] = raw["variables"]

    def term(row: Mapping[str, Any], end: str) -> Term:
        text = row[end]
        return Variable(text[1:], kinds[text]) if text in kinds else Constant(text, row[f"{end}_type"])

    triplets = [
        Triplet(term(row, "head"), row["relation"], term(row, "tail"), negated)
        for part, negated in (("triplets", False), ("absent", True))
        for row in raw[part]
    ]
    target: str = raw["answer"]
    return TripletQuery(tuple(triplets), Variable(target[1:], kinds[target]))
