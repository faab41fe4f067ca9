"""From the plan that a question means to the query that is carried out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clew.answering.reading.mentions import Named, Sense
from clew.answering.reading.plan import Branch, Plan, Requirement
from clew.answering.reading.quantities import Quantity, in_units_of
from clew.answering.reading.vocabulary import Vocabulary
from clew.core.query import Asks, Best, Condition, Constant, Term, Triplet, TripletQuery, Variable

TARGET = "x"
ASKS: Mapping[str, Asks] = {"count": "number", "exists": "truth", "value": "value"}


@dataclass(frozen=True)
class Translator:
    """Writes plans as queries; `named`, `senses` and `numbers` are what the plans speak of by position."""

    vocabulary: Vocabulary
    named: Sequence[Named]
    senses: Sequence[Sense]
    numbers: Sequence[Quantity]

    def query(self, plan: Plan) -> TripletQuery:
        """The query that a plan stands for."""
        if plan.either and len(plan.branches) > 1:
            first, *others = (self.query(replace(plan, branches=(one,), either=False)) for one in plan.branches)
            return replace(first, either=tuple(others))
        building = _Building(self)
        target = Variable(TARGET, self._target_type(plan))
        for branch in plan.branches:
            building.add(branch, target)
        conditions = [
            condition
            for requirement in plan.requirements
            for condition in self._conditions(requirement, building.variable_of(requirement, target))
        ]
        attribute = None if plan.attribute is None else self.vocabulary.attributes[plan.attribute].name
        return TripletQuery(
            tuple(building.triplets),
            target,
            tuple(conditions),
            among=tuple(self.constant(mention) for mention in plan.mentions),
            best=self._best(plan, attribute),
            asks=ASKS.get(plan.form, "nodes"),
            attribute=attribute if plan.form == "value" else None,
        )

    def constant(self, mention: int) -> Constant:
        """A mention as it is looked up: in its own words, or by the name that those were taken for."""
        link, sense = self.senses[mention].links[0], self.senses[mention]
        return Constant(self.named[mention].text if link.how == "exact" else link.alias, sense.type)

    def _target_type(self, plan: Plan) -> str | None:
        if plan.target is not None:
            return self.vocabulary.schema.type_names[plan.target]
        return self.senses[plan.mentions[0]].type if plan.mentions else None

    def _best(self, plan: Plan, attribute: str | None) -> Best | None:
        if plan.form in ("max", "min", "compare_max", "compare_min"):
            return Best(plan.form.endswith("max"), attribute)
        if plan.hop is not None:
            hop = self.vocabulary.hops[plan.hop]
            rows = self.vocabulary.schema.relation_rows(hop.relation)
            ends = {row.tail if hop.direction == "out" else row.head for row in rows}
            end = hop.end if len(ends) > 1 else None
            return Best(plan.form == "most", relation=hop.relation, is_head=hop.direction == "out", of=end)
        return None

    def _conditions(self, requirement: Requirement, variable: str) -> Iterator[Condition]:
        attribute = self.vocabulary.attributes[requirement.attribute]
        comparison = requirement.operator
        if requirement.quantity is None:
            yield Condition(variable, attribute.name, comparison, requirement.value)
            return
        quantity = self.numbers[requirement.quantity]
        if not quantity.is_date or (attribute.kind != "date" and quantity.value is not None):
            value = (
                requirement.value
                if requirement.value is not None
                else next(iter(in_units_of(quantity, attribute.name)), None)
            )
            yield Condition(variable, attribute.name, comparison, value)
            return
        low, high = (day if attribute.kind == "date" else float(day[:4]) for day in (quantity.low, quantity.high))
        if comparison == "=":
            yield Condition(variable, attribute.name, ">=", low)
            yield Condition(variable, attribute.name, "<=", high)
        else:
            yield Condition(variable, attribute.name, comparison, low if comparison in ("<", ">=") else high)


@dataclass
class _Building:
    """Triplets while they are put together; ways that end in the same hops share the variables between them."""

    translator: Translator
    triplets: list[Triplet] = field(default_factory=list)
    shared: dict[tuple[int, ...], Variable] = field(default_factory=dict)

    def add(self, branch: Branch, target: Variable) -> None:
        hops = [self.translator.vocabulary.hops[place] for place in branch.hops]
        if branch.mention is None:
            start: Term = Variable(f"none{len(self.triplets)}", hops[0].start)
        else:
            start = self.translator.constant(branch.mention)
        ends = [self._variable(branch.hops[place + 1 :], hop.end, branch) for place, hop in enumerate(hops[:-1])]
        for hop, first, second in zip(hops, [start, *ends], [*ends, target], strict=True):
            head, tail = (first, second) if hop.direction == "out" else (second, first)
            triplet = Triplet(head, hop.relation, tail, branch.negated)
            if triplet not in self.triplets:
                self.triplets.append(triplet)

    def _variable(self, rest: tuple[int, ...], kind: str, branch: Branch) -> Variable:
        if branch.negated:
            return Variable(f"none{len(self.triplets)}", kind)
        return self.shared.setdefault(rest, Variable(f"y{len(self.shared) + 1}", kind))

    def variable_of(self, requirement: Requirement, target: Variable) -> str:
        """The answer where it has the attribute, or else what lies on the way and has it."""
        owner = self.translator.vocabulary.attributes[requirement.attribute].owner
        fitting = [variable.name for variable in self.shared.values() if variable.type == owner]
        return target.name if target.type == owner or not fitting else fitting[0]
