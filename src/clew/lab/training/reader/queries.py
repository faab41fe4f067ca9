"""Convert queries of the query language to plans: the inverse of `Translator`.

Queries may also use groups and counts of rows, like databases. Queries without an equivalent plan are rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from clew.answering.reading.plan import COMPARISONS, Branch, Form, Plan, Requirement
from clew.answering.reading.quantities import Quantity, in_units_of
from clew.answering.reading.vocabulary import Vocabulary
from clew.core import query as ql

OF_VALUES: dict[str, Form] = {"avg": "average", "sum": "sum", "max": "highest", "min": "lowest"}


class NoPlanError(Exception):
    """Raised for a query without an equivalent plan."""


def means(quantity: Quantity, value: float | str, kind: str, attribute: str) -> bool:
    """Return whether a number or date of a question is the value of a condition."""
    if kind == "date" and quantity.is_date and str(value)[:4] in (quantity.low[:4], quantity.high[:4]):
        return True
    if isinstance(value, str):
        return False
    return any(abs(one - value) < 1e-6 * max(1, abs(value)) for one in in_units_of(quantity, attribute))


def plan_of(query: ql.AnyQuery, vocabulary: Vocabulary, names: Sequence[str], numbers: Sequence[Quantity]) -> Plan:
    """Return the plan equivalent to a query. Raise NoPlanError if there is none.

    `names` are the names in the question and `numbers` its numbers, in reading order.
    """
    if not isinstance(query, ql.Query):
        raise NoPlanError("a combination of queries")
    return _PlannedQuery(query, vocabulary, names, numbers).plan()


@dataclass
class _PlannedQuery:
    query: ql.Query
    vocabulary: Vocabulary
    names: Sequence[str]
    numbers: Sequence[Quantity]
    required: list[Requirement] = field(default_factory=list)
    mentions: list[int] = field(default_factory=list)
    denied: list[Branch] = field(default_factory=list)
    asked: int | None = None
    used: set[int] = field(default_factory=set)
    """Numbers used by conditions."""

    @cached_property
    def types(self) -> dict[str, str]:
        return {name: kind for name, kind in self.query.pattern.types.items() if kind is not None}

    @cached_property
    def shown(self) -> tuple[ql.Expression, ...]:
        """Columns, without those that only repeat an order or a condition."""
        columns = tuple(column.expression for column in self.query.columns)
        conditions = (*self.query.having, *self.query.pattern.where)
        known = {key.expression for key in self.query.order}
        known |= {part.left for part in conditions if isinstance(part, ql.Compare)}
        shown = columns[:1] + tuple(one for one in columns[1:] if one not in known)
        match shown:
            case (ql.Var(node), ql.Attribute(owner, _) as value) if node == owner:
                return (value,)  # the answer includes its node
        return shown

    def plan(self) -> Plan:
        target = self._target()
        form, attribute, hop = self._form(target)
        for formula in self.query.pattern.where:
            self._require(formula, target)
        counted = {one.hop for one in self.required} | {hop}
        branches = tuple(self._branches(target, counted - {None}))
        if sum(one.mention is None for one in branches) > 1:
            raise NoPlanError("several unnamed relations")
        if self.mentions and (form != "value" or branches):
            raise NoPlanError("something named is described")
        code = self.vocabulary.schema.type_code[self.types[target]]
        is_plain = bool(self.mentions) and not self.required
        return Plan(
            form,
            None if is_plain else code,
            branches,
            tuple(self.required),
            attribute,
            hop,
            tuple(self.mentions),
            asked=self.asked,
        )

    # Target and form

    def _target(self) -> str:
        shown = self.query.group[0] if self.query.group else self.shown[0]
        part = shown.argument if isinstance(shown, ql.Aggregate) else shown
        match part:
            case ql.Var(name) | ql.Attribute(name, _) if name in self.types:
                return name
            case None:
                ends = {edge.tail for edge in self.query.pattern.edges}
                roots = [name for name in self.types if name not in ends or len(self.types) == 1]
                if len(roots) == 1:
                    return roots[0]
        raise NoPlanError("no single target")

    def _form(self, target: str) -> tuple[Form, int | None, int | None]:
        query, shown = self.query, self.shown
        if query.skip or len(query.group) > 1 or len(query.order) > 1:
            raise NoPlanError("several keys")
        if query.group:
            return self._grouped(target, query.group[0])
        if len(shown) != 1 or query.having:
            raise NoPlanError("several columns")
        if query.order:
            return self._sorted(target, query.order[0])
        match shown[0]:
            case ql.Var():
                self._limit()
                return "list", None, None
            case ql.Attribute() as part:
                self._limit()
                return "value", self._attribute(part), None
            case ql.Aggregate("count", argument, distinct):
                if distinct and isinstance(argument, ql.Attribute):
                    return "different", self._attribute(argument), None
                return "count", None, None
            case ql.Aggregate(function, ql.Attribute() as part) if function in OF_VALUES:
                return OF_VALUES[function], self._attribute(part), None
        raise NoPlanError("another form")

    def _sorted(self, target: str, order: ql.Order) -> tuple[Form, int | None, int | None]:
        part = self.shown[0]
        if isinstance(part, ql.Attribute) and part.variable == target and self.query.first is not None:
            self.asked = self._attribute(part)
        elif part != ql.Var(target):
            raise NoPlanError("values in an order")
        self._limit()
        is_cut = self.query.first is not None
        high: Form = "max" if is_cut else "descending"
        low: Form = "min" if is_cut else "ascending"
        match order.expression:
            case ql.Attribute(variable, _) as part if variable == target:
                return high if order.descending else low, self._attribute(part), None
            case ql.Aggregate(over=ql.Pattern()) as part:
                form: Form = "each" if not is_cut else "most" if order.descending else "fewest"
                return form, None, self._counted(part, target)
        raise NoPlanError("another order")

    def _grouped(self, target: str, key: ql.Expression) -> tuple[Form, int | None, int | None]:
        query, shown = self.query, self.shown
        order = query.order[0] if query.order else None
        counts = [one for one in shown if isinstance(one, ql.Aggregate)]
        if order is not None and not (
            isinstance(order.expression, ql.Aggregate) and order.expression.function == "count"
        ):
            raise NoPlanError("groups sorted by something else")
        if any(one.function != "count" for one in counts) or len(query.having) > 1:
            raise NoPlanError("another aggregate of groups")
        plain = [one for one in shown if not isinstance(one, ql.Aggregate)]
        if isinstance(key, ql.Attribute):
            if plain != [key] or query.having:
                raise NoPlanError("another form of groups")
            if counts or (order is not None and query.first is None):
                return "each value", self._attribute(key), None
            if order is not None and order.descending and query.first == 1:
                return "common", self._attribute(key), None
            if order is None:
                return "value", self._attribute(key), None
            raise NoPlanError("another form of groups")
        if len(plain) != 1 or plain[0] not in (key, *([] if order else plain)):
            raise NoPlanError("several columns of groups")
        hop = self._neighbor(target)
        if query.having:
            match query.having[0]:
                case ql.Compare(ql.Aggregate("count"), operator, ql.Value(int() | float() as value)) if (
                    operator in COMPARISONS
                ):
                    self.required.append(Requirement(None, operator, self._number(value), hop=hop))
                case _:
                    raise NoPlanError("another condition on groups")
            if order is not None:
                raise NoPlanError("groups chosen and sorted")
        elif order is not None and query.first is not None:
            self._limit()
            return "most" if order.descending else "fewest", None, hop
        elif counts or order is not None:
            return "each", None, hop
        if isinstance(plain[0], ql.Attribute):
            return "value", self._attribute(plain[0]), None
        return "list", None, None

    def _limit(self) -> None:
        """Require the first k, unless the query takes the first of an order."""
        if self.query.first is not None and not (self.query.order and self.query.first == 1):
            self.required.append(Requirement(None, "<=", self._number(self.query.first)))

    def _neighbor(self, target: str) -> int:
        """Return the hop to the nodes counted for each target node."""
        hops = [hop for hop, end in self._steps(target) if end in self.types and len(list(self._steps(end))) == 1]
        if len(hops) != 1:
            raise NoPlanError("no single thing that is counted")
        return hops[0]

    def _counted(self, part: ql.Aggregate, target: str) -> int:
        """Return the hop counted by an aggregate over a pattern."""
        over = part.over or ql.Pattern()
        if part.function != "count" or len(over.edges) != 1 or over.where or target not in over.edges[0].variables:
            raise NoPlanError("another count")
        types = self.types | {name: kind for name, kind in over.types.items() if kind is not None}
        return self._hop(over.edges[0], target, types)

    # Conditions

    def _require(self, formula: ql.Formula, target: str) -> None:
        match formula:
            case ql.Compare(ql.Var(name), "=", ql.Named(text)) if name == target and text in self.names:
                self.mentions.append(self.names.index(text))
            case ql.Compare(ql.Attribute() as part, "contains", ql.Value(str(value))):
                self._owned(part, target)
                self.required.append(Requirement(self._attribute(part), "contains", value=value))
            case ql.Compare(ql.Attribute() as part, operator, ql.Value(value)) if operator in COMPARISONS:
                self._owned(part, target)
                place = self._attribute(part)
                kind = self.vocabulary.attributes[place].kind
                if isinstance(value, bool) or (isinstance(value, str) and kind not in ("number", "integer", "date")):
                    if operator not in ("=", "!="):
                        raise NoPlanError("texts are ordered")
                    self.required.append(Requirement(place, operator, value=value))
                else:
                    self.required.append(Requirement(place, operator, self._number(value, kind, part.name)))
            case ql.Compare(ql.Aggregate() as part, operator, ql.Value(int() | float() as value)) if (
                operator in COMPARISONS
            ):
                self.required.append(Requirement(None, operator, self._number(value), hop=self._counted(part, target)))
            case ql.Not(ql.Exists(ql.Pattern(variables, (edge,), (), ()))) if target in edge.variables:
                other = edge.tail if edge.head == target else edge.head
                types = self.types | {one.name: one.type for one in variables if one.type is not None}
                hop = self._hop(edge, other, types)
                if not isinstance(other, str) and not isinstance(other, ql.Named):
                    raise NoPlanError("denied keys")
                mention = self.names.index(other.text) if isinstance(other, ql.Named) else None
                self.denied.append(Branch(mention, (hop,), negated=True))
            case _:
                raise NoPlanError("another condition")

    def _owned(self, part: ql.Attribute, target: str) -> None:
        """Raise NoPlanError for a condition on one of several nodes of the same type."""
        kind = self.types.get(part.variable)
        if part.variable != target and list(self.types.values()).count(kind or "") != 1:
            raise NoPlanError("a condition on one of several nodes of a type")

    def _number(self, value: float | str, kind: str = "number", attribute: str = "") -> int:
        for index, number in enumerate(self.numbers):
            if index not in self.used and means(number, value, kind, attribute):
                self.used.add(index)
                return index
        raise NoPlanError("a number that the question does not have")

    def _attribute(self, part: ql.Attribute) -> int:
        owner = self.types.get(part.variable)
        for index, one in enumerate(self.vocabulary.attributes):
            if (one.owner, one.name) == (owner, part.name):
                return index
        raise NoPlanError("an attribute that the schema does not have")

    # Relations

    def _branches(self, target: str, counted: set[int | None]) -> Iterator[Branch]:
        yield from self.denied
        seen: set[ql.Edge] = set()

        def walk(node: str, hops: tuple[int, ...]) -> Iterator[Branch]:
            steps = [(edge, edge.tail if edge.head == node else edge.head) for edge in self._edges(node)]
            for edge, other in steps:
                if edge in seen:
                    continue
                seen.add(edge)
                back = (self._hop(edge, other, self.types), *hops)
                if isinstance(other, ql.Named):
                    yield Branch(self.names.index(other.text), back)
                elif not isinstance(other, str):
                    raise NoPlanError("nodes by their keys")
                elif len(list(self._edges(other))) > 1:
                    yield from walk(other, back)
                elif len(back) > 1 or (back[0] ^ 1) not in counted:
                    if len(back) > 1:
                        raise NoPlanError("an unnamed relation of several steps")
                    yield Branch(None, back)

        yield from walk(target, ())
        if len(seen) < len(self.query.pattern.edges) or self.query.pattern.optional:
            raise NoPlanError("parts that are not connected")

    def _edges(self, node: str) -> Iterator[ql.Edge]:
        for edge in self.query.pattern.edges:
            if not edge.is_single or not edge.directed or edge.name or edge.relation is None:
                raise NoPlanError("another kind of edge")
            if node in (edge.head, edge.tail):
                yield edge

    def _steps(self, node: str) -> Iterator[tuple[int, str | ql.Constant]]:
        for edge in self._edges(node):
            other = edge.tail if edge.head == node else edge.head
            yield self._hop(edge, node, self.types), other

    def _hop(self, edge: ql.Edge, start: str | ql.Constant, types: dict[str, str]) -> int:
        """Return the hop along an edge. An end without a type matches any type."""

        def fits(end: str | ql.Constant, kind: str) -> bool:
            known = types.get(end) if isinstance(end, str) else getattr(end, "type", None)
            return known in (None, kind)

        other = edge.tail if start == edge.head else edge.head
        direction = "out" if start == edge.head else "in"
        found = [
            index
            for index, hop in enumerate(self.vocabulary.hops)
            if (hop.relation, hop.direction) == (edge.relation, direction)
            and fits(start, hop.start)
            and fits(other, hop.end)
        ]
        if len(found) != 1:
            raise NoPlanError("a relation that the schema does not have")
        return found[0]
