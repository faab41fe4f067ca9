"""A query as SPARQL 1.1, in the names of the base's RDF export or of the endpoint that the base is behind.

A named edge is a node of its own in the export, with its ends, its relation and its attributes. Dates are texts of full
length here, since the export also has years and months alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from clew.answering.queries.kinds import Scope, comparable, leftmost
from clew.answering.queries.literals import Check, literal_checks
from clew.answering.queries.lowering import CannotPrintError, grouped, refuse_long_walk, shared, turned, without_ties
from clew.core import query as ql
from clew.core.schema import Schema
from clew.store.graph.iris import (
    EDGE_HEAD,
    EDGE_RELATION,
    EDGE_TAIL,
    LABEL,
    attribute_iri,
    node_iri,
    relation_iri,
    type_iri,
)

if TYPE_CHECKING:
    from clew.store.remote.sparql import SparqlKnowledgeBase

MOST_RELATIONS = 500
"""Maximum number of relations of an endpoint to list for "any relation". With more, use any predicate."""
NUMBER = "^[-+]?[0-9][0-9,]*([.][0-9]+)?$"
XSD = "http://www.w3.org/2001/XMLSchema#"
NOTHING = "1/0"
"""An error, which leaves a value unbound."""
PARTS = {"contains": "CONTAINS", "starts with": "STRSTARTS", "ends with": "STRENDS"}


class RdfNames:
    """Names in the RDF export of a base."""

    type_predicate, label = "a", f"<{LABEL}>"
    are_all_typed = True
    """Whether every node has a type."""
    are_all_named = True
    """Whether every node has a label. Otherwise the end of its IRI is its name."""

    def type(self, kind: str) -> str | None:
        """Return the class of a type, or None if nodes do not state it."""
        return f"<{type_iri(kind)}>"

    def node(self, key: str) -> str:
        """Return the term of a node."""
        return f"<{node_iri(key)}>"

    def relation(self, name: str) -> str:
        """Return the predicate of a relation."""
        return f"<{relation_iri(name)}>"

    def attribute(self, name: str) -> str:
        """Return the predicate of an attribute."""
        return f"<{attribute_iri(name)}>"

    def relations(self) -> tuple[str, ...]:
        """Return the relations that an edge of any relation may have. Empty if all predicates are relations."""
        return ()


class EndpointNames(RdfNames):
    """Names at a SPARQL endpoint."""

    are_all_typed = are_all_named = False

    def __init__(self, kb: SparqlKnowledgeBase) -> None:
        self.kb = kb
        self.type_predicate, self.label = f"<{kb.reading.type}>", f"<{kb.reading.label}>"

    def type(self, kind: str) -> str | None:  # noqa: D102
        stated = self.kb.type_iri(kind)
        return None if stated is None else f"<{stated}>"

    def node(self, key: str) -> str:  # noqa: D102
        return key if key.startswith('"') else f"<{key}>"

    def relation(self, name: str) -> str:  # noqa: D102
        return f"<{self.kb.predicate(name)}>"

    def attribute(self, name: str) -> str:  # noqa: D102
        return f"<{self.kb.attributes.get(name) or attribute_iri(name)}>"

    def relations(self) -> tuple[str, ...]:  # noqa: D102
        names = self.kb.schema.relation_names
        return names if len(names) <= MOST_RELATIONS else ()


def sparql(query: ql.AnyQuery, schema: Schema, names: RdfNames | None = None, *, is_question: bool = False) -> str:
    """Return a query with the rows of the algebra. Nodes are given by their IRIs.

    With `is_question` it asks whether there are any rows. If all columns are nodes, they are named like their
    variables.
    """
    writer = _Sparql(schema, names or RdfNames())
    if (
        isinstance(query, ql.Query)
        and query.distinct
        and not query.is_grouped
        and not query.order
        and query.first is None
    ):
        shown = [column.expression for column in query.columns]
        if all(isinstance(part, ql.Var) for part in shown):
            lines, _ = writer.group(query.pattern, _Level(Scope(schema)), _attributes(query))
            head = "ASK {" if is_question else f"SELECT DISTINCT {' '.join(f'?{part}' for part in shown)} WHERE {{"
            return "\n".join([head, *_indented(lines), "}"])
    return "\n".join(writer.query(query, "_c"))


@dataclass(frozen=True)
class _Level:
    """The names of a scope, the names that may be missing, and the variables for values of expressions."""

    scope: Scope
    values: dict[ql.Expression, str] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()


class _Sparql:
    def __init__(self, schema: Schema, names: RdfNames) -> None:
        self.schema, self.names, self.numbers = schema, names, count(1)

    def fresh(self) -> str:
        return f"?_v{next(self.numbers)}"

    # Queries

    def query(self, query: ql.AnyQuery, prefix: str) -> list[str]:
        """Return the lines of a query. Its columns are named with a prefix and a number."""
        if isinstance(query, ql.Combined):
            return self.combined(query, prefix)
        query = without_ties(query)
        lines, level = self.solutions(query.pattern, _Level(Scope(self.schema)), _attributes(query))
        if query.is_grouped:
            lines, level, query = self.groups(query, level, lines)
        return self.rows(query, level, lines, prefix)

    def solutions(self, pattern: ql.Pattern, level: _Level, used: set[ql.Attribute]) -> tuple[list[str], _Level]:
        """Return a sub-select with each solution once."""
        lines, level = self.group(pattern, level, used)
        names = [*(f"?{name}" for name in (*level.scope.types, *level.scope.edges)), *level.values.values()]
        if not names:
            return lines, level
        return [f"{{ SELECT DISTINCT {' '.join(dict.fromkeys(names))} WHERE {{", *_indented(lines), "} }"], level

    def groups(self, query: ql.Query, level: _Level, lines: list[str]) -> tuple[list[str], _Level, ql.Query]:
        split = grouped(query, level.scope)
        inner, values = list(lines), dict[ql.Expression, str]()
        shown = [f"?{name}" for name in split.variables]
        for name, key in split.keys:
            shown.append(self.bound(key, level, inner, f"?_{name}"))
            values[ql.Field(name, level.scope.kind(key))] = shown[-1]
        by = f" GROUP BY {' '.join(shown)}" if shown else ""
        for name, part in split.aggregates:
            shown.append(f"({self.aggregate(part, level, inner)} AS ?_{name})")
            values[ql.Field(name, level.scope.kind(part))] = f"?_{name}"
        for attribute, variable in level.values.items():
            if isinstance(attribute, ql.Attribute) and attribute.variable in split.variables:
                values[attribute] = self.fresh()
                shown.append(f"(SAMPLE({variable}) AS {values[attribute]})")
        whole = [f"{{ SELECT {' '.join(shown) or '(1 AS ?_one)'} WHERE {{", *_indented(inner), f"}}{by} }}"]
        level = replace(level, values=values)
        for formula in split.query.having:
            self.filter(formula, level, whole)
        return whole, level, split.query

    def rows(self, query: ql.Query, level: _Level, lines: list[str], prefix: str) -> list[str]:
        """Return the last step: columns, order and limits."""
        lines = list(lines)
        columns = [
            self.bound(column.expression, level, lines, f"?{prefix}{n}") for n, column in enumerate(query.columns)
        ]
        keys = [self.bound(key.expression, level, lines, f"?{prefix}o{n}") for n, key in enumerate(query.order)]
        head = f"SELECT {'DISTINCT ' if query.distinct else ''}{' '.join(columns)} WHERE {{"
        if query.distinct and keys:
            lines = [f"SELECT DISTINCT {' '.join(columns + keys)} WHERE {{", *_indented(lines), "}"]
            head = f"SELECT {' '.join(columns)} WHERE {{"
        order = []
        for key, variable in zip(query.order, keys, strict=True):
            value = f"LCASE({variable})" if level.scope.kind(key.expression) == "text" else variable
            order += [f"(!BOUND({variable}))", f"{'DESC' if key.descending else 'ASC'}({value})"]
        if order or query.first is not None or query.skip:
            order += [part for column in columns for part in (f"(!BOUND({column}))", f"ASC({column})")]
        end = "}" + (f" ORDER BY {' '.join(order)}" if order else "")
        end += "" if query.first is None else f" LIMIT {query.first}"
        return [head, *_indented(lines), end + (f" OFFSET {query.skip}" if query.skip else "")]

    def combined(self, query: ql.Combined, prefix: str) -> list[str]:
        left, right = self.query(query.left, prefix), self.query(query.right, prefix)
        width = len(leftmost(query).columns)
        word = {"union": "UNION", "intersect": "", "except": "MINUS"}[query.operation]
        inner = ["{", *_indented(left), f"}} {word} {{", *_indented(right), "}"]
        return [f"SELECT DISTINCT {' '.join(f'?{prefix}{n}' for n in range(width))} WHERE {{", *_indented(inner), "}"]

    # Patterns

    def group(self, pattern: ql.Pattern, level: _Level, used: set[ql.Attribute]) -> tuple[list[str], _Level]:
        """Return the lines of a group, and the level inside. Look up attributes that are `used` here."""
        before = {*level.scope.types, *level.scope.edges}
        inside = level.scope.inside(replace(pattern, optional=()))
        tied = {name for edge in pattern.edges if edge.relation and edge.least for name in edge.variables}
        lines: list[str] = []
        for edge in pattern.edges:
            self.edge(edge, lines)
        for name, kind in pattern.types.items():
            stated = self.names.type(kind) if kind else None
            if stated is None and self.names.are_all_typed and name not in before | tied:
                stated = self.fresh()
            lines += [] if stated is None else [f"?{name} {self.names.type_predicate} {stated} ."]
        level = replace(level, scope=inside, values=dict(level.values))
        new = {*inside.types, *inside.edges} - before
        needed = {turned(one).left for one in pattern.where if isinstance(one, ql.Compare)}
        for attribute in sorted((one for one in used if one.variable in new), key=str):
            self.look_up(attribute, level, lines, is_needed=attribute in needed)
        for part in pattern.optional:
            known = {*level.scope.types, *level.scope.edges}
            more, level = self.group(part, level, used)
            lines += ["OPTIONAL {", *_indented(more), "}"]
            level = replace(level, optional=level.optional | part.bound - known)
        for formula in pattern.where:
            self.filter(formula, level, lines)
        return lines, level

    def look_up(self, attribute: ql.Attribute, level: _Level, lines: list[str], *, is_needed: bool = False) -> None:
        """Bind the value of an attribute. An attribute that `is_needed` by a condition is not optional."""
        owner, name, value = f"?{attribute.variable}", attribute.name, self.fresh()
        kind = level.scope.kind(attribute)
        if kind == "list":
            return
        is_edge = attribute.variable in level.scope.edges
        level.values[attribute] = value
        if name in ("key", "text") and not is_edge:
            raise CannotPrintError(f"the RDF export has no {name}s: ask for names")
        if name in ("type", "relation") and (is_edge or name == "type"):
            predicate = f"<{EDGE_RELATION}>" if is_edge else self.names.type_predicate
            iris = {self.names.type(one): one for one in self.schema.type_names}
            if is_edge:
                iris = {self.names.relation(one): one for one in self.schema.relation_names}
            pairs = " ".join(f"({iri} {_text(one)})" for iri, one in iris.items() if iri)
            stored = self.fresh()
            lines.append(f"OPTIONAL {{ {owner} {predicate} {stored} . VALUES ({stored} {value}) {{ {pairs} }} }}")
            return
        iri = self.names.label if name == "name" and not is_edge else self.names.attribute(name)
        if kind == "date":
            stored = self.fresh()
            padded = f'CONCAT(STR({stored}), SUBSTR("0000-01-01T00:00:00", STRLEN(STR({stored})) + 1))'
            found = f"{owner} {iri} {stored} . BIND({padded} AS {value})"
        else:
            found = f"{owner} {iri} {value} ."
        if name == "name" and not is_edge and not self.names.are_all_named:
            label, local = self.fresh(), f'REPLACE(STR({owner}), "^.*[/#:]", "")'
            lines.append(f"OPTIONAL {{ {owner} {iri} {label} }} BIND(COALESCE(STR({label}), {local}) AS {value})")
            return
        lines.append(found if is_needed else f"OPTIONAL {{ {found} }}")

    def edge(self, edge: ql.Edge, lines: list[str]) -> None:
        head, tail = (self.end(end, lines) for end in (edge.head, edge.tail))
        if edge.name:
            relation = self.names.relation(edge.relation) if edge.relation else self.fresh()
            lines.append(f"?{edge.name} <{EDGE_RELATION}> {relation} .")
            ends = [f"?{edge.name} <{EDGE_HEAD}> {a} ; <{EDGE_TAIL}> {b} ." for a, b in ((head, tail), (tail, head))]
            lines.append(ends[0] if edge.directed else f"{{ {ends[0]} }} UNION {{ {ends[1]} }}")
        elif edge.relation is None and edge.is_single:
            relation = self.fresh()
            if known := self.names.relations():
                lines.append(f"VALUES {relation} {{ {' '.join(map(self.names.relation, known))} }}")
            ways = [f"{head} {relation} {tail} .", f"{tail} {relation} {head} ."]
            lines.append(ways[0] if edge.directed else f"{{ {ways[0]} }} UNION {{ {ways[1]} }}")
        else:
            lines.append(f"{head} {self.path(edge)} {tail} .")

    def path(self, edge: ql.Edge) -> str:
        names = self.schema.relation_names if edge.relation is None else (edge.relation,)
        steps = [self.names.relation(name) for name in names]
        steps += [] if edge.directed else [f"^{step}" for step in steps]
        step = steps[0] if len(steps) == 1 else f"({'|'.join(steps)})"
        refuse_long_walk(edge)
        if edge.most is None:
            return "/".join([step] * edge.least + [f"{step}*"]) if edge.least != 1 else f"{step}+"
        walks = ["/".join([step] * number) for number in range(max(1, edge.least), edge.most + 1)]
        if not walks:
            raise CannotPrintError("a walk of no edges cannot be written in SPARQL")
        path = walks[0] if len(walks) == 1 else f"({'|'.join(walks)})"
        return path if edge.least else f"({path})?"

    def end(self, end: str | ql.Constant, lines: list[str]) -> str:
        if isinstance(end, str):
            return f"?{end}"
        iris = self.iris(end)
        if len(iris) == 1:
            return iris[0]
        variable = self.fresh()
        lines.append(f"VALUES {variable} {{ {' '.join(iris)} }}")
        return variable

    def iris(self, constant: ql.Constant) -> list[str]:
        if isinstance(constant, ql.Named):
            raise CannotPrintError(f"{constant} is not linked to nodes: link the constants of the query first")
        return [self.names.node(key) for key in constant.keys]

    # Formulas

    def filter(self, formula: ql.Formula, level: _Level, lines: list[str]) -> None:
        level = self.prepared(formula, level, lines)
        lines.append(f"FILTER({self.formula(formula, level)})")

    def prepared(self, part: Any, level: _Level, lines: list[str]) -> _Level:
        """Add sub-selects for the sub-queries and the aggregates over patterns that a part has at this level."""
        level = replace(level, values=dict(level.values))
        skipped = {
            id(inner.right) for inner in ql.walk(part) if isinstance(inner, ql.Compare) and inner.comparison == "in"
        }
        for inner in ql.walk(part, lambda one: isinstance(one, ql.Pattern | ql.Subquery | ql.Aggregate)):
            if id(inner) in skipped or inner in level.values:
                continue
            if isinstance(inner, ql.Subquery):
                prefix = f"_q{next(self.numbers)}_"
                lines += ["OPTIONAL { {", *_indented(self.query(inner.query, prefix)), "} }"]
                level.values[inner] = f"?{prefix}0"
            elif isinstance(inner, ql.Aggregate) and inner.over is not None:
                level.values[inner] = self.aggregate_over(inner, level, lines)
        return level

    def aggregate_over(self, part: ql.Aggregate, outer: _Level, lines: list[str]) -> str:
        """Add a sub-select with an aggregate for each combination of the shared variables, and return its variable."""
        assert part.over is not None
        names = shared(part, outer.scope)
        if outer.optional & set(names):
            raise CannotPrintError("an aggregate over an optional variable cannot be written in SPARQL")
        types = {name: outer.scope.types[name] for name in names if name in outer.scope.types}
        edges = {name: outer.scope.edges[name] for name in names if name in outer.scope.edges}
        inner = [f"?{name} {self.names.type_predicate} {self.fresh()} ." for name in types]
        inner += [f"?{name} <{EDGE_HEAD}> {self.fresh()} ." for name in edges]
        level, used = _Level(Scope(self.schema, types, edges)), _attributes(part)
        for attribute in sorted((one for one in used if one.variable in names), key=str):
            self.look_up(attribute, level, inner)
        more, level = self.group(part.over, level, used)
        kept = [*(f"?{name}" for name in (*level.scope.types, *level.scope.edges)), *level.values.values()]
        body = [f"{{ SELECT DISTINCT {' '.join(kept)} WHERE {{", *_indented(inner + more), "} }"]
        value, result = self.aggregate(replace(part, over=None), level, body), self.fresh()
        shown = " ".join(f"?{name}" for name in names)
        by = f" GROUP BY {shown}" if names else ""
        lines += [f"OPTIONAL {{ {{ SELECT {shown} ({value} AS {result}) WHERE {{", *_indented(body), f"}}{by} }} }}"]
        nothing = {"count": "0", "exists": "false"}.get(part.function)
        return result if nothing is None else f"COALESCE({result}, {nothing})"

    def formula(self, formula: ql.Formula, level: _Level, *, denied: bool = False) -> str:
        """Return a test. Under a negation it cannot be an error."""
        match formula:
            case ql.All(parts):
                return "(" + " && ".join(self.formula(part, level, denied=denied) for part in parts) + ")"
            case ql.Either(parts):
                return "(" + " || ".join(self.formula(part, level, denied=denied) for part in parts) + ")"
            case ql.Not(part):
                return f"!{self.formula(part, level, denied=True)}"
            case ql.Exists(pattern):
                lines, _ = self.group(pattern, level, _attributes(pattern))
                needed = sorted(level.optional & {*pattern.types, *pattern.edge_names})
                return self.exists(lines, needed)
            case ql.Missing(ql.Attribute(owner, name) as attribute) if level.scope.kind(attribute) == "list":
                needed = [owner] if owner in level.optional else []
                return f"(!{self.exists([f'?{owner} {self.names.attribute(name)} {self.fresh()} .'], needed)})"
            case ql.Missing(expression):
                value = self.value(expression, level)
                bound = f"BOUND({value})" if value.startswith("?") else f"COALESCE({value} = {value}, false)"
                return f"(!{bound})"
            case ql.Compare():
                test = self.compared(turned(formula), level)
                return f"COALESCE({test}, false)" if denied else test

    def exists(self, lines: list[str], needed: list[str]) -> str:
        """Return whether a group has a solution. Variables that may be missing are needed first."""
        test = f"EXISTS {{ {' '.join(lines)} }}"
        return f"({' && '.join([*(f'BOUND(?{name})' for name in needed), test])})"

    def compared(self, formula: ql.Compare, level: _Level) -> str:
        left, right, scope = formula.left, formula.right, level.scope
        kind = scope.kind(left)
        if isinstance(right, ql.Value):
            checks = literal_checks(kind, formula.comparison, right.value)
            if kind == "list" and isinstance(left, ql.Attribute):
                part = self.fresh()
                test = _checked(part, checks.tests[0])
                line = f"?{left.variable} {self.names.attribute(left.name)} {part} . FILTER({test})"
                return self.exists([line], [left.variable] if left.variable in level.optional else [])
            value = self.value(left, level)
            tests = [_checked(value, check) for check in checks.tests]
            if not tests:
                return f"({value} = {value})" if checks.all else "false"
            return "(" + checks.joiner("&&", "||").join(tests) + ")"
        value = self.value(left, level)
        if isinstance(right, ql.Named | ql.Nodes):
            return f"({value} {'' if formula.comparison == '=' else 'NOT '}IN ({', '.join(self.iris(right))}))"
        if not comparable(kind, scope.kind(right)):
            return "false"
        if formula.comparison == "in":
            assert isinstance(right, ql.Subquery)
            prefix = f"_q{next(self.numbers)}_"
            test = _test(f"?{prefix}0", "=", value, kind)
            return self.exists(["{", *self.query(right.query, prefix), f"}} FILTER({test})"], [])
        goal = self.value(right, level)
        if kind == "boolean" and formula.comparison not in ("=", "!="):  # not every endpoint orders truth values
            value, goal = f"<{XSD}integer>({value})", f"<{XSD}integer>({goal})"
        return _test(value, formula.comparison, goal, kind)

    # Expressions

    def bound(self, part: ql.Expression, level: _Level, lines: list[str], name: str) -> str:
        """Bind an expression to a name, and return it."""
        if isinstance(part, ql.Attribute) and level.scope.kind(part) == "list":
            raise CannotPrintError(f"{part} is a list, which has several rows in SPARQL")
        level = self.prepared(part, level, lines)
        lines.append(f"BIND({self.value(part, level)} AS {name})")
        return name

    def value(self, part: ql.Expression, level: _Level) -> str:
        if part in level.values:
            return level.values[part]
        match part:
            case ql.Value(value):
                return json.dumps(value, ensure_ascii=False) if not isinstance(value, float) else f"{value!r}e0"
            case ql.Var(name):
                return f"?{name}"
            case ql.Call(function, arguments) if function not in ql.ONLY_HERE:
                kinds = [level.scope.kind(argument) for argument in arguments]
                return _call(function, [self.value(argument, level) for argument in arguments], kinds)
        raise CannotPrintError(f"{part} has no value in SPARQL")

    def aggregate(self, part: ql.Aggregate, level: _Level, lines: list[str]) -> str:
        """Return an aggregate whose argument is bound in the lines. Engines give up at a missing value otherwise."""
        if part.function == "exists":
            return f"({self.aggregate(replace(part, function='count', distinct=False), level, lines)} > 0)"
        if part.argument is None:
            return "COUNT(*)"
        kind = level.scope.kind(part.argument)
        value = self.bound(part.argument, level, lines, self.fresh())
        word = "DISTINCT " if part.distinct else ""
        number = f"COUNT({word}{value})"
        if part.function == "count":
            return number
        if part.function in ("sum", "avg"):
            total = f"SUM({word}COALESCE({value}, 0))"
            result = total if part.function == "sum" else f"{total} / {number}"
        else:
            low = part.function == "min"
            last = {"text": '"\\uFFFF"' if low else '""', "date": '"9999"' if low else '""'}
            shown = f'CONCAT(LCASE({value}), "\\u0001", {value})' if kind == "text" else value
            result = f"{part.function.upper()}(COALESCE({shown}, {last.get(kind, '1e308' if low else '-1e308')}))"
            result = f'STRAFTER({result}, "\\u0001")' if kind == "text" else result
        return f"IF({number} = 0, {NOTHING}, {result})"


def _attributes(value: Any) -> set[ql.Attribute]:
    """Return the attributes that a value reads, without those of its sub-queries."""
    return {
        part for part in ql.walk(value, lambda part: isinstance(part, ql.Subquery)) if isinstance(part, ql.Attribute)
    }


def _test(left: str, comparison: str, right: str, kind: str) -> str:
    if kind == "text":
        left, right = f"LCASE({left})", f"LCASE({right})"
        if comparison in PARTS:
            return f"{PARTS[comparison]}({left}, {right})"
    return f"({left} {'=' if comparison in PARTS else comparison} {right})"


def _checked(value: str, check: Check) -> str:
    if check.comparison == "matches":
        return f"REGEX({value}, {_text(f'^({check.value})$')})"
    if check.kind == "text":
        return _test(value, check.comparison, _text(check.value), "text")
    return f"({value} {check.comparison} {_text(check.value) if check.kind == 'day' else check.value})"


def _call(function: str, arguments: list[str], kinds: list[str]) -> str:
    first = arguments[0]
    if function == "-" and kinds == ["date", "date"]:
        return f"({_day_number(first)} - {_day_number(arguments[1])})"
    if function == "/":
        return f"IF({arguments[1]} = 0, {NOTHING}, {first} / {arguments[1]})"
    if len(arguments) == 2:
        return f"({first} {function} {arguments[1]})"
    match function:
        case "year" | "month" | "day":
            return _date_part(first, function)
        case "number":
            number = f'<{XSD}double>(REPLACE({first}, ",", ""))'
            return f"IF(REGEX({first}, {_text(NUMBER)}), {number}, {NOTHING})"
        case "round":
            return f"<{XSD}integer>(FLOOR({first} + 0.5))"
    return {"length": "STRLEN", "lower": "LCASE", "abs": "ABS"}[function] + f"({first})"


def _date_part(value: str, part: str) -> str:
    start, length = {"year": (1, 4), "month": (6, 2), "day": (9, 2)}[part]
    return f"<{XSD}integer>(SUBSTR({value}, {start}, {length}))"


def _day_number(value: str) -> str:
    """Return the Julian day number: SPARQL cannot turn a duration into a number."""
    year, month, day = (_date_part(value, part) for part in ("year", "month", "day"))
    early = f"IF({month} <= 2, -1, 0)"
    return (
        f"(FLOOR(1461 * ({year} + 4800 + {early}) / 4) + FLOOR(367 * ({month} - 2 - 12 * {early}) / 12)"
        f" - FLOOR(3 * FLOOR(({year} + 4900 + {early}) / 100) / 4) + {day})"
    )


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
