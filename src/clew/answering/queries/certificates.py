"""Executed queries in words, in the query language, and in SPARQL, Cypher and SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile

from clew.answering.queries.cypher import CypherNames, GraphDatabaseNames, cypher
from clew.answering.queries.linking import keys_of
from clew.answering.queries.lowering import CannotPrintError
from clew.answering.queries.schema_words import PREPOSITIONS, attribute_words, value_sentence
from clew.answering.queries.sparql import EndpointNames, RdfNames, sparql
from clew.answering.queries.sql import sql
from clew.answering.queries.words import Words, kind_in_words, without_reading
from clew.core import query as ql
from clew.core.roles import Interpretation
from clew.core.types import NodeSet
from clew.store.graph.protocol import KnowledgeBase, is_cypher, is_sparql


def certificate(found: Interpretation, kb: KnowledgeBase) -> dict[str, str]:
    """Return an executed interpretation in words and as a query in all languages."""
    telling = _Telling(found, kb)
    written = {"form": telling.form(), "kind": kind_in_words(kb.schema, found.type), **telling.phrases()}
    asked = found.query if found.asks == "truth" and not found.query.order else None
    return {**written, "text": telling.text(), **printed(formal_query(found), kb, asked)}


def printed(query: ql.AnyQuery, kb: KnowledgeBase, asked: ql.Query | None = None) -> dict[str, str]:
    """Return a query in all languages, or only in Clew's own and in that of the remote database.

    If `asked` is given, SPARQL asks whether it has any rows.
    """
    rdf = EndpointNames(kb) if is_sparql(kb) else RdfNames()
    printers: dict[str, Callable[[], str]] = {
        "sparql": lambda: sparql(asked or query, kb.schema, rdf, is_question=asked is not None),
        "cypher": lambda: cypher(query, kb.schema, GraphDatabaseNames(kb) if is_cypher(kb) else CypherNames()),
        "sql": lambda: sql(query, kb.schema),
    }
    own = kb.query_language if kb.stored is None else None
    written = {"query": str(query)}
    for language, write in printers.items():
        if own in (None, language):
            with suppress(CannotPrintError):  # the query in Clew's own language is enough
                written[language] = write()
    return written


def formal_query(found: Interpretation) -> ql.Query:
    """Return a query for the nodes, their number, an attribute of each, or an aggregate of that."""
    query, variable = found.query, found.variable
    if found.asks == "nodes":
        return query
    if found.asks == "each" and found.attribute is None:
        return replace(query, columns=(*query.columns, ql.Column(query.order[0].expression, "number")))
    if found.asks == "columns":
        asked = [ql.Column(ql.Attribute(variable, name)) for name in (found.attribute, *found.more) if name is not None]
        return replace(query, columns=(*query.columns, *asked))
    pattern = query.pattern
    is_aggregate = found.asks not in ("number", "truth", "value")
    if query.order or query.first is not None or (is_aggregate and len(pattern.variables) > 1):
        pattern = ql.Pattern(
            (ql.Variable(variable, found.type),), (), (ql.Compare(ql.Var(variable), "in", ql.Subquery(query)),)
        )
    if found.compared is not None:
        pattern = ql.requiring(pattern, ql.Compare(ql.Var(variable), "=", found.compared))
    if found.asks == "value" and found.attribute is not None:
        columns = ql.Column(ql.Var(variable)), ql.Column(ql.Attribute(variable, found.attribute))
        is_known = ql.Not(ql.Missing(ql.Attribute(variable, found.attribute)))
        return ql.Query(columns, ql.requiring(pattern, is_known), distinct=True)
    number = ql.Aggregate("count", ql.Var(variable), distinct=True)
    if found.attribute is None or not is_aggregate:
        return ql.Query((ql.Column(number),), pattern)
    stored = found.amount or ql.Attribute(variable, found.attribute)
    if found.asks in ("common", "each"):
        pattern, order = ql.requiring(pattern, ql.Not(ql.Missing(stored))), (ql.Order(number, descending=True),)
        if found.asks == "each":
            return ql.Query((ql.Column(stored), ql.Column(number, "number")), pattern, group=(stored,), order=order)
        return ql.Query((ql.Column(stored),), pattern, group=(stored,), order=order, first=1, ties=True)
    if found.asks == "difference":
        most, least = (ql.Aggregate(name, stored) for name in ("max", "min"))
        return ql.Query((ql.Column(ql.Call("-", (most, least))),), pattern)
    function = AGGREGATES.get(found.asks, "count")
    return ql.Query((ql.Column(ql.Aggregate(function, stored, distinct=found.asks == "different")),), pattern)


AGGREGATES: Mapping[str, ql.AggregateName] = {"average": "avg", "sum": "sum", "highest": "max", "lowest": "min"}


class _Telling:
    """The words about an interpretation that was executed."""

    def __init__(self, found: Interpretation, kb: KnowledgeBase) -> None:
        query, schema = without_reading(found.query, kb.schema)
        self.found = found = replace(found, query=query, amount=None)
        self.kb, self.words = kb, Words(schema, lambda key: kb.refs([kb.find(key)])[0].name)
        self.patterns = ql.alternatives(found.query.pattern)
        is_best = found.query.ties and bool(found.query.order)
        self.order = found.query.order[0] if is_best else None
        self.named = _named(self.patterns[0], found.variable) if len(self.patterns) == 1 else None

    @property
    def names_only(self) -> bool:
        """Whether the answers only have to be among the named nodes."""
        return self.named is not None and not self.patterns[0].edges and len(self.patterns[0].where) == 1

    def form(self) -> str:
        """Return the form: list, count, table, yes/no, value, superlative, comparison or describe."""
        if self.found.asks != "nodes":
            asked = {"number": "count", "truth": "yes/no", "each": "table", "columns": "table"}
            return asked.get(self.found.asks, "value")
        if self.order is not None:
            return "comparison" if self.names_only else "superlative"
        return "describe" if self.names_only else "list"

    def described(self) -> str:
        return _either(self.words.phrase(pattern).described(self.found.variable) for pattern in self.patterns)

    def text(self) -> str:
        """Return the executed query in words, without a full stop."""
        found, order = self.found, self.order
        is_limited = order is None and (found.query.order or found.query.first is not None)
        if is_limited or found.asks not in ("nodes", "number", "truth", "value"):
            return self.words.query(formal_query(found))
        if self.names_only and found.asks in ("nodes", "value"):
            return self.about_named()
        whole = self.described()
        if order is not None and found.compared is None:
            finite, is_bare = self.words.best(order), whole == self.words.kind(found.type)
            reduced = finite.removeprefix("are ") if is_bare else finite
            whole += f" {reduced}" if reduced != finite else f" that {finite}" if is_bare else f", those that {finite}"
        match found.asks:
            case "number":
                return f"the number of {whole}"
            case "truth" if found.compared is not None and order is not None:
                name = self.words.constant(found.compared)
                return f"whether {name}, of the {whole}, {self.words.best(order, one=True)}"
            case "truth":
                told = self.told()
                return f"whether {told}" if told else f"whether there are {whole}"
            case "value":
                return f"the {attribute_words(found.attribute or '')[0]} of {whole}"
        return whole

    def about_named(self) -> str:
        """Return the request about the named nodes: "the population of France"."""
        assert self.named is not None
        named = self.words.constant(self.named, "and")
        if self.order is not None:
            return f"which of {named} {self.words.best(self.order, one=True)}"
        label = attribute_words(self.found.attribute)[0] if self.found.attribute else ""
        return f"the {label} of {named}" if label else f"what is known about {named}"

    def phrases(self) -> dict[str, str]:
        """Return the parts of a sentence about the answers: descriptions for one and for many answers."""
        found, order, said = self.found, self.order, dict[str, str]()
        if not self.names_only:
            for number, one in (("one", True), ("many", False)):
                said[number] = _either(
                    self.words.phrase(each).sentence(found.variable, one=one) for each in self.patterns
                )
        if order is not None:
            said |= {"best": self.words.best(order, one=True), "best_many": self.words.best(order)}
            if len(self.patterns) == 1:
                is_named = self.names_only and self.named is not None
                said["of"] = self.words.constant(self.named, "and") if is_named and self.named else self.described()
        attribute = found.attribute or _compared_attribute(found.query)
        if attribute is not None:
            label, said["unit"] = attribute_words(attribute)
            said |= {"attribute": label} if found.attribute and found.asks == "value" else {}
        said["kinds"] = next(filter(None, (self.words.phrase(one).hierarchies() for one in self.patterns)), "")
        if found.asks == "truth":
            said |= {"told": self.told(kinds=False), "instead": self.instead()}
            said |= {"asked": self.words.constant(found.compared)} if found.compared is not None else {}
        return {name: text for name, text in said.items() if text}

    def told(self, *, kinds: bool = True) -> str:
        """Return the statement of a yes/no question about its named nodes. Empty if it names none."""
        if self.named is None or self.order is not None or self.names_only:
            return ""
        pattern = self.patterns[0]
        rest = replace(
            pattern, where=tuple(one for one in pattern.where if not ql.constants_for(one, self.found.variable))
        )
        phrase = self.words.phrase(rest)
        phrase.tells_kinds = kinds
        names = self.words.names(self.named)
        predicate = phrase.described(self.found.variable, one=len(names) == 1, finite=True)
        name, start = self.words.constant(self.named), "that "
        return f"{predicate.removeprefix(start)} {name}" if predicate.startswith(start) else f"{name} {predicate}"

    def instead(self) -> str:
        """Return the base's statement for the same node and relation, or attribute, if it differs from the question."""
        pattern, variable = self.patterns[0], self.found.variable
        if self.named is None or self.order is not None or len(self.named.keys) != 1:
            return ""
        [name], node = self.words.names(self.named), NodeSet.of([self.kb.find(self.named.keys[0])])
        rest = [one for one in pattern.where if not ql.constants_for(one, variable)]
        edges = [edge for edge in pattern.edges if variable in edge.variables]
        if not pattern.edges and len(rest) == 1:
            match rest[0]:
                case ql.Compare(ql.Attribute(_, attribute), _, ql.Value()):
                    (value,) = self.kb.values(node, attribute)
                    value = str(value) if not isinstance(value, int | float | None) else value
                    return "" if value in (None, "") else value_sentence(name, *attribute_words(attribute), value)
            return ""
        edge = edges[0] if len(edges) == 1 and not rest else None
        others = [one for one in pattern.edges if one is not edge]
        if edge is None or edge.relation is None or not edge.directed or not all(one.least == 0 for one in others):
            return ""
        is_head, phrase = edge.head == variable, self.words.phrase(pattern)
        wanted = self.words.phrase(pattern).named(edge.tail if is_head else edge.head)
        if wanted is None:
            return ""
        end = wanted[0]
        if not is_head and isinstance(end, ql.Nodes) and len(end.keys) == 1:  # begin with the head of the relation
            [name], node, end = self.words.names(end), NodeSet.of([self.kb.find(end.keys[0])]), self.named
            edge, is_head = replace(edge, least=1, most=1), True
        there = self.kb.neighbors(node, edge.relation, "out" if is_head else "in")
        if not len(there):
            return ""
        ends, subject = (keys_of(self.kb, there), end), edge.head if is_head else variable
        said = [phrase.clause(edge, subject, self.words.constant(one, "and"), one=True) for one in ends]
        if not said[0].is_active:
            return ""
        preposition = said[0].verb.split()[-1] if said[0].verb.endswith(PREPOSITIONS) else ""
        return f"{name} {said[0].verb} {said[0].other}, not {preposition} {said[1].other}".replace("  ", " ")


def _named(pattern: ql.Pattern, variable: str) -> ql.Nodes | None:
    """Return the nodes of which an answer must be one."""
    found = next(filter(None, (ql.constants_for(formula, variable) for formula in pattern.where)), ())
    return ql.Nodes(tuple(key for one in found if isinstance(one, ql.Nodes) for key in one.keys)) if found else None


def _compared_attribute(query: ql.Query) -> str | None:
    """Return the attribute by which nodes are compared."""
    expression = query.order[0].expression if query.order else None
    if isinstance(expression, ql.Call):
        expression = expression.arguments[0]
    return expression.name if isinstance(expression, ql.Attribute) else None


def _either(texts: Iterable[str]) -> str:
    """Join alternatives with "or" and write their common start once."""
    different = [text.split() for text in dict.fromkeys(texts)]
    shared = sum(1 for _ in takewhile(lambda words: len({*words}) == 1, zip(*different, strict=False)))
    shared = shared if len(different) > 1 and all(len(words) > shared for words in different) else 0
    return " ".join([*different[0][:shared], " or ".join(" ".join(words[shared:]) for words in different)])
