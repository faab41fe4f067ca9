"""Random bases and random queries of every form."""

import csv
import datetime

import pyarrow as pa

from clew.answering.queries.kinds import NUMERIC, Scope, check, comparable
from clew.core.errors import SchemaError
from clew.core.query import (
    Aggregate,
    All,
    Attribute,
    Call,
    Column,
    Combined,
    Compare,
    Edge,
    Either,
    Exists,
    Missing,
    Nodes,
    Not,
    Order,
    Pattern,
    Query,
    Subquery,
    Value,
    Var,
    Variable,
)
from clew.store.graph.tables import Piece, Tables

TYPES = ("drug", "disease", "side effect")
RELATIONS = ("treats", "linked_with", "is_a")
KINDS = {
    "dose": pa.int64(),
    "mass": pa.float64(),
    "approved": pa.date32(),
    "seen": pa.timestamp("us"),
    "born": pa.string(),
    "rare": pa.bool_(),
    "colour": pa.string(),
    "trade names": pa.list_(pa.string()),
    "price": pa.string(),
}
EDGE_KINDS = {"weight": pa.int64(), "since": pa.date32(), "note": pa.string()}
COLOURS = ("red", "Red", "blue", 'gr"een\\', "ÄÖ", "dark blue")
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
LITERALS = {
    "integer": (0, 1, 2, 2.0, 1.5, "3", "many"),
    "number": (0.5, 2, "0.5", 3.25, -1),
    "date": ("1999", "2000-02", "1999-12-15", 2000, "soon"),
    "boolean": (True, False, "true", "no", 1),
    "text": (*COLOURS, "e", "d", 90, "name1", ""),
    "list": (*COLOURS, "e"),
}


def random_tables(chance):
    """A small typed graph: parallel edges with attributes, loops, shared names, values that are missing."""
    size = chance.randint(3, 7)
    nodes = [_node(chance, place) for place in range(size)]
    edges = []
    for _ in range(chance.randint(size, 3 * size)):
        head, tail = (chance.randrange(size) for _ in range(2))
        day = datetime.date(chance.randint(1998, 2001), chance.choice((1, 2, 12)), chance.randint(1, 28))
        values = {"weight": chance.randint(-1, 3), "since": day, "note": chance.choice(COLOURS)}
        row = {name: value for name, value in values.items() if chance.random() < 0.6}
        relation = chance.choice(RELATIONS)
        if relation != "is_a" or head > tail:  # a hierarchy has no cycles
            edges.append({"head": nodes[head]["key"], "relation": relation, "tail": nodes[tail]["key"], **row})
    edges.append({"head": nodes[1]["key"], "relation": "treats", "tail": nodes[0]["key"]})
    texts = {name: pa.string() for name in ("key", "type", "name")}
    ends = {name: pa.string() for name in ("head", "relation", "tail")}
    return Tables(
        (Piece(pa.Table.from_pylist(nodes, pa.schema({**texts, **KINDS})), "nodes"),),
        (Piece(pa.Table.from_pylist(edges, pa.schema({**ends, **EDGE_KINDS})), "edges"),),
    )


def _node(chance, place):
    day = datetime.date(chance.randint(1998, 2001), chance.choice((1, 2, 12)), chance.choice((1, 15, 16)))
    values = {
        "dose": chance.randint(-1, 4),
        "mass": chance.choice((0.1, 0.5, 2.0, 3.25, float("nan"))),
        "approved": day,
        "seen": datetime.datetime.combine(day, datetime.time(chance.choice((0, 12)), 30)),
        "born": day.isoformat()[: chance.choice((4, 7, 10))],
        "rare": chance.random() < 0.5,
        "colour": chance.choice(COLOURS),
        "trade names": chance.sample(COLOURS, chance.randint(1, 2)),
        "price": chance.choice(("1,200", "90", "9.5", "free", "-3")),
    }
    kept = {name: value for name, value in values.items() if chance.random() < 0.7}
    return {"key": f"n{place}", "type": chance.choice(TYPES), "name": f"name{chance.randint(0, place)}", **kept}


ODD_NAMES = (
    "size", "Size", "order", "select", "group by", "from", "table", "number", "Number", "c0", "o0", "g_", 'a "b"',
    "it's", "Größe", "price (net)", "dose", "dot.ted", "名前", "where", "null", "relation", "TAIL", "value0", "\\back",
)  # fmt: skip
"""Names of columns: words of SQL, names that differ by case, quotes, blanks, other alphabets, names of the printer."""

ODD_VARIABLES = ("c0", "o0", "g_", "key0", "value0", "e1_", "p_", "nodes", "edges", "select", "größe")
"""Names of variables that are words of other languages, or look like names that a printer makes."""


def random_csv(chance, folder):
    """Write CSV files: types with references, a table of links, lists, missing cells, repeated rows and odd names."""
    cells = {
        "integer": lambda: chance.choice((0, 1, 2, 3, -1)),
        "number": lambda: chance.choice((0.5, 1.25, 2.0, 3.25, -1.5)),
        "date": lambda: f"{chance.choice((1998, 1999, 2000))}-{chance.choice(('02', '12'))}-{chance.choice((15, 16))}",
        "moment": lambda: f"{chance.choice((1999, 2000))}-02-15T{chance.choice(('00', '12'))}:30:00",
        "year": lambda: chance.choice((1998, 1999, 2000)),
        "boolean": lambda: chance.choice(("true", "false")),
        "text": lambda: chance.choice(COLOURS),
        "list": lambda: "; ".join(chance.sample(("red", "blue", "dark blue", "ÄÖ"), chance.randint(1, 3))),
    }

    def columns(least, most):
        names = chance.sample(ODD_NAMES, chance.randint(least, most))
        return {name: cells[chance.choice(list(cells))] for name in names}

    def write(name, rows):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)

    def filled(made):
        return {name: "" if chance.random() < 0.2 else cell() for name, cell in made.items()}

    made, shops, items = columns(1, 4), range(chance.randint(2, 5)), range(chance.randint(2, 5))
    write("shops", [{"id": f"S{at}", "name": f"shop {chance.randint(0, at)}", **filled(made)} for at in shops])
    made = columns(0, 4)
    names = ("Ann", "Bo", "Čedo")
    write("items", [{"item_id": f"I{at}", "name": chance.choice(names), **filled(made)} for at in items])
    made = columns(1, 4)
    ends = {"shop_id": lambda: f"S{chance.choice(shops)}", "item_id": lambda: f"I{chance.choice(items)}"}
    ends["amount"] = cells["integer"]  # some forms of queries need a number
    rows = [{name: end() for name, end in ends.items()} | filled(made) for _ in range(chance.randint(2, 9))]
    write("orders", [{"order_id": at, **row} for at, row in enumerate(rows + rows[:1])])
    made, pairs = columns(0, 2), [(shop, item) for shop in shops for item in items if chance.random() < 0.5]
    if len(pairs) > 1:
        write("stocks", [{"shop_id": f"S{a}", "item_id": f"I{b}", **filled(made)} for a, b in pairs])


class Maker:
    """Makes queries over a base. Every form comes up again and again."""

    def __init__(self, kb, chance, has_odd_names=False):
        self.kb, self.schema, self.chance, self.number = kb, kb.schema, chance, 0
        self.has_odd_names, self.odd, self.kinds = has_odd_names, [], {}
        self.keys = [ref.key for ref in kb.refs(kb.nodes().array)]

    def fresh(self, letter):
        """Return a new name, sometimes one that differs from the last by case only, or that a printer may use."""
        self.number += 1
        if self.has_odd_names and self.flip(0.1):
            return f"{letter.upper()}{self.number - 1}"
        return self.odd.pop() if self.odd and self.flip(0.1) else f"{letter}{self.number}"

    def some(self, *options):
        return self.chance.choice(options)

    def flip(self, share=0.5):
        return self.chance.random() < share

    # Patterns

    def nodes(self):
        return Nodes(tuple(self.chance.sample(self.keys, self.chance.randint(1, 2))))

    def edge(self, a, b, named=0.2):
        head, tail = (a, b) if self.flip() else (b, a)
        if not self.fitting(head, tail):
            head, tail = tail, head
        names = self.fitting(head, tail) if self.flip(0.9) else ()
        relation = None if self.flip(0.1) else self.chance.choice(names or self.schema.relation_names)
        least, most = self.some((0, None), (1, None), (0, 1), (1, 2), (2, 3)) if self.flip(0.12) else (1, 1)
        name = self.fresh("e") if (least, most) == (1, 1) and self.flip(named) else None
        return Edge(head, relation, tail, not self.flip(0.12), least, most, name)

    def fitting(self, *ends):
        """Return the relations that there may be between these ends."""
        kinds = [self.kinds.get(end) if isinstance(end, str) else None for end in ends]
        rows = [(row.name, (row.head, row.tail)) for row in self.schema.relations]
        return [name for name, own in rows if all(a in (None, b) for a, b in zip(kinds, own, strict=True))]

    def variable(self, near=None):
        """Return a variable, whose type has relations to that of another one."""
        pairs = [pair for row in self.schema.relations for pair in ((row.head, row.tail), (row.tail, row.head))]
        kinds = [far for own, far in pairs if self.kinds.get(near) == own] or self.schema.type_names
        made = Variable(self.fresh("x"), self.chance.choice(kinds) if self.flip(0.6) else None)
        self.kinds[made.name] = made.type
        return made

    def pattern(self, shared=(), size=None, depth=1, scope=None, conditions=None):
        """A pattern of connected new variables, tied to shared ones if there are any."""
        new, known, edges = [], list(shared), []
        for _ in range(self.some(1, 1, 2, 2, 3) if size is None else size):
            near = self.chance.choice(known) if known and self.flip(0.93) else None
            new.append(self.variable(near))
            if near:
                edges.append(self.edge(near, new[-1].name))
            known.append(new[-1].name)
        if known and self.flip(0.35):
            edges.append(self.edge(self.chance.choice(known), self.nodes(), 0.1))
        if len(known) > 1 and self.flip(0.15):
            edges.append(self.edge(*self.chance.sample(known, 2)))
        pattern = Pattern(tuple(new), tuple(edges))
        outer = scope or Scope(self.schema)
        optional = ()
        if depth and self.flip(0.15):
            optional = (self.pattern((self.chance.choice(known),), 1, 0, outer.inside(pattern)),)
        pattern = Pattern(pattern.variables, pattern.edges, (), optional)
        inside = outer.inside(pattern)
        count = self.some(0, 0, 1, 1, 2) if conditions is None else conditions
        where = tuple(self.formula(inside, depth) for _ in range(count))
        return Pattern(pattern.variables, pattern.edges, where, optional)

    # Expressions

    def attribute(self, scope, kinds=None):
        """An attribute of any variable or edge in scope."""
        while True:
            owner = self.chance.choice([*scope.types, *scope.edges])
            options = ("relation", *self.schema.edge_attributes) if owner in scope.edges else self.node_attributes()
            part = Attribute(owner, self.chance.choice(options))
            if scope.kind(part) in (kinds or ("text", "integer", "number", "boolean", "date")):
                return part
            if self.flip(0.02):
                raise AttributeError

    def node_attributes(self):
        return ("name", self.some("name", "name", "key"), "type", *self.schema.attribute_types)

    def expression(self, scope, kinds=None, depth=1):
        """An attribute, or something computed of attributes."""
        if self.flip(0.6) or not depth:
            return self.attribute(scope, kinds)
        match self.chance.randrange(6):
            case 0:
                return Call(self.some("year", "month", "day"), (self.attribute(scope, ("date",)),))
            case 1:
                return Call(self.some("length", "lower", "number"), (self.attribute(scope, ("text",)),))
            case 2:
                return Call("-", (self.attribute(scope, ("date",)), self.attribute(scope, ("date",))))
            case 3:
                return Call(self.some("abs", "round"), (self.attribute(scope, NUMERIC),))
            case 4:
                right = self.some(Value(2), Value(0.5), self.attribute(scope, NUMERIC))
                return Call(self.some("+", "-", "*", "/"), (self.attribute(scope, NUMERIC), right))
            case _:
                return Call(self.some("+", "-"), (self.expression(scope, NUMERIC, 0), Value(1)))

    def aggregate(self, scope, over=None):
        owner = self.chance.choice([*scope.types, *scope.edges])
        match self.chance.randrange(6):
            case 0:
                return Aggregate("count", None, False, over)
            case 5:
                return Aggregate("exists", self.some(None, Var(owner), self.expression(scope)), False, over)
            case 1:
                return Aggregate("count", Var(owner), self.flip(), over)
            case 2:
                return Aggregate("count", self.expression(scope), self.flip(), over)
            case 3:
                return Aggregate(self.some("sum", "avg"), self.expression(scope, NUMERIC, 0), self.flip(0.2), over)
            case _:
                part = self.expression(scope, ("text", "integer", "number", "date"), 0)
                return Aggregate(self.some("min", "max"), part, False, over)

    # Formulas

    def formula(self, scope, depth=1):
        names = list(scope.types)
        choice = self.chance.randrange(16 if depth else 8)
        if choice < 4:
            part = self.expression(scope, (*LITERALS,))
            return self.literal_test(part, scope)
        match choice:
            case 4:
                left = self.expression(scope)
                right = self.expression(scope, (scope.kind(left),))
                signs = (*COMPARISONS, "contains") if scope.kind(left) == "text" else COMPARISONS
                return Compare(left, self.chance.choice(signs), right)
            case 5:
                return Missing(self.attribute(scope, (*LITERALS,)))
            case 6:
                return Compare(Var(self.chance.choice(names)), self.some("=", "!="), self.nodes())
            case 7:
                return Compare(Var(self.chance.choice(names)), self.some("=", "!="), Var(self.chance.choice(names)))
            case 8 | 9:
                inner = self.pattern((self.chance.choice(names),), self.some(0, 1, 1, 2), 0, scope)
                return Exists(inner) if self.flip() else Not(Exists(inner))
            case 10:
                return Not(self.formula(scope, 0))
            case 11:
                return Either(tuple(self.formula(scope, self.some(0, 1)) for _ in range(2)))
            case 12:
                parts = tuple(self.formula(scope, 0) for _ in range(2))
                return Either((All(parts), self.formula(scope, 0)))
            case 13:
                over = self.pattern((self.chance.choice(names),), 1, 0, scope, self.some(0, 1))
                part = self.aggregate(scope.inside(over), over)
                return self.literal_test(part, scope)
            case 14:
                left = self.expression(scope)
                query = self.value_query(scope.kind(left))
                return Compare(left, self.chance.choice(COMPARISONS), Subquery(query))
            case _:
                left = self.some(Var(self.chance.choice(names)), self.expression(scope))
                query = self.value_query(scope.kind(left), distinct=True)
                test = Compare(left, "in", Subquery(query))
                return test if self.flip() else Not(test)

    def literal_test(self, part, scope):
        kind = scope.kind(part)
        signs = (*COMPARISONS, "contains", "starts with", "ends with") if kind in ("text", "list") else COMPARISONS
        return Compare(part, self.chance.choice(signs), Value(self.chance.choice(LITERALS[kind])))

    def value_query(self, kind, distinct=False):
        """A query with one column of a kind."""
        pattern = self.pattern((), self.some(1, 2), 0)
        scope = Scope(self.schema).inside(pattern)
        if kind in NUMERIC and self.flip() and not distinct:
            part = Aggregate(self.some("avg", "min", "max", "count"), self.expression(scope, NUMERIC, 0))
            return Query((Column(part),), pattern)
        part = Var(self.chance.choice(list(pattern.types))) if kind == "node" else self.expression(scope, (kind,), 0)
        if distinct:
            return Query((Column(part),), pattern, distinct=True)
        return Query((Column(part),), pattern, order=(Order(part, self.flip()),), first=1)

    # Queries

    def query(self, form):
        self.odd = self.chance.sample(ODD_VARIABLES, len(ODD_VARIABLES)) if self.has_odd_names else []
        pattern = self.pattern(conditions=self.some(0, 1) if form == "walks" else None)
        scope = Scope(self.schema).inside(pattern)
        names = list(scope.types)
        columns = tuple(
            Column(Var(self.chance.choice(names)) if self.flip(0.4) else self.expression(scope))
            for _ in range(self.some(1, 1, 2, 3))
        )
        columns = tuple(dict.fromkeys(columns))
        match form:
            case "nodes":
                return Query((Column(Var(self.chance.choice(names))),), pattern, distinct=True)
            case "columns":
                return Query(columns, pattern, distinct=self.flip())
            case "order":
                return Query(columns, pattern, self.flip(), order=self.order(scope))
            case "first":
                return Query(
                    columns,
                    pattern,
                    self.flip(),
                    order=self.order(scope),
                    first=self.some(1, 2, 3),
                    skip=self.some(0, 0, 1),
                )
            case "ties":
                order = (Order(self.expression(scope), self.flip()),)
                return Query(columns, pattern, True, order=order, first=self.some(1, 1, 2), ties=True)
            case "aggregate":
                parts = tuple(Column(self.aggregate(scope)) for _ in range(self.some(1, 2)))
                return Query(parts, pattern)
            case "group" | "having" | "most":
                return self.grouped(form, pattern, scope)
            case "set operation":
                return self.combined()
            case "difference":
                sides = [Subquery(self.value_query("integer")) for _ in range(2)]
                return Query((Column(Call("-", tuple(sides))),))
            case "walks":
                edges = tuple(self.edge(*self.chance.sample(names, 2)) for _ in range(len(names) > 1))
                shown = tuple(Column(Var(name)) for name in pattern.types)
                walk = Pattern(pattern.variables, (*pattern.edges, *edges), pattern.where, pattern.optional)
                return Query(shown, walk)

    def order(self, scope):
        return tuple(Order(self.expression(scope), self.flip()) for _ in range(self.some(1, 1, 2)))

    def grouped(self, form, pattern, scope):
        names = list(scope.types)
        keys = tuple(
            Var(self.chance.choice(names)) if self.flip() else self.expression(scope) for _ in range(self.some(1, 1, 2))
        )
        parts = [Column(key) for key in keys] + [Column(self.aggregate(scope)) for _ in range(self.some(0, 1, 2))]
        owned = [key for key in keys if isinstance(key, Var)]
        if owned and self.flip():
            parts.append(Column(Attribute(owned[0].name, self.attribute(scope).name)))
        parts = list(dict.fromkeys(parts))
        self.chance.shuffle(parts)
        having = (self.literal_test(self.aggregate(scope), scope),) if form == "having" else ()
        if having and self.flip(0.2):
            having = (Not(having[0]),)
        order, first, ties = (), None, False
        if form == "most":
            order, first, ties = (Order(self.aggregate(scope), self.flip(0.8)),), self.some(1, 2), self.flip()
        return Query(tuple(parts), pattern, group=keys, having=having, order=order, first=first, ties=ties)

    def combined(self):
        """Two queries with columns of the same kinds, none of which is missing."""
        sides = []
        kind = self.some("node", "text", "integer", "date")
        for _ in range(2):
            pattern = self.pattern((), self.some(1, 2), 0, conditions=self.some(0, 1))
            scope = Scope(self.schema).inside(pattern)
            part = Var(self.chance.choice(list(pattern.types))) if kind == "node" else self.attribute(scope, (kind,))
            present = Not(Missing(part))
            pattern = Pattern(pattern.variables, pattern.edges, (*pattern.where, present), pattern.optional)
            sides.append(Query((Column(part),), pattern, distinct=self.flip()))
        return Combined(self.some("union", "intersect", "except"), *sides)


FORMS = (
    "nodes", "columns", "order", "first", "ties", "aggregate", "group", "having", "most", "set operation", "difference",
    "walks",
)  # fmt: skip


def random_query(maker, form):
    """A query of a form that fits the schema."""
    while True:
        try:
            query = maker.query(form)
            check(query, maker.schema)
        except (SchemaError, AttributeError, TypeError):  # an attribute of a kind that the base does not have
            continue
        return query


assert comparable("integer", "number")
