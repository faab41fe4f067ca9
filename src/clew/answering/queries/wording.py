"""A claim in plain words: "drugs that treat Marfan syndrome and do not cause nausea, those with the highest dose"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clew.answering.queries.claims import Block, Claim, Named, Requirement
from clew.answering.queries.problem import as_text
from clew.answering.queries.verbs import parts_of, plural_verb, singular_verb
from clew.core.nouns import plural, singular
from clew.core.query import Best, Condition, Count
from clew.core.schema import Schema, words_of
from clew.core.types import NodeSet, Value
from clew.store.graph.protocol import KnowledgeBase

MOST_NAMES = 3
"""Of more nodes than this the first are named and the others counted."""
COMPARED = {
    "=": "is",
    "!=": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is more than",
    ">=": "is at least",
    "contains": "contains",
}
COUNTED = {
    "=": "exactly",
    "!=": "not exactly",
    "<": "fewer than",
    "<=": "at most",
    ">": "more than",
    ">=": "at least",
}


def in_words(claim: Claim, kb: KnowledgeBase) -> str:
    """What was understood and carried out, as one sentence without its full stop."""
    writer = _Words(kb)
    if claim.names_only and claim.asks in ("nodes", "value"):
        return writer.about_named(claim)
    whole = ", or ".join(dict.fromkeys(map(writer.block, claim.blocks)))
    if claim.best is not None:
        whole += f", those {writer.best(claim.best)}"
    match claim.asks:
        case "number":
            return f"the number of {whole}"
        case "truth" if claim.asked is not None:
            return f"whether {writer.names(claim.asked)} is one of: {whole}"
        case "truth":
            return f"whether there are {whole}"
        case "value":
            return f"the {words_of(claim.attribute or '')} of {whole}"
        case _:
            return whole


def kind_in_words(schema: Schema, type: str | None) -> str:
    """What one thing of a type is called."""
    named = next((one for one in schema.node_types if one.name == type), None)
    return "thing" if type is None else words_of(singular((named.display if named else "") or type))


def counted_in_words(schema: Schema, best: Best, count: int) -> str:
    """What is counted of a relation: what it leads to, where that is of one type."""
    rows = schema.relation_rows(best.relation) if best.relation else ()
    ends = {best.of} if best.of else {row.tail if best.is_head else row.head for row in rows}
    kind = kind_in_words(schema, ends.pop()) if len(ends) == 1 else words_of(best.relation or "")
    return kind if count == 1 else plural(kind)


@dataclass(frozen=True)
class _Words:
    kb: KnowledgeBase

    def about_named(self, claim: Claim) -> str:
        """What is asked of the things that a question names: "the population of France"."""
        (block,) = claim.blocks
        named = self.names(block.only[block.target], "and")
        if claim.best is not None:
            return f"which of {named} is the one {self.best(claim.best)}"
        return f"the {words_of(claim.attribute)} of {named}" if claim.attribute else f"what is known about {named}"

    def block(self, block: Block) -> str:
        left, seen = list(block.required), {block.target}

        def described(variable: str) -> str:
            """A variable by its type, and all that is required of it and of what it leads to."""
            clauses: list[tuple[bool, str]] = []  # what ends in a name first: what follows the others could be theirs
            while edge := next((one for one in left if variable in one.variables), None):
                left.remove(edge)
                clauses.append((len(edge.variables) > 1, self.clause(edge, variable, other(edge, variable))))
            for one in block.absences:
                if variable in one.edge.variables:
                    said = other(one.edge, variable) if one.inner is None else self.block(one.inner)
                    clauses.append((len(one.edge.variables) > 1, self.clause(one.edge, variable, said, negated=True)))
            ordered = [clause for _, clause in sorted(clauses, key=lambda pair: pair[0])]
            parts = [f"that {' and '.join(ordered)}"] if ordered else []
            return " ".join([self.kind(block.types[variable]), *self.limits(block, variable, parts)])

        def other(edge: Requirement, variable: str) -> str:
            end = edge.tail if edge.head == variable else edge.head
            if isinstance(end, Named):
                return self.names(end)
            if end in seen:
                return f"the same {self.kind(block.types[end])}"
            seen.add(end)
            return described(end)

        return described(block.target)

    def limits(self, block: Block, variable: str, parts: list[str]) -> list[str]:
        """What is required of a variable by itself, before what is said of its edges: there it would be unclear."""
        first = [f"among {self.names(block.only[variable], 'and')}"] if variable in block.only else []
        first += self.conditions([one for one in block.conditions if one.variable == variable])
        if variable in block.never:
            first.append(f"other than {self.names(block.never[variable], 'and')}")
        return [*first, *parts, *(self.count(block, one) for one in block.counts if one.variable == variable)]

    def clause(self, edge: Requirement, variable: str, other: str, *, negated: bool = False) -> str:
        """What many things of one kind do with another: "treat X", "do not treat X", "X treats"."""
        are = "are not" if negated else "are"
        if edge.relation is None:
            return f"{are} connected with {other}"
        row = self.kb.schema.relation_rows(edge.relation)[0]
        verb = row.display or row.name
        if edge.any_direction:
            return f"{are} connected with {other} by “{words_of(verb)}”"
        called = plural(words_of(verb))
        is_kind = called == self.kind(row.tail)  # a relation that is called like what it leads to
        if edge.head == variable:
            return (
                f"{'do not have' if negated else 'have'} {called} {other}"
                if is_kind
                else f"{plural_verb(verb, negated)} {other}"
            )
        if row.inverse:
            return f"{plural_verb(row.inverse, negated)} {other}"
        first, rest, form = parts_of(verb)
        if is_kind:
            return f"{are} {called} of {other}"
        if form == "noun" or (first == "has" and rest):
            return f"{are}{rest} of {other}"
        if isinstance(edge.head, Named):
            return f"{other} {singular_verb(verb, negated)}"
        if any(word in other.split() for word in ("that", "whose", "among", "other", "with")):  # to be said last
            return f"{are} reached by “{words_of(verb)}” from {other}"
        return f"{'no ' if negated else ''}{other} {plural_verb(verb, False)}"

    def conditions(self, conditions: Sequence[Condition]) -> list[str]:
        """Each condition; two that bound one attribute are said together."""
        said: dict[str, list[str]] = {}
        for one in conditions:
            said.setdefault(one.attribute, []).append(f"{COMPARED[one.comparison]} {_shown(one.value)}")
        return [f"whose {words_of(name)} {' and '.join(tests)}" for name, tests in said.items()]

    def count(self, block: Block, counted: Count) -> str:
        return f"with {COUNTED[counted.comparison]} {counted.value} such {self.kind(block.types.get(counted.of))}"

    def best(self, best: Best) -> str:
        if best.attribute is not None:
            is_date = self.kb.schema.attribute_types.get(best.attribute) == "date"
            most, least = ("latest", "earliest") if is_date else ("highest", "lowest")
            return f"with the {most if best.most else least} {words_of(best.attribute)}"
        label = "edges" if best.relation is None else f"edges “{words_of(best.relation)}”"
        amount = f"with the {'most' if best.most else 'fewest'}"
        if best.of is None:
            return f"{amount} {label} {'from' if best.is_head else 'to'} them"
        return f"{amount} {label} {'to' if best.is_head else 'from'} {self.kind(best.of)}"

    def kind(self, type: str | None) -> str:
        return plural(kind_in_words(self.kb.schema, type))

    def names(self, named: Named | NodeSet, word: str = "or") -> str:
        nodes = named.nodes if isinstance(named, Named) else named
        names = list(dict.fromkeys(ref.name for ref in self.kb.refs(nodes.array[: MOST_NAMES + 1])))
        more = len(nodes) - MOST_NAMES
        if more > 0 and len(names) > 1:
            names = [*names[:MOST_NAMES], f"{more} more"]
        said = f" {word} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        if isinstance(named, Named) and named.expansions:
            return f"{said} or anything {'above' if named.expansions[0].upward else 'below'} it"
        return said


def _shown(value: object) -> str:
    return as_text(value) if isinstance(value, bool | float) else str(value)


MANY_DIGITS = 10_000
"""From here on a number is easier to read in groups of three; years are below."""


def value_in_words(value: Value) -> str:
    """A value as it is put forward."""
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{value:,}" if isinstance(value, int) and abs(value) >= MANY_DIGITS else str(value)
