"""The meaning of queries by brute force: every assignment is tried, every row is a Python tuple."""

import datetime
import math
import operator
import re
from dataclasses import replace
from itertools import product

from clew.answering.queries.literals import as_days, as_number, as_text, as_truth
from clew.core.query import (
    Aggregate,
    All,
    Attribute,
    Call,
    Combined,
    Compare,
    Either,
    Exists,
    Missing,
    Nodes,
    Not,
    Subquery,
    Value,
    Var,
)

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


ORDERS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def holds(value, comparison, wanted):
    """Whether a value meets a condition; a missing value, or one of another kind, meets none.

    Words compare in lower case, dates as far as the wanted one is given, and of anything but words `contains` asks
    for the same: a formal query has to be able to say it.
    """
    if value is None or value != value:
        return False
    if isinstance(value, list | tuple):
        return any(holds(part, comparison, wanted) for part in value)
    if isinstance(value, str):
        text, sought = value.lower(), as_text(wanted)
        return sought in text if comparison == "contains" else ORDERS[comparison](text, sought)
    comparison = "=" if comparison == "contains" else comparison
    if isinstance(value, bool):
        truth = as_truth(wanted)
        return truth is not None and comparison in ("=", "!=") and (value == truth) == (comparison == "=")
    if isinstance(value, datetime.date):
        days = as_days(wanted)
        return days is not None and _day_holds(value, comparison, *days)
    number = as_number(wanted)
    return number is not None and isinstance(value, int | float) and ORDERS[comparison](value, number)


def _day_holds(value, comparison, first, last):
    day = value.date() if isinstance(value, datetime.datetime) else value
    inside = first <= day <= last
    if comparison in ("=", "!="):
        return inside == (comparison == "=")
    return ORDERS[comparison](day, last if comparison in ("<=", ">") else first)


class Reference:
    """A base as Python lists, and the rows of queries over it."""

    def __init__(self, kb):
        self.schema = kb.schema
        self.nodes = [kb.node(int(node)) for node in kb.nodes()]
        self.edges = []
        for node in range(len(self.nodes)):
            self.edges += [(t.head, t.relation, t.tail, dict(t.attributes)) for t in kb.triples(node) if t.head == node]

    # Patterns

    def solutions(self, pattern, given):
        """All solutions that agree with what is given: dictionaries from names to ("node", id) or ("edge", id)."""
        free = [v for v in pattern.variables if v.name not in given]
        choices = [[("node", n.id) for n in self.nodes if v.type in (None, n.type)] for v in free]
        found = []
        for nodes in product(*choices):
            solution = {**given, **{v.name: node for v, node in zip(free, nodes, strict=True)}}
            if any(
                v.type and (solution[v.name] is None or self.type(solution[v.name]) != v.type)
                for v in pattern.variables
            ):
                continue
            named = [self.edges_between(edge, solution) for edge in pattern.edges if edge.name]
            if not all(self.linked(edge, solution) for edge in pattern.edges if not edge.name):
                continue
            names = [edge.name for edge in pattern.edges if edge.name]
            for edges in product(*named):
                whole = {**solution, **dict(zip(names, edges, strict=True))}
                found += [one for one in self.extended(pattern.optional, whole) if self.all_hold(pattern.where, one)]
        return found

    def extended(self, optional, solution):
        found = [solution]
        for part in optional:
            following = []
            for one in found:
                more = self.solutions(part, one)
                following += more or [{**dict.fromkeys(part.bound), **one}]
            found = following
        return found

    def type(self, item):
        return self.nodes[item[1]].type

    def ends(self, end, solution):
        if isinstance(end, Nodes):
            return {n.id for n in self.nodes if n.key in end.keys}
        return set() if solution[end] is None else {solution[end][1]}

    def edges_between(self, edge, solution):
        heads, tails = self.ends(edge.head, solution), self.ends(edge.tail, solution)
        return [
            ("edge", number)
            for number, (head, relation, tail, _) in enumerate(self.edges)
            if edge.relation in (None, relation)
            and ((head in heads and tail in tails) or (not edge.directed and head in tails and tail in heads))
        ]

    def linked(self, edge, solution):
        level, reached = self.ends(edge.head, solution), set()
        steps = edge.least + len(self.nodes) if edge.most is None else edge.most
        for step in range(steps + 1):
            if step >= edge.least:
                reached |= level
            out = {t for h, r, t, _ in self.edges if h in level and edge.relation in (None, r)}
            into = {h for h, r, t, _ in self.edges if t in level and edge.relation in (None, r)}
            level = out if edge.directed else out | into
        return bool(reached & self.ends(edge.tail, solution))

    # Formulas

    def all_hold(self, formulas, solution, group=None):
        return all(self.holds(formula, solution, group) for formula in formulas)

    def holds(self, formula, solution, group=None):
        match formula:
            case All(parts):
                return all(self.holds(part, solution, group) for part in parts)
            case Either(parts):
                return any(self.holds(part, solution, group) for part in parts)
            case Not(part):
                return not self.holds(part, solution, group)
            case Exists(pattern):
                return bool(self.solutions(pattern, solution))
            case Missing(expression):
                return self.value(expression, solution, group) is None
            case Compare(left, comparison, right):
                return self.compared(left, comparison, right, solution, group)

    def compared(self, left, comparison, right, solution, group):
        if isinstance(left, Value) and not isinstance(right, Value) and comparison in ("=", "!=", *FLIPPED):
            left, right, comparison = right, left, FLIPPED.get(comparison, comparison)
        value = self.value(left, solution, group)
        if value is None:
            return False
        if isinstance(right, Nodes):
            return (self.nodes[value[1]].key in right.keys) == (comparison == "=")
        if comparison == "in":
            return any(self.same(value, row[0]) for row in self.rows(right.query))
        if isinstance(right, Value):
            if comparison in ("starts with", "ends with") and isinstance(value, str | list):
                part = str(right.value).lower()
                texts = [value] if isinstance(value, str) else value
                whole = str.startswith if comparison == "starts with" else str.endswith
                return any(whole(text.lower(), part) for text in texts)
            comparison = "=" if comparison in ("starts with", "ends with") else comparison
            return holds(value, comparison, right.value)
        other = self.value(right, solution, group)
        if other is None or not self.alike(value, other):
            return False
        a, b = comparable(value), comparable(other)
        return {
            "=": lambda: a == b,
            "!=": lambda: a != b,
            "<": lambda: a < b,
            "<=": lambda: a <= b,
            ">": lambda: a > b,
            ">=": lambda: a >= b,
            "contains": lambda: b in a if isinstance(a, str) else a == b,
            "starts with": lambda: a.startswith(b) if isinstance(a, str) else a == b,
            "ends with": lambda: a.endswith(b) if isinstance(a, str) else a == b,
        }[comparison]()

    def alike(self, a, b):
        numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (a, b))
        dates = all(isinstance(one, datetime.date) for one in (a, b))
        return numbers or dates or type(a) is type(b)

    def same(self, a, b):
        return b is not None and self.alike(a, b) and comparable(a) == comparable(b)

    # Expressions

    def value(self, part, solution, group=None):
        """The value of an expression; `group` are the solutions of a group."""
        match part:
            case Value(value):
                return value
            case Var(name):
                return solution.get(name)
            case Attribute(variable, name):
                return self.attribute(solution.get(variable), name)
            case Call(sign, (left, right)):
                a, b = self.value(left, solution, group), self.value(right, solution, group)
                return None if a is None or b is None else arithmetic(sign, a, b)
            case Call(name, (argument,)):
                value = self.value(argument, solution, group)
                return None if value is None else function(name, value)
            case Aggregate(over=None):
                return self.aggregate(part, group)
            case Aggregate():
                return self.aggregate(part, self.solutions(part.over, solution))
            case Subquery(query):
                rows = self.rows(query)
                return rows[0][0] if rows else None

    def attribute(self, owner, name):
        if owner is None:
            return None
        kind, number = owner
        if kind == "edge":
            value = self.edges[number][1] if name == "relation" else self.edges[number][3].get(name)
            types = self.schema.edge_attributes
        else:
            node = self.nodes[number]
            special = {"name": node.name, "key": node.key, "type": node.type, "text": node.text}
            value = special[name] if name in special else node.attributes.get(name)
            types = self.schema.attribute_types
        if types.get(name) == "date" and isinstance(value, str):
            value = as_days(value)[0]
        return None if value != value else value

    def aggregate(self, part, group):
        if part.function == "exists":
            return self.aggregate(replace(part, function="count"), group) > 0
        if part.argument is None:
            return len(group)
        values = [self.value(part.argument, solution) for solution in group]
        values = [value for value in values if value is not None]
        if part.distinct:
            values = list({exact(value): value for value in values}.values())
        if part.function == "count":
            return len(values)
        if not values:
            return None
        match part.function:
            case "sum":
                return sum(values)
            case "avg":
                return sum(values) / len(values)
            case "min":
                return min(values, key=extreme)
            case "max":
                return max(values, key=extreme)

    # Rows

    def rows(self, query):
        """The rows of a query, nodes as ("node", id); sorted if the query has an order or selects the first."""
        if isinstance(query, Combined):
            left, right = self.rows(query.left), self.rows(query.right)
            right_keys = {tuple(map(exact, row)) for row in right}
            first = {
                tuple(map(exact, row)): row for row in reversed(left + (right if query.operation == "union" else []))
            }
            return [
                row
                for key, row in first.items()
                if query.operation == "union" or (key in right_keys) == (query.operation == "intersect")
            ]
        found = self.solutions(query.pattern, {})
        if query.is_grouped:
            groups = {} if query.group else {(): found}
            for solution in found if query.group else ():
                key = tuple(exact(self.value(one, solution)) for one in query.group)
                groups.setdefault(key, []).append(solution)
            chosen = [(group[0] if group else {}, group) for group in groups.values()]
            rows = [
                tuple(self.value(part, one, group) for part in query.outputs)
                for one, group in chosen
                if self.all_hold(query.having, one, group)
            ]
        else:
            rows = [tuple(self.value(part, one) for part in query.outputs) for one in found]
        if query.distinct:
            rows = list({tuple(map(exact, row)): row for row in reversed(rows)}.values())
        return self.limited(query, rows)

    def limited(self, query, rows):
        width = len(query.columns)
        if query.ties:
            rows = [row for row in rows if None not in row[width:]]
        if query.order or query.first is not None or query.skip:
            for place in reversed(range(width)):
                rows = in_order(rows, place, lambda value: value)
            for place, key in reversed(list(enumerate(query.order, width))):
                rows = in_order(rows, place, comparable, key.descending)
        stop = len(rows) if query.first is None else query.skip + query.first
        while query.ties and 0 < stop < len(rows) and keys(rows[stop], width) == keys(rows[stop - 1], width):
            stop += 1
        return [row[:width] for row in rows[query.skip : stop]]


def keys(row, width):
    return [comparable(value) for value in row[width:]]


def in_order(rows, place, key, descending=False):
    known = [row for row in rows if row[place] is not None and not isinstance(row[place], list)]
    rest = [row for row in rows if row[place] is None or isinstance(row[place], list)]
    return sorted(known, key=lambda row: as_moment(key(row[place])), reverse=descending) + rest


def as_moment(value):
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime.combine(value, datetime.time())
    return value


def comparable(value):
    return value.lower() if isinstance(value, str) else as_moment(value)


def exact(value):
    return tuple(value) if isinstance(value, list) else as_moment(value)


def extreme(value):
    return (value.lower(), value) if isinstance(value, str) else as_moment(value)


def arithmetic(sign, a, b):
    if isinstance(a, datetime.date):
        return (as_moment(a).date() - as_moment(b).date()).days
    if sign == "/":
        return a / b if b else None
    return {"+": a + b, "-": a - b, "*": a * b}[sign]


def function(name, value):
    match name:
        case "year" | "month" | "day":
            return getattr(value, name)
        case "length":
            return len(value)
        case "lower":
            return value.lower()
        case "abs":
            return abs(value)
        case "round":
            return math.floor(value + 0.5)
        case "number":
            return float(value.replace(",", "")) if re.fullmatch(r"[-+]?[0-9][0-9,]*([.][0-9]+)?", value) else None
