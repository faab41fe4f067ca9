"""A query in plain words: "huts opened before 1920", "the five rivers with the highest length".

Relations use their display and inverse texts. Attributes use their unit and their label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeVar

from clew.answering.queries.kinds import CALL_KINDS, Scope
from clew.answering.queries.linking import below
from clew.answering.queries.schema_words import (
    PREPOSITIONS,
    attribute_words,
    conditions_in_words,
    date_part_in_words,
    is_countable,
    is_participle,
    of_many,
    value_in_words,
    verb_of,
    without_kind,
)
from clew.core import query as ql
from clew.core.nouns import plural, singular
from clew.core.schema import Relation, Schema, label_of

SIGNS = {"=": "is", "!=": "is not", "<": "is less than", "<=": "is at most", ">": "is more than", ">=": "is at least"}
SIGNS |= {"contains": "contains", "starts with": "starts with", "ends with": "ends with", "in": "is one of"}
SIGNS |= {"matches": "matches"}
COUNTS = {"=": "exactly", "!=": "not exactly", "<": "fewer than", "<=": "at most", ">": "more than", ">=": "at least"}
FUNCTIONS = {"sum": "total", "avg": "average", "min": "lowest", "max": "highest"}
OPERATORS = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
OTHER = ("other", "third", "fourth", "fifth")
"""Words for the second and further nodes of a type."""
Q = TypeVar("Q", bound=ql.AnyQuery)
MAX_NAMES = 3
"""Maximum number of nodes of a constant to name. The phrase counts the remaining nodes."""


def words(query: ql.AnyQuery, schema: Schema, name: Callable[[str], str] = str) -> str:
    """Return the query as a phrase without a full stop. `name` gives the name of a node by its key."""
    query, schema = without_reading(query, schema)
    return Words(schema, name).query(query)


def without_reading(query: Q, schema: Schema) -> tuple[Q, Schema]:
    """Return a query without functions that read texts, and a schema in which these attributes have the read kinds."""

    def change(part: Any) -> Any:
        return part.arguments[0] if isinstance(part, ql.Call) and part.function in ql.READING else part

    read = {
        part.arguments[0].name: CALL_KINDS.get(part.function, "number")
        for part in ql.walk(query)
        if change(part) is not part and isinstance(part.arguments[0], ql.Attribute)
    }
    return ql.rewrite(query, change), replace(schema, attribute_types={**schema.attribute_types, **read})


def kind_in_words(schema: Schema, type: str | None) -> str:
    """Return the word for one node of a type."""
    named = next((one for one in schema.node_types if one.name == type), None)
    return "thing" if type is None else label_of(singular((named.display if named else "") or type))


def counted_in_words(schema: Schema, counted: ql.Aggregate, amount: int) -> str:
    """Return the noun for a count over a pattern: the type at the end of its edge if there is only one."""
    variable = counted.argument.name if isinstance(counted.argument, ql.Var) else ""
    pattern = counted.over or ql.Pattern()
    edge = next((edge for edge in pattern.edges if variable in edge.variables), None)
    rows = schema.relation_rows(edge.relation) if edge and edge.relation else ()
    ends = {row.tail if edge and edge.tail == variable else row.head for row in rows}
    ends = {kind for kind in (pattern.types.get(variable),) if kind} or ends
    kind = kind_in_words(schema, ends.pop()) if len(ends) == 1 else label_of(edge.relation or "") if edge else "thing"
    return kind if amount == 1 else plural(kind)


def asked_of(schema: Schema, row: Relation, name: str) -> str:
    """Return how people ask for the many heads of a relation's edges to a named node: "have Polydactyly"."""
    verb, noun = _verb(schema, row.display or row.name, row.tail)
    return f"{verb} {name}{noun}"


def hierarchy_in_words(rows: Sequence[tuple[Relation, bool]], *, many: bool = False) -> str:
    """Return a phrase for the nodes that a name includes besides itself. Rows state whether to go upward."""
    it = "these" if many else "it"
    said: dict[str, None] = {}
    for row, upward in rows:
        words = label_of(row.display or row.name)
        if "part" in words.split() or "parts" in words.split():
            told = f"what {it} is part of" if upward else f"a part of {it}"
        elif words.endswith((" in", " within", " at", " on")):
            told = f"what {it} is in" if upward else f"a place {words.split()[-1]} {it}"
        elif {"a", "kind", "subclass", "class", "type", "subtype", "broader", "narrower"} & {*words.split()}:
            told = f"what {it} is a kind of" if upward else f"a kind of {it}"
        else:
            told = f"anything {'above' if upward else 'below'} {it}"
        said[told] = None
    return " or ".join(said)


def _verb(
    schema: Schema, label: str, other: str | None, *, negated: bool = False, one: bool = False
) -> tuple[str, str]:
    """Return the verb for a relation to a node of another type, and a suffix after its name: "have … as director"."""
    kind = kind_in_words(schema, other)
    bare = without_kind(label, kind)
    _, rest, form = verb_of(bare)
    if form == "noun" and rest.strip() not in (kind, plural(kind)):
        return of_many("has", negated=negated, one=one), f" as{rest}"
    if form == "noun":  # a label like the type at its end: "have the origin Japan"
        return f"{of_many('has', negated=negated, one=one)} the{rest}", ""
    return of_many(bare, negated=negated, one=one), ""


@dataclass(frozen=True)
class VerbClause:
    """A verb and its other participant. It is inactive if the other participant is the subject."""

    verb: str
    other: str
    is_long: bool = False
    is_active: bool = True


Called = ql.Named | ql.Nodes | ql.Subquery
"""What a variable may be called by in words."""


class Words:
    """Converts queries over a schema to words. `name` gives the name of a node by its key."""

    def __init__(self, schema: Schema, name: Callable[[str], str] = str) -> None:
        self.schema, self.name = schema, name

    def query(self, query: ql.AnyQuery) -> str:
        """Return a query as a phrase."""
        if isinstance(query, ql.Combined):
            joint = {"union": "or", "intersect": "that are also among", "except": "but not"}[query.operation]
            return f"{self.query(query.left)}, {joint} {self.query(query.right)}"
        return self.phrase(query.pattern).query(query)

    def phrase(self, pattern: ql.Pattern) -> Phrase:
        """Return the words for a pattern."""
        return Phrase(self, pattern, Scope(self.schema))

    def kind(self, type: str | None, *, one: bool = False) -> str:
        """Return the noun for one or many nodes of a type."""
        kind = kind_in_words(self.schema, type)
        return kind if one else plural(kind)

    def names(self, constant: Called) -> list[str]:
        """Return the names of a constant. For many nodes, name the first and count the remaining nodes."""
        if isinstance(constant, ql.Named):
            return [constant.text]
        if isinstance(constant, ql.Subquery):
            return [self.query(constant.query)]
        names = list(dict.fromkeys(map(self.name, constant.keys[: MAX_NAMES + 1])))
        if len(constant.keys) > MAX_NAMES and len(names) > 1:
            names = [*names[:MAX_NAMES], f"{len(constant.keys) - MAX_NAMES:,} more"]
        return names

    def constant(self, constant: Called, word: str = "or") -> str:
        """Return the names of a constant in a row."""
        return listed(self.names(constant), word)

    def selected(self, part: ql.Aggregate, *, descending: bool) -> str:
        """Return a phrase for the most nodes, or the highest total or average, of a pattern: "most orders from Leith".

        Empty if the first edge of the pattern says it all.
        """
        over, argument = part.over or ql.Pattern(), part.argument
        variable = next(iter(ql.names_used(argument)), "") if argument is not None else ""
        is_plain = part.function in ("count", "sum", "avg") and not over.optional and variable in over.types
        if not is_plain or not over.edges or (part.function == "count" and len(over.edges) == 1 and not over.where):
            return ""
        edge, *rest = over.edges
        used = {variable}.union(*(one.variables for one in rest), *map(ql.names_used, over.where))
        own = tuple(one for one in over.variables if one.name in used)
        is_own = used <= {one.name for one in own} and edge.is_single and edge.directed
        if not is_own or edge.name or edge.relation is None or len({*edge.variables} - used) != 1:
            return ""
        if variable in edge.variables:
            nodes = self.query(
                ql.find(variable, over.types.get(variable), replace(over, variables=own, edges=tuple(rest)))
            )
        elif over.where or len(over.edges) != 2 or len(own) != 2:
            return ""
        else:
            nodes = " of ".join(
                plural(kind_in_words(self.schema, one.type))
                for one in sorted(own, key=lambda one: one.name != variable)
            )
        row = self.schema.relation_rows(edge.relation)[0]
        if sum({one.head, one.tail} == {row.head, row.tail} for one in self.schema.relations) > 1:
            nodes += f" by {row.label}"
        if part.function != "count":
            inner = argument.arguments[0] if isinstance(argument, ql.Call) else argument
            label = attribute_words(inner.name)[0] if isinstance(inner, ql.Attribute) else "amount"
            said = {"sum": "total", "avg": "average"}[part.function]
            return f"the {'highest' if descending else 'lowest'} {said} {label} of {nodes}"
        return f"the {'most' if descending else 'fewest'} {nodes}"

    def best(self, order: ql.Order, *, one: bool = False) -> str:
        """Return the predicate of nodes with the highest or lowest value: "have the most beds", "were opened first"."""
        have, be, most = "has" if one else "have", "is" if one else "are", "most" if order.descending else "fewest"
        expression = order.expression
        if isinstance(expression, ql.Call) and expression.function == "row":
            return f"{be} {'last' if order.descending else 'first'} in the table"
        if isinstance(expression, ql.Call) and expression.function == "number":
            expression = expression.arguments[0]
        if isinstance(expression, ql.Attribute):
            label, unit = attribute_words(expression.name)
            kind = self.schema.attribute_types.get(expression.name)
            if is_participle(label, kind):
                return f"{'was' if one else 'were'} {label} {'last' if order.descending else 'first'}"
            if is_countable(label) and kind in ("integer", "number") and not unit:
                return f"{have} the {most} {label}"
            ends = ("latest", "earliest") if kind == "date" else ("highest", "lowest")
            return f"{have} the {ends[not order.descending]} {label}"
        over = expression.over if isinstance(expression, ql.Aggregate) else None
        edge = over.edges[0] if over is not None and over.edges else None
        if edge is None or edge.relation is None or not isinstance(expression, ql.Aggregate):
            return f"{have} the {most} connections"
        if selected := self.selected(expression, descending=order.descending):
            return f"{have} {selected}"
        row = self.schema.relation_rows(edge.relation)[0]
        counted = expression.argument.name if isinstance(expression.argument, ql.Var) else ""
        is_head = edge.tail == counted
        of = expression.over.types.get(counted) if expression.over else None
        label, kinds = row.display or row.name, counted_in_words(self.schema, expression, 2)
        kind = singular(kinds) if is_head else kind_in_words(self.schema, row.tail)
        first, rest, form = verb_of(without_kind(label, kind))
        if is_head and (form == "noun" or (first == "has" and rest)):
            return f"{have} the {most} {plural(rest.strip())}"
        own, other = (row.head, row.tail) if is_head else (row.tail, row.head)
        if is_head or row.inverse:
            said, _ = _verb(self.schema, label if is_head else row.inverse, of or other, one=one)
            return f"{said} the {most} {kinds}"
        if form == "noun" or (first == "has" and rest):
            return f"{be} the{rest} of the {most} {kinds}"
        if form == "be" and rest.endswith((" in", " at", " of", " within")):
            return f"{have} the {most} {kinds}"
        verb = of_many(without_kind(label, kind_in_words(self.schema, own)))
        return f"{be} the one{'' if one else 's'} that the {most} {kinds} {verb}"


class Phrase:
    """The words for one pattern. Each edge is described once, at the variable from which it is reached first."""

    def __init__(
        self, words: Words, pattern: ql.Pattern, outer: Scope, called: Mapping[str, str] | None = None
    ) -> None:
        self.words, self.pattern, self.outer = words, pattern, outer
        self.called: dict[str, str] = dict(called or {})
        """Names of variables that stand for one node."""
        self.scope = outer.inside(pattern)
        self.edges, self.where = list(pattern.edges), list(pattern.where)
        self.seen: set[str] = set(outer.types)
        self.constants: set[str | ql.Constant] = {end for edge in self.edges for end in (edge.head, edge.tail)}
        self.constants -= set(pattern.types)
        self.tells_kinds = True
        """Whether to mention that a name also includes the nodes below it."""

    # Queries

    def query(self, query: ql.Query) -> str:
        """Return a query with this pattern as a phrase."""
        roots = self.roots(query)
        shown = [column.expression for column in query.columns]
        if query.is_grouped and query.group:
            return self.grouped(query, roots)
        if not roots:
            return " and ".join(self.value(part) for part in shown) + self.left()
        root = roots[0]
        self.name_constants(root)
        is_one = query.first == 1 and not query.order and not query.ties
        described = self.described(root, one=is_one) + self.left()
        if query.order and query.first is not None:
            described = self.chosen(query, described, root)
        elif query.first is not None:
            described = f"{_number(query.first)} {described}"
        elif query.order:
            described += f", sorted by {listed(map(self.sorting, query.order), 'and')}"
        described += f", after the first {_number(query.skip)}" if query.skip else ""
        if shown == [ql.Var(root)]:
            return described
        if len(shown) == 1 and isinstance(shown[0], ql.Aggregate) and shown[0].function == "exists":
            return f"whether there are {described}"
        return f"{self.columns(shown, root)} of {described}"

    def roots(self, query: ql.Query) -> list[str]:
        """Return the variables that a query is about, the most important first."""
        used = [name for part in (*query.group, *query.outputs) for name in _names(part)]
        own = self.pattern.types
        named = [name for name in used if name in own] or [name for name in used if name in self.scope.types]
        return list(dict.fromkeys((*named, *own)))

    def name_constants(self, root: str) -> None:
        """Call variables that only stand for a name, and have no edges, by this name."""
        ends = {root, *(end for edge in self.edges for end in edge.variables)}
        for name in self.pattern.types:
            if name not in ends and (found := self.named(name)):
                self.called[name] = self.words.constant(found[0])

    def left(self) -> str:
        """Return the phrase for the parts of the pattern that no described variable leads to."""
        texts = []
        while (name := next((name for name in self.pattern.types if name not in self.seen), None)) is not None:
            texts.append(self.described(name))
        text = f", combined with {listed(texts, 'and')}" if texts else ""
        if facts := self.facts():
            text += f", where {listed(facts, 'and')}"
        optional = [Phrase(self.words, part, self.scope, self.called).whole() for part in self.pattern.optional]
        return text + "".join(f", if known with {part}" for part in optional)

    def facts(self) -> list[str]:
        """Return sentences for the edges and conditions that are not described yet."""
        edges, where, self.edges, self.where = self.edges, self.where, [], []
        return [*map(self.fact, edges), *map(self.formula, where)]

    def fact(self, edge: ql.Edge) -> str:
        """Return a sentence for an edge whose ends are described elsewhere."""
        head, tail = (
            self.value(ql.Var(end)) if isinstance(end, str) else self.words.constant(end)
            for end in (edge.head, edge.tail)
        )
        clause = self.clause(edge, edge.head if isinstance(edge.head, str) else "", tail, one=True)
        if isinstance(edge.head, str) or edge.relation is None:
            return f"{head} {clause.verb} {clause.other}"
        row = self.words.schema.relation_rows(edge.relation)[0]
        return f"{head} {_verb(self.words.schema, row.display or row.name, row.tail, one=True)[0]} {tail}"

    def columns(self, shown: list[ql.Expression], root: str) -> str:
        """Return the phrase for the columns: attributes, nodes and aggregates."""
        number = [ql.Aggregate("count"), ql.Aggregate("count", ql.Var(root)), ql.Aggregate("count", ql.Var(root), True)]
        parts = []
        for part in shown:
            match part:
                case ql.Aggregate() if part in number:
                    parts.append("the number")
                case ql.Attribute(owner, name) if owner == root:
                    parts.append(f"the {attribute_words(name)[0]}")
                case ql.Aggregate(_, ql.Attribute(owner, name)) if owner == root:
                    parts.append(self.aggregate(part, label_of(name)))
                case ql.Var(name) if name == root:
                    parts.append("the names" if len(shown) > 1 else "those")
                case _:
                    parts.append(self.value(part))
        return listed(parts, "and")

    def chosen(self, query: ql.Query, described: str, root: str) -> str:
        """Return the first rows of an order: "the five rivers with the highest length"."""
        best, many = " and ".join(map(self.extreme, query.order)), self.noun(root)
        shown = self.noun(root, one=True) if query.first == 1 else f"{_number(query.first or 0)} {many}"
        return f"the {shown} {best}" + ("" if described == many else f" among {described}")

    def grouped(self, query: ql.Query, roots: list[str]) -> str:
        """Return groups: "the number of concerts for each stadium", "the most common colour of dogs"."""
        keys = [key for key in query.group if isinstance(key, ql.Var) and key.name in self.scope.types]
        shown = [column.expression for column in query.columns]
        told = [self.value(part) for part in shown if part not in query.group]
        values = [_bare(self.value(key)) for key in query.group if key not in keys]
        root = keys[0].name if keys else roots[0]
        is_simple = (
            not (self.pattern.where or self.pattern.optional)
            and len(self.pattern.edges) == len(self.pattern.types) - 1 < 2
            and all(edge.is_single for edge in self.pattern.edges)
        )
        self.name_constants(root)
        place = self.described(root) + self.left()
        with_values = f", with {listed(told, 'and')}" if told else ""
        if query.order and query.first is not None and len(query.group) == 1:
            if keys:
                place = self.noun(root) if is_simple else place
                return self.chosen(query, place, root) + with_values + self.having(query)
            few = "" if query.first == 1 else f"{_number(query.first)} "
            by = query.order[0]
            if isinstance(by.expression, ql.Aggregate) and by.expression.function == "count":
                value = label_of(query.group[0].name) if isinstance(query.group[0], ql.Attribute) else values[0]
                common = "most common" if by.descending else "rarest"
                return f"the {few}{common} {value} of {place}" + with_values + self.having(query)
            return f"the {few}{listed(values, 'and')} {self.extreme(by)}, of {place}" + self.having(query)
        each = listed([*(self.noun(key.name, one=True) for key in keys), *values], "and")
        text = f"{listed(told, 'and')} for each {each}" if told else f"each {each}"
        text += "" if is_simple else f", of {place}"
        text += self.having(query)
        text += f", sorted by {listed(map(self.sorting, query.order), 'and')}" if query.order else ""
        text += f", the first {_number(query.first)}" if query.first is not None else ""
        return text + (f", after the first {_number(query.skip)}" if query.skip else "")

    def having(self, query: ql.Query) -> str:
        """Return the conditions on groups."""
        texts = []
        for part in query.having:
            match part:
                case ql.Compare(ql.Aggregate("count") as counted, sign, ql.Value() as value):
                    texts.append(f"with {COUNTS[sign]} {self.value(value)} {self.counted(counted)}")
                case _:
                    texts.append(f"where {self.formula(part)}")
        return f" {' and '.join(texts)}" if texts else ""

    def extreme(self, order: ql.Order) -> str:
        """Return the phrase for the highest or lowest value of the first rows."""
        expression, descending = order.expression, order.descending
        if isinstance(expression, ql.Call) and expression.function == "row":
            return f"that is {'last' if descending else 'first'} in the table"
        if isinstance(expression, ql.Aggregate) and (part := self.words.selected(expression, descending=descending)):
            return f"with {part}"
        if isinstance(expression, ql.Aggregate) and expression.function == "count":
            return f"with the {'most' if descending else 'fewest'} {self.counted(expression)}"
        is_date = self.scope.kind(expression) == "date"
        most, least = ("latest", "earliest") if is_date else ("highest", "lowest")
        value = attribute_words(expression.name)[0] if isinstance(expression, ql.Attribute) else self.value(expression)
        return f"with the {most if descending else least} {value.removeprefix('the ')}"

    def sorting(self, order: ql.Order) -> str:
        """Return an order key."""
        expression = order.expression
        value = label_of(expression.name) if isinstance(expression, ql.Attribute) else self.value(expression)
        return f"{value}{' from the highest down' if order.descending else ''}"

    # Things

    def noun(self, name: str, *, one: bool = False) -> str:
        """Return the noun for one or many nodes of a variable."""
        return self.words.kind(self.scope.types.get(name), one=one)

    def sentence(self, name: str, *, one: bool) -> str:
        """Return the phrase after a number: "diseases have X", or "huts opened before 1920"."""
        again = Phrase(self.words, self.pattern, self.outer, self.called)
        predicate = again.described(name, one=one, finite=True)
        own = [part for part in self.own(name) if self.absence(part, name, one=one) is None]
        is_noun = bool(self.limits(own, name)) or predicate.startswith("that ")
        return self.described(name, one=one) if is_noun else f"{self.noun(name, one=one)} {predicate}".strip()

    def described(self, name: str, *, one: bool = False, finite: bool = False) -> str:
        """Describe a variable by its type, its conditions, and the variables it leads to.

        If `finite`, return only the predicate: "have X", "were opened before 1920".
        """
        alike = [other for other in self.seen - self.constants if self.noun(other) == self.noun(name)]
        if name not in self.seen and alike:
            self.called[name] = f"the {OTHER[min(len(alike), len(OTHER)) - 1]} {self.noun(name, one=True)}"
        self.seen.add(name)
        own = self.own(name)
        self.where = [part for part in self.where if part not in own]
        beside = self.beside(name)
        clauses: list[VerbClause] = []
        while edge := next((edge for edge in self.edges if name in edge.variables), None):
            self.edges.remove(edge)
            clauses.append(self.clause(edge, name, self.other(edge, name), one=one))
        absent = [(part, clause) for part in own if (clause := self.absence(part, name, one=one)) is not None]
        clauses += [clause for _, clause in absent]
        clauses.sort(key=lambda clause: clause.is_long)  # clauses that end in a name first
        limits = beside + self.limits([part for part in own if all(part is not other for other, _ in absent)], name)
        verbs = []
        for (verb, is_active), same in groupby(clauses, key=lambda clause: (clause.verb, clause.is_active)):
            others = [clause.other for clause in same]
            told = f"{verb} {(' or ' if ' not ' in f' {verb} ' else ' and ').join(others)}".strip()
            verbs += [told] if is_active else [f"{other} {verb}" for other in others]
        rest = [
            part for part in self.where if ql.names_used(part) & self.pattern.bound <= self.seen | {*self.scope.edges}
        ]
        self.where = [part for part in self.where if part not in rest]
        behind = [f"where {listed(map(self.formula, rest), 'and')}"] if rest else []
        if finite and all(clause.is_active for clause in clauses):
            return " ".join([" and ".join([*(_finite(limit, one=one) for limit in limits), *verbs]), *behind])
        whole, be = " and ".join(verbs), "is " if one else "are "
        is_short = len(verbs) == 1 and not limits and whole.startswith(be)
        whole = whole.replace(f"{be}the {self.noun(name, one=one)} of ", f"{be}of ", 1) if is_short else whole
        is_short = is_short and not whole.removeprefix(be).startswith(("not ", "a ", "an ", "the "))
        done = [whole.removeprefix(be) if is_short else f"that {whole}"] if verbs else []
        kind = [] if finite else ["other", self.noun(name)] if alike else [self.noun(name, one=one)]
        return " ".join([*kind, " and ".join(limits), *done, *behind]).replace("  ", " ").strip()

    def beside(self, name: str) -> list[str]:
        """Return the phrase for the rows of a table that a row is next to: "right after rows that …"."""
        for part in self.where:
            match part:
                case ql.Compare(
                    ql.Call("row", (ql.Var(own),)),
                    "=",
                    ql.Call("+" | "-" as sign, (ql.Call("row", (ql.Var(other),)), ql.Value(1))),
                ) if own == name and other not in self.seen:
                    self.where.remove(part)
                    side = "after" if sign == "+" else "before"
                    match self.own(other):
                        case [ql.Compare(ql.Var(), "in", ql.Subquery(query)) as among]:
                            self.where.remove(among)
                            self.seen.add(other)
                            return [f"right {side} {self.words.query(query)}"]
                    return [f"right {side} {self.described(other)}"]
        return []

    def own(self, name: str) -> list[ql.Formula]:
        """Return the conditions on only one variable."""
        names = {*self.scope.types, *self.scope.edges}
        return [part for part in self.where if ql.names_used(part) & names == {name}]

    def limits(self, formulas: Sequence[ql.Formula], name: str) -> list[str]:
        """Return the phrases for conditions on a variable. They come before its edges to avoid ambiguity."""
        plain: list[ql.Compare] = []
        first: list[str] = []
        last: list[str] = []
        for part in formulas:
            for inner in part.parts if isinstance(part, ql.All) else (part,):
                match inner:
                    case ql.Compare(
                        ql.Attribute(owner), "=" | "!=" | "<" | "<=" | ">" | ">=" | "contains", ql.Value()
                    ) if owner == name:
                        plain.append(inner)
                    case ql.Compare(ql.Var(owner), "=", ql.Named() | ql.Nodes() as constant) if owner == name:
                        first.append(f"among {self.words.constant(constant, 'and')}")
                    case ql.Compare(ql.Var(owner), "!=", ql.Named() | ql.Nodes() as constant) if owner == name:
                        last.append(f"other than {self.words.constant(constant, 'and')}")
                    case ql.Compare(
                        ql.Call(
                            "month" | "day" as unit,
                            (ql.Attribute(owner, stored) | ql.Call("first_date", (ql.Attribute(owner, stored),)),),
                        ),
                        "=",
                        ql.Value(int(number)),
                    ) if owner == name:
                        last.append(date_part_in_words(stored, unit, number))
                    case _:
                        last.append(self.condition(inner, name))
        return [*first, *conditions_in_words(plain, self.words.schema), *last]

    def other(self, edge: ql.Edge, start: str) -> str:
        """Return the phrase for the other end of an edge."""
        end = edge.tail if edge.head == start else edge.head
        found = self.named(end)
        if found is not None:
            named, more = self.words.constant(found[0]), self.kinds(edge, start, *found)
            return f"{named} or {more}" if more and self.tells_kinds else named
        assert isinstance(end, str)
        if end in self.seen:
            return self.called.get(end) or f"the same {self.noun(end, one=True)}"
        return self.described(end)

    def kinds(
        self, edge: ql.Edge, start: str | ql.Constant, constant: Called, rows: list[tuple[Relation, bool]]
    ) -> str:
        """Return a phrase for the nodes that a constant at the end of an edge includes besides itself.

        Empty for "a kind of it", because kinds of a kind are already kinds of it.
        """
        rows = [*rows, *self.followed(edge, start)]
        more = hierarchy_in_words(rows, many=len(self.words.names(constant)) > 1)
        return "" if "kind" in more and rows[0][0].name == edge.relation else more

    def hierarchies(self) -> str:
        """Return the phrase for the first constant that includes more nodes than its own."""
        for edge in self.pattern.edges:
            for end, start in ((edge.head, edge.tail), (edge.tail, edge.head)):
                found = self.named(end) if edge.least and isinstance(start, str) else None
                if found is not None and (more := self.kinds(edge, start, *found)):
                    return more
        return ""

    def named(self, end: str | ql.Constant) -> tuple[Called, list[tuple[Relation, bool]]] | None:
        """Return the constant at or above an end, and the hierarchies between them, or None."""
        if not isinstance(end, str):
            return end, []
        for part in self.where:
            match part:
                case ql.Compare(ql.Var(name), "=" | "in", ql.Named() | ql.Nodes() | ql.Subquery() as constant) if (
                    name == end and name not in self.seen and _is_named(constant)
                ):
                    self.where.remove(part)
                    self.seen.add(end)
                    self.constants.add(end)
                    return constant, []
        for edge in self.edges:
            if edge.least == 0 and edge.most is None and edge.relation and end in edge.variables:
                upper = edge.tail if edge.head == end else edge.head
                self.edges.remove(edge)
                found = self.named(upper)
                if found is None:
                    self.edges.append(edge)
                    return None
                self.constants.add(end)
                self.seen.add(end)
                row = self.words.schema.relation_rows(edge.relation)[0]
                return found[0], [*found[1], (row, (below(row) == "in") != (edge.head == end))]
        return None

    def followed(self, edge: ql.Edge, start: str | ql.Constant) -> list[tuple[Relation, bool]]:
        """Return the hierarchy that an edge follows all the way, and whether upward."""
        if edge.is_single or edge.least != 1 or edge.relation is None or edge.most is not None:
            return []
        row = self.words.schema.relation_rows(edge.relation)[0]
        return [(row, (below(row) == "in") != (edge.head == start))] if row.transitive else []

    def clause(
        self, edge: ql.Edge, name: str | ql.Constant, other: str, *, negated: bool = False, one: bool = False
    ) -> VerbClause:
        """Return the clause for an edge: "treat X", "do not treat X", "X treats"."""
        are = f"{'is' if one else 'are'}{' not' if negated else ''}"
        is_named = not all(isinstance(end, str) and end not in self.constants for end in (edge.head, edge.tail))
        is_long = not is_named
        if not edge.is_single and not self.followed(edge, name):
            other = f"{other} directly or through others"
        if edge.relation is None:
            return VerbClause(f"{are} connected with", other, is_long)
        schema, row = self.words.schema, self.words.schema.relation_rows(edge.relation)[0]
        verb = row.display or row.name
        if not edge.directed:
            return VerbClause(f"{are} connected with", f"{other} by “{label_of(verb)}”", is_long)
        head, tail = kind_in_words(schema, row.head), kind_in_words(schema, row.tail)
        between = label_of(verb).removeprefix(f"{head} ").removesuffix(f" {tail}")
        if label_of(verb) == f"{head} {between} {tail}" and f" {between}".endswith(PREPOSITIONS):  # hop_in_recipe
            if edge.head == name:
                return VerbClause(f"{are} {between}", other, is_long)
            has = of_many("has", negated=negated, one=one)
            return VerbClause(f"{has} the {head}" if is_named else has, other, is_long)
        if edge.head == name and is_long and label_of(verb) == tail:
            return VerbClause(of_many("has", negated=negated, one=one), other, is_long)
        if edge.head == name or row.inverse:
            label, end = (verb, row.tail) if edge.head == name else (row.inverse, row.head)
            said, noun = _verb(schema, label, end, negated=negated, one=one)
            return VerbClause(said, f"{other}{noun}", is_long)
        first, rest, form = verb_of(verb)
        if plural(label_of(verb)) == self.words.kind(row.tail):  # the relation is named like its target type
            called = label_of(verb) if one else plural(label_of(verb))
            return VerbClause(f"{are} the {called} of", other, is_long)
        if form == "noun" or (first == "has" and rest):
            called = f" the {plural(rest.strip())}" if is_long and not one else rest
            return VerbClause(f"{are}{called} of", other, is_long)
        if not is_named and any(word in other.split() for word in ("that", "whose", "with")):
            return VerbClause(f"{are} reached by “{label_of(verb)}” from", other, is_long)  # comes last
        is_one, bare = is_named or other.startswith("the "), without_kind(verb, kind_in_words(schema, row.tail))
        said = of_many(bare, negated=negated and is_named, one=is_one)
        return VerbClause(said, f"{'no ' if negated and not is_named else ''}{other}", is_long, is_active=False)

    # Conditions

    def absence(self, part: ql.Formula, name: str, *, one: bool) -> VerbClause | None:
        """Return the clause for a negated or required sub-pattern that starts at the variable, or else None."""
        match part:
            case ql.Not(ql.Exists(pattern)):
                negated = True
            case ql.Exists(pattern):
                negated = False
            case _:
                return None
        inner = Phrase(self.words, pattern, self.scope, self.called)
        start = next((edge for edge in inner.edges if name in edge.variables), None)
        if start is None:
            return None
        inner.edges.remove(start)
        found = inner.clause(start, name, inner.other(start, name), negated=negated, one=one)
        told = []
        while edge := next((edge for edge in inner.edges if name in edge.variables), None):
            inner.edges.remove(edge)
            clause = inner.clause(edge, name, inner.other(edge, name))
            told.append(f"{clause.verb} {clause.other}")
        left = inner.left()
        if not told and not left:
            return found
        return replace(found, other=" and ".join([found.other, *told]) + left, is_long=True)

    def condition(self, part: ql.Formula, name: str) -> str:
        """Return a condition after the noun that it is about."""
        match part:
            case ql.Compare(ql.Attribute(owner, attribute), sign, right) if owner == name:
                return f"whose {attribute_words(attribute)[0]} {SIGNS[sign]} {self.value(right)}"
            case ql.Compare(ql.Aggregate("count", _, _, ql.Pattern()) as counted, sign, ql.Value() as value):
                return f"with {COUNTS[sign]} {self.value(value)} {self.counted(counted)}"
            case ql.Compare(ql.Var(owner), sign, right) if owner == name:
                return f"{'among' if sign in ('=', 'in') else 'other than'} {self.value(right)}"
            case ql.Missing(ql.Attribute(owner, attribute)) if owner == name:
                return f"without a known {label_of(attribute)}"
            case ql.Not(ql.Missing(ql.Attribute(owner, attribute))) if owner == name:
                return f"with a known {label_of(attribute)}"
            case ql.Exists() | ql.Not(ql.Exists()):
                clause = self.absence(part, name, one=False)
                if clause is None:
                    return f"where {self.formula(part)}"
                return (
                    f"that {clause.verb} {clause.other}" if clause.is_active else f"that {clause.other} {clause.verb}"
                )
            case ql.Either(parts) if (values := _values(parts)) is not None:
                first = parts[0]
                assert isinstance(first, ql.Compare)
                if isinstance(first.left, ql.Var):
                    return f"among {listed(map(self.value, values), 'and')}"
                left = first.left
                label = label_of(left.name) if isinstance(left, ql.Attribute) else _bare(self.value(left))
                return f"whose {label} is {listed(map(self.value, values), 'or')}"
            case ql.Either(parts):
                return " or ".join(self.condition(one, name) for one in parts)
        return f"where {self.formula(part)}"

    def whole(self) -> str:
        """Return the new variables of a pattern with all that is required of them, or what it says of known ones."""
        new = [name for name in self.pattern.types if name not in self.seen]
        return (self.described(new[0]) if new else listed(self.facts(), "and")) + self.left()

    def formula(self, formula: ql.Formula) -> str:
        """Return a formula as a sentence."""
        match formula:
            case ql.All(parts):
                return " and ".join(map(self.formula, parts))
            case ql.Either(parts):
                return " or ".join(map(self.formula, parts))
            case ql.Not(ql.Missing(expression)):
                return f"{self.value(expression)} is known"
            case ql.Not(part):
                return f"it is not so that {self.formula(part)}"
            case ql.Missing(expression):
                return f"{self.value(expression)} is not known"
            case ql.Exists(pattern):
                there = "" if pattern.types.keys() <= self.scope.types.keys() else "there are "
                return there + Phrase(self.words, pattern, self.scope, self.called).whole()
            case ql.Compare(left, sign, right):
                return f"{self.value(left)} {SIGNS[sign]} {self.value(right)}"

    # Values

    def counted(self, part: ql.Aggregate) -> str:
        """Return the noun for the items that an aggregate counts."""
        if part.over is not None:
            inner = Phrase(self.words, part.over, self.scope, self.called)
            new = [name for name in part.over.types if name not in self.scope.types]
            if isinstance(part.argument, ql.Attribute | ql.Call):
                over, value = inner.whole(), _bare(inner.value(part.argument))
                return f"{'different ' if part.distinct else ''}values of the {value} over {over}"
            if new and len(inner.edges) <= 1 and not inner.where:
                return inner.noun(new[0])
            return inner.whole() if new else f"connections so that {inner.whole()}"
        if isinstance(part.argument, ql.Var) and part.argument.name in self.scope.types:
            return self.noun(part.argument.name)
        if isinstance(part.argument, ql.Attribute):
            return f"{'different ' if part.distinct else ''}{plural(label_of(part.argument.name))}"
        return "connections" if len(self.scope.types) != 1 else self.noun(next(iter(self.scope.types)))

    def aggregate(self, part: ql.Aggregate, value: str) -> str:
        """Return an aggregate of a value."""
        if part.function in ("count", "exists"):
            return f"{'the number of' if part.function == 'count' else 'whether there are'} {self.counted(part)}"
        return f"the {FUNCTIONS[part.function]} {value}"

    def value(self, part: ql.Expression) -> str:
        """Return an expression as a noun."""
        match part:
            case ql.Value(value):
                return str(value).lower() if isinstance(value, bool) else value_in_words(value)
            case ql.Var(name):
                return self.called.get(name) or f"the {self.noun(name, one=True)}"
            case ql.Attribute(variable, name):
                owner = "the connection" if variable in self.scope.edges else self.value(ql.Var(variable))
                return f"the {label_of(name)} of {owner}"
            case ql.Call(function, (left, right)):
                return f"{self.value(left)} {OPERATORS[function]} {self.value(right)}"
            case ql.Call(function, (argument,)):
                return f"the {function} of {self.value(argument)}" if function != "number" else self.value(argument)
            case ql.Aggregate():
                if part.over is None and isinstance(part.argument, ql.Attribute):
                    return self.aggregate(part, label_of(part.argument.name))
                if part.over is None or part.argument is None or part.function in ("count", "exists"):
                    return self.aggregate(part, "" if part.argument is None else _bare(self.value(part.argument)))
                inner = Phrase(self.words, part.over, self.scope, self.called)
                over = inner.whole()
                return f"{inner.aggregate(part, _bare(inner.value(part.argument)))} over {over}"
            case ql.Subquery(query):
                return self.words.query(query)
            case ql.Named() | ql.Nodes():
                return self.words.constant(part)
        return str(part)


def _is_named(constant: Called) -> bool:
    """Return whether a constant is a name, keys, or the first rows of an order: "the hut with the most beds"."""
    return not isinstance(constant, ql.Subquery) or getattr(constant.query, "first", None) is not None


def _values(parts: Sequence[ql.Formula]) -> list[ql.Expression] | None:
    """Return the allowed values of an expression, or None if the parts have another form."""
    same = [part for part in parts if isinstance(part, ql.Compare) and part.comparison == "="]
    is_one = len(same) == len(parts) and len({part.left for part in same}) == 1
    values = [part.right for part in same]
    return values if is_one and all(isinstance(value, ql.Value | ql.Named | ql.Nodes) for value in values) else None


def _finite(limit: str, *, one: bool) -> str:
    """Convert a condition after a noun to a predicate: "with 80 beds" → "has 80 beds"."""
    be, have, was = ("is", "has", "was") if one else ("are", "have", "were")
    first, _, rest = limit.partition(" ")
    said = {"with": f"{have} {rest}", "that": f"{be} {rest.removeprefix('are ')}"}
    said |= {"whose": f"{have} a {rest.replace(' is ', ' of ', 1)}", "among": f"{be} {limit}", "other": f"{be} {limit}"}
    return said.get(first, f"{was} {limit}")


def _bare(text: str) -> str:
    return text.removeprefix("the ")


def _names(part: ql.Expression) -> list[str]:
    if isinstance(part, ql.Attribute):
        return [part.variable]
    return sorted(ql.names_used(part))


def _number(number: int) -> str:
    return NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"


def listed(parts: Iterable[str], word: str) -> str:
    """Join texts with commas, and with a word before the last text."""
    texts = list(parts)
    return f" {word} ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
