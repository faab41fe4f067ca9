"""Cypher over a property graph as a query of the algebra: labels are types, relationship types relations.

MATCH, OPTIONAL MATCH, WHERE, WITH and RETURN become one query. Groups in the middle of a query become aggregates over
patterns.
"""

import ast
import re
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from sql_to_query import Refused

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
    Exists,
    Expression,
    Formula,
    Missing,
    Not,
    Order,
    Pattern,
    Query,
    Value,
    Var,
    Variable,
    aggregates,
    names_used,
    rewrite,
)
from clew.core.schema import NodeType, Relation, Schema

TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|`(?P<quoted>[^`]*)`|(?P<word>[A-Za-z_]\w*)|(?P<sign><=|>=|<>|!=|=~|\.\.|->|<-|[-+*/%^=<>(){}\[\],.:;|$]))"""
)
KINDS = {
    "INTEGER": "integer",
    "FLOAT": "number",
    "BOOLEAN": "boolean",
    "LIST": "list",
    "DATE": "date",
    "DATE_TIME": "date",
}
AGGREGATES = {"count": "count", "sum": "sum", "avg": "avg", "min": "min", "max": "max"}
FUNCTIONS = {"tolower": "lower", "abs": "abs", "round": "round", "tofloat": "number", "tointeger": "number"}
CLAUSES = ("match", "optional", "where", "with", "return", "order", "skip", "limit", "union", "unwind", "call")


def schema_of(text: str) -> Schema:
    """The schema that a description of text2cypher says."""
    described = ast.literal_eval(text)
    kinds: dict[str, str] = {}
    for properties in described["node_props"].values():
        _add(kinds, properties)
    edges: dict[str, str] = {}
    for properties in described["rel_props"].values():
        _add(edges, properties)
    labels = {one[side] for one in described["relationships"] for side in ("start", "end")}
    types = tuple(NodeType(name, 1) for name in dict.fromkeys((*described["node_props"], *sorted(labels))))
    relations = tuple(Relation(one["type"], one["start"], one["end"], 1) for one in described["relationships"])
    return Schema(types, relations, kinds, edges)


def _add(kinds: dict[str, str], properties: list[dict[str, Any]]) -> None:
    for one in properties:
        kind = KINDS.get(one["type"], "text")
        kinds[one["property"]] = kind if kinds.get(one["property"], kind) == kind else "text"


def convert(cypher: str, schema: Schema | None) -> AnyQuery:
    """A gold query as a query of the algebra, checked if there is a schema. Raises Refused with a reason."""
    query = _Parser(cypher, schema or Schema((), ())).whole()
    if schema is None:
        return query
    try:
        check(query, schema)
    except Exception as error:
        raise Refused(_reason(error)) from error
    return query


def _reason(error: Exception) -> str:
    text = str(error)
    if text.startswith("no "):
        return f"not in the schema: {text.split(chr(39))[0].removeprefix('no ').strip()}"
    return f"check: {re.sub(r'[(][^)]*[)]|[a-zA-Z_]+[.][a-zA-Z_]+', '…', text)[:70]}"


@dataclass
class _State:
    """What was read so far: the pattern, what names stand for, and the rest of a query."""

    variables: dict[str, str | None] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    where: list[Formula] = field(default_factory=list)
    optional: list[Pattern] = field(default_factory=list)
    names: dict[str, Expression] = field(default_factory=dict)
    """What aliases stand for."""
    group: tuple[Expression, ...] | None = None
    having: list[Formula] = field(default_factory=list)
    order: tuple[Order, ...] = ()
    first: int | None = None
    skip: int = 0
    distinct: bool = False

    def pattern(self) -> Pattern:
        variables = tuple(Variable(name, kind) for name, kind in self.variables.items())
        return Pattern(variables, tuple(self.edges), tuple(self.where), tuple(self.optional))

    @property
    def is_limited(self) -> bool:
        return self.first is not None or bool(self.skip)


class _Parser:
    def __init__(self, text: str, schema: Schema) -> None:
        self.schema, self.position, self.fresh = schema, 0, count(1)
        self.tokens: list[tuple[str, str]] = []
        text, offset = re.sub(r"//[^\n]*", "", text).rstrip().rstrip(";").rstrip(), 0
        while offset < len(text):
            found = TOKEN.match(text, offset)
            if found is None:
                raise Refused("not valid Cypher")
            kind = found.lastgroup or ""
            content = found[kind]
            if kind == "text":
                content = re.sub(r"\\(.)", r"\1", content[1:-1])
            self.tokens.append((kind, content))
            offset = found.end()
        self.state = _State()

    # Tokens

    def sees(self, *words: str) -> bool:
        for index, word in enumerate(words, self.position):
            kind, content = self.tokens[index] if index < len(self.tokens) else ("", "")
            if kind not in ("word", "sign") or content.lower() != word:
                return False
        return True

    def takes(self, *words: str) -> bool:
        found = self.sees(*words)
        self.position += len(words) if found else 0
        return found

    def needs(self, word: str) -> None:
        if not self.takes(word):
            seen = self.tokens[self.position][1] if self.position < len(self.tokens) else "the end"
            raise Refused(f"syntax: {seen if not seen[:1].isalnum() else seen.lower()} instead of {word}")

    def name(self) -> str:
        kind, content = self.tokens[self.position] if self.position < len(self.tokens) else ("", "")
        if kind not in ("word", "quoted"):
            raise Refused("syntax: a name is missing")
        self.position += 1
        return content

    # Queries

    def whole(self) -> AnyQuery:
        query: AnyQuery = self.query()
        while self.takes("union"):
            if self.takes("all"):
                raise Refused("UNION ALL")
            self.state = _State()
            query = Combined("union", query, self.query())
        if self.position < len(self.tokens):
            raise Refused(f"syntax: {self.tokens[self.position][1].lower()} after the end")
        return query

    def query(self) -> Query:
        while True:
            if self.takes("match"):
                self.match(optional=False)
            elif self.takes("optional", "match"):
                self.match(optional=True)
            elif self.takes("with"):
                self.with_clause()
            elif self.takes("return"):
                return self.returned()
            elif self.position < len(self.tokens):
                raise Refused(f"a clause {self.tokens[self.position][1].upper()}")
            else:
                raise Refused("no RETURN")

    def match(self, *, optional: bool) -> None:
        state = self.state
        if state.group is not None:
            self.fold()
        if state.is_limited or state.order:
            raise Refused("a pattern after the first k")
        outer = state
        if optional:
            self.state = _State(names=state.names)
        while True:
            self.path()
            if not self.takes(","):
                break
        if self.takes("where"):
            self.state.where += self.conjuncts()
        if optional:
            known = {*outer.variables, *(name for edge in outer.edges for name in [edge.name] if name)}
            part = self.state.pattern()
            self.state = outer
            if not part.bound & known and known:
                raise Refused("an optional part on its own")
            outer.optional.append(part)

    def fold(self) -> None:
        """Turn groups by nodes into aggregates over the pattern so far."""
        state = self.state
        keys = [part for part in state.group or () if isinstance(part, Var)]
        others = [part for part in state.group or () if not isinstance(part, Var)]
        owned = {key.name for key in keys}
        if not keys or any(not names_used(part) <= owned for part in others):
            raise Refused("a step after groups by values")
        if state.is_limited or state.order:
            raise Refused("a step after the first k groups")
        pattern = state.pattern()

        def over(part: Any) -> Any:
            return replace(part, over=pattern) if isinstance(part, Aggregate) and part.over is None else part

        names = {name: rewrite(part, over) for name, part in state.names.items()}
        having = [rewrite(part, over) for part in state.having]
        variables = {name: state.variables.get(name) for name in sorted(owned)}
        self.state = _State(variables, [], [Exists(pattern), *having], [], names)
        self.state.where = [part for part in self.state.where if part != Exists(Pattern())]

    def with_clause(self) -> None:
        distinct, items = self.projected()
        state = self.state
        groups = any(aggregates(part) and not all(one.over for one in aggregates(part)) for _, part in items)
        if state.group is not None and (groups or distinct):
            self.fold()
            distinct, items = distinct, [(name, self.again(part)) for name, part in items]
            state = self.state
        if state.is_limited and groups:
            raise Refused("an aggregate of the first k")
        names = {name: part for name, part in items if part != Var(name)}
        state.names = {**state.names, **names}
        if groups:
            state.group = tuple(part for _, part in items if not aggregates(part))
        elif distinct:
            state.distinct = True
        self.ordered()
        if self.takes("where"):
            formulas = self.conjuncts()
            if state.is_limited:
                raise Refused("a condition after the first k")
            (state.having if state.group is not None else state.where).extend(formulas)

    def again(self, part: Expression) -> Expression:
        """An expression of the last step in the names of this one."""
        return rewrite(part, lambda one: self.state.names.get(one.name, one) if isinstance(one, Var) else one)

    def projected(self) -> tuple[bool, list[tuple[str, Expression]]]:
        distinct, items = self.takes("distinct"), []
        if self.sees("*"):
            raise Refused("a projection of everything")
        while True:
            start = self.position
            part = self.expression()
            text = " ".join(content for _, content in self.tokens[start : self.position])
            items.append((self.name() if self.takes("as") else text, part))
            if not self.takes(","):
                return distinct, items

    def ordered(self) -> None:
        state = self.state
        if self.takes("order"):
            self.needs("by")
            order = []
            while True:
                part = self.expression()
                descending = self.takes("desc") or self.takes("descending")
                if not descending:
                    _ = self.takes("asc") or self.takes("ascending")
                order.append(Order(part, descending))
                if not self.takes(","):
                    break
            state.order = tuple(order)
        if self.takes("skip"):
            state.skip = self.integer()
        if self.takes("limit"):
            if state.first is not None:
                raise Refused("the first k of the first k")
            state.first = self.integer()

    def integer(self) -> int:
        kind, content = self.tokens[self.position] if self.position < len(self.tokens) else ("", "")
        if kind != "number" or not content.isdigit():
            raise Refused("a number of rows that is computed")
        self.position += 1
        return int(content)

    def returned(self) -> Query:
        distinct, items = self.projected()
        state = self.state
        groups = any(one.over is None for _, part in items for one in aggregates(part))
        if state.group is not None and any(self.is_fresh(part) for _, part in items):
            self.fold()
            items = [(name, self.unfolded(part)) for name, part in items]
            state = self.state
        elif state.group is None and groups and state.is_limited:
            raise Refused("an aggregate of the first k")
        names = {name: part for name, part in items if part != Var(name)}
        state.names = {**state.names, **names}
        before = state.order if state.is_limited else ()
        self.ordered()
        if before and state.order != before:
            raise Refused("an order of the first k")
        group: tuple[Expression, ...] = state.group or ()
        if state.group is None and groups:
            group = tuple(part for _, part in items if not aggregates(part))
        columns = tuple(
            Column(part, name if re.fullmatch(r"\w+", name) and part != Var(name) else "") for name, part in items
        )
        pattern = state.pattern()
        query = Query(
            columns,
            pattern,
            distinct or state.distinct,
            group,
            tuple(state.having),
            state.order,
            state.first,
            state.skip,
        )
        if query.is_grouped and group:  # a value of a key's node may be shown or sorted by, any other becomes a key
            keys = {key.name for key in group if isinstance(key, Var)}
            more = [
                part
                for part in query.outputs
                if not aggregates(part) and part not in group and not names_used(part) <= keys
            ]
            query = replace(query, group=tuple(dict.fromkeys((*group, *more))))
        return query

    def is_fresh(self, part: Expression) -> bool:
        """Whether an expression aggregates what a group has aggregated already."""
        return any(aggregates(one.argument) for one in aggregates(part) if one.argument is not None)

    def unfolded(self, part: Expression) -> Expression:
        """The aggregates inside another one range over the pattern of their groups."""
        pattern = next((one.pattern for one in self.state.where if isinstance(one, Exists)), Pattern())

        def change(one: Any) -> Any:
            if isinstance(one, Aggregate) and one.argument is not None and one.over is None:
                inner = rewrite(
                    one.argument, lambda x: replace(x, over=pattern) if isinstance(x, Aggregate) and not x.over else x
                )
                return replace(one, argument=inner)
            return one

        return change(part) if isinstance(part, Aggregate) else part

    # Patterns

    def path(self) -> None:
        if self.tokens[self.position][0] == "word" and self.position + 1 < len(self.tokens):
            if self.tokens[self.position + 1][1] == "=":
                raise Refused("a path as a value")
            if self.tokens[self.position][1].lower() in ("shortestpath", "allshortestpaths"):
                raise Refused("a shortest path")
        here = self.node()
        while self.sees("-") or self.sees("<-"):
            here = self.step(here)

    def node(self) -> str:
        self.needs("(")
        name = self.name() if not (self.sees(":") or self.sees(")") or self.sees("{")) else f"_{next(self.fresh)}"
        bound = self.state.names.get(name)
        if isinstance(bound, Var):
            name = bound.name
        elif bound is not None:
            raise Refused("a value as a node")
        kinds = []
        while self.takes(":") or self.takes("|"):
            kinds.append(self.name())
        if len(kinds) > 1:
            raise Refused("a node with several labels")
        known = self.state.variables.get(name)
        self.state.variables[name] = kinds[0] if kinds else known
        self.properties(name)
        self.needs(")")
        return name

    def properties(self, owner: str) -> None:
        if not self.takes("{"):
            return
        while not self.takes("}"):
            attribute = Attribute(owner, self.name())
            self.needs(":")
            self.state.where.append(Compare(attribute, "=", self.expression()))
            self.takes(",")

    def step(self, here: str) -> str:
        backward = self.takes("<-")
        if not backward:
            self.needs("-")
        name, relations, least, most = None, [], 1, 1
        where = len(self.state.where)
        if self.takes("["):
            if self.tokens[self.position][0] in ("word", "quoted"):
                name = self.name()
            while self.takes(":") or self.takes("|"):
                relations.append(self.name())
            if self.takes("*"):
                least, most = self.lengths()
            name = name or (f"_e{next(self.fresh)}" if self.sees("{") or len(relations) > 1 else None)
            if name:
                self.properties(name)
            self.needs("]")
        forward = self.takes("->")
        if not forward:
            self.needs("-")
        there = self.node()
        head, tail = (there, here) if backward and not forward else (here, there)
        if len(relations) > 1:
            if (least, most) != (1, 1):
                raise Refused("a walk along several relations")
            options = tuple(Compare(Attribute(name or "", "relation"), "=", Value(one)) for one in relations)
            self.state.where.append(Either(options))
        if (least, most) != (1, 1) and name:
            if len(self.state.where) > where:
                raise Refused("a condition on a walk")
            name = None
        relation = relations[0] if len(relations) == 1 else None
        self.state.edges.append(Edge(head, relation, tail, forward != backward, least, most, name))
        return there

    def lengths(self) -> tuple[int, int | None]:
        kind, content = self.tokens[self.position]
        least = self.integer() if kind == "number" and content.isdigit() else 1
        if kind == "number" and not content.isdigit():
            raise Refused("a length of a walk")
        if not self.takes(".."):
            return least, least if kind == "number" else None
        kind, content = self.tokens[self.position]
        return least, self.integer() if kind == "number" else None

    # Conditions

    def conjuncts(self) -> list[Formula]:
        found = self.formula()
        return list(found.parts) if isinstance(found, All) else [found]

    def formula(self) -> Formula:
        parts = [self.all()]
        while self.takes("or"):
            parts.append(self.all())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def all(self) -> Formula:
        parts = [self.negation()]
        while self.takes("and"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def negation(self) -> Formula:
        if self.takes("not"):
            found = self.negation()
            if isinstance(found, Compare) and not isinstance(found.left, Value):
                return All((Not(Missing(found.left)), Not(found)))
            return Not(found)
        if self.sees("exists", "{") or self.sees("exists", "("):
            return self.exists()
        start = self.position
        if self.sees("("):
            try:
                return Exists(self.inner(lambda: self.path()))
            except Refused:
                self.position = start
            try:
                self.needs("(")
                inner = self.formula()
                self.needs(")")
                return inner
            except Refused:
                self.position = start
        return self.comparison()

    def inner(self, rule: Any) -> Pattern:
        """A pattern inside an expression."""
        outer = self.state
        self.state = _State(names=outer.names)
        try:
            rule()
            if not self.state.edges:
                raise Refused("syntax: a node as a condition")
            return self.state.pattern()
        finally:
            self.state = outer

    def exists(self) -> Formula:
        self.position += 1
        closing = "}" if self.takes("{") else ")"
        if closing == ")":
            self.needs("(")
        start = self.position
        self.takes("match")
        try:
            pattern = self.inner(self.sub_match)
        except Refused:
            self.position = start
            value = self.expression()
            self.needs(closing)
            return Not(Missing(value))
        self.needs(closing)
        return Exists(pattern)

    def sub_match(self) -> None:
        while True:
            self.path()
            if not self.takes(","):
                break
        if self.takes("where"):
            self.state.where += self.conjuncts()

    def comparison(self) -> Formula:
        left = self.expression()
        if self.takes("is", "not", "null"):
            return Not(Missing(left))
        if self.takes("is", "null"):
            return Missing(left)
        if self.takes("in"):
            return self.membership(left)
        for words, sign in (
            (("starts", "with"), "starts with"),
            (("ends", "with"), "ends with"),
            (("contains",), "contains"),
        ):
            if self.takes(*words):
                return Compare(left, sign, self.expression())  # type: ignore[arg-type]
        if self.takes("=~"):
            return self.matching(left)
        for sign in ("<=", ">=", "<>", "!=", "=", "<", ">"):
            if self.takes(sign):
                right = self.expression()
                found: Formula = Compare(left, "!=" if sign in ("<>", "!=") else sign, right)  # type: ignore[arg-type]
                for more in ("<=", "<"):  # 1 < x <= 3
                    if self.takes(more):
                        found = All((found, Compare(right, more, self.expression())))  # type: ignore[arg-type]
                return found
        if isinstance(left, Attribute):
            return Compare(left, "=", Value(True))
        seen = self.tokens[self.position][1] if self.position < len(self.tokens) else "the end"
        raise Refused(f"syntax: {seen} instead of a comparison")

    def membership(self, left: Expression) -> Formula:
        if self.takes("["):
            options = []
            while not self.takes("]"):
                options.append(Compare(left, "=", self.expression()))
                self.takes(",")
            return options[0] if len(options) == 1 else Either(tuple(options))
        right = self.expression()
        if isinstance(left, Value) and isinstance(right, Attribute):
            return Compare(right, "=", left)
        raise Refused("a list as a value")

    def matching(self, left: Expression) -> Formula:
        pattern = self.expression()
        text = pattern.value if isinstance(pattern, Value) and isinstance(pattern.value, str) else "["
        text = text.removeprefix("(?i)")
        inner = text.removeprefix(".*").removesuffix(".*")
        if re.search(r"[\\^$.|?*+()\[\]{}]", inner):
            raise Refused("a regular expression")
        ways = {(True, True): "contains", (False, True): "starts with", (True, False): "ends with"}
        sign = ways.get((text.startswith(".*"), text.endswith(".*")), "=")
        return Compare(left, sign, Value(inner))  # type: ignore[arg-type]

    # Expressions

    def expression(self) -> Expression:
        left = self.product()
        while self.sees("+") or (self.sees("-") and not self.sees("-", "[")):
            sign = self.tokens[self.position][1]
            self.position += 1
            left = Call(sign, (left, self.product()))
        return left

    def product(self) -> Expression:
        left = self.atom()
        while self.sees("*") or self.sees("/"):
            sign = self.tokens[self.position][1]
            self.position += 1
            left = Call(sign, (left, self.atom()))
        if self.sees("%") or self.sees("^"):
            raise Refused("a remainder or a power")
        return left

    def atom(self) -> Expression:
        kind, content = self.tokens[self.position] if self.position < len(self.tokens) else ("", "")
        if kind in ("number", "text"):
            self.position += 1
            if kind == "text":
                return Value(content)
            return Value(int(content) if content.isdigit() else float(content))
        if self.takes("-"):
            inner = self.atom()
            if isinstance(inner, Value) and not isinstance(inner.value, str):
                return Value(-inner.value)
            raise Refused("a negative expression")
        if self.takes("true") or self.takes("false"):
            return Value(content.lower() == "true")
        if self.takes("("):
            inner = self.expression()
            self.needs(")")
            return inner
        if self.sees("["):
            raise Refused("a list as a value")
        if self.sees("{"):
            raise Refused("a map as a value")
        if self.sees("case"):
            raise Refused("CASE")
        if self.sees("$"):
            raise Refused("a parameter")
        if self.sees("count", "{"):
            self.position += 2
            self.takes("match")
            pattern = self.inner(self.sub_match)
            self.needs("}")
            return Aggregate("count", None, False, pattern)
        name = self.name()
        if self.takes("("):
            return self.call(name.lower())
        if self.sees("."):
            self.position += 1
            second = self.name()
            if self.takes("("):
                raise Refused(f"a function {name}.{second}")
            bound = self.state.names.get(name, Var(name))
            if not isinstance(bound, Var):
                raise Refused("a part of a value")
            if self.sees("."):
                self.position += 1
                part = self.name().lower()
                if part in ("year", "month", "day"):
                    return Call(part, (Attribute(bound.name, second),))
                raise Refused(f"a part .{part} of a value")
            return Attribute(bound.name, second)
        if self.sees("{"):
            raise Refused("a map as a value")
        return self.state.names.get(name, Var(name))

    def call(self, name: str) -> Expression:
        distinct = self.takes("distinct")
        if name == "count" and self.takes("*"):
            self.needs(")")
            return Aggregate("count")
        if name in ("date", "datetime", "localdatetime", "duration", "time") and not self.sees(")"):
            if name == "duration":
                raise Refused("a duration")
            value = self.expression()
            self.needs(")")
            if isinstance(value, Value) and isinstance(value.value, str):
                return Value(value.value)
            return value
        if name == "size" or name == "length":
            return self.size()
        if name == "collect":
            raise Refused("collect")
        if self.takes(")"):
            raise Refused(f"a function {name}")
        argument = self.expression()
        if name in ("round", "coalesce", "substring", "left", "right", "split") and self.sees(","):
            raise Refused(f"a function {name} with several arguments")
        self.needs(")")
        if name in AGGREGATES:
            if isinstance(argument, Attribute) and name in ("sum", "avg") and self.is_text(argument):
                argument = Call("number", (argument,))
            return Aggregate(AGGREGATES[name], argument, distinct)  # type: ignore[arg-type]
        if name in FUNCTIONS:
            is_number = FUNCTIONS[name] == "number" and isinstance(argument, Attribute) and not self.is_text(argument)
            return argument if is_number or isinstance(argument, Value) else Call(FUNCTIONS[name], (argument,))
        if name == "type" and isinstance(argument, Var):
            return Attribute(argument.name, "relation")
        if name in ("labels",) and isinstance(argument, Var):
            raise Refused("labels")
        raise Refused(f"a function {name}")

    def is_text(self, part: Attribute) -> bool:
        kinds = {**self.schema.edge_attributes, **self.schema.attribute_types}
        return kinds.get(part.name, "text") == "text"

    def size(self) -> Expression:
        start = self.position
        if self.sees("collect", "("):
            self.position += 2
            distinct = self.takes("distinct")
            argument = self.expression()
            self.needs(")")
            self.needs(")")
            return Aggregate("count", argument, distinct)
        if self.sees("("):
            try:
                pattern = self.inner(self.path)
                self.needs(")")
                return Aggregate("count", None, False, pattern)
            except Refused:
                self.position = start
        argument = self.expression()
        self.needs(")")
        if isinstance(argument, Attribute) and {**self.schema.attribute_types}.get(argument.name) == "list":
            raise Refused("the length of a list")
        return Call("length", (argument,))
