"""A query in plain words: "huts opened before 1920", "the 5 rivers with the highest length"."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from clew.answering.queries.algebra.kinds import Scope
from clew.answering.queries.algebra.values import (
    Aggregate,
    All,
    AnyQuery,
    Attribute,
    Call,
    Combined,
    Compare,
    Constant,
    Edge,
    Either,
    Exists,
    Expression,
    Formula,
    Missing,
    Named,
    Nodes,
    Not,
    Order,
    Pattern,
    Query,
    Subquery,
    Value,
    Var,
    aggregates,
    names_used,
)
from clew.answering.queries.verbs import of_many, verb_of
from clew.core.nouns import plural, singular
from clew.core.schema import Schema, words_of

SIGNS = {"=": "is", "!=": "is not", "<": "is less than", "<=": "is at most", ">": "is more than", ">=": "is at least"}
SIGNS |= {"contains": "contains", "starts with": "starts with", "ends with": "ends with", "in": "is one of"}
DATES = {"=": "in", "<": "before", "<=": "until", ">": "after", ">=": "from", "!=": "not in"}
COUNTS = {"=": "exactly", "!=": "not exactly", "<": "fewer than", "<=": "at most", ">": "more than", ">=": "at least"}
FUNCTIONS = {"sum": "total", "avg": "average", "min": "lowest", "max": "highest"}
OPERATORS = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
MAX_NAMES = 3
"""Maximum number of nodes of a constant that are named. Others are counted."""


def words(query: AnyQuery, schema: Schema, name: Callable[[str], str] = str) -> str:
    """Return the query as a phrase without a full stop. `name` gives the name of a node by its key."""
    return _Words(schema, name).query(query)


class _Words:
    def __init__(self, schema: Schema, name: Callable[[str], str]) -> None:
        self.schema, self.name = schema, name

    # Queries

    def query(self, query: AnyQuery) -> str:
        if isinstance(query, Combined):
            joint = {"union": "or", "intersect": "that are also among", "except": "but not"}[query.operation]
            return f"{self.query(query.left)}, {joint} {self.query(query.right)}"
        return _Phrase(self, query.pattern, Scope(self.schema)).query(query)

    def kind(self, type: str | None, amount: int = 2) -> str:
        """Return what things of a type are called."""
        found = next((one.display for one in self.schema.node_types if one.name == type), "") or type or "thing"
        noun = words_of(singular(found))
        return noun if amount == 1 else plural(noun)

    def constant(self, constant: Constant) -> str:
        if isinstance(constant, Named):
            return constant.text
        names = list(dict.fromkeys(map(self.name, constant.keys[: MAX_NAMES + 1])))
        if len(constant.keys) > MAX_NAMES:
            names = [*names[:MAX_NAMES], f"{len(constant.keys) - MAX_NAMES} more"]
        return _listed(names, "or")


class _Phrase:
    """The words for one pattern. Each edge is told once, at the variable from which it is reached first."""

    def __init__(self, words: _Words, pattern: Pattern, outer: Scope) -> None:
        self.words, self.pattern, self.outer = words, pattern, outer
        self.scope = outer.inside(pattern)
        self.edges, self.where = list(pattern.edges), list(pattern.where)
        self.seen: set[str] = set(outer.types)
        self.named: set[str | Constant] = {end for edge in self.edges for end in (edge.head, edge.tail)}
        self.named -= set(pattern.types)

    def query(self, query: Query) -> str:
        roots = self.roots(query)
        shown = [column.expression for column in query.columns]
        if query.is_grouped and query.group:
            return self.grouped(query, roots)
        if not roots:
            return " and ".join(self.value(part) for part in shown)
        root = roots[0]
        described = self.described(root, self.noun(root, 2))
        if query.order and query.first is not None:
            described = self.chosen(query, described, root)
        elif query.first is not None:
            described = f"{_number(query.first)} {described}" if query.first > 1 else f"one {described}"
        elif query.order:
            described += f", sorted by {_listed(map(self.sorting, query.order), 'and')}"
        described += f", after the first {_number(query.skip)}" if query.skip else ""
        if shown == [Var(root)]:
            return described
        return f"{self.columns(shown, root)} of {described}"

    def roots(self, query: Query) -> list[str]:
        """Return the variables that a query is about, the most important first."""
        used = [name for part in (*query.group, *query.outputs) for name in _names(part)]
        return list(dict.fromkeys(name for name in (*used, *self.pattern.types) if name in self.scope.types))

    def columns(self, shown: list[Expression], root: str) -> str:
        """Return what is shown: attributes, nodes and aggregates."""
        parts = []
        for part in shown:
            if part == Aggregate("count") or part in (
                Aggregate("count", Var(root)),
                Aggregate("count", Var(root), True),
            ):
                parts.append("the number")
            elif isinstance(part, Attribute) and part.variable == root:
                parts.append(f"the {words_of(part.name)}")
            elif (
                isinstance(part, Aggregate) and isinstance(part.argument, Attribute) and part.argument.variable == root
            ):
                parts.append(self.aggregate(part, words_of(part.argument.name)))
            elif part == Var(root):
                parts.append("the names" if len(shown) > 1 else "those")
            else:
                parts.append(self.value(part))
        return _listed(parts, "and")

    def chosen(self, query: Query, described: str, root: str) -> str:
        """Return the first rows of an order: "the five rivers with the highest length"."""
        best, few = " and ".join(map(self.extreme, query.order)), _number(query.first or 0)
        many = self.noun(root, 2)
        if query.first != 1:
            return f"the {few} {described} {best}" if described == many else f"of {described}, the {few} {best}"
        return f"the {self.noun(root, 1)} {best}" if described == many else f"of {described}, the one {best}"

    def grouped(self, query: Query, roots: list[str]) -> str:
        """Return groups: "the number of concerts for each stadium", "the most common colour of dogs"."""
        keys = [key for key in query.group if isinstance(key, Var) and key.name in self.scope.types]
        shown = [column.expression for column in query.columns]
        told = [self.value(part) for part in shown if aggregates(part)]
        values = [_bare(self.value(key)) for key in query.group if key not in keys]
        root = keys[0].name if keys else roots[0]
        is_simple = not self.pattern.where and all(len(edge.variables) == 2 for edge in self.pattern.edges)
        place = self.described(root, self.noun(root, 2))
        with_values = f", with {_listed(told, 'and')}" if told else ""
        if query.order and query.first is not None:
            if keys:
                place = self.noun(root, 2) if is_simple else place
                return self.chosen(query, place, root) + with_values + self.conditions(query)
            few = "" if query.first == 1 else f"{_number(query.first)} "
            by = query.order[0]
            if isinstance(by.expression, Aggregate) and by.expression.function == "count":
                value = words_of(query.group[0].name) if isinstance(query.group[0], Attribute) else values[0]
                common = "most common" if by.descending else "rarest"
                return f"the {few}{common} {value} of {place}" + with_values + self.conditions(query)
            return f"the {few}{_listed(values, 'and')} {self.extreme(by)}, of {place}" + self.conditions(query)
        each = _listed([*(self.noun(key.name, 1) for key in keys), *values], "and")
        text = f"{_listed(told, 'and')} for each {each}" if told else f"each {each}"
        text += "" if is_simple else f", of {place}"
        text += self.conditions(query)
        return text + (f", sorted by {_listed(map(self.sorting, query.order), 'and')}" if query.order else "")

    def conditions(self, query: Query) -> str:
        texts = []
        for part in query.having:
            match part:
                case Compare(Aggregate("count") as counted, sign, Value() as value):
                    texts.append(f"with {COUNTS[sign]} {self.value(value)} {self.counted(counted)}")
                case _:
                    texts.append(f"where {self.formula(part)}")
        return f" {' and '.join(texts)}" if texts else ""

    def extreme(self, order: Order) -> str:
        """Return what the first rows have most or least of."""
        expression, descending = order.expression, order.descending
        if isinstance(expression, Aggregate) and expression.function == "count":
            counted = self.counted(expression)
            return f"with the {'most' if descending else 'fewest'} {counted}"
        is_date = self.scope.kind(expression) == "date"
        most, least = ("latest", "earliest") if is_date else ("highest", "lowest")
        value = words_of(expression.name) if isinstance(expression, Attribute) else self.value(expression)
        return f"with the {most if descending else least} {value.removeprefix('the ')}"

    def sorting(self, order: Order) -> str:
        expression, descending = order.expression, order.descending
        value = words_of(expression.name) if isinstance(expression, Attribute) else self.value(expression)
        return f"{value}{' from the highest down' if descending else ''}"

    # Things

    def noun(self, name: str, amount: int) -> str:
        return self.words.kind(self.scope.types.get(name), amount)

    def described(self, name: str, noun: str) -> str:
        """Return a variable by its type, and all that is required of it and of what it leads to."""
        self.seen.add(name)
        own = [part for part in self.where if names_used(part) & {*self.scope.types, *self.scope.edges} == {name}]
        self.where = [part for part in self.where if part not in own]
        parts = [text for text in self.required(own, name) if text]
        clauses = []
        while edge := next((one for one in self.edges if name in one.variables), None):
            self.edges.remove(edge)
            clauses.append(self.clause(edge, name, self.other(edge, name)))
        if clauses:
            parts.append(f"that {' and '.join(clauses)}")
        rest = [part for part in self.where if names_used(part) & self.pattern.bound <= self.seen | {*self.scope.edges}]
        self.where = [part for part in self.where if part not in rest]
        parts += [f"where {self.formula(part)}" for part in rest]
        return " and ".join([" ".join([noun, *parts[:1]]), *parts[1:]])

    def other(self, edge: Edge, start: str) -> str:
        end = edge.tail if edge.head == start else edge.head
        if not isinstance(end, str):
            return self.words.constant(end)
        if end in self.seen:
            return f"the same {self.noun(end, 1)}"
        for part in self.where:
            match part:
                case Compare(Var(name), "=", Named() | Nodes() as constant) if name == end:
                    self.where.remove(part)
                    self.seen.add(end)
                    self.named.add(end)
                    return self.words.constant(constant)
        return self.described(end, self.noun(end, 2))

    def clause(self, edge: Edge, name: str, other: str, denied: bool = False) -> str:
        """Return what many things of one kind do with another: "treat X", "do not treat X"."""
        are = "are not" if denied else "are"
        walk = "" if edge.is_single else " directly or through others"
        if edge.least == 0:
            other = f"{other} or anything below it"
            walk = ""
        if edge.relation is None or not edge.directed:
            by = f" by “{words_of(edge.relation)}”" if edge.relation else ""
            return f"{are} connected with {other}{by}{walk}"
        rows = [row for row in self.words.schema.relations if row.name == edge.relation]
        label = (rows[0].display if rows else "") or edge.relation
        if edge.head == name:
            return f"{of_many(label, negated=denied)} {other}{walk}"
        if rows and rows[0].inverse:
            return f"{of_many(rows[0].inverse, negated=denied)} {other}{walk}"
        first, rest, form = verb_of(label)
        if form == "noun" or (first == "has" and rest):
            return f"{are}{rest} of {other}{walk}"
        if edge.head in self.named:
            return f"{other} {of_many(label, negated=denied, one=True)}{walk}"
        if " that " in other:  # what follows would seem to belong to its last part
            return f"{are} reached by “{words_of(label)}” from {other}{walk}"
        return f"{'no ' if denied else ''}{other} {of_many(label)}{walk}"

    # Conditions

    def required(self, formulas: Iterable[Formula], name: str) -> list[str]:
        """Return the conditions on one variable. Two bounds of a value are told together."""
        bounds: dict[Expression, dict[str, Expression]] = {}
        texts: list[str] = []
        flat = [part for one in formulas for part in (one.parts if isinstance(one, All) else (one,))]
        for part in flat:
            if isinstance(part, Compare) and part.comparison in (">=", "<=") and isinstance(part.right, Value):
                bounds.setdefault(part.left, {})[part.comparison] = part.right
        between = {left: pair for left, pair in bounds.items() if len(pair) == 2}
        for part in flat:
            if isinstance(part, Compare) and part.left in between and part.comparison in (">=", "<="):
                pair = between[part.left]
                if part.comparison == ">=":
                    low, high = self.value(pair[">="]), self.value(pair["<="])
                    texts.append(f"whose {self.own(part.left, name)} is between {low} and {high}")
            else:
                texts.append(self.condition(part, name))
        return texts

    def own(self, part: Expression, name: str) -> str:
        return words_of(part.name) if isinstance(part, Attribute) and part.variable == name else self.value(part)

    def condition(self, part: Formula, name: str) -> str:
        """Return a condition after the noun that it is about."""
        match part:
            case Compare(Attribute(owner, attribute), sign, Value() as value) if owner == name:
                if self.scope.kind(part.left) == "date" and sign in DATES:
                    label = words_of(attribute)
                    is_verb = label == "born" or label.split()[-1].endswith("ed")
                    return f"{label if is_verb else f'whose {label} is'} {DATES[sign]} {self.value(value)}"
                return f"whose {words_of(attribute)} {SIGNS[sign]} {self.value(value)}"
            case Compare(Attribute(owner, attribute), sign, right) if owner == name:
                return f"whose {words_of(attribute)} {SIGNS[sign]} {self.value(right)}"
            case Compare(Var(owner), sign, right) if owner == name:
                among = self.words.constant(right) if isinstance(right, Named | Nodes) else self.value(right)
                return f"{'among' if sign in ('=', 'in') else 'other than'} {among}"
            case Compare(Aggregate("count", _, _, Pattern()) as counted, sign, Value() as value):
                return f"with {COUNTS[sign]} {self.value(value)} {self.counted(counted)}"
            case Missing(Attribute(owner, attribute)) if owner == name:
                return f"without a known {words_of(attribute)}"
            case Not(Missing(Attribute(owner, attribute))) if owner == name:
                return f"with a known {words_of(attribute)}"
            case Exists(pattern):
                return self.existing(pattern, name, denied=False)
            case Not(Exists(pattern)):
                return self.existing(pattern, name, denied=True)
            case Either(parts) if (
                all(
                    isinstance(one, Compare) and isinstance(one.right, Value) and one.comparison == "=" for one in parts
                )
                and len({one.left for one in parts if isinstance(one, Compare)}) == 1
            ):
                values = [self.value(one.right) for one in parts if isinstance(one, Compare)]
                first = parts[0]
                assert isinstance(first, Compare)
                return f"whose {self.own(first.left, name)} is {_listed(values, 'or')}"
            case Either(parts):
                return " or ".join(self.condition(one, name) for one in parts)
        return f"where {self.formula(part)}"

    def existing(self, pattern: Pattern, name: str, denied: bool) -> str:
        """Return an existing or absent sub-pattern, told from a variable that it shares."""
        inner = _Phrase(self.words, pattern, self.scope)
        start = next((edge for edge in inner.edges if name in edge.variables), None)
        if start is None:
            return f"where there {'are no' if denied else 'are'} {inner.whole()}"
        inner.edges.remove(start)
        inner.seen = {name}
        texts = [inner.clause(start, name, inner.other(start, name), denied)]
        more = [
            inner.clause(edge, name, inner.other(edge, name)) for edge in list(inner.edges) if name in edge.variables
        ]
        return f"that {' and '.join(texts + more)}"

    def whole(self) -> str:
        """Return the new variables of a pattern with all that is required of them."""
        new = [name for name in self.pattern.types if name not in self.outer.types]
        return _listed((self.described(name, self.noun(name, 2)) for name in new if name not in self.seen), "and")

    def formula(self, formula: Formula) -> str:
        """Return a formula as a sentence."""
        match formula:
            case All(parts):
                return " and ".join(map(self.formula, parts))
            case Either(parts):
                return " or ".join(map(self.formula, parts))
            case Not(Missing(expression)):
                return f"{self.value(expression)} is known"
            case Not(part):
                return f"it is not so that {self.formula(part)}"
            case Missing(expression):
                return f"{self.value(expression)} is not known"
            case Exists(pattern):
                return f"there are {_Phrase(self.words, pattern, self.scope).whole() or 'such connections'}"
            case Compare(left, sign, right):
                return f"{self.value(left)} {SIGNS[sign]} {self.value(right)}"

    # Values

    def counted(self, part: Aggregate) -> str:
        """Return what an aggregate counts."""
        if part.over is not None:
            inner = _Phrase(self.words, part.over, self.scope)
            new = [name for name in part.over.types if name not in self.scope.types]
            inner.seen |= set(self.scope.types)
            return inner.noun(new[0], 2) if new else "connections"
        if isinstance(part.argument, Var) and part.argument.name in self.scope.types:
            return self.noun(part.argument.name, 2)
        if isinstance(part.argument, Attribute):
            return f"{'different ' if part.distinct else ''}{plural(words_of(part.argument.name))}"
        return "connections" if len(self.scope.types) != 1 else self.noun(next(iter(self.scope.types)), 2)

    def aggregate(self, part: Aggregate, value: str) -> str:
        if part.function == "count":
            return f"the number of {self.counted(part)}"
        return f"the {FUNCTIONS[part.function]} {value}"

    def value(self, part: Expression) -> str:
        match part:
            case Value(value):
                return str(value).lower() if isinstance(value, bool) else str(value)
            case Var(name):
                return f"the {self.noun(name, 1)}"
            case Attribute(variable, name):
                owner = "connection" if variable in self.scope.edges else self.noun(variable, 1)
                return f"the {words_of(name)} of the {owner}"
            case Call(function, (left, right)):
                return f"{self.value(left)} {OPERATORS[function]} {self.value(right)}"
            case Call(function, (argument,)):
                return f"the {function} of {self.value(argument)}" if function != "number" else self.value(argument)
            case Aggregate():
                inner = self if part.over is None else _Phrase(self.words, part.over, self.scope)
                return inner.aggregate(part, "" if part.argument is None else _bare(inner.value(part.argument)))
            case Subquery(query):
                return self.words.query(query)
            case Named() | Nodes():
                return self.words.constant(part)
        return str(part)


def _bare(text: str) -> str:
    return text.removeprefix("the ")


def _names(part: Expression) -> list[str]:
    if isinstance(part, Attribute):
        return [part.variable]
    return sorted(names_used(part))


def _number(number: int) -> str:
    return NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"


def _listed(parts: Iterable[str], word: str) -> str:
    texts = list(parts)
    return f" {word} ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
