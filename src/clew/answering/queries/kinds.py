"""Kinds of expressions, and the check of a query against a schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from clew.answering.queries.literals import as_days, as_number, as_truth, match_whole
from clew.core import query as ql
from clew.core.errors import SchemaError
from clew.core.schema import Schema

NODE_TEXTS = ("name", "key", "type", "text")
"""Attributes that every node has."""
NUMERIC = ("integer", "number")
CALL_KINDS = dict.fromkeys(("year", "month", "day", "length", "round", "row"), "integer") | {
    "lower": "text",
    "first_date": "date",
}
MAX_NAMES = 12
"""Maximum number of possible names that an error lists."""


@dataclass(frozen=True)
class Scope:
    """The schema, and the variables and named edges that an expression may refer to."""

    schema: Schema
    types: Mapping[str, str | None] = field(default_factory=dict)
    """Type of each variable."""
    edges: Mapping[str, ql.Edge] = field(default_factory=dict)
    """Named edges."""

    def inside(self, pattern: ql.Pattern) -> Scope:
        """Return the scope of a pattern inside this scope."""
        types, edges = dict(self.types), dict(self.edges)
        for part in (pattern, *pattern.optional):
            types |= {name: kind or types.get(name) for name, kind in part.types.items()}
            edges |= {edge.name: edge for edge in part.edges if edge.name}
        scope = replace(self, types=types, edges=edges)
        for part in pattern.optional:
            scope = scope.inside(part) if part.optional else scope
        return scope

    def kind(self, expression: ql.Expression) -> str:
        """Return the kind: text, integer, number, boolean, date, list, node or edge."""
        match expression:
            case ql.Value(value):
                names = {bool: "boolean", int: "integer", float: "number"}
                return names.get(type(value), "text")
            case ql.Var(name):
                return "edge" if name in self.edges else "node"
            case ql.Named() | ql.Nodes():
                return "node"
            case ql.Field(_, kind):
                return kind
            case ql.Attribute(variable, name):
                if variable in self.edges:
                    return "text" if name == "relation" else self.schema.edge_attributes.get(name, "text")
                return "text" if name in NODE_TEXTS else self.schema.attribute_types.get(name, "text")
            case ql.Call(function, arguments):
                kinds = [self.kind(argument) for argument in arguments]
                if function in ("+", "-", "*", "abs") and all(kind in ("integer", "date") for kind in kinds):
                    return "integer"
                return CALL_KINDS.get(function, "number")
            case ql.Aggregate(function, argument, _, over):
                if function in ("count", "exists") or argument is None:
                    return "integer" if function == "count" else "boolean"
                inner = self if over is None else self.inside(over)
                return "number" if function == "avg" else inner.kind(argument)
            case ql.Subquery(query):
                first = leftmost(query)
                return Scope(self.schema).inside(first.pattern).kind(first.columns[0].expression)


def leftmost(query: ql.AnyQuery) -> ql.Query:
    """Return the query, or the first query of a set operation, whose columns the rows have."""
    return query if isinstance(query, ql.Query) else leftmost(query.left)


def comparable(first: str, second: str) -> bool:
    """Whether values of two kinds can be compared."""
    return first == second or (first in NUMERIC and second in NUMERIC)


def check(query: ql.AnyQuery, schema: Schema) -> None:
    """Raise SchemaError if a query does not fit the schema. The error lists the possible names."""
    if isinstance(query, ql.Combined):
        check(query.left, schema)
        check(query.right, schema)
        if len(leftmost(query.left).columns) != len(leftmost(query.right).columns):
            raise SchemaError(f"the two sides of {query.operation} have different numbers of columns: select the same")
        return
    scope = _check_pattern(query.pattern, Scope(schema))
    for part in (*query.group, *query.having, *query.outputs):
        _check_part(part, scope)
    if query.is_grouped:
        _check_groups(query)
    if query.ties and (query.first is None or not query.order):
        raise SchemaError("ties need an order and a number of rows: add `order by … first k`")


def _check_pattern(pattern: ql.Pattern, scope: Scope) -> Scope:
    schema = scope.schema
    scope = scope.inside(pattern)
    for kind in filter(None, pattern.types.values()):
        _known("node type", kind, schema.type_names)
    for edge in pattern.edges:
        if edge.relation is not None:
            _known("relation", edge.relation, schema.relation_names)
        if edge.name and not edge.is_single:
            raise SchemaError(f"a walk of several edges has no name: write -[{edge.relation or 'any'}…]- without it")
    for part in pattern.optional:
        _check_pattern(part, scope)
    for formula in pattern.where:
        _check_part(formula, scope)
        if any(one.over is None for one in ql.aggregates(formula)):
            raise SchemaError(
                f"an aggregate of the group cannot be a condition of the pattern: use having in {formula}"
            )
    return scope


def _check_part(part: object, scope: Scope) -> None:
    """Check names and kinds of an expression or a formula."""
    match part:
        case ql.Attribute(variable, name):
            _known("variable", variable, (*scope.types, *scope.edges))
            if variable in scope.edges:
                _known("attribute of edges", name, ("relation", *scope.schema.edge_attributes))
            elif name in scope.schema.relation_names and name not in (*NODE_TEXTS, *scope.schema.attribute_types):
                raise SchemaError(
                    f"{name!r} is a relation, no attribute: write ({variable}) -[{ql.name_text(name)}]-> (y) and y.name"
                )
            else:
                _known("attribute", name, (*NODE_TEXTS, *scope.schema.attribute_types))
        case ql.Var(name):
            _known("variable", name, (*scope.types, *scope.edges))
        case ql.Named(_, str(kind)):
            _known("node type", kind, scope.schema.type_names)
        case ql.Exists(pattern):
            _check_pattern(pattern, scope)
            return
        case ql.Subquery(query):
            check(query, scope.schema)
            if len(leftmost(query).columns) != 1:
                raise SchemaError(f"a sub-query has one column: {query}")
            return
        case ql.Aggregate(over=ql.Pattern() as over):
            _check_pattern(over, scope)
            _check_part(replace(part, over=None), scope.inside(over))
            return
    for child in ql.children(part):
        _check_part(child, scope)
    if isinstance(part, ql.Compare):
        _check_comparison(part, scope)
    elif isinstance(part, ql.Call):
        _check_call(part, scope)
    elif isinstance(part, ql.Aggregate):
        _check_aggregate(part, scope)


def _check_aggregate(part: ql.Aggregate, scope: Scope) -> None:
    if part.argument is not None and any(inner.over is None for inner in ql.aggregates(part.argument)):
        raise SchemaError(f"{part} is an aggregate of an aggregate: put the inner aggregate into a sub-query, (find …)")
    if part.function in ("count", "exists"):
        return
    kind = "solution" if part.argument is None else scope.kind(part.argument)
    allowed = (*NUMERIC, "text", "date") if part.function in ("min", "max") else NUMERIC
    if kind not in allowed:
        raise SchemaError(f"{part} needs a {' or a '.join(allowed)}: it has a {kind}")


def _check_comparison(part: ql.Compare, scope: Scope) -> None:
    left, right = scope.kind(part.left), scope.kind(part.right)
    if {"node", "edge"} & {left, right}:
        if left != right or part.comparison not in ("=", "!=", "in"):
            raise SchemaError(f"{part} compares a {left} with a {right}: nodes compare by `is`, attributes by x.name")
    elif part.comparison == "matches":
        if left != "text" or not isinstance(part.right, ql.Value):
            raise SchemaError(f"{part} needs a text on its left and a regular expression in quotes on its right")
        try:
            match_whole(str(part.right.value), ())
        except ValueError as error:
            raise SchemaError(f"{part} has no valid regular expression: {error}") from None
    elif isinstance(part.right, ql.Value):
        _check_literal(part, left, part.right.value)
    elif not isinstance(part.left, ql.Value):
        if "list" in (left, right):
            raise SchemaError(f"{part} compares a list with an expression: compare it with a literal")
        if left == "boolean" and part.comparison not in ("=", "!=", "in"):
            raise SchemaError(f"{part} compares truth values: use = or !=")
        if not comparable(left, right):
            raise SchemaError(f"{part} compares a {left} with a {right}: compare values of one kind")


def _check_literal(part: ql.Compare, kind: str, value: object) -> None:
    """Require a literal that a value of this kind can be compared with."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "text" and is_number and part.comparison in ("<", "<=", ">", ">="):
        raise SchemaError(f"{part.left} is a text: write number({part.left}) {part.comparison} {value}")
    expected = {
        "date": (as_days, "a date, such as 2010, 2010-09 or 2010-09-07"),
        "boolean": (as_truth, "true or false"),
        "integer": (as_number, "a number"),
        "number": (as_number, "a number"),
    }
    if kind in expected and expected[kind][0](value) is None:
        raise SchemaError(f"{part} compares a {kind} with {value!r}: expected {expected[kind][1]}")


def _check_call(part: ql.Call, scope: Scope) -> None:
    kinds = [scope.kind(argument) for argument in part.arguments]
    expected = dict.fromkeys(("year", "month", "day"), "date")
    expected |= {**dict.fromkeys(("length", "lower", "number", *ql.READING), "text"), "row": "node"}
    if part.function == "number" and kinds[0] in NUMERIC:
        raise SchemaError(f"{part.arguments[0]} is a number already: write it without number()")
    if part.function in expected:
        if kinds != [expected[part.function]]:
            raise SchemaError(f"{part} needs a {expected[part.function]}: {part.arguments[0]} is a {kinds[0]}")
    elif part.function in ("abs", "round"):
        if len(kinds) != 1 or kinds[0] not in NUMERIC:
            raise SchemaError(f"{part} needs a number")
    elif not (all(kind in NUMERIC for kind in kinds) or (part.function == "-" and kinds == ["date", "date"])):
        raise SchemaError(f"{part} needs numbers, or two dates to subtract: it has a {' and a '.join(kinds)}")


def _check_groups(query: ql.Query) -> None:
    """Require that rows of groups contain only aggregates and keys."""
    free = frozenset(name for key in query.group if isinstance(key, ql.Var) for name in (key.name,))

    def is_fixed(part: object) -> bool:
        if part in query.group or isinstance(part, ql.Aggregate | ql.Subquery):
            return (
                not isinstance(part, ql.Aggregate)
                or part.over is None
                or ql.names_used(part.over) - part.over.bound <= free
            )
        if isinstance(part, ql.Attribute | ql.Var):
            return ql.names_used(part) <= free
        return all(is_fixed(child) for child in ql.children(part))

    for part in (*query.outputs, *query.having):
        if not is_fixed(part):
            raise SchemaError(f"{part} has many values in a group: add it to `group by`, or aggregate it")


def _known(what: str, name: str, names: Iterable[str]) -> None:
    names = tuple(names)
    if name not in names:
        close = get_close_matches(name, names, 3, 0.6) or list(names[:MAX_NAMES])
        more = " …" if len(close) == MAX_NAMES and len(names) > MAX_NAMES else ""
        listed = f"try {', '.join(close)}{more}" if close else "there are none"
        raise SchemaError(f"no {what} {name!r}: {listed}")
