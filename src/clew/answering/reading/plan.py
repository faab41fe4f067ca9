"""Plans: possible readings of a question as a query, as indexes into a schema's vocabulary, and their translation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal, get_args

from clew.answering.reading.mentions import NamedSpan, Sense
from clew.answering.reading.quantities import Quantity, in_units_of
from clew.answering.reading.vocabulary import SchemaAttribute, Vocabulary
from clew.core import query as ql
from clew.core.roles import Asks, Interpretation
from clew.core.schema import words_of

Form = Literal[
    "list",
    "count",
    "exists",
    "value",
    "max",
    "min",
    "most",
    "fewest",
    "compare_max",
    "compare_min",
    "describe",
    "none",
    "average",
    "sum",
    "highest",
    "lowest",
    "different",
    "common",
    "each value",
    "each",
    "ascending",
    "descending",
]
FORMS: tuple[Form, ...] = get_args(Form)
"""Forms of questions. `none` means that the schema cannot express the question. The trained head uses this order. `max`
asks for the node with the highest value, `highest` for that value. `each` asks for the number of neighbors of each
node, `each value` for the number of nodes with each value of an attribute."""
NUMBERS = frozenset({"number", "integer"})
SORTED = NUMBERS | {"date"}
KINDS = {"average": NUMBERS, "sum": NUMBERS, "highest": SORTED, "lowest": SORTED}
"""Kinds of attributes for forms that not every attribute allows."""
OF_VALUES = KINDS.keys() | {"value", "different", "common", "each value"}
"""Forms that ask for values of an attribute of the answer."""
ORDERED = frozenset({"max", "min", "ascending", "descending"})
"""Forms that sort the answer by an attribute."""
COMPARISONS: tuple[ql.Comparison, ...] = ("=", "!=", "<", "<=", ">", ">=")
OPERATORS = (*COMPARISONS, "-", "first")
"""Roles of a number: a comparison, `-` if it is not a condition, `first` if it limits the answers ("the three
longest"). The trained head uses this order."""
LETTERS = "ABCDEFGH"
SHORT_DESCRIPTION = 7
"""Maximum words of a relation's description in an option."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A requirement on the answer: the hops that lead to it from a mention, or from any node."""

    mention: int | None
    hops: tuple[int, ...]
    negated: bool = False
    apart: bool = False
    """Whether it passes through other nodes than another branch with the same hops: no row has two of the names."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition on an attribute of the answer or of a node on the way to it, or on a number of neighbors.

    Without an attribute or a hop it limits the number of answers.
    """

    attribute: int | None
    operator: ql.Comparison
    quantity: int | None = None
    """Index of the number or date in the question to compare with."""
    value: str | bool | float | tuple[str, ...] | None = None
    """Other value to compare with: a category, one of several, true or false. Or the number in the attribute's unit."""
    hop: int | None = None
    """The hop from the answer whose end nodes are counted."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A question form about the nodes that satisfy all branches and requirements."""

    form: Form
    target: int | None = None
    """Type of the answer."""
    branches: tuple[Branch, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    attribute: int | None = None
    """Attribute of a value, a superlative or a comparison."""
    hop: int | None = None
    """Hop to count for `most`, `fewest` and `each`."""
    mentions: tuple[int, ...] = ()
    """Mentions that the plan is about directly: in a description, a comparison or a plain value."""
    either: bool = False
    """Whether one branch is enough."""
    is_difference: bool = False
    """Whether a value is the difference between the highest and the lowest one."""
    asked: int | None = None
    """Attribute to return of the nodes that a superlative selects: "the city of the oldest singer"."""
    step: int = 0
    """1 to ask for the rows of a table after the selected rows, -1 for the rows before them."""
    answer_hop: int | None = None
    """Hop from the selected rows of a table to the answer: "the last opponent"."""
    of_rows: bool = False
    """Whether branches and requirements select the rows that `hop` counts for each answer: "the customer with the most
    orders of tents". With an attribute, its sum counts."""
    average: bool = False
    """Whether the average of the attribute counts instead of the sum: "the site with the best average yield"."""
    through: int | None = None
    """Hop from the answer to the nodes whose `hop` is counted: the team whose players have the most shots."""


@dataclass(frozen=True)
class Wording:
    """Converts plans to the text that the deciding encoder reads."""

    vocabulary: Vocabulary

    def of(self, plan: Plan) -> str:
        """Return a plan as text: `count : A ← treats ← substance ; half life hours > N`."""
        joined = " or ".join if plan.either else " ; ".join
        parts = [self._branch(branch, plan) for branch in plan.branches]
        rows = (
            self.vocabulary.type_words(self.vocabulary.hops[plan.hop].end)
            if plan.of_rows and plan.hop is not None
            else ""
        )
        body = joined(parts) if parts else rows or self._type(plan.target)
        if plan.requirements:
            body += " ; " + " ; ".join(map(self._requirement, plan.requirements))
        said = self._asked(plan, body)
        if plan.step:
            said = f"{self._type(plan.target)} {'after' if plan.step > 0 else 'before'} {said}"
        if plan.answer_hop is not None:
            said = f"{self.vocabulary.type_words(self.vocabulary.hops[plan.answer_hop].end)} of {said}"
        return said if plan.asked is None else f"{self.vocabulary.attributes[plan.asked].words} of {said}"

    def _asked(self, plan: Plan, body: str) -> str:
        named = " , ".join(LETTERS[mention] for mention in plan.mentions)
        attribute = "" if plan.attribute is None else self.vocabulary.attributes[plan.attribute].words
        match plan.form:
            case "list" | "none":
                return f"{named} ; {body}" if named and (plan.branches or plan.requirements) else named or body
            case "describe":
                return f"describe {named}"
            case "value" if plan.is_difference:
                return f"difference {attribute} : {named or body}"
            case "value" if named and plan.requirements:
                return f"{attribute} of {named} ; " + " ; ".join(map(self._requirement, plan.requirements))
            case "value":
                return f"{attribute} of {named or body}"
            case "compare_max" | "compare_min":
                return f"{plan.form.removeprefix('compare_')} {attribute} of {named}"
            case "most" | "fewest" if plan.of_rows and plan.hop is not None:
                total = f"{'average' if plan.average else 'sum'} {attribute} of " if attribute else ""
                return f"{plan.form} {total}{self.hop(plan.hop)} of each {self._type(plan.target)} : {body}"
            case "most" | "fewest":
                counted = " ".join(self.hop(hop) for hop in (plan.through, plan.hop) if hop is not None)
                return f"{plan.form} {counted} of {named}" if named else f"{plan.form} {counted} : {body}"
            case "each":
                return f"count {self.hop(plan.hop or 0)} of each : {body}"
            case _ if attribute:
                return f"{plan.form} {attribute} : {body}"
            case _:
                return f"{plan.form} : {body}"

    def _branch(self, branch: Branch, plan: Plan) -> str:
        start = "any" if branch.mention is None else LETTERS[branch.mention]
        kind = self.vocabulary.hops[branch.hops[0]].start
        if branch.mention is None and any(self._owner(one) == kind for one in plan.requirements):
            start = f"any {self.vocabulary.type_words(kind)}"
        end = ""
        if plan.form == "exists" and len(plan.mentions) == 1:  # from one node to another
            end = f" {LETTERS[plan.mentions[0]]}"
        path = " ".join(self.hop(hop) for hop in branch.hops)
        return f"not {start} {path}" if branch.negated else f"{start} {path}{end}"

    def hop(self, hop: int) -> str:
        """Return a hop as text, with the type of its end."""
        row = self.vocabulary.schema.relations[hop // 2]
        arrow, label = ("→", row.display) if hop % 2 == 0 else ("←", row.inverse or row.display)
        said = " ".join(row.description.split()[:SHORT_DESCRIPTION])
        named = words_of(label or row.name) + (f" ( {said} )" if said else "")
        return f"{arrow} {named} {arrow} {self.vocabulary.type_words(self.vocabulary.hops[hop].end)}"

    def _type(self, target: int | None) -> str:
        return "any" if target is None else self.vocabulary.type_words(self.vocabulary.schema.type_names[target])

    def _owner(self, requirement: Requirement) -> str | None:
        return None if requirement.attribute is None else self.vocabulary.attributes[requirement.attribute].owner

    def _requirement(self, requirement: Requirement) -> str:
        name = "first" if requirement.hop is None else f"count {self.hop(requirement.hop)}"
        if requirement.attribute is not None:
            name = self.vocabulary.attributes[requirement.attribute].words
        if requirement.quantity is not None:
            return f"{name} {requirement.operator} number {requirement.quantity + 1}"
        values = requirement.value if isinstance(requirement.value, tuple) else (requirement.value,)
        return f"{name} {requirement.operator} {' or '.join(map(str, values)).lower()}"


TARGET, ROW, COUNTED, THROUGH = "x", "y", "other", "via"
"""Variables of the answer, of a row that it belongs to, and of the nodes that are counted."""
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
            pattern = ql.Pattern((), (), (ql.Either(tuple(map(ql.Exists, choices))),))
        else:
            pattern = self._pattern(replace(plan, branches=(), requirements=()) if plan.of_rows else plan)
        named = [self.constant(mention) for mention in plan.mentions]
        if named:
            options = tuple(ql.Compare(ql.Var(TARGET), "=", one) for one in named)
            pattern = ql.requiring(pattern, options[0] if len(options) == 1 else ql.Either(options))
        query = self._best(plan, ql.find(TARGET, self._target_type(plan), pattern))
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

    def constant(self, mention: int) -> ql.Constant:
        """Return a mention as a key, or as a name to look up: verbatim, or the name it was matched to."""
        named, sense = self.named[mention], self.senses[mention]
        if named.key is not None:
            return ql.Nodes((named.key,))
        return ql.Named(named.text if sense.links[0].how == "exact" else sense.links[0].alias, sense.type)

    def _pattern(self, plan: Plan, end: str = TARGET) -> ql.Pattern:
        """Return the pattern of a plan, with a variable for the nodes of its target type."""
        building = _Building(self, end)
        target, denied = self._target_type(plan), set[Requirement]()
        for branch in plan.branches:
            inside = [one for one in plan.requirements if self._is_denied(one, branch, plan)]
            building.add(branch, inside)
            denied |= set(inside)
        for requirement in plan.requirements:
            if requirement in denied:
                continue
            if requirement.attribute is not None:
                owner = self.vocabulary.attributes[requirement.attribute].owner
                building.where += self.conditions(requirement, building.variable_of(owner, target))
            elif requirement.hop is not None:
                amount = _literal(self._number(requirement))
                building.where.append(ql.Compare(self._count(requirement.hop), requirement.operator, amount))
        return ql.Pattern((*building.variables, ql.Variable(end, target)), tuple(building.edges), tuple(building.where))

    def _is_denied(self, requirement: Requirement, branch: Branch, plan: Plan) -> bool:
        """Return whether a condition is on the unnamed nodes that the answer must not have."""
        if branch.mention is not None or not branch.negated or requirement.attribute is None:
            return False
        hops, owner = self.vocabulary.hops, self.vocabulary.attributes[requirement.attribute].owner
        passed = {hops[hop].end for one in plan.branches if not one.negated for hop in one.hops}
        return owner == hops[branch.hops[0]].start and owner not in passed | {self._target_type(plan)}

    def _target_type(self, plan: Plan) -> str | None:
        if plan.target is not None:
            return self.vocabulary.schema.type_names[plan.target]
        return self.senses[plan.mentions[0]].type if plan.mentions else None

    def _best(self, plan: Plan, query: ql.Query) -> ql.Query:
        """Return the query with the order and the number of nodes that the plan asks for."""
        limits = [one for one in plan.requirements if one.attribute is None and one.hop is None]
        first = int(self._number(limits[0]) or 0) if limits else None
        amount: ql.Expression
        if plan.of_rows and plan.hop is not None:
            is_sorted, amount = False, self._total(plan, plan.hop)
        elif plan.attribute is not None and plan.form not in OF_VALUES:
            is_sorted = plan.form.endswith("ending")
            stored = self.vocabulary.attributes[plan.attribute]
            amount = comparable(stored, TARGET)
            if isinstance(amount, ql.Attribute) and stored.kind in ("text", "category") and not is_sorted:
                amount = ql.Call("number", (amount,))
        elif plan.hop is not None:
            is_sorted, amount = plan.form == "each", self._count(plan.hop, plan.through)
        else:
            return replace(query, first=first)
        is_most = plan.form.endswith("max") or plan.form in ("most", "each", "descending")
        order = (ql.Order(amount, is_most),)
        if is_sorted or first is not None:
            return replace(query, order=order, first=first)
        return replace(query, order=order, first=1, ties=True)

    def _beside(self, query: ql.Query, plan: Plan) -> ql.Query:
        """Return a query for the rows of a table next to the rows of a query."""
        target = self._target_type(plan)
        here, there = (ql.Call("row", (ql.Var(name),)) for name in (TARGET, ROW))
        is_beside = ql.Compare(here, "=", ql.Call("+" if plan.step > 0 else "-", (there, ql.Value(1))))
        chosen = ql.Compare(ql.Var(ROW), "in", ql.Subquery(query))
        return ql.find(
            TARGET, target, ql.Pattern((ql.Variable(TARGET, target), ql.Variable(ROW, target)), (), (chosen, is_beside))
        )

    def _onward(self, query: ql.Query, place: int) -> ql.Query:
        """Return a query for the nodes that a hop leads to from the nodes of a query."""
        hop = self.vocabulary.hops[place]
        head, tail = (ROW, TARGET) if hop.direction == "out" else (TARGET, ROW)
        variables = (ql.Variable(TARGET, hop.end), ql.Variable(ROW, hop.start))
        chosen = ql.Compare(ql.Var(ROW), "in", ql.Subquery(query))
        return ql.find(TARGET, hop.end, ql.Pattern(variables, (ql.Edge(head, hop.relation, tail),), (chosen,)))

    def _total(self, plan: Plan, place: int) -> ql.Aggregate:
        """Return the number of rows of a node that a plan selects, or the sum of an attribute of these rows."""
        rows = replace(plan, target=self.vocabulary.schema.type_code[self.vocabulary.hops[place].end])
        counted, selected = self._count(place), self._pattern(rows, COUNTED)
        (edge,) = counted.over.edges if counted.over else ()
        over = replace(selected, edges=(edge, *selected.edges))
        if plan.attribute is None:
            return replace(counted, over=over)
        amount = comparable(self.vocabulary.attributes[plan.attribute], COUNTED)
        return ql.Aggregate("avg" if plan.average else "sum", amount, over=over)

    def _count(self, place: int, through: int | None = None) -> ql.Aggregate:
        """Return the number of nodes that a hop leads to from the answer, or from the nodes another hop leads to."""
        ends = [TARGET, COUNTED] if through is None else [TARGET, THROUGH, COUNTED]
        hops = [self.vocabulary.hops[one] for one in (through, place) if one is not None]
        edges = [
            ql.Edge(*((first, hop.relation, second) if hop.direction == "out" else (second, hop.relation, first)))
            for hop, (first, second) in zip(hops, pairwise(ends), strict=True)
        ]
        variables = tuple(ql.Variable(name, hop.end) for name, hop in zip(ends[1:], hops, strict=True))
        return ql.Aggregate("count", ql.Var(COUNTED), distinct=True, over=ql.Pattern(variables, tuple(edges)))

    def _number(self, requirement: Requirement) -> float | None:
        return None if requirement.quantity is None else self.numbers[requirement.quantity].value

    def conditions(self, requirement: Requirement, variable: str) -> Iterator[ql.Formula]:
        """Yield the formulas of a requirement on an attribute of a variable."""
        attribute = self.vocabulary.attributes[requirement.attribute or 0]
        stored, comparison = comparable(attribute, variable), requirement.operator
        if requirement.quantity is None:
            values = requirement.value if isinstance(requirement.value, tuple) else (requirement.value,)
            said = ql.Attribute(variable, attribute.name)
            literals = [int(value) if attribute.is_flag and isinstance(value, bool) else value for value in values]
            options = tuple(ql.Compare(said, comparison, _literal(value)) for value in literals)
            yield options[0] if len(options) == 1 else ql.Either(options)
            return
        quantity = self.numbers[requirement.quantity]
        if not quantity.is_date or (attribute.kind != "date" and quantity.value is not None):
            value = requirement.value
            if value is None:
                value = next(iter(in_units_of(quantity, attribute.name)), None)
            yield ql.Compare(stored, comparison, _literal(value))
            return
        month, day = quantity.month_and_day
        if comparison == "=" and month and attribute.kind == "date":
            yield ql.Compare(ql.Call("month", (stored,)), "=", ql.Value(month))
            if day:
                yield ql.Compare(ql.Call("day", (stored,)), "=", ql.Value(day))
            return
        low, high = (
            _literal(day if attribute.kind == "date" else int(day[:4])) for day in (quantity.low, quantity.high)
        )
        if comparison == "=":
            yield ql.Compare(stored, ">=", low)
            yield ql.Compare(stored, "<=", high)
        else:
            yield ql.Compare(stored, comparison, low if comparison in ("<", ">=") else high)


def comparable(attribute: SchemaAttribute, variable: str) -> ql.Expression:
    """Return an attribute as a number or a date, if its texts contain these."""
    stored = ql.Attribute(variable, attribute.name)
    if attribute.is_row:
        return ql.Call("row", (ql.Var(variable),))
    return ql.Call(f"first_{attribute.kind}", (stored,)) if attribute.is_written else stored


def _literal(value: Any) -> ql.Value:
    is_whole = isinstance(value, float) and value.is_integer()
    return ql.Value(int(value) if is_whole else "" if value is None else value)


@dataclass
class _Building:
    """A pattern under construction. Paths that end in the same hops share variables."""

    translator: Translator
    end: str
    """The variable that all paths end in."""
    variables: list[ql.Variable] = field(default_factory=list)
    edges: list[ql.Edge] = field(default_factory=list)
    where: list[ql.Formula] = field(default_factory=list)
    shared: dict[tuple[tuple[int, ...], int | None], str] = field(default_factory=dict)

    def add(self, branch: Branch, inside: Sequence[Requirement] = ()) -> None:
        """Add a branch. The requirements `inside` are on the unnamed start of a negated branch."""
        hops = [self.translator.vocabulary.hops[place] for place in branch.hops]
        own: list[ql.Variable] = []
        start: str | ql.Constant
        if branch.mention is None:
            start = f"any{len(self.edges) + len(self.where)}"
            own.append(ql.Variable(start, hops[0].start))
        else:
            start = self.translator.constant(branch.mention)
        ends: list[str | ql.Constant] = [start]
        for place, hop in enumerate(hops[:-1]):
            rest = branch.hops[place + 1 :]
            name = f"no{len(self.where)}_{place}" if branch.negated else f"y{len(self.shared) + 1}"
            key = (rest, branch.mention if branch.apart else None)
            name = name if branch.negated else self.shared.setdefault(key, name)
            own.append(ql.Variable(name, hop.end))
            ends.append(name)
        edges = []
        for hop, first, second in zip(hops, ends, [*ends[1:], self.end], strict=True):
            head, tail = (first, second) if hop.direction == "out" else (second, first)
            edges.append(ql.Edge(head, hop.relation, tail))
        if branch.negated:
            conditions = tuple(one for required in inside for one in self.translator.conditions(required, str(start)))
            self.where.append(ql.Not(ql.Exists(ql.Pattern(tuple(own), tuple(edges), conditions))))
            return
        self.variables += own
        self.edges += [edge for edge in edges if edge not in self.edges]

    def variable_of(self, owner: str, target: str | None) -> str:
        """Return the end's variable if its type has the attribute, or else a variable on a path whose type does."""
        fitting = [one.name for one in self.variables if one.type == owner]
        return self.end if target == owner or not fitting else fitting[0]
