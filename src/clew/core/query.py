"""The values of the query language, their text form and their meaning.

**Solutions.** A pattern has variables, edges, conditions and optional parts. A solution maps each variable to a node of
its type, and each named edge to an edge of the base, such that all edges exist and all conditions hold. Solutions form
a set: unnamed parallel edges and multiple nodes of one constant do not repeat a solution. Different variables may
represent the same node. A pattern without variables has one solution, the empty one.

**Edges.** A transitive step requires a walk of `least` to `most` edges, and `most` None means any number. A walk may
use an edge twice. A step of at least zero edges also leads from a node to itself. An undirected edge may be read either
way. Relation None means any relation.

**Optional parts.** Each solution is extended by every solution of the optional part that agrees on the shared
variables. If there are none, the new variables are missing. Conditions of the outer pattern that use these variables
are decided afterwards. `Exists` holds if its pattern has a solution that agrees on the shared variables.

**Values.** An attribute is a text, a whole number, a number, a truth value, a date or a list of texts. Its kind comes
from the schema. NaN is missing. A date of which only the year or the month is known counts as its first day. An
attribute of a missing node is missing. Arithmetic with a missing value is missing, and so is division by zero. The
difference of two dates is a number of days. `first_number` and `first_date` find a number or a date in a text. A date
without a year is in the year 4.

**Conditions.** A comparison with a missing value is false, and so is a comparison between kinds that do not match.
`Not` turns false into true, so `not x.a = 1` holds if x.a is missing, and `x.a != 1` does not. Texts compare without
case, by code points. A literal takes the kind of the other side: a year or a month represents all its days, so
that `d = "1999"`, `d <= "1999"` and `d > "1999"` behave as people expect. `contains`, `starts with`, `ends with` are
for texts, and mean `=` for other kinds. `matches` compares a whole text, with its case, with a regular expression. A
comparison with a list holds if it holds for one of its elements. Nodes and edges compare by identity. They and truth
values compare by `=` and `!=` only. A sub-query as a value is the only column of its first row, or missing if it has no
row.

**Groups.** A query with aggregates or group keys has one row per different combination of keys. Without keys, all
solutions form one group, even if there are none. `count(*)` counts solutions, and `exists(*)` tells whether there are
any. Other aggregates skip missing values. `count` of nothing is 0, and `exists` of nothing is false. The other
aggregates of nothing are missing. An aggregate with `over` ranges over the solutions of that pattern which agree with
the current solution. Keys and `distinct` compare values exactly.

**Rows.** `distinct` removes repeated rows of columns and order keys. Rows are sorted by the order keys. Texts sort
without case, and missing values come last in both directions. Rows with equal keys are sorted by their columns, so
that the first k rows are always the same. With `ties`, rows equal to the last selected row are selected as well, and
rows with a missing order key are left out. Set operations compare whole rows and give each row once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar

Comparison = Literal["=", "!=", "<", "<=", ">", ">=", "contains", "starts with", "ends with", "matches", "in"]
AggregateName = Literal["count", "exists", "sum", "avg", "min", "max"]
SetOperation = Literal["union", "intersect", "except"]
Plain = str | int | float | bool
"""A literal. Dates are ISO texts."""
READING = ("first_number", "first_date")
"""Functions that find a number or a date in a text, such as `1,090 feet (332 m)`."""
ONLY_HERE = (*READING, "row")
"""Functions that other query languages do not have. `row` is the place of a node in the table that it was read from."""
FUNCTIONS = ("year", "month", "day", "length", "number", "abs", "round", "lower", *ONLY_HERE)
OPERATORS = ("+", "-", "*", "/")
AGGREGATES = ("count", "exists", "sum", "avg", "min", "max")
WORDS = frozenset(
    re.findall(
        r"\w+",
        """find distinct where and or not exists optional group by having order desc asc first skip with ties as in is
        missing present contains starts ends matches between any for true false union intersect except node""",
    )
)
"""Keywords of the text form. Names spelled like a keyword are quoted."""
T = TypeVar("T")


def name_text(name: str) -> str:
    """Quote a name with backticks unless it is a plain word."""
    plain = re.fullmatch(r"[^\W\d]\w*", name) and name.lower() not in WORDS
    return name if plain else "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class Variable:
    """A node variable of a pattern. Type None means any type."""

    name: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """A constant by its name in the question, before linking to nodes."""

    text: str
    type: str | None = None

    def __str__(self) -> str:
        return json.dumps(self.text, ensure_ascii=False) + (f": {name_text(self.type)}" if self.type else "")


@dataclass(frozen=True, slots=True)
class Nodes:
    """A constant that matches any of the nodes with these keys."""

    keys: tuple[str, ...]

    def __str__(self) -> str:
        return f"node({', '.join(json.dumps(key, ensure_ascii=False) for key in self.keys)})"


Constant = Named | Nodes


@dataclass(frozen=True, slots=True)
class Edge:
    """A required step between two variables or constants. A `name` binds the edge, to give access to its attributes."""

    head: str | Constant
    relation: str | None
    tail: str | Constant
    directed: bool = True
    least: int = 1
    most: int | None = 1
    name: str | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables among its two ends."""
        return tuple(end for end in (self.head, self.tail) if isinstance(end, str))

    @property
    def is_single(self) -> bool:
        """Whether the step is exactly one edge."""
        return (self.least, self.most) == (1, 1)

    def arrow(self) -> str:
        """Return the text between the two ends."""
        relation = "any" if self.relation is None else name_text(self.relation)
        steps = {(1, 1): "", (0, None): "*", (1, None): "+"}.get((self.least, self.most))
        if steps is None:
            steps = f"{{{self.least},{'' if self.most is None else self.most}}}"
        bound = f"{name_text(self.name)}: " if self.name else ""
        return f"-[{bound}{relation}{steps}]-{'>' if self.directed else ''}"


@dataclass(frozen=True, slots=True)
class Value:
    """A plain value."""

    value: Plain

    def __str__(self) -> str:
        return json.dumps(self.value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Var:
    """A variable or a named edge as a value."""

    name: str

    def __str__(self) -> str:
        return name_text(self.name)


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a variable or a named edge. Nodes also have `name`, `key` and `type`, edges `relation`."""

    variable: str
    name: str

    def __str__(self) -> str:
        return f"{name_text(self.variable)}.{name_text(self.name)}"


@dataclass(frozen=True, slots=True)
class Call:
    """A function of FUNCTIONS, or an operator of OPERATORS with two arguments."""

    function: str
    arguments: tuple[Expression, ...]

    def __str__(self) -> str:
        if self.function in OPERATORS:
            return f"({self.arguments[0]} {self.function} {self.arguments[1]})"
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of the group, or of the solutions of `over`. Without an argument, solutions are counted."""

    function: AggregateName
    argument: Expression | None = None
    distinct: bool = False
    over: Pattern | None = None

    @property
    def is_set(self) -> bool:
        """Whether repeated values do not change it."""
        return self.distinct or self.function in ("exists", "min", "max")

    def __str__(self) -> str:
        inside = "*" if self.argument is None else f"{'distinct ' if self.distinct else ''}{self.argument}"
        return f"{self.function}({inside}{f' for {self.over}' if self.over is not None else ''})"


@dataclass(frozen=True, slots=True)
class Subquery:
    """The result of another query, which shares no variables with this one."""

    query: Query | Combined

    def __str__(self) -> str:
        return f"({self.query})"


@dataclass(frozen=True, slots=True)
class Field:
    """A named value computed by an inner query. Only printers use it."""

    name: str
    kind: str


Expression = Value | Var | Attribute | Call | Aggregate | Subquery | Named | Nodes | Field


@dataclass(frozen=True, slots=True)
class All:
    """Condition that all parts are true."""

    parts: tuple[Formula, ...]

    def __str__(self) -> str:
        return "(" + " and ".join(map(str, self.parts)) + ")"


@dataclass(frozen=True, slots=True)
class Either:
    """Condition that at least one part is true."""

    parts: tuple[Formula, ...]

    def __str__(self) -> str:
        return "(" + " or ".join(map(str, self.parts)) + ")"


@dataclass(frozen=True, slots=True)
class Not:
    """Condition that the part is false."""

    part: Formula

    def __str__(self) -> str:
        return f"not {self.part}"


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of two expressions. The right side of `in` is a sub-query."""

    left: Expression
    comparison: Comparison
    right: Expression

    def __str__(self) -> str:
        sign: str = self.comparison
        if isinstance(self.right, Var | Named | Nodes):
            sign = {"=": "is", "!=": "is not"}.get(sign, sign)
        return f"{self.left} {sign} {self.right}"


@dataclass(frozen=True, slots=True)
class Missing:
    """Condition that the expression has no value."""

    expression: Expression

    def __str__(self) -> str:
        return f"{self.expression} is missing"


@dataclass(frozen=True, slots=True)
class Exists:
    """Condition that the pattern has a solution that agrees with the current solution."""

    pattern: Pattern

    def __str__(self) -> str:
        return f"exists {{{self.pattern}}}"


Formula = All | Either | Not | Compare | Missing | Exists


@dataclass(frozen=True, slots=True)
class Pattern:
    """Variables, the edges between them, conditions and optional parts."""

    variables: tuple[Variable, ...] = ()
    edges: tuple[Edge, ...] = ()
    where: tuple[Formula, ...] = ()
    optional: tuple[Pattern, ...] = ()

    def __post_init__(self) -> None:
        types: dict[str, str | None] = {}
        for variable in self.variables:
            types[variable.name] = types.get(variable.name) or variable.type
        for edge in self.edges:
            for name in edge.variables:
                types.setdefault(name, None)
        object.__setattr__(self, "variables", tuple(Variable(name, types[name]) for name in sorted(types)))

    @property
    def types(self) -> dict[str, str | None]:
        """Type of each variable."""
        return {variable.name: variable.type for variable in self.variables}

    @property
    def edge_names(self) -> tuple[str, ...]:
        """Names of the named edges."""
        return tuple(edge.name for edge in self.edges if edge.name)

    @property
    def bound(self) -> frozenset[str]:
        """All names that a solution binds, including names in optional parts."""
        inner = (name for part in self.optional for name in part.bound)
        return frozenset((*self.types, *self.edge_names, *inner))

    def __str__(self) -> str:
        types = self.types

        def shown(end: str | Constant) -> str:
            if not isinstance(end, str):
                return str(end)
            kind = types.pop(end, None)
            return f"({name_text(end)}{f': {name_text(kind)}' if kind else ''})"

        parts = [f"{shown(edge.head)} {edge.arrow()} {shown(edge.tail)}" for edge in self.edges]
        linked = {name for edge in self.edges for name in edge.variables}
        parts = [shown(name) for name in list(types) if name not in linked] + parts
        parts += map(str, self.where)
        return " and ".join([*parts, *(f"optional {{{part}}}" for part in self.optional)])


@dataclass(frozen=True, slots=True)
class Column:
    """An expression to show, and its heading."""

    expression: Expression
    name: str = ""

    def __str__(self) -> str:
        return f"{self.expression}{f' as {name_text(self.name)}' if self.name else ''}"


@dataclass(frozen=True, slots=True)
class Order:
    """An order key."""

    expression: Expression
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.expression}{' desc' if self.descending else ''}"


@dataclass(frozen=True, slots=True)
class Query:
    """A pattern and the columns, groups and order of its results."""

    columns: tuple[Column, ...]
    pattern: Pattern = Pattern()
    distinct: bool = False
    group: tuple[Expression, ...] = ()
    having: tuple[Formula, ...] = ()
    order: tuple[Order, ...] = ()
    first: int | None = None
    skip: int = 0
    ties: bool = False

    @property
    def headings(self) -> tuple[str, ...]:
        """Heading of each column."""
        return tuple(column.name or str(column.expression) for column in self.columns)

    @property
    def outputs(self) -> tuple[Expression, ...]:
        """Expressions evaluated for each row: columns, then order keys."""
        return (*(column.expression for column in self.columns), *(key.expression for key in self.order))

    @property
    def is_grouped(self) -> bool:
        """Whether each row represents a group of solutions."""
        parts = (*self.outputs, *self.having)
        return bool(self.group) or any(not one.over for part in parts for one in aggregates(part))

    @property
    def is_set(self) -> bool:
        """Whether repeated solutions do not change the rows."""
        if not self.is_grouped:
            return self.distinct
        parts = (*self.outputs, *self.group, *self.having)
        return all(one.is_set or one.over for part in parts for one in aggregates(part))

    def __str__(self) -> str:
        def listed(word: str, parts: tuple[object, ...], comma: str = ", ") -> str:
            return f" {word} {comma.join(map(str, parts))}" if parts else ""

        text = f"find {'distinct ' if self.distinct else ''}{', '.join(map(str, self.columns))}"
        where = str(self.pattern)
        text += f" where {where}" if where else ""
        text += listed("group by", self.group) + listed("having", self.having, " and ") + listed("order by", self.order)
        text += "" if self.first is None else f" first {self.first}"
        return text + (f" skip {self.skip}" if self.skip else "") + (" with ties" if self.ties else "")


@dataclass(frozen=True, slots=True)
class Combined:
    """The union, intersection or difference of the rows of two queries."""

    operation: SetOperation
    left: Query | Combined
    right: Query | Combined

    def __str__(self) -> str:
        return f"({self.left}) {self.operation} ({self.right})"


AnyQuery = Query | Combined


def find(variable: str, type: str | None = None, pattern: Pattern = Pattern()) -> Query:
    """Return a query for the distinct nodes of a variable."""
    whole = replace(pattern, variables=(*pattern.variables, Variable(variable, type)))
    return Query((Column(Var(variable)),), whole, distinct=True)


def connected(edges: Iterable[Edge], names: Iterable[str]) -> set[str]:
    """Return the variables that edges connect with the given variables, and these themselves."""
    tied, ends = {*names}, [{*edge.variables} for edge in edges]
    while more := {name for pair in ends if tied & pair for name in pair} - tied:
        tied |= more
    return tied


def constants_for(formula: Formula, variable: str) -> tuple[Constant, ...]:
    """Return the constants of which a condition requires a variable to be one. Other conditions have none."""
    parts = formula.parts if isinstance(formula, Either) else (formula,)
    equal = [part for part in parts if isinstance(part, Compare) and part.comparison == "="]
    found = tuple(part.right for part in equal if part.left == Var(variable) and isinstance(part.right, Named | Nodes))
    return found if len(found) == len(parts) else ()


def requiring(pattern: Pattern, *formulas: Formula) -> Pattern:
    """Return the pattern with more conditions."""
    return replace(pattern, where=(*pattern.where, *formulas))


def alternatives(pattern: Pattern) -> list[Pattern]:
    """Return the patterns of which at least one must hold. Without a choice, return only the pattern itself."""
    for formula in pattern.where:
        if isinstance(formula, Either) and all(isinstance(part, Exists) for part in formula.parts):
            rest = tuple(one for one in pattern.where if one is not formula)
            inner = [part.pattern for part in formula.parts if isinstance(part, Exists)]
            return [
                Pattern(
                    (*one.variables, *pattern.variables),
                    (*pattern.edges, *one.edges),
                    (*one.where, *rest),
                    one.optional,
                )
                for one in inner
            ]
    return [pattern]


def children(value: Any) -> Iterator[Any]:
    """Yield the parts of a value of this module."""
    for part in fields(value):
        content = getattr(value, part.name)
        for item in content if isinstance(content, tuple) else (content,):
            if is_dataclass(item):
                yield item


def walk(value: Any, stop: Callable[[Any], bool] = lambda _: False) -> Iterator[Any]:
    """Yield a value and all its parts. Do not descend into values that `stop` accepts."""
    yield value
    if not stop(value):
        for child in children(value):
            yield from walk(child, stop)


def mapped(value: T, change: Callable[[Any], Any]) -> T:
    """Return the value with each of its direct parts replaced by the result of `change`."""
    parts: dict[str, Any] = {}
    for part in fields(value):  # type: ignore[arg-type]
        content = getattr(value, part.name)
        if isinstance(content, tuple):
            parts[part.name] = tuple(change(item) if is_dataclass(item) else item for item in content)
        elif is_dataclass(content):
            parts[part.name] = change(content)
    return replace(value, **parts) if parts else value  # type: ignore[type-var]


def rewrite(value: T, change: Callable[[Any], Any]) -> T:
    """Return the value with each part replaced by the result of `change`, inner parts first."""
    changed: T = change(mapped(value, lambda part: rewrite(part, change)))
    return changed


def aggregates(value: Any) -> list[Aggregate]:
    """Return the aggregates of an expression or formula, without aggregates of inner patterns or queries."""
    parts = walk(value, lambda part: isinstance(part, Aggregate | Subquery | Pattern))
    return [part for part in parts if isinstance(part, Aggregate)]


def names_used(value: Any) -> frozenset[str]:
    """Return the variables and named edges that a value refers to. Sub-queries share no variables."""
    used: set[str] = set()
    for part in walk(value, lambda part: isinstance(part, Subquery)):
        if isinstance(part, Var | Variable):
            used.add(part.name)
        elif isinstance(part, Attribute):
            used.add(part.variable)
        elif isinstance(part, Edge):
            used.update(part.variables, (part.name,) if part.name else ())
    return frozenset(used)


def constants(query: AnyQuery | Pattern) -> tuple[Named, ...]:
    """Return the distinct constants that are not linked to nodes yet."""
    return tuple(dict.fromkeys(part for part in walk(query) if isinstance(part, Named)))


def linked(query: T, keys: Callable[[Named], tuple[str, ...]]) -> T:
    """Return the query with each named constant replaced by the nodes that `keys` finds for it."""
    return rewrite(query, lambda part: Nodes(keys(part)) if isinstance(part, Named) else part)
