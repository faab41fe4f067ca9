"""A query as SQL for DuckDB, over the tables of `tables`, or for PostgreSQL, over the tables of a base.

nodes(key, type, name, …)                  a row for each node, a column for each attribute
edges(number, head, relation, tail, …)     a row for each edge, its ends by key, a column for each attribute

In PostgreSQL nodes go by their ids, types and relations by their codes, and attributes are JSON.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew.answering.queries.columns import from_values, to_values
from clew.answering.queries.kinds import Scope, comparable
from clew.answering.queries.literals import PARTIAL, Check, Checks, literal_checks
from clew.answering.queries.lowering import CannotPrintError, grouped, refuse_long_walk, turned, without_ties
from clew.core import query as ql
from clew.core.schema import Schema

if TYPE_CHECKING:
    from clew.store.graph.protocol import StoredKnowledgeBase
    from clew.store.graph.tables import Piece
    from clew.store.postgres.knowledge_base import PostgresKnowledgeBase

NUMBER = "^[-+]?[0-9][0-9,]*([.][0-9]+)?$"
NODE_COLUMNS, EDGE_COLUMNS = ("key", "type", "name", "text"), ("number", "head", "relation", "tail")
ARROW_TYPES = {
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "list": pa.list_(pa.string()),
}
JSON_TYPES = {"integer": "bigint", "number": "float8", "boolean": "boolean"}


class SqlNames:
    """Names and functions of DuckDB, over the tables of `tables`."""

    node, edge = "key", "number"
    """Columns that identify nodes and edges."""

    def __init__(self, schema: Schema) -> None:
        self.node_columns = _columns(NODE_COLUMNS, schema.attribute_types)
        self.edge_columns = _columns(EDGE_COLUMNS, schema.edge_attributes)

    def keys(self, keys: Sequence[str]) -> list[str]:
        """Return the values of the column `node` for some keys."""
        return list(map(_text, keys))

    def is_type(self, owner: str, kind: str) -> str:
        """Return a test of the type of a node."""
        return f"{owner}.type = {_text(kind)}"

    def relation_is(self, relation: str) -> str:
        """Return a test of the relation of an edge."""
        return f"relation = {_text(relation)}"

    def attribute(self, owner: str, name: str, kind: str, is_edge: bool) -> str:  # noqa: ARG002
        """Return an attribute of a node or an edge."""
        return f"{owner}.{_name((self.edge_columns if is_edge else self.node_columns).get(name, name))}"

    def pairs(self, where: str) -> str:
        """Return the different ends of edges."""
        return f"SELECT DISTINCT head, tail FROM edges{where}"

    def walk(self, edge: ql.Edge) -> None:
        """Raise CannotPrintError if a walk between two variables would take too long."""

    def items(self, value: str) -> str:
        """Return the rows of a list."""
        return f"unnest({value})"

    def lower(self, value: str) -> str:
        """Return a text in lower case, compared by code points."""
        return f"lower({value})"

    def matches(self, value: str, pattern: str) -> str:
        """Return a test of a whole text."""
        return f"regexp_full_match({value}, {_text(pattern)})"


class PostgresNames(SqlNames):
    """Names and functions of a base in PostgreSQL."""

    node, edge = "id", "ctid"

    def __init__(self, kb: PostgresKnowledgeBase) -> None:
        self.kb = kb

    def keys(self, keys: Sequence[str]) -> list[str]:  # noqa: D102
        return list(map(str, self.kb.ids(keys)))

    def is_type(self, owner: str, kind: str) -> str:  # noqa: D102
        return f"{owner}.type = {self.kb.schema.type_code[self.kb.schema.node_type(kind).name]}"

    def relation_is(self, relation: str) -> str:  # noqa: D102
        schema = self.kb.schema
        return f"relation = {schema.relation_code[schema.relation_rows(relation)[0].name]}"

    def attribute(self, owner: str, name: str, kind: str, is_edge: bool) -> str:  # noqa: D102
        schema = self.kb.schema
        if name == ("relation" if is_edge else "type"):
            names = schema.relation_names if is_edge else schema.type_names
            return f"(ARRAY[{', '.join(map(_text, names))}])[{owner}.{name} + 1]"
        if not is_edge and name in ("key", "name", "text"):
            return f"{owner}.{name}"
        if name not in (schema.edge_attributes if is_edge else schema.attribute_types):
            return "NULL::text"
        if kind == "list":
            return f"({owner}.attributes->{_text(name)})"
        value = f"({owner}.attributes->>{_text(name)})"
        if kind == "date" and (is_edge or name not in self.kb.written_dates):
            return f"{value}::timestamp"
        if kind == "date":
            return f"({value} || substr('0000-01-01', length({value}) + 1))::timestamp"
        value += f"::{JSON_TYPES[kind]}" if kind in JSON_TYPES else ""
        return f"NULLIF({value}, 'NaN')" if kind == "number" else value

    def pairs(self, where: str) -> str:  # noqa: D102
        if not self.kb.schema.edge_attributes or "relation" not in where:
            return super().pairs(where)
        return f"SELECT head, tail FROM edges{where} AND nth = 0"

    def walk(self, edge: ql.Edge) -> None:  # noqa: D102
        if edge.most is None:
            raise CannotPrintError("PostgreSQL would walk from every node")

    def items(self, value: str) -> str:  # noqa: D102
        return f"jsonb_array_elements_text({value})"

    def lower(self, value: str) -> str:
        """Return a text in lower case. The query fails for letters that PostgreSQL lowers differently from Python."""
        other = self.kb.other_letters
        if other is None:
            raise CannotPrintError("this PostgreSQL lowers only ASCII letters")
        unlike = f"(1 / (length({value}) - length({value})))::text"
        plain = f'lower({value} COLLATE "default")'
        return f'(CASE WHEN {value} ~ {_text(f"[{other}]")} THEN {unlike} ELSE {plain} END COLLATE "C")'

    def matches(self, value: str, pattern: str) -> str:  # noqa: D102, ARG002
        raise CannotPrintError("PostgreSQL has regular expressions of another kind")


def sql(query: ql.AnyQuery, schema: Schema, names: SqlNames | None = None) -> str:
    """Return a query with the rows of the algebra. Nodes are given by their keys, or by their ids in PostgreSQL."""
    return _Sql(schema, names or SqlNames(schema)).query(query)


class _Sql:
    def __init__(self, schema: Schema, names: SqlNames) -> None:
        self.schema, self.names, self.numbers = schema, names, count(1)
        own = SqlNames(schema)
        columns = (*NODE_COLUMNS, *EDGE_COLUMNS, *own.node_columns.values(), *own.edge_columns.values())
        self.columns = {column.lower() for column in columns}

    def alias(self, variable: str) -> str:
        """Return the table of a variable. DuckDB ignores case, and reads a table named like a column as that column."""
        is_plain = variable == variable.lower() and variable not in self.columns
        is_plain = is_plain and not variable.endswith("_")  # names of the printer end in _
        return _name(variable if is_plain else f"{variable}.{variable.encode().hex()}")

    def query(self, query: ql.AnyQuery) -> str:
        if isinstance(query, ql.Combined):
            return f"({self.query(query.left)}) {query.operation.upper()} ({self.query(query.right)})"
        query = without_ties(query)
        scope = Scope(self.schema).inside(query.pattern)
        source = self.body(query.pattern, Scope(self.schema), is_set=query.is_set)
        having: list[str] = []
        if query.is_grouped:
            parts = grouped(query, scope)
            keys = [f"{self.value(key, scope)} AS {name}_" for name, key in parts.keys]
            keys += [f"{self.value(ql.Var(name), scope)} AS {self.alias(name)}" for name in parts.variables]
            values = [f"{self.value(part, scope)} AS {name}_" for name, part in parts.aggregates]
            by = f" GROUP BY {', '.join(map(str, range(1, len(keys) + 1)))}" if keys else ""
            source = f"FROM (SELECT {', '.join([*keys, *values]) or '1'} {source}{by}) g_"
            source += "".join(self.looked_up(name, "g_", name in scope.edges) for name in parts.variables)
            query, having = parts.query, [self.formula(part, scope) for part in parts.query.having]
        source += f" WHERE {' AND '.join(having)}" if having else ""
        return self.rows(query, scope, source)

    def looked_up(self, name: str, table: str, is_edge: bool) -> str:
        """Return the join that gives a variable of a sub-select its row."""
        rows, key = ("edges", self.names.edge) if is_edge else ("nodes", self.names.node)
        return f" LEFT JOIN {rows} {self.alias(name)} ON {self.alias(name)}.{key} = {table}.{self.alias(name)}"

    def rows(self, query: ql.Query, scope: Scope, source: str) -> str:
        """Return the last step: columns, order and limits."""
        columns = [f"{self.value(column.expression, scope)} AS c{n}" for n, column in enumerate(query.columns)]
        keys = [f"{self.value(key.expression, scope)} AS o{n}" for n, key in enumerate(query.order)]
        inner = f"SELECT {'DISTINCT ' if query.distinct else ''}{', '.join(columns + keys)} {source}"
        if not query.order and query.first is None and not query.skip:
            return inner
        order = []
        for number, key in enumerate(query.order):
            shown = self.names.lower(f"o{number}") if scope.kind(key.expression) == "text" else f"o{number}"
            order.append(f"{shown}{' DESC' if key.descending else ''} NULLS LAST")
        for number, column in enumerate(query.columns):
            exact = ' COLLATE "C"' if scope.kind(column.expression) == "text" else ""
            order.append(f"c{number}{exact} NULLS LAST")
        names = ", ".join(f"c{number}" for number in range(len(columns)))
        text = f"SELECT {names} FROM ({inner}) r_ ORDER BY {', '.join(order)}"
        text += "" if query.first is None else f" LIMIT {query.first}"
        return text + (f" OFFSET {query.skip}" if query.skip else "")

    # Patterns

    def body(self, pattern: ql.Pattern, outer: Scope, *, is_set: bool = True) -> str:
        """Return FROM and WHERE of a pattern inside a scope. Rows may be repeated if `is_set`."""
        scope = outer.inside(pattern)
        new = [name for name in pattern.types if name not in outer.types]
        tables = [f"nodes {self.alias(name)}" for name in new]
        tests = [self.names.is_type(self.alias(name), kind) for name, kind in pattern.types.items() if kind]
        for edge in pattern.edges:
            self.edge(edge, tables, tests, is_set)
        source = " CROSS JOIN ".join(tables) or "(SELECT 1) one_"
        if pattern.optional and len(tables) > 1 and tests:  # optional parts of rows that do not match would take long
            source, tests = f"{' CROSS JOIN '.join(tables[:-1])} JOIN {tables[-1]} ON {' AND '.join(tests)}", []
        seen = outer.inside(replace(pattern, optional=()))
        for part in pattern.optional:
            source += self.optional(part, seen, is_set)
            seen = seen.inside(part)
        tests += [self.formula(formula, scope) for formula in pattern.where]
        return f"FROM {source}" + (f" WHERE {' AND '.join(tests)}" if tests else "")

    def edge(self, edge: ql.Edge, tables: list[str], tests: list[str], is_set: bool) -> None:
        name = self.alias(edge.name) if edge.name else f"e{next(self.numbers)}_"
        if edge.name:
            tables.append(f"edges {name}")
            ends = [(f"{name}.head", f"{name}.tail")] + ([] if edge.directed else [(f"{name}.tail", f"{name}.head")])
            options = [f"{self.end(head, edge.head)} AND {self.end(tail, edge.tail)}" for head, tail in ends]
            tests.append("(" + " OR ".join(f"({option})" for option in options) + ")")
            tests += [f"{name}.{self.names.relation_is(edge.relation)}"] if edge.relation else []
            return
        constants = {side: end for side, end in (("head", edge.head), ("tail", edge.tail)) if not isinstance(end, str)}
        if not constants:
            self.names.walk(edge)
            tables.append(f"({self.pairs(edge, is_set)}) {name}")
            tests += [self.end(f"{name}.head", edge.head), self.end(f"{name}.tail", edge.tail)]
            return
        side, start = next(iter(constants.items()))
        far = "tail" if side == "head" else "head"
        reached = f"SELECT {far} FROM ({self.pairs(edge, True, (side, start))}) p_ WHERE {self.end(side, start)}"
        if len(constants) == 2:
            tests.append(f"EXISTS (SELECT 1 FROM ({reached}) r_ WHERE {self.end(far, constants[far])})")
        else:
            tests.append(f"{self.alias(edge.variables[0])}.{self.names.node} IN ({reached})")

    def end(self, column: str, end: str | ql.Constant) -> str:
        test = f"= {self.alias(end)}.{self.names.node}" if isinstance(end, str) else self.among(end)
        return f"{column} {test}"

    def among(self, constant: ql.Constant) -> str:
        """Return the test that a column is in some nodes."""
        if isinstance(constant, ql.Named):
            raise CannotPrintError(f"{constant} is not linked to nodes: link the constants of the query first")
        return f"IN ({', '.join(self.names.keys(constant.keys)) or 'NULL'})"

    def pairs(self, edge: ql.Edge, is_set: bool, start: tuple[str, ql.Constant] | None = None) -> str:
        """Return the pairs of ends of an unnamed edge or walk, repeated only if `is_set`. A walk starts at `start`."""
        where = f" WHERE {self.names.relation_is(edge.relation)}" if edge.relation else ""
        step = f"SELECT head, tail FROM edges{where}" if is_set else self.names.pairs(where)
        if not edge.directed:
            both = " ALL" if is_set else ""
            step = f"SELECT head, tail FROM edges{where} UNION{both} SELECT tail, head FROM edges{where}"
        if edge.is_single:
            return step
        refuse_long_walk(edge)
        near, far = ("tail", "head") if start and start[0] == "tail" else ("head", "tail")

        def exact(steps: int) -> str:
            first, node = "" if start is None else f" WHERE {self.end('{}', start[1])}", self.names.node
            if not steps:
                return f"SELECT {node} AS head, {node} AS tail FROM nodes{first.format(node)}"
            joins = "".join(f" JOIN s_ s{n} ON s{n}.{near} = s{n - 1}.{far}" for n in range(2, steps + 1))
            return f"SELECT s1.{near} AS {near}, s{steps}.{far} AS {far} FROM s_ s1{joins}{first.format(f's1.{near}')}"

        if edge.most is not None:
            walks = " UNION ".join(f"SELECT head, tail FROM ({exact(n)}) x_" for n in range(edge.least, edge.most + 1))
            return f"WITH s_ AS NOT MATERIALIZED ({step}) {walks}"
        following = f"SELECT w_.{near}, s_.{far} FROM w_ JOIN s_ ON s_.{near} = w_.{far}"
        return (
            f"WITH RECURSIVE s_ AS NOT MATERIALIZED ({step}), w_({near}, {far}) AS "
            f"(SELECT {near}, {far} FROM ({exact(edge.least)}) x_ UNION {following}) SELECT head, tail FROM w_"
        )

    def optional(self, part: ql.Pattern, outer: Scope, is_set: bool) -> str:
        new = [name for name in (*part.types, *part.edge_names) if name not in {*outer.types, *outer.edges}]
        number = f"o{next(self.numbers)}_"
        shown = [f"{self.value(ql.Var(name), outer.inside(part))} AS {self.alias(name)}" for name in new]
        if part.optional:
            raise CannotPrintError("an optional part inside an optional part cannot be written in SQL")
        body = self.body(part, outer, is_set=is_set)
        text = f" LEFT JOIN LATERAL (SELECT {', '.join(shown) or '1'} {body}) {number} ON TRUE"
        return text + "".join(self.looked_up(name, number, name in part.edge_names) for name in new)

    # Formulas

    def formula(self, formula: ql.Formula, scope: Scope, *, denied: bool = False) -> str:
        """Return a test. Under a negation it cannot be NULL."""
        match formula:
            case ql.All(parts):
                return "(" + " AND ".join(self.formula(part, scope, denied=denied) for part in parts) + ")"
            case ql.Either(parts):
                return "(" + " OR ".join(self.formula(part, scope, denied=denied) for part in parts) + ")"
            case ql.Not(part):
                return f"NOT {self.formula(part, scope, denied=True)}"
            case ql.Exists(pattern):
                return f"EXISTS (SELECT 1 {self.body(pattern, scope)})"
            case ql.Missing(expression):
                return f"({self.value(expression, scope)} IS NULL)"
            case ql.Compare():
                test = self.compared(turned(formula), scope)
                return f"COALESCE({test}, FALSE)" if denied else test

    def compared(self, formula: ql.Compare, scope: Scope) -> str:
        left, right = self.value(formula.left, scope), formula.right
        kind = scope.kind(formula.left)
        if isinstance(right, ql.Value):
            return self.literal(left, kind, literal_checks(kind, formula.comparison, right.value))
        if isinstance(right, ql.Named | ql.Nodes):
            return f"({left} {'' if formula.comparison == '=' else 'NOT '}{self.among(right)})"
        if not comparable(kind, scope.kind(right)):
            return "FALSE"
        if formula.comparison == "in":
            assert isinstance(right, ql.Subquery)
            column, shown = ("c0", left) if kind != "text" else map(self.names.lower, ("c0", left))
            return f"({shown} IN (SELECT {column} FROM ({self.query(right.query)}) q_ WHERE c0 IS NOT NULL))"
        first, second = left, self.value(right, scope)
        if kind == "text":
            first, second = self.names.lower(first), self.names.lower(second)
        return _test(first, formula.comparison, second, kind)

    def literal(self, value: str, kind: str, checks: Checks) -> str:
        if kind == "list":
            test = self.checked("u_.v", checks.tests[0])
            return f"EXISTS (SELECT 1 FROM {self.names.items(value)} u_(v) WHERE {test})"
        tests = [self.checked(value, check) for check in checks.tests]
        if not tests:
            return f"({value} IS NOT NULL)" if checks.all else "FALSE"
        return "(" + checks.joiner("AND", "OR").join(tests) + ")"

    def checked(self, value: str, check: Check) -> str:
        if check.comparison == "matches":
            return self.names.matches(value, check.value)
        if check.kind == "text":
            return _test(self.names.lower(value), check.comparison, _text(check.value), "text")
        return _test(value, check.comparison, f"DATE '{check.value}'" if check.kind == "day" else check.value, "")

    # Expressions

    def value(self, part: ql.Expression, scope: Scope) -> str:
        match part:
            case ql.Field(name):
                return f"g_.{name}_"
            case ql.Value(value):
                return _text(value) if isinstance(value, str) else str(value)
            case ql.Var(name):
                return f"{self.alias(name)}.{self.names.edge if name in scope.edges else self.names.node}"
            case ql.Attribute(variable, name):
                return self.names.attribute(self.alias(variable), name, scope.kind(part), variable in scope.edges)
            case ql.Call(function, arguments) if function not in ql.ONLY_HERE:
                kinds = [scope.kind(argument) for argument in arguments]
                given = [self.value(argument, scope) for argument in arguments]
                return self.names.lower(given[0]) if function == "lower" else _call(function, given, kinds)
            case ql.Aggregate(_, None, _, None):
                return self.aggregate(part, "*", "integer")
            case ql.Aggregate(_, argument, _, None):
                assert argument is not None
                return self.aggregate(part, self.value(argument, scope), scope.kind(argument))
            case ql.Aggregate(_, argument, _, ql.Pattern() as over):  # SQL moves aggregates of outer columns out
                inner = scope.inside(over)
                shown = "1" if argument is None else self.value(argument, inner)
                value = self.aggregate(part, "t_.v", "integer" if argument is None else inner.kind(argument))
                body = self.body(over, scope, is_set=part.is_set)
                return f"(SELECT {value} FROM (SELECT {shown} AS v {body}) t_)"
            case ql.Subquery(query):
                return f"({self.query(query)})"
        raise CannotPrintError(f"{part} has no value in SQL")

    def aggregate(self, part: ql.Aggregate, value: str, kind: str) -> str:
        if part.function in ("min", "max") and kind == "text":
            both = f"{self.names.lower(value)} || chr(1) || {value}"
            return f"split_part({part.function}({both}), chr(1), 2)"
        if part.function == "exists":
            return f"(count({value}) > 0)"
        return f"{part.function}({'DISTINCT ' if part.distinct else ''}{value})"


def _test(left: str, comparison: str, right: str, kind: str) -> str:
    if comparison in PARTIAL:
        tests = {
            "contains": f"(strpos({left}, {right}) > 0)",
            "starts with": f"starts_with({left}, {right})",
            "ends with": f"(right({left}, length({right})::int) = {right})",
        }
        return tests[comparison] if kind == "text" else f"({left} = {right})"
    return f"({left} {'<>' if comparison == '!=' else comparison} {right})"


def _call(function: str, arguments: list[str], kinds: list[str]) -> str:
    first = arguments[0]
    if function == "-" and kinds == ["date", "date"]:
        return f"({first}::DATE - {arguments[1]}::DATE)::BIGINT"
    if function == "/":
        return f"({first}::FLOAT8 / NULLIF({arguments[1]}, 0))"
    if len(arguments) == 2:
        return f"({first} {function} {arguments[1]})"
    if function == "round":
        return f"floor({first} + 0.5)::BIGINT"
    if function == "number":
        return f"CASE WHEN {first} ~ '{NUMBER}' THEN replace({first}, ',', '')::FLOAT8 END"
    if function in ("year", "month", "day"):
        return f"date_part('{function}', {first})::BIGINT"
    if function == "length":
        return f"length({first})::BIGINT"
    return f"{function}({first})"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: Any) -> str:
    return "'" + str(text).replace("'", "''") + "'"


def _columns(own: Sequence[str], attributes: Iterable[str]) -> dict[str, str]:
    """Return a column for each attribute. DuckDB ignores case, so a name may get a _ at its end."""
    taken, columns = {*own}, {}
    for name in attributes:
        column = name
        while column.lower() in taken:
            column += "_"
        taken.add(column.lower())
        columns[name] = column
    return columns


def tables(kb: StoredKnowledgeBase) -> dict[str, pa.Table]:
    """Return the tables `nodes` and `edges`, with values as queries see them."""
    names, schema, stored = SqlNames(kb.schema), kb.schema, kb.to_tables()
    edges = _table(stored.edges, EDGE_COLUMNS[1:], names.edge_columns, schema.edge_attributes)
    return {
        "nodes": _table(stored.nodes, NODE_COLUMNS, names.node_columns, schema.attribute_types),
        "edges": edges.add_column(0, EDGE_COLUMNS[0], [pa.array(range(len(edges)), pa.int64())]),
    }


def _table(
    pieces: Sequence[Piece], own: Sequence[str], columns: Mapping[str, str], kinds: Mapping[str, str]
) -> pa.Table:
    [rows] = (piece.table for piece in pieces)
    made = {name: rows[name] for name in own}
    for name, column in columns.items():
        cells = from_values(kinds[name], rows[name].combine_chunks())
        values = to_values(cells)
        if any(isinstance(value, datetime.datetime) for value in values):
            made[column] = pa.array(cells.values, mask=~cells.present)
        else:
            made[column] = pa.array(values, ARROW_TYPES[kinds[name]])
    return pa.table(made)
