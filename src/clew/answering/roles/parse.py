"""Parse a question into triplets with a model. The prompt shows the schema, and the reply is checked against it.

This is step 1 of 4StepFocus: the model sees the question, all node types and all relations, and returns triplets and
the target variable. Deviation from the paper: structured JSON instead of text split at commas. Large models are asked
for a query of any form instead (formulate.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pydantic import Field

from clew.core import query as ql
from clew.core import trace
from clew.core.errors import ReplyError
from clew.core.roles import Interpretation, Parse, Parser, Rejected
from clew.core.schema import NodeType, Relation, Schema
from clew.models.protocol import LanguageModel
from clew.models.structured import Ask, Prompt, TypedReply, ask, object_schema, read_json
from clew.models.tokens import count_tokens
from clew.store.index.tokens import terms, words_outside

PROMPT = Prompt.load("clew.answering.roles.prompts", "parse")
MOST_TRIPLETS = 20
"""Maximum number of names, of triplets and of conditions. A model that repeats itself writes more."""
RARE_PAIR = 0.02
"""Minimum share of a relation's edges for a pair of types. Rarer pairs are noise and do not decide the direction."""
LONGEST_NAME = 300
"""Maximum characters of a name, and of a quoted part that was rejected."""
ORDERED = ("integer", "number", "date")
"""Types of attributes whose values have an order."""
Comparison = Literal["=", "!=", "<", "<=", ">", ">=", "contains"]


@dataclass(frozen=True)
class ModelParser:
    """Asks a model. If its reply cannot be used, the fallback parser parses the question."""

    model: LanguageModel
    fallback: Parser | None = None

    def parse(self, question: str, schema: Schema) -> Parse:
        """Return the query in the model's reply, checked against the schema."""
        return self.parse_all([question], schema)[0]

    def parse_all(self, questions: Sequence[str], schema: Schema) -> list[Parse]:
        """Parse several questions as one batch."""
        outcomes = ask(self.model, [self._ask(question, schema) for question in questions], role="parse")
        return [
            outcome.value or self._fall_back(question, schema, outcome.problem or "no reply")
            for question, outcome in zip(questions, outcomes, strict=True)
        ]

    def _ask(self, question: str, schema: Schema) -> Ask[Parse]:
        room = self.model.context_tokens // 2
        filled = PROMPT.fill(
            question=question,
            types="\n".join(map(describe_type, schema.node_types)),
            relations=describe_relations(schema, question, room),
            attributes=describe_attributes(schema),
            no_conditions=', "conditions": []' if schema.attribute_types else "",
        )
        return Ask(
            filled,
            lambda completion: read_triplets(completion.text, question, schema),
            salvage=lambda completion: salvage_triplets(completion.text, question, schema),
            schema=reply_schema(schema),
            max_tokens=400,
        )

    def _fall_back(self, question: str, schema: Schema, problem: str) -> Parse:
        if self.fallback is None:
            trace.fallback("parse", problem, "no requirement is taken from the question")
            return Parse(Interpretation.of_text(question), problem=problem)
        trace.fallback("parse", problem, f"parsed by {type(self.fallback).__name__}")
        parse = self.fallback.parse(question, schema)
        return Parse(parse.interpretation, parse.alternatives, parse.rejected, problem)


def describe_type(kind: NodeType, written: Callable[[str], str] = str) -> str:
    """Return the written name of a type, with its label and description."""
    about = [text for text in (kind.label if kind.label != kind.name else "", kind.description) if text]
    return f"- {written(kind.name)}" + (f" ({'; '.join(about)})" if about else "")


def describe_relations(schema: Schema, question: str, tokens: int, written: Callable[[str], str] = str) -> str:
    """Return one line per relation and pair of types. If they do not fit, select by the words of the question."""
    total: dict[str, int] = {}
    for relation in schema.relations:
        total[relation.name] = total.get(relation.name, 0) + relation.count
    rows = [relation for relation in schema.relations if relation.count >= RARE_PAIR * total[relation.name]]
    lines = [_describe(relation, written) for relation in rows]
    if sum(map(count_tokens, lines)) <= tokens:
        return "\n".join(lines)
    asked = set(terms(question))
    order = sorted(range(len(rows)), key=lambda place: (-len(asked & set(terms(lines[place]))), -rows[place].count))
    kept, left = set(), tokens
    for place in order:
        cost = count_tokens(lines[place])
        if cost <= left:
            kept.add(place)
            left -= cost
    trace.fallback("parse", f"{len(rows)} relations do not fit the model's context", f"{len(kept)} are shown")
    return "\n".join(lines[place] for place in sorted(kept))


def _describe(relation: Relation, written: Callable[[str], str]) -> str:
    about = [relation.label] if relation.label != relation.name.replace("_", " ") else []
    about += [f"read backwards: {relation.inverse}"] if relation.inverse else []
    about += [relation.description] if relation.description else []
    head, name, tail = map(written, (relation.head, relation.name, relation.tail))
    shown = f"- {head} -> {name} -> {tail}"
    return shown + (f" ({'; '.join(about)})" if about else "")


def describe_attributes(schema: Schema) -> str:
    """Describe the attributes that conditions may use. Empty if there are none."""
    if not schema.attribute_types:
        return ""
    shown = ", ".join(f"{name} ({kind})" for name, kind in schema.attribute_types.items())
    name, kind = next(iter(schema.attribute_types.items()))
    example = '"comparison": ">=", "value": 3' if kind in ORDERED else '"comparison": "contains", "value": "blue"'
    return (
        f"\nAttributes: {shown}\n"
        f'"conditions" holds requirements on them where the question makes any, such as {{"variable": "?x", '
        f'"attribute": "{name}", {example}}}.\n'
    )


def reply_schema(schema: Schema) -> dict[str, Any]:
    """Return the JSON schema of a reply. It allows only existing relations and types."""
    text = {"type": "string"}
    # A triplet is an object, not an array: the grammars of small servers cannot restrict the values of the second item.
    triplet = object_schema({"head": text, "relation": {"enum": list(schema.relation_names)}, "tail": text})
    variable = object_schema({"name": text, "type": {"enum": list(schema.type_names)}})
    parts: dict[str, Any] = {
        "names": {"type": "array", "items": text},  # first: small models forget names unless they write them down
        "answer": text,
        "variables": {"type": "array", "items": variable},
        "triplets": {"type": "array", "items": triplet},
        "absent": {"type": "array", "items": triplet},
    }
    if schema.attribute_types:
        condition = {
            "variable": text,
            "attribute": {"enum": list(schema.attribute_types)},
            "comparison": {"enum": list(get_args(Comparison))},
            "value": {"type": ["string", "number", "boolean"]},
        }
        parts["conditions"] = {"type": "array", "items": object_schema(condition)}
    return object_schema(parts)


SURE = 0.6
"""Minimum certainty of a reading. Below it, the model parses the question."""


@dataclass(frozen=True)
class ReaderFirst:
    """Parses with the learned reader, and with a model if the reader is not sure."""

    reader: Parser
    model: Parser

    def parse(self, question: str, schema: Schema) -> Parse:
        """Return the reader's query if it is certain and has requirements. Otherwise return the model's query."""
        parse = self.reader.parse(question, schema)
        is_sure = parse.interpretation.is_restricted and (parse.certainty is None or parse.certainty >= SURE)
        return parse if is_sure else self.model.parse(question, schema)


# Replies: names that the schema does not have are rejected with a reason.

Term = ql.Variable | ql.Named


@dataclass(frozen=True)
class Triplet:
    """A required edge, or a forbidden edge if `negated`. Relation None means any relation."""

    head: Term
    relation: str | None
    tail: Term
    negated: bool = False

    @property
    def variables(self) -> dict[str, ql.Variable]:
        """Variables of the triplet by name."""
        return {term.name: term for term in (self.head, self.tail) if isinstance(term, ql.Variable)}

    @property
    def edge(self) -> ql.Edge:
        """The triplet as an edge of a query."""
        head, tail = (term.name if isinstance(term, ql.Variable) else term for term in (self.head, self.tail))
        return ql.Edge(head, self.relation, tail, directed=self.relation is not None)


class _Variable(TypedReply):
    name: str
    type: str


class _Triplet(TypedReply):
    head: str
    relation: str
    tail: str


class _Condition(TypedReply):
    variable: str
    attribute: str
    comparison: Comparison
    value: str | int | float | bool


class _Triplets(TypedReply):
    names: list[str] = Field(default_factory=list, max_length=MOST_TRIPLETS)
    answer: str
    variables: list[_Variable] = Field(default_factory=list)
    triplets: list[_Triplet] = Field(default_factory=list, max_length=MOST_TRIPLETS)
    absent: list[_Triplet] = Field(default_factory=list, max_length=MOST_TRIPLETS)
    conditions: list[_Condition] = Field(default_factory=list, max_length=MOST_TRIPLETS)


def read_triplets(text: str, question: str, schema: Schema) -> Parse:
    """Return the query of a reply. Raise ReplyError listing all names that the schema lacks."""
    parse = _build(read_json(text, _Triplets), question, schema)
    if parse.rejected:
        raise ReplyError("; ".join(f"{rejected.piece}: {rejected.reason}" for rejected in parse.rejected[:4]))
    return parse


def salvage_triplets(text: str, question: str, schema: Schema) -> Parse:
    """Return the valid part of a reply and reject the remaining parts. Raise ReplyError if no part is valid."""
    parse = _build(read_json(text, _Triplets), question, schema)
    if not parse.interpretation.is_restricted and parse.interpretation.type is None:
        raise ReplyError("nothing in the reply fits the schema")
    return parse


@dataclass
class _Reading:
    """Resolves the model's spelling of schema names, and collects rejected parts."""

    schema: Schema
    types: dict[str, str | None]
    """Variable → type."""
    rejected: list[Rejected] = field(default_factory=list)

    def reject(self, piece: str, reason: str) -> None:
        self.rejected.append(Rejected(piece[:LONGEST_NAME], reason))

    def term(self, text: str) -> Term | None:
        text = text.strip()
        if text.startswith("?"):
            return ql.Variable(text[1:], self.types.get(text[1:])) if text[1:].isidentifier() else None
        name = text.strip("\"'[]“” ")
        return ql.Named(name) if name and len(name) <= LONGEST_NAME else None

    def triplet(self, said: _Triplet, *, negated: bool) -> Triplet | None:
        shown = f"({said.head}, {said.relation}, {said.tail})"
        head, tail = self.term(said.head), self.term(said.tail)
        if head is None or tail is None:
            self.reject(shown, "an end is neither ?variable nor a name")
            return None
        if isinstance(head, ql.Named) and isinstance(tail, ql.Named):
            self.reject(shown, "asks for nothing: both ends are names")
            return None
        if head == tail:
            self.reject(shown, "both ends are the same variable")
            return None
        relation = _known(said.relation, self.schema.relation_names)
        if relation is None:
            self.reject(shown, f"there is no relation {said.relation!r}")
            # An edge of unknown relation is still an edge. A forbidden edge of any relation would exclude too much.
            return None if negated else Triplet(head, None, tail)
        return self._directed(Triplet(head, relation, tail, negated), shown)

    def _directed(self, triplet: Triplet, shown: str) -> Triplet | None:
        """Add types to the ends from the relation. Reverse the triplet if only that fits the types."""
        rows = self.schema.relation_rows(triplet.relation or "")
        total = sum(row.count for row in rows)
        usual = [(row.head, row.tail) for row in rows if row.count >= RARE_PAIR * total]
        every = [(row.head, row.tail) for row in rows]
        for pairs, turned in ((usual, False), (usual, True), (every, False), (every, True)):
            head, tail = (triplet.tail, triplet.head) if turned else (triplet.head, triplet.tail)
            fitting = [(h, t) for h, t in pairs if head.type in (None, h) and tail.type in (None, t)]
            if fitting:
                heads, tails = ({pair[side] for pair in fitting} for side in (0, 1))
                return Triplet(_typed(head, heads), triplet.relation, _typed(tail, tails), triplet.negated)
        there = ", ".join(f"{head} to {tail}" for head, tail in every[:4])
        self.reject(shown, f"{triplet.relation} goes from {there}")
        return None

    def fitting(self, triplets: Sequence[Triplet]) -> tuple[Triplet, ...]:
        """Return the triplets that still fit their relation after each variable got one type."""
        kept = []
        for triplet in triplets:
            rows = self.schema.relation_rows(triplet.relation) if triplet.relation else ()
            ends = (triplet.head.type, triplet.tail.type)
            if not rows or any(ends[0] in (None, row.head) and ends[1] in (None, row.tail) for row in rows):
                kept.append(triplet)
            else:
                self.reject(str(ql.Pattern((), (triplet.edge,))), "its variables have other types elsewhere")
        return tuple(kept)


def _build(reply: _Triplets, question: str, schema: Schema) -> Parse:
    reading = _Reading(schema, {})
    for variable in reply.variables:
        name, kind = variable.name.lstrip("? "), _known(variable.type, schema.type_names)
        if kind is None:
            reading.reject(f"?{name}: {variable.type}", f"there is no node type {variable.type!r}")
        elif name in reading.types and reading.types[name] != kind:
            reading.reject(f"?{name}: {variable.type}", f"?{name} is already a {reading.types[name]}")
            continue
        reading.types[name] = kind
    triplets = [reading.triplet(said, negated=False) for said in reply.triplets]
    triplets += [reading.triplet(said, negated=True) for said in reply.absent]
    kept = reading.fitting(_one_type_each([triplet for triplet in triplets if triplet is not None]))
    used = {_plain(term.text) for one in kept for term in (one.head, one.tail) if isinstance(term, ql.Named)}
    for name in reply.names:
        if _plain(name) and _plain(name) not in used:
            reading.reject(name, "is named, but stands in no triplet")
    target = _target(reply.answer, kept, reading)
    conditions = _conditions(reply.conditions, kept, target, reading)
    query = ql.find(target.name, target.type, _pattern(kept, conditions, target.name))
    left = unexplained(question, kept, target, schema)
    return Parse(Interpretation(query, unexplained=left), rejected=tuple(reading.rejected))


def _pattern(triplets: Sequence[Triplet], conditions: Sequence[ql.Formula], target: str) -> ql.Pattern:
    """Return the target's pattern of connected required triplets. A negation contains its other variables."""
    required = [one for one in triplets if not one.negated]
    links = [one.edge for one in required]
    tied = ql.connected(links, [target])
    variables = [variable for one in required for variable in one.variables.values() if variable.name in tied]
    where = [one for one in conditions if _owner(one) in tied]
    for one in triplets:
        if one.negated and tied & one.variables.keys():
            inner = ql.connected(links, one.variables.keys() - tied)
            edges = [one.edge, *(other.edge for other in required if inner & other.variables.keys())]
            own = [other for triplet in triplets for name, other in triplet.variables.items() if name in inner]
            limits = tuple(other for other in conditions if _owner(other) in inner)
            where.append(ql.Not(ql.Exists(ql.Pattern(tuple(own), tuple(edges), limits))))
    edges = [one.edge for one in required if tied & one.variables.keys()]
    return ql.Pattern(tuple(variables), tuple(edges), tuple(where))


def _owner(condition: ql.Formula) -> str:
    assert isinstance(condition, ql.Compare)
    assert isinstance(condition.left, ql.Attribute)
    return condition.left.variable


def _target(answer: str, triplets: Sequence[Triplet], reading: _Reading) -> ql.Variable:
    """Return the variable given as the answer, or the only variable."""
    name = answer.strip().lstrip("? ") or "x"
    variables = {name: one for triplet in triplets for name, one in triplet.variables.items()}
    if name in variables:
        return variables[name]
    if reading.types.get(name) is not None and not variables:
        return ql.Variable(name, reading.types[name])
    if len(variables) == 1:
        return next(iter(variables.values()))
    reading.reject(answer or "(no answer variable)", "no triplet holds this variable")
    return ql.Variable("x") if not variables else next(iter(variables.values()))


def _conditions(
    said: Sequence[_Condition], triplets: Sequence[Triplet], target: ql.Variable, reading: _Reading
) -> tuple[ql.Formula, ...]:
    known = {target.name, *(name for triplet in triplets for name in triplet.variables)}
    kept = []
    for one in said:
        attribute = _known(one.attribute, tuple(reading.schema.attribute_types))
        name = one.variable.strip().lstrip("? ")
        if attribute is None:
            reading.reject(f"{one.variable}.{one.attribute}", f"there is no attribute {one.attribute!r}")
        elif name not in known:
            reading.reject(f"{one.variable}.{one.attribute}", f"there is no variable {one.variable!r}")
        elif one.comparison[0] in "<>" and reading.schema.attribute_types[attribute] not in ORDERED:
            reading.reject(
                f"{one.variable}.{one.attribute}", f"{attribute} is no number or date and cannot be compared"
            )
        else:
            kept.append(ql.Compare(ql.Attribute(name, attribute), one.comparison, ql.Value(one.value)))
    return tuple(dict.fromkeys(kept))


def unexplained(question: str, triplets: Sequence[Triplet], target: ql.Variable, schema: Schema) -> tuple[str, ...]:
    """Return the words of a question that no name, relation or type of the query explains."""
    explained: set[str] = set(terms(target.type or ""))
    for triplet in triplets:
        for term in (triplet.head, triplet.tail):
            explained |= set(terms(term.text if isinstance(term, ql.Named) else ""))
            explained |= set(terms((term.type or "").replace("_", " ")))
        for row in schema.relation_rows(triplet.relation) if triplet.relation else ():
            explained |= set(terms(f"{row.name.replace('_', ' ')} {row.label} {row.inverse}"))
    return tuple(dict.fromkeys(words_outside(question, explained)))


def _one_type_each(triplets: Sequence[Triplet]) -> tuple[Triplet, ...]:
    """Return the distinct triplets. Each variable gets the first type that any of them gives it."""
    types: dict[str, str] = {}
    for triplet in triplets:
        for term in (triplet.head, triplet.tail):
            if isinstance(term, ql.Variable) and term.type is not None:
                types.setdefault(term.name, term.type)

    def typed(term: Term) -> Term:
        return ql.Variable(term.name, types.get(term.name)) if isinstance(term, ql.Variable) else term

    settled = (Triplet(typed(one.head), one.relation, typed(one.tail), one.negated) for one in triplets)
    return tuple(dict.fromkeys(settled))


def _typed(term: Term, kinds: set[str]) -> Term:
    """Return the term, typed if the relation allows only one type."""
    if term.type is not None or len(kinds) != 1:
        return term
    kind = next(iter(kinds))
    return ql.Named(term.text, kind) if isinstance(term, ql.Named) else ql.Variable(term.name, kind)


def _known(said: str, names: Sequence[str]) -> str | None:
    """Return the schema name that matches exactly, or ignoring case, spaces and punctuation."""
    if said in names:
        return said
    plain = _plain(said)
    return next((name for name in names if _plain(name) == plain), None)


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
