"""A query as SQL over two tables, in DuckDB's dialect.

nodes(key, type, name, …)                  a row for each node, a column for each attribute
edges(number, head, relation, tail, …)     a row for each edge, its ends by key, a column for each attribute
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from typing import Any

from clew.answering.queries.kinds import Scope, comparable
from clew.answering.queries.literals import Check, Checks, literal_checks
from clew.answering.queries.lowering import CannotPrintError, grouped, refuse_long_walk, turned, without_ties
from clew.core.query import (
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
    Field,
    Formula,
    Missing,
    Named,
    Nodes,
    Not,
    Pattern,
    Query,
    Subquery,
    Value,
    Var,
)
from clew.core.schema import Schema

NUMBER = "[-+]?[0-9][0-9,]*([.][0-9]+)?"
PARTS = {"contains": "contains", "starts with": "starts_with", "ends with": "ends_with"}


def sql(query: AnyQuery, schema: Schema) -> str:
    """Return a query whose rows are those of the algebra, nodes by their keys."""
    return _Sql(schema).query(query)


class _Sql:
    def __init__(self, schema: Schema) -> None:
        self.schema, self.numbers = schema, count(1)

    def query(self, query: AnyQuery) -> str:
        if isinstance(query, Combined):
            return f"({self.query(query.left)}) {query.operation.upper()} ({self.query(query.right)})"
        query = without_ties(query)
        scope = Scope(self.schema).inside(query.pattern)
        source = self.body(query.pattern, Scope(self.schema))
        having: list[str] = []
        if query.is_grouped:
            parts = grouped(query, scope)
            keys = [f"{self.value(key, scope)} AS {name}" for name, key in parts.keys]
            keys += [f"{self.value(Var(name), scope)} AS {_name(name)}" for name in parts.variables]
            values = [f"{self.value(part, scope)} AS {name}" for name, part in parts.aggregates]
            by = f" GROUP BY {', '.join(map(str, range(1, len(keys) + 1)))}" if keys else ""
            source = f"FROM (SELECT {', '.join([*keys, *values]) or '1'} {source}{by}) g"
            for name in parts.variables:
                table, key = ("edges", "number") if name in scope.edges else ("nodes", "key")
                source += f" LEFT JOIN {table} {_name(name)} ON {_name(name)}.{key} = g.{_name(name)}"
            query, having = parts.query, [self.formula(part, scope) for part in parts.query.having]
        source += f" WHERE {' AND '.join(having)}" if having else ""
        return self.rows(query, scope, source)

    def rows(self, query: Query, scope: Scope, source: str) -> str:
        """Return the last step: columns, order and limits."""
        columns = [f"{self.value(column.expression, scope)} AS c{n}" for n, column in enumerate(query.columns)]
        keys = [f"{self.value(key.expression, scope)} AS o{n}" for n, key in enumerate(query.order)]
        inner = f"SELECT {'DISTINCT ' if query.distinct else ''}{', '.join(columns + keys)} {source}"
        if not query.order and query.first is None and not query.skip:
            return inner
        order = []
        for number, key in enumerate(query.order):
            shown = f"lower(o{number})" if scope.kind(key.expression) == "text" else f"o{number}"
            order.append(f"{shown}{' DESC' if key.descending else ''} NULLS LAST")
        order += [f"c{number} NULLS LAST" for number in range(len(columns))]
        names = ", ".join(f"c{number}" for number in range(len(columns)))
        text = f"SELECT {names} FROM ({inner}) r ORDER BY {', '.join(order)}"
        text += "" if query.first is None else f" LIMIT {query.first}"
        return text + (f" OFFSET {query.skip}" if query.skip else "")

    # Patterns

    def body(self, pattern: Pattern, outer: Scope) -> str:
        """Return FROM and WHERE of a pattern inside a scope."""
        scope = outer.inside(pattern)
        new = [name for name in pattern.types if name not in outer.types]
        tables = [f"nodes {_name(name)}" for name in new]
        tests = [f"{_name(name)}.type = {_text(kind)}" for name, kind in pattern.types.items() if kind]
        for edge in pattern.edges:
            self.edge(edge, tables, tests)
        source = " CROSS JOIN ".join(tables) or "(SELECT 1) one"
        seen = outer.inside(replace(pattern, optional=()))
        for part in pattern.optional:
            source += self.optional(part, seen)
            seen = seen.inside(part)
        tests += [self.formula(formula, scope) for formula in pattern.where]
        return f"FROM {source}" + (f" WHERE {' AND '.join(tests)}" if tests else "")

    def edge(self, edge: Edge, tables: list[str], tests: list[str]) -> None:
        name = _name(edge.name) if edge.name else f"e{next(self.numbers)}_"
        if edge.name:
            tables.append(f"edges {name}")
            ends = [(f"{name}.head", f"{name}.tail")] + ([] if edge.directed else [(f"{name}.tail", f"{name}.head")])
            options = [f"{self.end(head, edge.head)} AND {self.end(tail, edge.tail)}" for head, tail in ends]
            tests.append("(" + " OR ".join(f"({option})" for option in options) + ")")
            tests += [f"{name}.relation = {_text(edge.relation)}"] if edge.relation else []
            return
        pairs = self.pairs(edge)
        constants = {side: end for side, end in (("head", edge.head), ("tail", edge.tail)) if not isinstance(end, str)}
        if not constants:
            tables.append(f"({pairs}) {name}")
            tests += [self.end(f"{name}.head", edge.head), self.end(f"{name}.tail", edge.tail)]
            return
        required = " AND ".join(self.end(f"p.{side}", end) for side, end in constants.items())
        if len(constants) == 2:
            tests.append(f"EXISTS (SELECT 1 FROM ({pairs}) p WHERE {required})")
        else:
            far = "tail" if "head" in constants else "head"
            tests.append(f"{_name(edge.variables[0])}.key IN (SELECT p.{far} FROM ({pairs}) p WHERE {required})")

    def end(self, column: str, end: str | Constant) -> str:
        return f"{column} = {_name(end)}.key" if isinstance(end, str) else f"{column} IN {_keys(end)}"

    def pairs(self, edge: Edge) -> str:
        """Return the different pairs of ends of an unnamed edge or walk."""
        where = f" WHERE relation = {_text(edge.relation)}" if edge.relation else ""
        step = f"SELECT DISTINCT head, tail FROM edges{where}"
        if not edge.directed:
            step = f"SELECT head, tail FROM edges{where} UNION SELECT tail, head FROM edges{where}"
        if edge.is_single:
            return step
        refuse_long_walk(edge)

        def exact(steps: int) -> str:
            if not steps:
                return "SELECT key AS head, key AS tail FROM nodes"
            joins = "".join(f" JOIN s s{n} ON s{n}.head = s{n - 1}.tail" for n in range(2, steps + 1))
            return f"SELECT s1.head, s{steps}.tail FROM s s1{joins}"

        if edge.most is not None:
            walks = " UNION ".join(exact(steps) for steps in range(edge.least, edge.most + 1))
            return f"WITH s AS ({step}) SELECT DISTINCT head, tail FROM ({walks}) w"
        following = "SELECT w.head, s.tail FROM w JOIN s ON s.head = w.tail"
        return (
            f"WITH RECURSIVE s AS ({step}), w(head, tail) AS ({exact(edge.least)} UNION {following}) "
            "SELECT head, tail FROM w"
        )

    def optional(self, part: Pattern, outer: Scope) -> str:
        new = [name for name in (*part.types, *part.edge_names) if name not in {*outer.types, *outer.edges}]
        number = f"o{next(self.numbers)}_"
        shown = [f"{_name(name)}.{'number' if name in part.edge_names else 'key'} AS {_name(name)}" for name in new]
        if part.optional:
            raise CannotPrintError("an optional part inside an optional part cannot be written in SQL")
        text = f" LEFT JOIN LATERAL (SELECT {', '.join(shown) or '1'} {self.body(part, outer)}) {number} ON TRUE"
        for name in new:
            table, key = ("edges", "number") if name in part.edge_names else ("nodes", "key")
            text += f" LEFT JOIN {table} {_name(name)} ON {_name(name)}.{key} = {number}.{_name(name)}"
        return text

    # Formulas

    def formula(self, formula: Formula, scope: Scope, *, denied: bool = False) -> str:
        """Return a test. Under a negation it is never NULL."""
        match formula:
            case All(parts):
                return "(" + " AND ".join(self.formula(part, scope, denied=denied) for part in parts) + ")"
            case Either(parts):
                return "(" + " OR ".join(self.formula(part, scope, denied=denied) for part in parts) + ")"
            case Not(part):
                return f"NOT {self.formula(part, scope, denied=True)}"
            case Exists(pattern):
                return f"EXISTS (SELECT 1 {self.body(pattern, scope)})"
            case Missing(expression):
                return f"({self.value(expression, scope)} IS NULL)"
            case Compare():
                test = self.compared(turned(formula), scope)
                return f"COALESCE({test}, FALSE)" if denied else test

    def compared(self, formula: Compare, scope: Scope) -> str:
        left, right = self.value(formula.left, scope), formula.right
        kind = scope.kind(formula.left)
        if isinstance(right, Value):
            return self.literal(left, kind, literal_checks(kind, formula.comparison, right.value))
        if isinstance(right, Named | Nodes):
            return f"({left} {'' if formula.comparison == '=' else 'NOT '}IN {_keys(right)})"
        other = scope.kind(right)
        if not comparable(kind, other):
            return "FALSE"
        if formula.comparison == "in":
            assert isinstance(right, Subquery)
            column = "lower(c0)" if other == "text" else "c0"
            shown = f"lower({left})" if kind == "text" else left
            return f"({shown} IN (SELECT {column} FROM ({self.query(right.query)}) q WHERE c0 IS NOT NULL))"
        first, second = left, self.value(right, scope)
        if kind == "text":
            first, second = f"lower({first})", f"lower({second})"
        return _test(first, formula.comparison, second, kind)

    def literal(self, value: str, kind: str, checks: Checks) -> str:
        if kind == "list":
            return f"EXISTS (SELECT 1 FROM unnest({value}) u(v) WHERE {_checked('u.v', checks.tests[0])})"
        tests = [_checked(value, check) for check in checks.tests]
        if not tests:
            return f"({value} IS NOT NULL)" if checks.all else "FALSE"
        return "(" + checks.joiner("AND", "OR").join(tests) + ")"

    # Expressions

    def value(self, part: Expression, scope: Scope) -> str:
        match part:
            case Field(name):
                return f"g.{name}"
            case Value(value):
                return _text(value) if isinstance(value, str) else str(value)
            case Var(name):
                return f"{_name(name)}.{'number' if name in scope.edges else 'key'}"
            case Attribute(variable, name):
                return f"{_name(variable)}.{_name(name)}"
            case Call(function, arguments):
                kinds = [scope.kind(argument) for argument in arguments]
                return _call(function, [self.value(argument, scope) for argument in arguments], kinds)
            case Aggregate(_, None, _, None):
                return "count(*)"
            case Aggregate(_, argument, _, None):
                assert argument is not None
                return _aggregate(part, self.value(argument, scope), scope.kind(argument))
            case Aggregate(_, argument, _, Pattern() as over):  # SQL moves aggregates of outer columns out
                inner = scope.inside(over)
                shown = "1" if argument is None else self.value(argument, inner)
                value = _aggregate(part, "t.v", "integer" if argument is None else inner.kind(argument))
                return f"(SELECT {value} FROM (SELECT {shown} AS v {self.body(over, scope)}) t)"
            case Subquery(query):
                return f"({self.query(query)})"
        raise CannotPrintError(f"{part} has no value in SQL")


def _aggregate(part: Aggregate, value: str, kind: str) -> str:
    if part.function in ("min", "max") and kind == "text":
        return f"split_part({part.function}(lower({value}) || chr(1) || {value}), chr(1), 2)"
    return f"{part.function}({'DISTINCT ' if part.distinct else ''}{value})"


def _test(left: str, comparison: str, right: str, kind: str) -> str:
    if comparison in PARTS:
        return f"{PARTS[comparison]}({left}, {right})" if kind == "text" else f"({left} = {right})"
    return f"({left} {'<>' if comparison == '!=' else comparison} {right})"


def _checked(value: str, check: Check) -> str:
    if check.comparison == "matches":
        return f"regexp_full_match({value}, {_text(check.value)})"
    if check.kind == "text":
        return _test(f"lower({value})", check.comparison, _text(check.value), "text")
    return _test(value, check.comparison, f"DATE '{check.value}'" if check.kind == "day" else check.value, "")


def _call(function: str, arguments: list[str], kinds: list[str]) -> str:
    first = arguments[0]
    if function == "-" and kinds == ["date", "date"]:
        return f"date_diff('day', {arguments[1]}::DATE, {first}::DATE)"
    if function == "/":
        return f"({first}::DOUBLE / NULLIF({arguments[1]}, 0))"
    if len(arguments) == 2:
        return f"({first} {function} {arguments[1]})"
    if function == "round":
        return f"floor({first} + 0.5)::BIGINT"
    if function == "number":
        return f"CASE WHEN regexp_full_match({first}, '{NUMBER}') THEN replace({first}, ',', '')::DOUBLE END"
    return f"{function}({first})"


def _keys(constant: Constant) -> str:
    if isinstance(constant, Named):
        raise CannotPrintError(f"{constant} is not linked to nodes: link the constants of the query first")
    return f"({', '.join(map(_text, constant.keys)) or 'NULL'})"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: Any) -> str:
    return "'" + str(text).replace("'", "''") + "'"


def create(schema: Schema, timestamps: Iterable[str] = ()) -> list[str]:
    """Return the statements that create the two tables. `timestamps` are dates with a time."""
    names = {"text": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE"}
    moments = set(timestamps)

    def columns(attributes: dict[str, str]) -> str:
        kinds = {
            name: "TIMESTAMP" if name in moments else names.get(kind, "VARCHAR[]") for name, kind in attributes.items()
        }
        return "".join(f", {_name(name)} {kind}" for name, kind in kinds.items())

    node = f"key VARCHAR PRIMARY KEY, type VARCHAR, name VARCHAR{columns(schema.attribute_types)}"
    edge = f"number BIGINT PRIMARY KEY, head VARCHAR, relation VARCHAR, tail VARCHAR{columns(schema.edge_attributes)}"
    return [f"CREATE TABLE nodes({node})", f"CREATE TABLE edges({edge})"]
