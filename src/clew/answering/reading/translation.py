"""Translate a plan to a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clew.answering.reading.mentions import NamedSpan, Sense
from clew.answering.reading.plan import KINDS, OF_VALUES, Branch, Form, Plan, Requirement
from clew.answering.reading.quantities import Quantity, in_units_of
from clew.answering.reading.vocabulary import SchemaAttribute, Vocabulary
from clew.core.query import (
    Aggregate,
    Attribute,
    Call,
    Compare,
    Constant,
    Edge,
    Either,
    Exists,
    Expression,
    Formula,
    Named,
    Not,
    Order,
    Pattern,
    Query,
    Subquery,
    Value,
    Var,
    Variable,
    find,
    requiring,
)
from clew.core.roles import Asks, Interpretation

TARGET, ROW = "x", "y"
"""Variables of the answer, and of a row that it belongs to."""
ASKS: Mapping[str, Asks] = {
    "count": "number",
    "exists": "truth",
    "each": "each",
    "each value": "each",
    "value": "value",
    "average": "average",
    "sum": "sum",
    "highest": "highest",
    "lowest": "lowest",
    "different": "different",
    "common": "common",
}


OF_BEST: Mapping[Form, Form] = {"highest": "max", "lowest": "min"}
"""Forms that ask for a value, with the form for the node that has it."""


@dataclass(frozen=True)
class Translator:
    """Writes plans as queries. Plans refer to `named`, `senses` and `numbers` by index."""

    vocabulary: Vocabulary
    named: Sequence[NamedSpan]
    senses: Sequence[Sense]
    numbers: Sequence[Quantity]

    def interpretation(self, plan: Plan) -> Interpretation:
        """Return the query for a plan, and the kind of answer it asks for."""
        asked = None if plan.attribute is None else self.vocabulary.attributes[plan.attribute]
        if asked is not None and asked.is_written and plan.form in OF_BEST:  # the text, not its number
            plan = replace(plan, form=OF_BEST[plan.form], asked=plan.attribute)
        if plan.either and len(plan.branches) > 1:
            choices = [self._pattern(replace(plan, branches=(one,))) for one in plan.branches]
            pattern = Pattern((), (), (Either(tuple(map(Exists, choices))),))
        else:
            pattern = self._pattern(plan)
        named = [self.constant(mention) for mention in plan.mentions]
        if named:
            options = tuple(Compare(Var(TARGET), "=", one) for one in named)
            pattern = requiring(pattern, options[0] if len(options) == 1 else Either(options))
        query = self._best(plan, find(TARGET, self._target_type(plan), pattern))
        if plan.step:
            query = self._beside(query, plan)
        if plan.answer_hop is not None:
            query = self._onward(query, plan.answer_hop)
        if plan.asked is not None:
            return Interpretation(query, "value", self.vocabulary.attributes[plan.asked].name)
        if asked is None or plan.form not in OF_VALUES:
            return Interpretation(query, ASKS.get(plan.form, "nodes"))
        asks: Asks = "difference" if plan.is_difference else ASKS[plan.form]
        amount = comparable(asked, TARGET) if plan.form in KINDS or plan.is_difference else None
        return Interpretation(query, asks, asked.name, amount=amount)

    def constant(self, mention: int) -> Named:
        """Return a mention as a name to look up: verbatim, or the name it was matched to."""
        link, sense = self.senses[mention].links[0], self.senses[mention]
        return Named(self.named[mention].text if link.how == "exact" else link.alias, sense.type)

    def _pattern(self, plan: Plan) -> Pattern:
        building = _Building(self)
        for branch in plan.branches:
            building.add(branch)
        target = self._target_type(plan)
        for requirement in plan.requirements:
            if requirement.attribute is not None:
                stored = self.vocabulary.attributes[requirement.attribute]
                variable = building.variable_of(stored.owner, target)
                building.where += self._conditions(requirement, stored, variable)
            elif requirement.hop is not None:
                amount = _literal(self._number(requirement))
                building.where.append(Compare(self._count(requirement.hop), requirement.operator, amount))
        return Pattern((*building.variables, Variable(TARGET, target)), tuple(building.edges), tuple(building.where))

    def _target_type(self, plan: Plan) -> str | None:
        if plan.target is not None:
            return self.vocabulary.schema.type_names[plan.target]
        return self.senses[plan.mentions[0]].type if plan.mentions else None

    def _best(self, plan: Plan, query: Query) -> Query:
        """Return the query with the order and the number of nodes that the plan asks for."""
        limits = [one for one in plan.requirements if one.attribute is None and one.hop is None]
        first = int(self._number(limits[0]) or 0) if limits else None
        amount: Expression
        if plan.attribute is not None and plan.form not in OF_VALUES:
            is_sorted = plan.form.endswith("ending")
            stored = self.vocabulary.attributes[plan.attribute]
            amount = comparable(stored, TARGET)
            if isinstance(amount, Attribute) and stored.kind in ("text", "category") and not is_sorted:
                amount = Call("number", (amount,))
        elif plan.hop is not None:
            is_sorted, amount = plan.form == "each", self._count(plan.hop)
        else:
            return replace(query, first=first)
        is_most = plan.form.endswith("max") or plan.form in ("most", "each", "descending")
        order = (Order(amount, is_most),)
        if is_sorted or first is not None:
            return replace(query, order=order, first=first)
        return replace(query, order=order, first=1, ties=True)

    def _beside(self, query: Query, plan: Plan) -> Query:
        """Return a query for the rows of a table next to the rows of a query."""
        target = self._target_type(plan)
        here, there = (Call("row", (Var(name),)) for name in (TARGET, ROW))
        is_beside = Compare(here, "=", Call("+" if plan.step > 0 else "-", (there, Value(1))))
        chosen = Compare(Var(ROW), "in", Subquery(query))
        return find(TARGET, target, Pattern((Variable(TARGET, target), Variable(ROW, target)), (), (chosen, is_beside)))

    def _onward(self, query: Query, place: int) -> Query:
        """Return a query for the nodes that a hop leads to from the nodes of a query."""
        hop = self.vocabulary.hops[place]
        head, tail = (ROW, TARGET) if hop.direction == "out" else (TARGET, ROW)
        variables = (Variable(TARGET, hop.end), Variable(ROW, hop.start))
        chosen = Compare(Var(ROW), "in", Subquery(query))
        return find(TARGET, hop.end, Pattern(variables, (Edge(head, hop.relation, tail),), (chosen,)))

    def _count(self, place: int) -> Aggregate:
        """Return the number of nodes that a hop leads to from the answer."""
        hop = self.vocabulary.hops[place]
        head, tail = (TARGET, "other") if hop.direction == "out" else ("other", TARGET)
        over = Pattern((Variable("other", hop.end),), (Edge(head, hop.relation, tail),))
        return Aggregate("count", Var("other"), distinct=True, over=over)

    def _number(self, requirement: Requirement) -> float | None:
        return None if requirement.quantity is None else self.numbers[requirement.quantity].value

    def _conditions(self, requirement: Requirement, attribute: SchemaAttribute, variable: str) -> Iterator[Formula]:
        stored, comparison = comparable(attribute, variable), requirement.operator
        if requirement.quantity is None:
            values = requirement.value if isinstance(requirement.value, tuple) else (requirement.value,)
            said = Attribute(variable, attribute.name)
            literals = [int(value) if attribute.is_flag and isinstance(value, bool) else value for value in values]
            options = tuple(Compare(said, comparison, _literal(value)) for value in literals)
            yield options[0] if len(options) == 1 else Either(options)
            return
        quantity = self.numbers[requirement.quantity]
        if not quantity.is_date or (attribute.kind != "date" and quantity.value is not None):
            value = (
                requirement.value
                if requirement.value is not None
                else next(iter(in_units_of(quantity, attribute.name)), None)
            )
            yield Compare(stored, comparison, _literal(value))
            return
        low, high = (
            _literal(day if attribute.kind == "date" else int(day[:4])) for day in (quantity.low, quantity.high)
        )
        if comparison == "=":
            yield Compare(stored, ">=", low)
            yield Compare(stored, "<=", high)
        else:
            yield Compare(stored, comparison, low if comparison in ("<", ">=") else high)


def comparable(attribute: SchemaAttribute, variable: str) -> Expression:
    """Return an attribute as a number or a date, if its texts contain these."""
    stored = Attribute(variable, attribute.name)
    if attribute.is_row:
        return Call("row", (Var(variable),))
    return Call(f"first_{attribute.kind}", (stored,)) if attribute.is_written else stored


def _literal(value: Any) -> Value:
    is_whole = isinstance(value, float) and value.is_integer()
    return Value(int(value) if is_whole else "" if value is None else value)


@dataclass
class _Building:
    """A pattern under construction. Paths that end in the same hops share variables."""

    translator: Translator
    variables: list[Variable] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    where: list[Formula] = field(default_factory=list)
    shared: dict[tuple[int, ...], str] = field(default_factory=dict)

    def add(self, branch: Branch) -> None:
        hops = [self.translator.vocabulary.hops[place] for place in branch.hops]
        own: list[Variable] = []
        start: str | Constant
        if branch.mention is None:
            start = f"any{len(self.edges) + len(self.where)}"
            own.append(Variable(start, hops[0].start))
        else:
            start = self.translator.constant(branch.mention)
        ends: list[str | Constant] = [start]
        for place, hop in enumerate(hops[:-1]):
            rest = branch.hops[place + 1 :]
            name = f"no{len(self.where)}_{place}" if branch.negated else f"y{len(self.shared) + 1}"
            name = name if branch.negated else self.shared.setdefault(rest, name)
            own.append(Variable(name, hop.end))
            ends.append(name)
        edges = []
        for hop, first, second in zip(hops, ends, [*ends[1:], TARGET], strict=True):
            head, tail = (first, second) if hop.direction == "out" else (second, first)
            edges.append(Edge(head, hop.relation, tail))
        if branch.negated:
            self.where.append(Not(Exists(Pattern(tuple(own), tuple(edges)))))
            return
        self.variables += own
        self.edges += [edge for edge in edges if edge not in self.edges]

    def variable_of(self, owner: str, target: str | None) -> str:
        """Return the answer's variable if its type has the attribute, or else a variable on a path whose type does."""
        fitting = [one.name for one in self.variables if one.type == owner]
        return TARGET if target == owner or not fitting else fitting[0]
