"""SQL over a database as a query of the algebra: tables are types, rows nodes, columns attributes, keys relations.

`Database` is made of the table descriptions of Spider. A foreign key is a relation that is called like its column.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import sqlglot
from sqlglot import exp

from clew.answering.queries.kinds import check
from clew.core.query import (
    Aggregate,
    All,
    AnyQuery,
    Attribute,
    Call,
    Column,
    Combined,
    Compare,
    Edge,
    Either,
    Expression,
    Formula,
    Missing,
    Not,
    Order,
    Pattern,
    Query,
    Subquery,
    Value,
    Var,
    Variable,
    aggregates,
    children,
    names_used,
    rewrite,
)
from clew.core.schema import NodeType, Relation, Schema

KINDS = {"number": "number"}
COMPARISONS = {exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
OPERATORS = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
FUNCTIONS = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max"}
CALLS = {exp.Abs: "abs", exp.Length: "length", exp.Lower: "lower", exp.Round: "round"}


class Refused(Exception):  # noqa: N818 - an outcome, not a failure
    """What the algebra cannot say, or what the SQL does not say."""


@dataclass(frozen=True)
class Database:
    """Tables by lower-case name: their columns with kinds, their keys, and the columns that refer to other tables."""

    tables: dict[str, dict[str, str]]
    keys: dict[str, str]
    references: dict[tuple[str, str], tuple[str, str]]
    """(table, column) → (table, column) that it refers to."""

    @classmethod
    def of(cls, described: dict[str, Any]) -> "Database":
        tables, keys = {}, {}
        for table in described["tables"]:
            columns = [(column["name"].lower(), column) for column in table["columns"]]
            tables[table["name"].lower()] = {name: column["kind"] for name, column in columns}
            keys |= {table["name"].lower(): name for name, column in columns if column["key"]}
        pairs = [(_split(a), _split(b)) for a, b in described["foreign_keys"]]
        return cls(tables, keys, dict(pairs))

    def relation(self, table: str, column: str) -> str:
        return f"{table}.{column}"

    def schema(self) -> Schema:
        """The schema of the base that the database becomes. Every column stays an attribute."""
        kinds: dict[str, str] = {}
        for table in self.tables.values():
            for column, kind in table.items():
                name, found = called(column), KINDS.get(kind, "text")
                kinds[name] = found if kinds.get(name, found) == found else "text"
        types = tuple(NodeType(name, 1, attributes=tuple(columns)) for name, columns in self.tables.items())
        relations = tuple(
            Relation(self.relation(*start), start[0], end[0], 1) for start, end in self.references.items()
        )
        return Schema(types, relations, kinds)


def called(column: str) -> str:
    """The attribute that a column becomes: some names are those of every node."""
    return f"{column}_" if column in ("key", "type", "name", "text", "aliases") else column


def _split(text: str) -> tuple[str, str]:
    table, _, column = text.lower().partition(".")
    return table, column


def convert(sql: str, database: Database) -> AnyQuery:
    """A gold query as a query of the algebra. Raises Refused with a reason."""
    try:
        tree = sqlglot.parse_one(sql, read="sqlite")
    except sqlglot.errors.SqlglotError as error:
        raise Refused("not valid SQL") from error
    query = _query(tree, database)
    try:
        check(query, database.schema())
    except Exception as error:
        raise Refused("check: " + re.sub(r"\(.*\)|[a-z0-9_]+[.][a-z0-9_]+", "…", str(error))[:70]) from error
    return query


def _query(tree: exp.Expression, database: Database) -> AnyQuery:
    if isinstance(tree, exp.Subquery | exp.Paren):
        return _query(tree.this, database)
    for kind, word in ((exp.Union, "union"), (exp.Intersect, "intersect"), (exp.Except, "except")):
        if isinstance(tree, kind):
            left, right = _query(tree.this, database), _query(tree.expression, database)
            if tree.args.get("order") or tree.args.get("limit"):
                raise Refused("an order of a set operation")
            return Combined(word, left, right)  # type: ignore[arg-type]
    if not isinstance(tree, exp.Select):
        raise Refused(f"a {type(tree).__name__}")
    return _Select(tree, database).query()


@dataclass
class _Select:
    tree: exp.Select
    database: Database
    tables: dict[str, str] = field(default_factory=dict)
    """Variable → table."""
    edges: list[Edge] = field(default_factory=list)
    aliases: dict[str, exp.Expression] = field(default_factory=dict)

    def query(self) -> Query:
        tree = self.tree
        source = tree.args.get("from_")
        if source is None:
            raise Refused("a query without a table")
        self.table(source.this)
        where: list[Formula] = []
        joins = tree.args.get("joins") or []
        for join in joins:
            self.table(join.this)
            if join.side in ("LEFT", "RIGHT", "FULL"):
                raise Refused("an outer join")
        for join in joins:
            for part in join.args.get("using") or []:
                raise Refused(f"a join USING {part}")
            if join.args.get("on"):
                where += self.required(join.args["on"])
        if tree.args.get("where"):
            where += self.required(tree.args["where"].this)
        for part in tree.expressions:
            if isinstance(part, exp.Alias):
                self.aliases[part.alias.lower()] = part.this
        columns = tuple(column for part in tree.expressions for column in self.columns(part))
        group = tuple(self.key(part) for part in tree.args["group"].expressions) if tree.args.get("group") else ()
        having = tuple(self.required(tree.args["having"].this)) if tree.args.get("having") else ()
        order = tuple(
            Order(self.value(part.this), bool(part.args.get("desc")))
            for part in (tree.args["order"].expressions if tree.args.get("order") else ())
        )
        limit = tree.args.get("limit")
        pattern = Pattern(
            tuple(Variable(name, table) for name, table in self.tables.items()), tuple(self.edges), tuple(where)
        )
        query = Query(
            columns,
            pattern,
            bool(tree.args.get("distinct")),
            group,
            having,
            order,
            int(limit.expression.this) if limit else None,
            int(tree.args["offset"].expression.this) if tree.args.get("offset") else 0,
        )
        return self.grouped(query)

    def grouped(self, query: Query) -> Query:
        """Values that a group fixes by its key are taken from its node; other bare columns become keys."""
        if not query.is_grouped:
            return query
        bare = [part for part in (*query.outputs, *query.having) for part in self.bare(part, query.group)]
        if bare and not query.group:
            return self.row_of_extreme(query)
        return replace(query, group=tuple(dict.fromkeys((*query.group, *bare))))

    def bare(self, part: Any, group: tuple[Expression, ...]) -> Iterator[Expression]:
        if part in group or isinstance(part, Aggregate | Subquery | Value):
            return
        if isinstance(part, Attribute | Var):
            if not any(isinstance(key, Var) and key.name in names_used(part) for key in group):
                yield part
            return
        for child in children(part):
            yield from self.bare(child, group)

    def row_of_extreme(self, query: Query) -> Query:
        """SQLite's "name, max(age)" without groups is the row with that value."""
        found = {one for part in query.outputs for one in aggregates(part)}
        if len(found) != 1 or query.order or query.having:
            raise Refused("a bare column beside an aggregate")
        [one] = found
        if one.function not in ("min", "max") or one.argument is None:
            raise Refused("a bare column beside an aggregate")
        plain = rewrite(query, lambda part: one.argument if part == one else part)
        return replace(plain, order=(Order(one.argument, one.function == "max"),), first=1)

    # Tables and columns

    def table(self, node: exp.Expression) -> None:
        if not isinstance(node, exp.Table):
            raise Refused("a sub-query as a table")
        name = node.name.lower()
        if name not in self.database.tables:
            raise Refused("an unknown table")
        self.tables[(node.alias or node.name).lower()] = name

    def columns(self, part: exp.Expression) -> Iterator[Column]:
        name = part.alias if isinstance(part, exp.Alias) else ""
        part = part.this if isinstance(part, exp.Alias) else part
        if isinstance(part, exp.Star) or (isinstance(part, exp.Column) and isinstance(part.this, exp.Star)):
            owners = [part.table.lower()] if isinstance(part, exp.Column) and part.table else list(self.tables)
            for owner in owners:
                yield from (
                    Column(Attribute(owner, called(column))) for column in self.database.tables[self.tables[owner]]
                )
        else:
            yield Column(self.value(part), name)

    def attribute(self, node: exp.Column) -> Attribute | None:
        name, owner = node.name.lower(), node.table.lower()
        if owner:
            if owner not in self.tables:
                found = [variable for variable, table in self.tables.items() if table == owner]
                if len(found) != 1:
                    raise Refused("a column of an outer query" if not found else "an ambiguous column")
                owner = found[0]
            if name not in self.database.tables[self.tables[owner]]:
                raise Refused("an unknown column")
            return Attribute(owner, called(name))
        owners = [variable for variable, table in self.tables.items() if name in self.database.tables[table]]
        if not owners:
            return None
        return Attribute(owners[0], called(name))

    def key(self, node: exp.Expression) -> Expression:
        """A group key. The key of a row stands for the row, and so does a column that refers to a joined row."""
        part = self.value(node)
        if not isinstance(part, Attribute):
            return part
        table = self.tables[part.variable]
        if called(self.database.keys.get(table, "")) == part.name:
            return Var(part.variable)
        for edge in self.edges:
            if edge.relation == self.database.relation(table, self.column(part)) and edge.head == part.variable:
                return Var(str(edge.tail))
        return part

    def column(self, part: Attribute) -> str:
        """The column that an attribute was."""
        return next(name for name in self.database.tables[self.tables[part.variable]] if called(name) == part.name)

    # Conditions

    def required(self, node: exp.Expression) -> list[Formula]:
        """Conditions that all hold. Joins along a reference become edges."""
        if isinstance(node, exp.And):
            return self.required(node.this) + self.required(node.expression)
        if isinstance(node, exp.Paren):
            return self.required(node.this)
        if isinstance(node, exp.Boolean) and node.this:
            return []
        if isinstance(node, exp.EQ) and self.joined(node):
            return []
        return [self.formula(node)]

    def joined(self, node: exp.EQ) -> bool:
        sides = [
            self.attribute(side) if isinstance(side, exp.Column) else None for side in (node.this, node.expression)
        ]
        for start, end in (sides, sides[::-1]):
            if start is None or end is None or start.variable == end.variable:
                continue
            refers = self.database.references.get((self.tables[start.variable], self.column(start)))
            if refers == (self.tables[end.variable], self.column(end)):
                relation = self.database.relation(self.tables[start.variable], self.column(start))
                self.edges.append(Edge(start.variable, relation, end.variable))
                return True
        return False

    def formula(self, node: exp.Expression) -> Formula:
        match node:
            case exp.Paren():
                return self.formula(node.this)
            case exp.And():
                return All((self.formula(node.this), self.formula(node.expression)))
            case exp.Or():
                return Either((self.formula(node.this), self.formula(node.expression)))
            case exp.Not():
                return self.denied(self.formula(node.this))
            case exp.Between():
                value = self.value(node.this)
                return All(
                    (
                        Compare(value, ">=", self.value(node.args["low"])),
                        Compare(value, "<=", self.value(node.args["high"])),
                    )
                )
            case exp.In():
                return self.membership(node)
            case exp.Like():
                found = self.like(self.value(node.this), node.expression)
                return self.denied(found) if node.args.get("negate") else found
            case exp.Is():
                return Missing(self.value(node.this))
        if type(node) in COMPARISONS:
            left, right = self.value(node.this), self.value(node.expression)
            return Compare(left, COMPARISONS[type(node)], right)  # type: ignore[arg-type]
        raise Refused(f"a condition {type(node).__name__}")

    def denied(self, formula: Formula) -> Formula:
        """SQL's NOT leaves out rows without a value."""
        if isinstance(formula, Compare) and not isinstance(formula.left, Value):
            return All((Not(Missing(formula.left)), Not(formula)))
        return Not(formula)

    def membership(self, node: exp.In) -> Formula:
        value = self.value(node.this)
        if node.args.get("query"):
            return Compare(value, "in", Subquery(_query(node.args["query"], self.database)))
        options = tuple(Compare(value, "=", self.value(part)) for part in node.expressions)
        return options[0] if len(options) == 1 else Either(options)

    def like(self, value: Expression, pattern: exp.Expression) -> Formula:
        text = self.value(pattern)
        if not isinstance(text, Value) or not isinstance(text.value, str) or "_" in text.value:
            raise Refused("a pattern with single characters")
        first, *middle, last = text.value.split("%") if "%" in text.value else (text.value, text.value)
        if "%" not in text.value:
            return Compare(value, "=", text)
        tests = [Compare(value, "starts with", Value(first))] if first else []
        tests += [Compare(value, "contains", Value(part)) for part in middle if part]
        tests += [Compare(value, "ends with", Value(last))] if last else []
        return tests[0] if len(tests) == 1 else All(tuple(tests)) if tests else Not(Missing(value))

    # Values

    def value(self, node: exp.Expression) -> Expression:
        match node:
            case exp.Paren():
                return self.value(node.this)
            case exp.Column():
                found = self.attribute(node)
                if found is not None:
                    return found
                if node.name.lower() in self.aliases and not node.table:
                    return self.value(self.aliases[node.name.lower()])
                if node.this.quoted:
                    return Value(node.name)
                raise Refused("a column of an outer query")
            case exp.Literal():
                return Value(node.this if node.is_string else _number(node.this))
            case exp.Boolean():
                return Value(bool(node.this))
            case exp.Neg():
                found = self.value(node.this)
                if isinstance(found, Value) and not isinstance(found.value, str):
                    return Value(-found.value)
                raise Refused("a negative expression")
            case exp.Select() | exp.Subquery():
                return Subquery(_query(node, self.database))
            case exp.Cast():
                return self.value(node.this)
        if type(node) in FUNCTIONS:
            return self.aggregate(node)
        if type(node) in OPERATORS:
            return Call(OPERATORS[type(node)], (self.value(node.this), self.value(node.expression)))
        if type(node) in CALLS:
            return Call(CALLS[type(node)], (self.value(node.this),))
        raise Refused(f"a value {type(node).__name__}")

    def aggregate(self, node: exp.Expression) -> Aggregate:
        inner, distinct = node.this, False
        if isinstance(inner, exp.Distinct):
            inner, distinct = inner.expressions[0], True
        name = FUNCTIONS[type(node)]
        if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
            return Aggregate("count")
        argument = self.value(inner)
        if name in ("sum", "avg") and isinstance(argument, Attribute) and self.kind(argument) == "text":
            argument = Call("number", (argument,))
        return Aggregate(name, argument, distinct)  # type: ignore[arg-type]

    def kind(self, part: Attribute) -> str:
        return self.database.schema().attribute_types[part.name]


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)
