"""A query as Cypher, over a property graph with a label for each type and the property `key` on each node.

Each edge has a MATCH of its own, so that no rule about edges that occur once applies. Sub-queries come first, and their
values are carried along.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from clew.answering.queries.kinds import Scope, comparable
from clew.answering.queries.literals import Check, literal_checks
from clew.answering.queries.lowering import CannotPrintError, grouped, shared, turned, without_lists, without_ties
from clew.core import query as ql
from clew.core.schema import Schema
from clew.core.types import NodeSet

if TYPE_CHECKING:
    from clew.store.remote.cypher import CypherKnowledgeBase

NUMBER = "[-+]?[0-9][0-9,]*([.][0-9]+)?"
NULLS = {"integer": "INT64", "number": "DOUBLE", "boolean": "BOOL", "date": "DATE", "list": "STRING[]"}
"""Types of values that are always missing."""
RESERVED = frozenset(
    re.findall(
        r"\w+",
        """add all and any as asc ascending begin by call case cast column contains count create database default delete
        desc descending detach distinct drop else end ends exists export false from glob group headers if import in
        install is key limit load macro match merge none not null on optional or order primary profile remove return
        set shortest single skip start starts table then to true union unwind use when where with xor yield""",
    )
)
"""Words of Cypher and of Kuzu's dialect."""
PARTS = {"contains": "CONTAINS", "starts with": "STARTS WITH", "ends with": "ENDS WITH"}


class CypherNames:
    """Identifies nodes by the property `key`."""

    def key(self, variable: str) -> str:
        """Return the expression that identifies a node."""
        return f"{variable}.key"

    def keys(self, keys: Sequence[str]) -> Sequence[str]:
        """Return the values that identify nodes, given their keys."""
        return keys

    def label(self, variable: str, is_edge: bool) -> str:  # noqa: ARG002
        """Return the type of a node or the relation of an edge."""
        return f"label({variable})"

    def label_of(self, keys: Sequence[str]) -> str | None:  # noqa: ARG002
        """Return the label that a database should look up nodes by, if any."""
        return None


class GraphDatabaseNames(CypherNames):
    """Identifies nodes of a graph database by the key property of the base, or by their element ids."""

    def __init__(self, kb: CypherKnowledgeBase) -> None:
        self.kb = kb

    def key(self, variable: str) -> str:  # noqa: D102
        known = self.kb.key_property
        return f"elementId({variable})" if known is None else f"{variable}.{_name(known)}"

    def keys(self, keys: Sequence[str]) -> Sequence[str]:  # noqa: D102
        return keys if self.kb.key_property is not None else self.kb.elements(NodeSet.of(self.kb.ids(keys)))

    def label(self, variable: str, is_edge: bool) -> str:  # noqa: D102
        return f"type({variable})" if is_edge else f"labels({variable})[0]"

    def label_of(self, keys: Sequence[str]) -> str | None:  # noqa: D102
        kinds = {ref.type for ref in self.kb.refs(self.kb.ids(keys))}
        kind = kinds.pop() if len(kinds) == 1 else None
        return kind if kind and self.kb.is_label(kind) else None


def cypher(query: ql.AnyQuery, schema: Schema, names: CypherNames | None = None) -> str:
    """Return a query with the rows of the algebra. Nodes are given by their keys."""
    return "\n".join(_Cypher(schema, names or CypherNames()).whole(query))


class _Cypher:
    def __init__(self, schema: Schema, names: CypherNames) -> None:
        self.schema, self.names, self.numbers = schema, names, count(1)
        self.values: dict[ql.Expression, str] = {}
        """Names of computed sub-queries and aggregates over patterns."""
        self.carried: list[str] = []
        """Names of sub-queries, which every WITH has to pass on."""
        self.has_list = False
        """Whether a sub-query is a list. Kuzu cannot group by an empty list."""
        self.optional: set[str] = set()
        """Variables that may be missing."""
        self.keys: list[tuple[str, str]] = []
        """Names and kinds of the order keys."""

    def fresh(self, letter: str) -> str:
        return f"{letter}{next(self.numbers)}_"

    # Queries

    def whole(self, query: ql.AnyQuery) -> list[str]:
        if isinstance(query, ql.Query):
            lines, shown = self.flow(query, final=True)
            return [*lines, self.returned(without_ties(query), shown)]
        if query.operation == "union":
            left, right = (_Cypher(self.schema, self.names).whole(side) for side in (query.left, query.right))
            return [*left, "UNION", *right]
        if not isinstance(query.left, ql.Query) or len(query.left.columns) != 1 or query.left.order:
            raise CannotPrintError(f"{query.operation} of several columns cannot be written in Cypher")
        lines = self.subquery(ql.Subquery(query.right), listed=True, exact=True)
        more, shown = self.flow(query.left)
        test = f"coalesce(c0 IN {self.carried[-1]}, false)"
        lines += [*more, f"{shown} WHERE {test if query.operation == 'intersect' else f'NOT {test}'}"]
        return [*lines, "RETURN DISTINCT c0"]

    def returned(self, query: ql.Query, shown: str, word: str = "RETURN") -> str:
        """Return the last step: columns, order and limits."""
        names = [f"c{number}" for number in range(len(query.columns))]
        order = []
        for key, (name, kind) in zip(query.order, self.keys, strict=True):
            value = f"lower({name})" if kind == "text" else name
            order += [f"{name} IS NULL", f"{value}{' DESC' if key.descending else ''}"]
        if order or query.first is not None or query.skip:
            order += [part for name in names for part in (f"{name} IS NULL", name)]
        text = f"{shown}\n{word} {', '.join([*self.carried, *names] if word == 'WITH' else names)}"
        is_cut = query.first is not None or bool(query.skip)
        text += f" ORDER BY {', '.join(order)}" if order and (is_cut or word == "RETURN") else ""
        text += f" SKIP {query.skip}" if query.skip else ""
        return text + ("" if query.first is None else f" LIMIT {query.first}")

    def flow(self, query: ql.Query, *, complete: bool = False, final: bool = False) -> tuple[list[str], str]:
        """Return the lines before the last WITH, and the last WITH: columns `c0`… and order keys `o0`….

        If `complete`, a query without solutions still has a row, of missing values: other rows would be lost with it.
        The `final` query passes sub-queries on only as long as it needs them.
        """
        query = without_lists(without_ties(query))
        lines = []
        for part in ql.walk(query, lambda part: isinstance(part, ql.Subquery)):
            is_list = isinstance(part, ql.Compare) and part.comparison == "in"
            if is_list and isinstance(part.right, ql.Subquery) and part.right not in self.values:
                lines += self.subquery(part.right, listed=True)
        for part in ql.walk(query, lambda part: isinstance(part, ql.Subquery)):
            if isinstance(part, ql.Subquery) and part not in self.values:
                lines += self.subquery(part, listed=False)
        scope = Scope(self.schema).inside(query.pattern)
        is_grouped = query.is_grouped
        later = {self.values.get(part) for part in ql.walk(replace(query, pattern=ql.Pattern()))}
        needed = [name for name in self.carried if name in later or not final]
        complete = complete or (is_grouped and not query.group and bool(needed))
        lines += self.matched(query.pattern, scope, complete)
        self.carried = self.carried if complete or not is_grouped else needed
        names = [*self.carried, *map(_name, (*scope.types, *scope.edges))]
        for expression in query.outputs if not is_grouped else ():
            lines += self.prepared(expression, scope, names)
        if is_grouped:
            split = grouped(query, scope)
            items = [f"{self.shown(key, scope)} AS {name}" for name, key in split.keys]
            items += [_name(name) for name in split.variables]
            items += [f"{self.aggregate(part, scope, complete)} AS {name}" for name, part in split.aggregates]
            items += [] if split.aggregates else ["count(*) AS rows_"]  # which makes groups of the keys
            lines.append(f"WITH {', '.join([*self.carried, *items])}")
            names = [*self.carried, *map(_name, split.variables)]
            names += [name for name, _ in (*split.keys, *split.aggregates)]
            query = split.query
            inner = replace(scope, types={k: v for k, v in scope.types.items() if k in split.variables})
            for formula in query.having:
                lines += self.prepared(formula, inner, names)
            for expression in query.outputs:
                lines += self.prepared(expression, inner, names)
            if query.having:
                tests = " AND ".join(self.formula(part, scope) for part in query.having)
                lines.append(f"WITH {', '.join(dict.fromkeys(names))} WHERE {tests}")
        shown = {f"c{n}": self.shown(column.expression, scope) for n, column in enumerate(query.columns)}
        if len(set(shown.values())) < len(shown):
            raise CannotPrintError("a column that occurs twice cannot be written in Cypher")
        known = {text: name for name, text in shown.items()}
        self.keys = []
        for number, key in enumerate(query.order):  # Kuzu forgets the first of two names for one value
            text = self.shown(key.expression, scope)
            name = known.setdefault(text, f"o{number}")
            self.keys.append((name, scope.kind(key.expression)))
        items = [f"{text} AS {name}" for text, name in known.items()]
        self.values = {part: name for part, name in self.values.items() if isinstance(part, ql.Subquery)}
        return lines, f"WITH {'DISTINCT ' if query.distinct else ''}{', '.join([*self.carried, *items])}"

    def subquery(self, part: ql.Subquery, *, listed: bool, exact: bool = False) -> list[str]:
        """Return lines that compute a sub-query first: its value, or the list of its values."""
        query = part.query
        if not isinstance(query, ql.Query):
            raise CannotPrintError("a set operation inside a query cannot be written in Cypher")
        inner = [one for one in ql.walk(query) if isinstance(one, ql.Subquery) and one not in self.values]
        lost = query.group or query.having or query.skip or (query.ties and query.first != 1)
        if (self.carried or inner) and lost:
            raise CannotPrintError("a second sub-query that may have no row cannot be written in Cypher")
        if self.has_list or any(isinstance(one, ql.Compare) and one.comparison == "in" for one in ql.walk(query)):
            raise CannotPrintError("a second sub-query after a list cannot be written in Cypher")
        lines, shown = self.flow(query, complete=bool(self.carried))
        lines.append(self.returned(without_ties(query), shown, "WITH") if not listed or query.first else shown)
        name = self.fresh("q")
        is_text = Scope(self.schema).inside(query.pattern).kind(query.columns[0].expression) == "text"
        value = "lower(c0)" if listed and is_text and not exact else "c0"
        result = f"collect(DISTINCT {value})" if listed else f"min({value})"
        lines.append(f"WITH {', '.join([*self.carried, f'{result} AS {name}'])}")
        self.carried.append(name)
        self.has_list = self.has_list or listed
        self.values[part] = name
        return lines

    # Patterns

    def matched(self, pattern: ql.Pattern, scope: Scope, complete: bool) -> list[str]:
        """Return the lines that match a whole pattern, each solution once."""
        required = replace(pattern, optional=())
        clauses, tests = self.clauses(required, Scope(self.schema))
        inner = {name for part in pattern.optional for name in part.bound} - required.bound
        self.optional = inner
        late = [part for part in pattern.where if ql.names_used(part) & inner or self.is_late(part, scope)]
        tests += self.tests((part for part in pattern.where if part not in late), scope)
        where = _where(tests)
        names = [*self.carried, *map(_name, sorted(required.bound))]
        if complete:
            if pattern.optional or late or not clauses:
                raise CannotPrintError("this sub-query cannot be written in Cypher after another one")
            return [f"OPTIONAL MATCH {', '.join(clauses)}{where}", f"WITH DISTINCT {', '.join(names)}"]
        lines = [f"MATCH {clause}" for clause in clauses]
        if not lines:
            return [f"WITH {', '.join(names)}{where}"] if names and where else []
        lines[-1] += where
        lines.append(f"WITH DISTINCT {', '.join(names)}")
        seen = Scope(self.schema).inside(required)
        for part in pattern.optional:
            if part.optional:
                raise CannotPrintError("an optional part inside an optional part cannot be written in Cypher")
            clauses, tests = self.clauses(part, seen)
            if not clauses:  # no clause binds a variable
                continue
            tests += self.tests(part.where, seen.inside(part))
            lines.append(f"OPTIONAL MATCH {', '.join(clauses)}{_where(tests)}")
            seen = seen.inside(part)
            names += [_name(name) for name in sorted(part.bound) if _name(name) not in names]
            lines.append(f"WITH DISTINCT {', '.join(names)}")
        for formula in late:
            lines += self.prepared(formula, scope, names)
        if late:
            tests = [self.formula(part, scope) for part in late]
            lines.append(f"WITH {', '.join(dict.fromkeys(names))} WHERE {' AND '.join(tests)}")
        return lines

    def tests(self, formulas: Iterable[ql.Formula], scope: Scope) -> list[str]:
        """Return the tests that can fail: Kuzu loses rows of an optional part whose test is always true."""
        return [test for formula in formulas if (test := self.formula(formula, scope)) != "true"]

    def clauses(self, pattern: ql.Pattern, outer: Scope) -> tuple[list[str], list[str]]:
        """Return the node and edge patterns of a pattern, and tests for conditions that they cannot express."""
        types, tests = dict(pattern.types), []
        for name, kind in list(types.items()):
            if name in outer.types:
                types[name] = None
                tests += [f"{self.names.label(_name(name), False)} = {_text(kind)}"] if kind else []

        def node(end: str) -> str:
            kind = types.get(end)
            types[end] = None
            return f"({_name(end)}{f':{_name(kind)}' if kind else ''})"

        clauses = []
        for edge in pattern.edges:
            ends, constants = [edge.head, edge.tail], []
            for place, end in enumerate(ends):
                if not isinstance(end, str):
                    ends[place] = name = self.fresh("k")
                    types[name] = self.names.label_of(end.keys) if isinstance(end, ql.Nodes) else None
                    constants.append(f"{self.names.key(name)} IN {self.listed(end)}")
            if constants and not edge.name:
                shown = [f"({_name(end)})" if end in edge.variables else node(end) for end in map(str, ends)]
                tests.append(f"EXISTS {{ MATCH {_arrow(edge).join(shown)} WHERE {' AND '.join(constants)} }}")
            else:
                clauses.append(f"{node(str(ends[0]))}{_arrow(edge)}{node(str(ends[1]))}")
                tests += constants
        mentioned = {name for edge in pattern.edges if edge.name or len(edge.variables) == 2 for name in edge.variables}
        alone = [node(name) for name in pattern.types if name not in mentioned and name not in outer.types]
        return [*alone, *clauses], tests

    def is_late(self, part: Any, scope: Scope) -> bool:
        """Return whether a part has an aggregate over a pattern that needs a separate step."""
        return any(not self.counted(one, scope) for one in self.over(part))

    def over(self, part: Any) -> list[ql.Aggregate]:
        inside = ql.walk(part, lambda one: isinstance(one, ql.Pattern | ql.Subquery))
        return [one for one in inside if isinstance(one, ql.Aggregate) and one.over is not None]

    def counted(self, part: ql.Aggregate, scope: Scope) -> str | None:
        """Return a count over a pattern with one new variable as an expression, or None if it needs a step."""
        over = part.over
        assert over is not None
        new = [name for name in over.types if name not in scope.types]
        plain = part.argument is None or part.argument == ql.Var(new[0] if new else "")
        if part.function != "count" or not plain or len(new) != 1 or over.edge_names or over.optional:
            return None
        self.refuse_optional(shared(part, scope))
        inner = scope.inside(over)
        tests = [self.formula(ql.Exists(ql.Pattern((), (edge,))), inner) for edge in over.edges]
        tests += [
            f"{self.names.label(_name(name), False)} = {_text(kind)}"
            for name, kind in over.types.items()
            if kind and name != new[0]
        ]
        tests += [self.formula(formula, inner) for formula in over.where]
        kind = over.types[new[0]]
        return f"COUNT {{ MATCH ({_name(new[0])}{f':{_name(kind)}' if kind else ''}){_where(tests)} }}"

    def prepared(self, part: Any, scope: Scope, names: list[str]) -> list[str]:
        """Return the steps that compute aggregates over patterns, and add their names."""
        lines: list[str] = []
        for inner in self.over(part):
            if inner in self.values or self.counted(inner, scope):
                continue
            over = inner.over
            assert over is not None
            new = sorted(over.bound - {*scope.types, *scope.edges})
            if over.optional or not new:
                raise CannotPrintError("this aggregate over a pattern cannot be written in Cypher")
            clauses, tests = self.clauses(over, scope)
            inside = scope.inside(over)
            tests += [self.formula(formula, inside) for formula in over.where]
            lines.append(f"OPTIONAL MATCH {', '.join(clauses)}{_where(tests)}")
            lines.append(f"WITH DISTINCT {', '.join(dict.fromkeys([*names, *map(_name, new)]))}")
            result = self.fresh("f")
            value = self.aggregate(replace(inner, over=None), inside, True, witness=new[0])
            lines.append(f"WITH {', '.join([*dict.fromkeys(names), f'{value} AS {result}'])}")
            names.append(result)
            self.values[inner] = result
        return lines

    # Formulas

    def formula(self, formula: ql.Formula, scope: Scope, *, denied: bool = False) -> str:
        """Return a test. Under a negation it cannot be NULL."""
        match formula:
            case ql.All(parts):
                return "(" + " AND ".join(self.formula(part, scope, denied=denied) for part in parts) + ")"
            case ql.Either(parts):
                return "(" + " OR ".join(self.formula(part, scope, denied=denied) for part in parts) + ")"
            case ql.Not(part):
                return f"(NOT {self.formula(part, scope, denied=True)})"
            case ql.Exists(pattern):
                test = self.exists(pattern, scope)
                return f"coalesce({test}, false)" if denied and not test.startswith("EXISTS") else test
            case ql.Missing(expression):
                value = self.value(expression, scope)
                return "true" if value is None else f"({value} IS NULL)"
            case ql.Compare():
                test = self.compared(turned(formula), scope)
                return f"coalesce({test}, false)" if denied and test != "false" else test

    def exists(self, pattern: ql.Pattern, scope: Scope) -> str:
        self.refuse_optional(shared(pattern, scope))
        inner = {name for part in pattern.optional for name in part.bound} - {*pattern.types, *pattern.edge_names}
        if inner & frozenset().union(*map(ql.names_used, pattern.where)):
            raise CannotPrintError("a condition on an optional part inside a pattern cannot be written in Cypher")
        clauses, tests = self.clauses(pattern, scope)
        inside = scope.inside(replace(pattern, optional=()))
        for formula in pattern.where:
            if self.is_late(formula, inside):
                raise CannotPrintError("this aggregate inside a pattern cannot be written in Cypher")
        tests += [self.formula(formula, inside) for formula in pattern.where]
        if not clauses:
            known = [f"({_name(name)} IS NOT NULL)" for name in pattern.types]
            return f"({' AND '.join(known + tests) or 'true'})"
        return f"EXISTS {{ MATCH {', '.join(clauses)}{_where(tests)} }}"

    def refuse_optional(self, names: list[str]) -> None:
        """Refuse sub-patterns of variables that may be missing: Kuzu loses such rows."""
        if self.optional & set(names):
            raise CannotPrintError("a pattern that starts at an optional variable cannot be written in Cypher")

    def compared(self, formula: ql.Compare, scope: Scope) -> str:
        left, right = formula.left, formula.right
        kind, value = scope.kind(left), self.value(left, scope)
        if value is None:
            return "false"
        if isinstance(right, ql.Value):
            checks = literal_checks(kind, formula.comparison, right.value)
            if kind == "list":
                return self.in_list(left, checks.tests[0], scope)
            tests = [_checked(value, check) for check in checks.tests]
            if not tests:
                return f"({value} IS NOT NULL)" if checks.all else "false"
            return "(" + checks.joiner("AND", "OR").join(tests) + ")"
        if isinstance(right, ql.Named | ql.Nodes):
            test = f"({value} IN {self.listed(right)})"
            return test if formula.comparison == "=" else f"(NOT {test})"
        if not comparable(kind, scope.kind(right)):
            return "false"
        other = self.value(right, scope)
        if other is None:
            return "false"
        if formula.comparison == "in":
            return f"({f'lower({value})' if kind == 'text' else value} IN {other})"
        return _test(value, formula.comparison, other, kind)

    def in_list(self, part: ql.Expression, check: Check, scope: Scope) -> str:
        """Return a test on a list, on the node under another name: Kuzu loses rows if a filter reads two lists."""
        assert isinstance(part, ql.Attribute)
        self.refuse_optional([part.variable])
        same, item = self.fresh("n"), self.fresh("v")
        kind = scope.types.get(part.variable)
        value = f"{same}.{_name(part.name)}"
        inside = f"any({item} IN {value} WHERE {_checked(item, check)})"
        node = f"({same}{f':{_name(kind)}' if kind else ''})"
        same_node = f"{self.names.key(same)} = {self.names.key(_name(part.variable))}"
        tests = f"{same_node} AND {value} IS NOT NULL AND {inside}"
        return f"EXISTS {{ MATCH {node} WHERE {tests} }}"

    def listed(self, constant: ql.Constant) -> str:
        if isinstance(constant, ql.Named):
            raise CannotPrintError(f"{constant} is not linked to nodes: link the constants of the query first")
        return f"[{', '.join(map(_text, self.names.keys(constant.keys)))}]"

    # Expressions

    def shown(self, part: ql.Expression, scope: Scope) -> str:
        """Return an expression to show. A missing value still depends on a node, because Kuzu repeats constants."""
        missing = f"CAST(NULL AS {NULLS.get(scope.kind(part), 'STRING')})"
        owner = next((name for name in sorted(ql.names_used(part)) if name in scope.types), None)
        return self.value(part, scope) or (
            f"CASE WHEN {self.names.key(_name(owner))} IS NULL THEN {missing} END" if owner else missing
        )

    def value(self, part: ql.Expression, scope: Scope) -> str | None:
        """Return an expression, or None if it is always missing: databases refuse properties that no node has."""
        if part in self.values:
            return self.values[part]
        match part:
            case ql.Field(name):
                return name
            case ql.Value(value):
                return _text(value) if isinstance(value, str) else str(value).lower()
            case ql.Var(name):
                return f"id({_name(name)})" if name in scope.edges else self.names.key(_name(name))
            case ql.Attribute(variable, name):
                return self.attribute(variable, name, scope)
            case ql.Call(function, arguments) if function not in ql.ONLY_HERE:
                texts = [text for argument in arguments if (text := self.value(argument, scope)) is not None]
                if len(texts) < len(arguments):
                    return None
                return _call(function, texts, [scope.kind(argument) for argument in arguments])
            case ql.Aggregate(over=ql.Pattern()):
                found = self.counted(part, scope)
                if found is not None:
                    return found
        raise CannotPrintError(f"{part} cannot be written in Cypher here")

    def attribute(self, variable: str, name: str, scope: Scope) -> str | None:
        if name == ("relation" if variable in scope.edges else "type"):
            label = self.names.label(_name(variable), variable in scope.edges)
            known = self.value(ql.Var(variable), scope)
            return label if variable not in self.optional else f"CASE WHEN {known} IS NOT NULL THEN {label} END"
        if variable in scope.edges:
            return f"{_name(variable)}.{_name(name)}" if name in self.schema.edge_attributes else None
        if name == "text":
            raise CannotPrintError("the graph database has no texts: ask for names")
        kind = scope.types.get(variable)
        owners = [one for one in self.schema.node_types if kind in (None, one.name)]
        if name not in ("key", "name") and not any(name in owner.attributes for owner in owners):
            return None
        return f"{_name(variable)}.{_name(name)}"

    def aggregate(self, part: ql.Aggregate, scope: Scope, complete: bool, witness: str | None = None) -> str:
        """Return an aggregate. If `complete`, a row without the first variable means that there is no solution."""
        if part.function == "exists":
            return f"({self.aggregate(replace(part, function='count', distinct=False), scope, complete, witness)} > 0)"
        first = witness or next(iter(sorted((*scope.types, *scope.edges))), None)
        if part.argument is None:
            return f"count({self.shown(ql.Var(first), scope)})" if complete and first else "count(*)"
        value = self.value(part.argument, scope)
        if value is None:
            return f"{'count' if part.function == 'count' else 'min'}({self.shown(part.argument, scope)})"
        if complete and first:
            value = f"CASE WHEN {self.value(ql.Var(first), scope)} IS NOT NULL THEN {value} END"
        if part.function in ("min", "max") and scope.kind(part.argument) == "text":
            mark = _text("\x01")  # below all letters, so that texts are sorted without case, then with it
            value = f"CASE WHEN {value} IS NOT NULL THEN lower({value}) + {mark} + {value} END"
            return f"split_part({part.function}({value}), {mark}, 2)"
        return f"{part.function}({'DISTINCT ' if part.distinct else ''}{value})"


def _where(tests: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(tests)}" if tests else ""


def _arrow(edge: ql.Edge) -> str:
    relation = f":{_name(edge.relation)}" if edge.relation else ""
    steps = "" if edge.is_single else f"*{edge.least}..{'' if edge.most is None else edge.most}"
    return f"-[{_name(edge.name) if edge.name else ''}{relation}{steps}]-{'>' if edge.directed else ''}"


def _test(left: str, comparison: str, right: str, kind: str) -> str:
    if kind == "text":
        left, right = f"lower({left})", f"lower({right})"
        if comparison in PARTS:
            return f"({left} {PARTS[comparison]} {right})"
    sign = "=" if comparison in PARTS else "<>" if comparison == "!=" else comparison
    return f"({left} {sign} {right})"


def _checked(value: str, check: Check) -> str:
    if check.comparison == "matches":
        return f"({value} =~ {_text(check.value)})"
    if check.kind == "text":
        return _test(value, check.comparison, _text(check.value), "text")
    return _test(value, check.comparison, f"date('{check.value}')" if check.kind == "day" else check.value, "")


def _call(function: str, arguments: list[str], kinds: list[str]) -> str:
    first = arguments[0]
    if function == "-" and kinds == ["date", "date"]:
        return f"(CAST({first} AS DATE) - CAST({arguments[1]} AS DATE))"
    if function == "/":
        return f"(CASE WHEN {arguments[1]} <> 0 THEN CAST({first} AS DOUBLE) / {arguments[1]} END)"
    if len(arguments) == 2:
        return f"({first} {function} {arguments[1]})"
    match function:
        case "year" | "month" | "day":
            return f"date_part('{function}', {first})"
        case "length":
            return f"size({first})"
        case "round":
            return f"CAST(floor({first} + 0.5) AS INT64)"
        case "number":
            known = f"CASE WHEN {first} =~ {_text(NUMBER)} THEN {first} END"
            return f"CAST(regexp_replace({known}, ',', '', 'g') AS DOUBLE)"
    return f"{function}({first})"


def _name(name: str) -> str:
    """Quote a name that is not a plain word, or that means something in Cypher."""
    is_plain = name.isidentifier() and name.isascii() and name.lower() not in RESERVED
    return name if is_plain else "`" + name.replace("`", "``") + "`"


def _text(text: Any) -> str:
    """Escape quotes and backslashes only: some databases know no other escapes."""
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
