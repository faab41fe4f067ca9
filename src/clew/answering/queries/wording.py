"""A claim in plain words: "huts located in Ticino that have the most beds", and the phrases that sentences are made of.

Relations are said by their display and inverse texts, attributes by their unit and by what they tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby, takewhile

from clew.answering.queries.attributes import (
    attribute_words,
    conditions_in_words,
    is_countable,
    is_participle,
    value_sentence,
)
from clew.answering.queries.claims import Block, Claim, Named, Requirement
from clew.answering.queries.grounding import Expansion
from clew.answering.queries.verbs import PREPOSITIONS, of_many, verb_of, without_kind
from clew.core.nouns import plural, singular
from clew.core.query import Best, Count
from clew.core.schema import Relation, Schema, words_of
from clew.core.types import NodeSet
from clew.store.graph.protocol import KnowledgeBase

MOST_NAMES = 3
"""Of more nodes than this the first are named and the others counted."""
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
    whole = _either(map(writer.described, claim.blocks))
    if claim.best is not None and claim.asked is None:
        finite, is_bare = writer.best(claim.best), whole == writer.kind(claim.type)
        reduced = finite.removeprefix("are ") if is_bare else finite
        whole += f" {reduced}" if reduced != finite else f" that {finite}" if is_bare else f", those that {finite}"
    match claim.asks:
        case "number":
            return f"the number of {whole}"
        case "truth" if claim.asked is not None and claim.best is not None:
            return f"whether {writer.names(claim.asked)}, of the {whole}, {writer.best(claim.best, one=True)}"
        case "truth":
            told = writer.told(claim, kinds=True)
            return f"whether {told}" if told else f"whether there are {whole}"
        case "value":
            return f"the {attribute_words(claim.attribute or '')[0]} of {whole}"
        case _:
            return whole


def phrases(claim: Claim, kb: KnowledgeBase) -> dict[str, str]:
    """What a sentence about the answers is made of: what one or many of them are, and what a claim says of a name."""
    writer = _Words(kb)
    said: dict[str, str] = {}
    if not claim.names_only:
        for number, one in (("one", True), ("many", False)):
            said[number] = _either(writer.sentence(block, one=one) for block in claim.blocks)
    if claim.best is not None:
        said |= {"best": writer.best(claim.best, one=True), "best_many": writer.best(claim.best)}
        blocks = {writer.described(block) for block in claim.blocks}
        named = claim.blocks[0].only.get(claim.blocks[0].target) if claim.names_only else None
        said |= {"of": blocks.pop() if named is None else writer.names(named, "and")} if len(blocks) == 1 else {}
        said |= {"unit": attribute_words(claim.best.attribute)[1]} if claim.best.attribute else {}
    if claim.attribute is not None:
        label, unit = attribute_words(claim.attribute)
        said |= {"attribute": label, "unit": unit}
    ends = [(edge, end) for block in claim.blocks for edge in block.required for end in (edge.head, edge.tail)]
    said["kinds"] = next(filter(None, (_below(end, edge.relation) for edge, end in ends)), "")
    if claim.asks == "truth":
        asked = {"asked": writer.names(claim.asked)} if claim.asked is not None else {}
        said |= {"told": writer.told(claim), "instead": writer.instead(claim)} | asked
    return {name: text for name, text in said.items() if text}


def _either(texts: Iterable[str]) -> str:
    """Texts one of which holds; the words that all begin with are said once."""
    different = [text.split() for text in dict.fromkeys(texts)]
    shared = sum(1 for _ in takewhile(lambda words: len({*words}) == 1, zip(*different, strict=False)))
    shared = shared if len(different) > 1 and all(len(words) > shared for words in different) else 0
    return " ".join([*different[0][:shared], " or ".join(" ".join(words[shared:]) for words in different)])


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


def asked_of(schema: Schema, row: Relation, name: str) -> str:
    """How people ask for the many heads of a relation's edges to a named node: "have Polydactyly"."""
    verb, noun = _verb(schema, row.display or row.name, row.tail)
    return f"{verb} {name}{noun}"


def hierarchy_in_words(expansions: tuple[Expansion, ...], *, many: bool = False) -> str:
    """What a name stands for besides itself, by the words of the hierarchies: "a kind of it", "a place in it"."""
    it = "these" if many else "it"
    said: dict[str, None] = {}
    for one in expansions:
        words = words_of(one.relation.display or one.relation.name)
        if "part" in words.split() or "parts" in words.split():
            told = f"what {it} is part of" if one.upward else f"a part of {it}"
        elif words.endswith((" in", " within", " at", " on")):
            told = f"what {it} is in" if one.upward else f"a place {words.split()[-1]} {it}"
        elif {"a", "kind", "subclass", "class", "type", "subtype", "broader", "narrower"} & {*words.split()}:
            told = f"what {it} is a kind of" if one.upward else f"a kind of {it}"
        else:
            told = f"anything {'above' if one.upward else 'below'} {it}"
        said[told] = None
    return " or ".join(said)


def _below(named: object, relation: str | None, *, many: bool = False) -> str:
    """What a name stands for besides itself; nothing for "a kind of it", of which all kinds are kinds anyway."""
    expansions = named.expansions if isinstance(named, Named) else ()
    told = hierarchy_in_words(expansions, many=many)
    return "" if "kind" in told and expansions[0].relation.name == relation else told


def _verb(
    schema: Schema, label: str, other: str | None, *, negated: bool = False, one: bool = False
) -> tuple[str, str]:
    """What things do with something of another type, and what stands behind its name: "have … as director"."""
    kind = kind_in_words(schema, other)
    bare = without_kind(label, kind)
    _, rest, form = verb_of(bare)
    if form == "noun" and rest.strip() not in (kind, plural(kind)):
        return of_many("has", negated=negated, one=one), f" as{rest}"
    if form == "noun":  # called like what it leads to: "have the origin Japan"
        return f"{of_many('has', negated=negated, one=one)} the{rest}", ""
    return of_many(bare, negated=negated, one=one), ""


@dataclass(frozen=True)
class _Clause:
    """What something does with something else; inactive where the other one does it."""

    verb: str
    other: str
    is_long: bool
    is_active: bool = True


@dataclass(frozen=True)
class _Words:
    kb: KnowledgeBase

    def about_named(self, claim: Claim) -> str:
        """What is asked of the things that a question names: "the population of France"."""
        (block,) = claim.blocks
        named = self.names(block.only[block.target], "and")
        if claim.best is not None:
            return f"which of {named} {self.best(claim.best, one=True)}"
        label = attribute_words(claim.attribute)[0] if claim.attribute else ""
        return f"the {label} of {named}" if label else f"what is known about {named}"

    def told(self, claim: Claim, *, kinds: bool = False) -> str:
        """What a yes/no question asks of what it names, with its `kinds` or not; empty where it names nothing."""
        if len(claim.blocks) != 1 or claim.best is not None:
            return ""
        (block,) = claim.blocks
        named = block.only.get(block.target)
        if named is None or not (block.required or block.conditions or block.absences):
            return ""
        required = block.required if kinds else tuple(map(_by_name, block.required))
        is_one = len({ref.name for ref in self.kb.refs(named.array)}) == 1
        predicate = self.described(replace(block, only={}, required=required), one=is_one, finite=True)
        name, start = self.names(named, "or"), "that "
        return f"{predicate.removeprefix(start)} {name}" if predicate.startswith(start) else f"{name} {predicate}"

    def instead(self, claim: Claim) -> str:
        """What the base says of the same thing and relation, or attribute, where it is not what was asked."""
        (block, *others) = claim.blocks
        named = block.only.get(block.target)
        if others or claim.best is not None or named is None or len(named) != 1 or block.absences:
            return ""
        (name,) = (ref.name for ref in self.kb.refs(named.array))
        if len(block.conditions) == 1 and not block.required:
            attribute = block.conditions[0].attribute
            (value,) = self.kb.values(named, attribute)
            value = str(value) if not isinstance(value, int | float | None) else value
            return "" if value in (None, "") else value_sentence(name, *attribute_words(attribute), value)
        edge = block.required[0] if len(block.required) == 1 and not block.conditions else None
        if edge is None or edge.relation is None or edge.any_direction or len(edge.variables) != 1:
            return ""
        is_head = edge.head == block.target
        found = self.kb.neighbors(named, edge.relation, "out" if is_head else "in")
        if not len(found):
            return ""
        other = edge.tail if is_head else edge.head
        assert isinstance(other, Named)
        said = [self.clause(edge, block.target, self.names(end, "and"), one=True) for end in (found, other.nodes)]
        if not said[0].is_active:
            return ""
        preposition = said[0].verb.split()[-1] if said[0].verb.endswith(PREPOSITIONS) else ""
        return f"{name} {said[0].verb} {said[0].other}, not {preposition} {said[1].other}".replace("  ", " ")

    def sentence(self, block: Block, *, one: bool) -> str:
        """What stands behind a number: "diseases have X", or "huts opened before 1920"."""
        predicate = self.described(block, one=one, finite=True)
        is_noun = bool(self.limits(block, block.target)) or predicate.startswith("that ")
        kind = self.kind(block.types[block.target], one=one)
        return self.described(block, one=one) if is_noun else f"{kind} {predicate}".strip()

    def described(self, block: Block, *, one: bool = False, finite: bool = False) -> str:
        left, seen = list(block.required), {block.target}

        def described(variable: str, one: bool, finite: bool) -> str:
            """A variable by its type, and all that is required of it and of what it leads to."""
            clauses: list[_Clause] = []
            while edge := next((one for one in left if variable in one.variables), None):
                left.remove(edge)
                clauses.append(self.clause(edge, variable, other(edge, variable), one=one))
            for absence in block.absences:
                if variable in absence.edge.variables:
                    said = other(absence.edge, variable) if absence.inner is None else self.described(absence.inner)
                    clauses.append(self.clause(absence.edge, variable, said, negated=True, one=one))
            clauses.sort(key=lambda clause: clause.is_long)  # what ends in a name first: the rest could be its own
            verbs = []
            for (verb, is_active), same in groupby(clauses, key=lambda clause: (clause.verb, clause.is_active)):
                others = [clause.other for clause in same]
                told = f"{verb} {(' or ' if ' not ' in f' {verb} ' else ' and ').join(others)}"
                verbs += [told] if is_active else [f"{one} {verb}" for one in others]
            limits, whole = self.limits(block, variable), " and ".join(verbs)
            counts = [self.count(block, count) for count in block.counts if count.variable == variable]
            if finite and all(clause.is_active for clause in clauses):
                return " ".join([" and ".join([*(_finite(limit, one=one) for limit in limits), *verbs]), *counts])
            be = "is " if one else "are "
            is_short = len(verbs) == 1 and not limits and whole.startswith(be)
            is_short = is_short and not whole.removeprefix(be).startswith(("not ", "a ", "an ", "the "))
            behind = [whole.removeprefix(be) if is_short else f"that {whole}"] if verbs else []
            kind = [] if finite else [self.kind(block.types[variable], one=one)]
            return " ".join([*kind, *limits, *behind, *counts])

        def other(edge: Requirement, variable: str) -> str:
            end = edge.tail if edge.head == variable else edge.head
            if isinstance(end, Named):
                return self.names(end, of=edge.relation)
            if end in seen:
                return f"the same {self.kind(block.types[end])}"
            seen.add(end)
            return described(end, False, False)

        return described(block.target, one, finite)

    def limits(self, block: Block, variable: str) -> list[str]:
        """What is required of a variable by itself, before what is said of its edges: there it would be unclear."""
        first = [f"among {self.names(block.only[variable], 'and')}"] if variable in block.only else []
        first += conditions_in_words([one for one in block.conditions if one.variable == variable], self.kb.schema)
        if variable in block.never:
            first.append(f"other than {self.names(block.never[variable], 'and')}")
        return first

    def clause(
        self, edge: Requirement, variable: str, other: str, *, negated: bool = False, one: bool = False
    ) -> _Clause:
        """What things of one kind do with another: "treat X", "do not treat X", "X treats"."""
        are = f"{'is' if one else 'are'}{' not' if negated else ''}"
        is_long = len(edge.variables) > 1
        if edge.relation is None:
            return _Clause(f"{are} connected with", other, is_long)
        schema, row = self.kb.schema, self.kb.schema.relation_rows(edge.relation)[0]
        verb = row.display or row.name
        if edge.any_direction:
            return _Clause(f"{are} connected with", f"{other} by “{words_of(verb)}”", is_long)
        if edge.head == variable or row.inverse:
            label, end = (verb, row.tail) if edge.head == variable else (row.inverse, row.head)
            said, noun = _verb(schema, label, end, negated=negated, one=one)
            return _Clause(said, f"{other}{noun}", is_long)
        first, rest, form = verb_of(verb)
        if plural(words_of(verb)) == self.kind(row.tail):  # a relation that is called like what it leads to
            return _Clause(
                f"{are}{' a' if one else ''} {words_of(verb) if one else plural(words_of(verb))} of", other, is_long
            )
        if form == "noun" or (first == "has" and rest):
            return _Clause(f"{are}{rest} of", other, is_long)
        if not isinstance(edge.head, Named) and any(word in other.split() for word in ("that", "whose", "with")):
            return _Clause(f"{are} reached by “{words_of(verb)}” from", other, is_long)  # to be said last
        is_one = isinstance(edge.head, Named)
        said = of_many(without_kind(verb, kind_in_words(schema, row.tail)), negated=negated and is_one, one=is_one)
        return _Clause(said, f"{'no ' if negated and not is_one else ''}{other}", is_long, is_active=False)

    def count(self, block: Block, counted: Count) -> str:
        return f"with {COUNTED[counted.comparison]} {counted.value} such {self.kind(block.types.get(counted.of))}"

    def best(self, best: Best, *, one: bool = False) -> str:
        """What those do that have the most or the least: "have the most beds", "were opened first"."""
        have, be, most = "has" if one else "have", "is" if one else "are", "most" if best.most else "fewest"
        if best.attribute is not None:
            label, unit = attribute_words(best.attribute)
            kind = self.kb.schema.attribute_types.get(best.attribute)
            if is_participle(label, kind):
                return f"{'was' if one else 'were'} {label} {'last' if best.most else 'first'}"
            if is_countable(label) and kind in ("integer", "number") and not unit:
                return f"{have} the {most} {label}"
            ends = ("latest", "earliest") if kind == "date" else ("highest", "lowest")
            return f"{have} the {ends[not best.most]} {label}"
        if best.relation is None:
            return f"{have} the {most} connections"
        schema, row = self.kb.schema, self.kb.schema.relation_rows(best.relation)[0]
        label, kinds = row.display or row.name, counted_in_words(schema, best, 2)
        first, rest, form = verb_of(without_kind(label, singular(kinds)))
        if best.is_head and (form == "noun" or (first == "has" and rest)):
            return f"{have} the {most} {plural(rest.strip())}"
        own, other = (row.head, row.tail) if best.is_head else (row.tail, row.head)
        if best.is_head or row.inverse:
            said, _ = _verb(schema, label if best.is_head else row.inverse, best.of or other, one=one)
            return f"{said} the {most} {kinds}"
        if form == "noun" or (first == "has" and rest):
            return f"{be}{rest} of the {most} {kinds}"
        if form == "be" and rest.endswith((" in", " at", " of", " within")):
            return f"{have} the {most} {kinds}"
        verb = of_many(without_kind(label, kind_in_words(schema, own)))
        return f"{be} the one{'' if one else 's'} that the {most} {kinds} {verb}"

    def kind(self, type: str | None, *, one: bool = False) -> str:
        kind = kind_in_words(self.kb.schema, type)
        return kind if one else plural(kind)

    def names(self, named: Named | NodeSet, word: str = "or", of: str | None = None) -> str:
        nodes = named.nodes if isinstance(named, Named) else named
        names = list(dict.fromkeys(ref.name for ref in self.kb.refs(nodes.array[: MOST_NAMES + 1])))
        more = len(nodes) - MOST_NAMES
        if more > 0 and len(names) > 1:
            names = [*names[:MOST_NAMES], f"{more} more"]
        said = f" {word} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        below = _below(named, of, many=len(names) > 1)
        return f"{said} or {below}" if below else said


def _by_name(edge: Requirement) -> Requirement:
    """A requirement whose names stand for themselves alone."""
    head, tail = (replace(end, expansions=()) if isinstance(end, Named) else end for end in (edge.head, edge.tail))
    return replace(edge, head=head, tail=tail)


def _finite(limit: str, *, one: bool) -> str:
    """A requirement behind a noun as what the noun does: "with 80 beds" → "has 80 beds"."""
    be, have, was = ("is", "has", "was") if one else ("are", "have", "were")
    first, _, rest = limit.partition(" ")
    said = {"with": f"{have} {rest}", "that": f"{be} {rest.removeprefix('are ')}"}
    said |= {"whose": f"{have} a {rest.replace(' is ', ' of ', 1)}", "among": f"{be} {limit}", "other": f"{be} {limit}"}
    return said.get(first, f"{was} {limit}")
