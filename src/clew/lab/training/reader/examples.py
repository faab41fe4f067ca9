"""Convert schemas and questions with queries to examples: the right plan, and the target of each head.

A source is a folder with `schemas.jsonl` and `questions.jsonl`, plain or gzipped (`.jsonl.gz`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from clew.answering.queries.parsing import parse
from clew.answering.reading.attribute_values import is_denied
from clew.answering.reading.plan import (
    COMPARISONS,
    FORMS,
    LETTERS,
    OF_VALUES,
    OPERATORS,
    Branch,
    Form,
    Plan,
    Requirement,
)
from clew.answering.reading.quantities import Quantity, quantities
from clew.answering.reading.scoring import COMPARED, TypedSpan, lettered, masked
from clew.answering.reading.vocabulary import Hop, Vocabulary
from clew.core import query as ql
from clew.core.errors import SourceError
from clew.core.query import Comparison
from clew.core.schema import NodeType, Relation, Schema
from clew.lab.datasets.files import find_file, read_records
from clew.lab.training.reader.queries import NoPlanError, means, plan_of
from clew.store.index.tokens import tokenise

Hops = tuple[int, ...]
Triplet = tuple[str, str, str]
DESCRIBED = 0.75
"""Minimum share of described relations for which names without descriptions are too short to train on."""


_SAID: dict[str, Comparison] = {
    "before": "<",
    "after": ">",
    "contains": "contains",
    **{one: one for one in COMPARISONS},
}
"""Operators in the query of a question."""
OF_TEXTS = ("=", "!=", "contains")
"""Operators of a plan for texts and booleans."""
UNSAID = "unsaid"
"""The kind of questions that the schema can answer but no plan can express. Some have a query."""


class _Type(BaseModel):
    name: str
    description: str | None = None
    attributes: list[dict[str, str]] = []


class _Schema(BaseModel):
    name: str = Field(alias="schema")
    types: list[_Type]
    relations: list[dict[str, str | None]]


class _WrittenQuery(BaseModel):
    answer: str | None = None
    variables: dict[str, str] = {}
    triplets: list[Triplet] = []
    any: list[list[Triplet]] = []
    absent: list[Triplet] = []
    conditions: list[tuple[str, str, str, bool | int | float | str]] = []
    aggregate: str | list[str | list[str]] | None = None
    text: str = ""
    """What only a text can say."""


class _Question(BaseModel):
    owner: str = Field(alias="schema")
    kind: str
    question: str
    mentions: list[dict[str, str]]
    query: _WrittenQuery | str | None
    """A query, or its text in the query language; None if the schema cannot answer."""


@dataclass(frozen=True)
class HeadTarget:
    """The target of one head: the right label among all labels, or among the allowed ones."""

    head: str
    text: int
    """Index in the example's texts."""
    right: int
    allowed: Sequence[bool] = ()


@dataclass(frozen=True)
class Example:
    """A question with its names and numbers, and its query as a plan."""

    question: str
    spans: tuple[TypedSpan, ...]
    """The names, in reading order."""
    types: tuple[int, ...]
    """The type of each name."""
    quantities: tuple[Quantity, ...]
    plan: Plan
    is_whole: bool = True
    """Whether the plan covers the whole query."""
    query: ql.AnyQuery | None = None
    """The query with letters for names, if no plan can express it."""
    is_unlinked: bool = False
    """Whether one of the names is not recognised."""

    @property
    def texts(self) -> list[str]:
        """Input texts: the question, then with each name and each number marked."""
        count = len(self.spans)
        dated = [TypedSpan(one.start, one.end, "date" if one.is_date else "number") for one in self.quantities]
        marked = [masked(self.question, self.spans, place) for place in range(count)]
        numbered = [masked(self.question, [*self.spans, one], count) for one in dated]
        return [masked(self.question, self.spans), *marked, *numbered]

    @property
    def asked(self) -> str:
        """The question as input next to a plan."""
        return lettered(self.question, self.spans, self.quantities)

    @property
    def plans(self) -> list[Plan]:
        """All plans that read the question correctly. Empty if no plan can."""
        plan, everyone = self.plan, range(len(self.spans))
        if plan.form == "none" or not self.is_whole:
            return []
        if plan.form == "exists" and plan.target is None:  # from either of two names to the other
            ways = [(branch, other) for branch in plan.branches for other in everyone if other != branch.mention]
            return [replace(plan, branches=(branch,), mentions=(other,)) for branch, other in ways]
        return [plan]

    def unlinked(self, name: int, *, lower: bool) -> Example:
        """Return the question as it is read if one of its names is not recognised: no plan says all of it then."""
        span, places = self.spans[name], [place for place in range(len(self.spans)) if place != name]
        said = self.question[span.start : span.end]
        text = self.question[: span.start] + (said.lower() if lower else said) + self.question[span.end :]
        spans, types = tuple(self.spans[place] for place in places), tuple(self.types[place] for place in places)
        plan = Plan("none", requirements=self.plan.requirements)
        read = replace(self, question=text, spans=spans, types=types, plan=plan)
        return replace(read, is_whole=False, query=None, is_unlinked=True)

    @property
    def categories(self) -> tuple[tuple[int, str], ...]:
        """Attributes with their required text."""
        return self._texts(one for one in self.plan.requirements if one.operator != "contains")

    @property
    def parts(self) -> tuple[tuple[int, str], ...]:
        """Attributes with the text that their values must contain."""
        return self._texts(one for one in self.plan.requirements if one.operator == "contains")

    @staticmethod
    def _texts(required: Iterable[Requirement]) -> tuple[tuple[int, str], ...]:
        pairs = ((one.attribute, one.value) for one in required)
        return tuple((place, value) for place, value in pairs if place is not None and isinstance(value, str))

    @property
    def denied_categories(self) -> frozenset[tuple[int, str]]:
        """Categories that the question negates, according to the reader."""
        before = {one: self.question.lower().partition(one[1].lower())[0] for one in self.categories}
        return frozenset(one for one, text in before.items() if is_denied([token.text for token in tokenise(text)]))

    def hops(self, name: int | None, *, negated: bool = False) -> list[Hops]:
        """Return the paths from a name, or from any node, to the answer."""
        onward = () if self.plan.answer_hop is None else (self.plan.answer_hop,)
        return [(*one.hops, *onward) for one in self.plan.branches if (one.mention, one.negated) == (name, negated)]


@dataclass(frozen=True, eq=False)
class SchemaExamples:
    """A schema's vocabulary and the questions over it."""

    name: str
    vocabulary: Vocabulary
    examples: tuple[Example, ...]

    @cached_property
    def plain_hop_texts(self) -> tuple[str, ...]:
        """Hop texts without descriptions, because many schemas have none. Described if names are too short."""
        schema = self.vocabulary.schema
        if sum(bool(row.description) for row in schema.relations) >= DESCRIBED * len(schema.relations):
            return self.vocabulary.hop_texts
        types = tuple(replace(node_type, description="") for node_type in schema.node_types)
        relations = tuple(replace(row, description="") for row in schema.relations)
        return Vocabulary(Schema(types, relations, schema.attribute_types)).hop_texts

    def targets(self, example: Example) -> list[HeadTarget]:
        """Return the targets of the heads for a question, without paths."""
        if example.plan.form == "none" and not example.is_whole:
            return []
        every = [*self._of_question(example), *self._of_names(example), *self._of_numbers(example)]
        return [one for one in every if not one.allowed or one.allowed[one.right]]

    def _of_question(self, example: Example) -> Iterator[HeadTarget]:
        plan, hops, attributes = example.plan, self.vocabulary.hops, self.vocabulary.attributes
        lacked = example.hops(None, negated=True)
        yield HeadTarget("forms", 0, FORMS.index(plan.form))
        yield HeadTarget("lacking", 0, int(bool(lacked)))
        related = example.hops(None)
        yield HeadTarget("related", 0, int(bool(related)))
        yield HeadTarget("valued", 0, int(plan.asked is not None))
        yield HeadTarget("either", 0, int(plan.either))
        if plan.target is not None:
            target = self.vocabulary.schema.type_names[plan.target]
            end = target if plan.answer_hop is None else hops[plan.answer_hop].end
            yield HeadTarget("type", 0, self.vocabulary.schema.type_code[end])
            if lacked:
                yield HeadTarget("lacked", 0, lacked[0][0], [hop.end == target for hop in hops])
            if related:
                yield HeadTarget("relating", 0, related[0][0], [hop.end == target for hop in hops])
            if plan.hop is not None:
                yield HeadTarget("counted", 0, plan.hop, [hop.start == target for hop in hops])
        if plan.attribute is not None:
            yield HeadTarget("value of answer" if plan.form in OF_VALUES else "extreme", 0, plan.attribute)
        if plan.asked is not None:
            yield HeadTarget("value of answer", 0, plan.asked)
        allowed = [True, *(one.kind == "boolean" for one in attributes)]  # the first means none
        if plan.form != "none" and any(allowed[1:]):
            switch = next((one for one in plan.requirements if isinstance(one.value, bool)), None)
            yield HeadTarget("switch", 0, 1 + (switch.attribute or 0) if switch else 0, allowed)
            if switch:
                yield HeadTarget("positive", 0, int(switch.value is True))

    def _of_names(self, example: Example) -> Iterator[HeadTarget]:
        plan, hops, attributes = example.plan, self.vocabulary.hops, self.vocabulary.attributes
        for index, code in enumerate(example.types):
            kind, denied = self.vocabulary.schema.type_names[code], example.hops(index, negated=True)
            if denied or example.hops(index):
                yield HeadTarget("negated", 1 + index, int(bool(denied)))
            if denied:
                yield HeadTarget("denied", 1 + index, denied[0][0], [hop.start == kind for hop in hops])
            if plan.form == "value" and plan.attribute is not None and plan.mentions == (index,):
                yield HeadTarget("value", 1 + index, plan.attribute, [one.owner == kind for one in attributes])

    def _of_numbers(self, example: Example) -> Iterator[HeadTarget]:
        required = {one.quantity: one for one in example.plan.requirements}
        for index in range(len(example.quantities)):
            text, one = 1 + len(example.spans) + index, required.get(index)
            is_limit = one is not None and one.attribute is None and one.hop is None
            operator = "first" if is_limit else one.operator if one else "-"
            yield HeadTarget("operators", text, OPERATORS.index(operator))
            if one and not is_limit:
                attributes, hops = self.vocabulary.attributes, self.vocabulary.hops
                right = one.attribute if one.attribute is not None else len(attributes) + (one.hop or 0)
                allowed = [attribute.kind in COMPARED for attribute in attributes]
                yield HeadTarget("quantity", text, right, [*allowed, *[True] * len(hops)])


def normal(plan: Plan) -> tuple[object, ...]:
    """Return a key that is equal for equivalent plans."""
    branches = frozenset((branch.mention, branch.hops, branch.negated) for branch in plan.branches)
    required = frozenset((r.attribute, r.operator, r.quantity, str(r.value).lower(), r.hop) for r in plan.requirements)
    target = None if plan.branches or plan.mentions else plan.target
    either = plan.either and len(plan.branches) > 1
    asked = plan.attribute, plan.hop, plan.asked, plan.of_rows, plan.average, plan.through
    return plan.form, target, branches, required, frozenset(plan.mentions), either, asked


def read_sources(sources: Sequence[Path]) -> list[SchemaExamples]:
    """Read the schemas of folders with their examples, sorted by name."""
    schemas: dict[str, _Schema] = {}
    questions: dict[str, list[_Question]] = {}
    for source in sources:
        for schema in read_records(find_file(source / "schemas.jsonl"), _Schema):
            if schema.name in schemas:
                raise SourceError(f"duplicate schema {schema.name!r}: rename one", file=source)
            schemas[schema.name] = schema
        for question in read_records(find_file(source / "questions.jsonl"), _Question):
            if question.owner not in schemas:
                raise SourceError(f"a question uses the unknown schema {question.owner!r}", file=source)
            questions.setdefault(question.owner, []).append(question)
    return [_schema_examples(schemas[name], questions[name]) for name in sorted(questions)]


def _schema_examples(schema: _Schema, questions: Sequence[_Question]) -> SchemaExamples:
    types = tuple(
        NodeType(one.name, 1, description=one.description or "", attributes=tuple(a["name"] for a in one.attributes))
        for one in schema.types
    )
    ends = [{key: text or "" for key, text in row.items()} for row in schema.relations]
    relations = [Relation(e["name"], e["head"], e["tail"], 1, description=e.get("description", "")) for e in ends]
    kinds = {attribute["name"]: attribute["kind"] for one in schema.types for attribute in one.attributes}
    vocabulary = Vocabulary(Schema(types, tuple(relations), kinds))
    return SchemaExamples(schema.name, vocabulary, tuple(_example(one, vocabulary) for one in questions))


def _example(record: _Question, vocabulary: Vocabulary) -> Example:
    found = _names(record, vocabulary)
    spans, types = tuple(span for span, _ in found), {one["name"]: one["type"] for one in record.mentions}
    every = quantities(record.question)
    outside = tuple(one for one in every if not any(one.start < s.end and s.start < one.end for s in spans))
    codes = tuple(vocabulary.schema.type_code[types[name]] for _, name in found)
    example = Example(record.question, spans, codes, outside, Plan("none", either=record.kind == "or"))
    if record.query is None:
        return replace(example, is_whole=record.kind != UNSAID)
    names = [name for _, name in found]
    if isinstance(record.query, str):
        query = parse(record.query)
        try:
            return replace(example, plan=plan_of(query, vocabulary, names, outside))
        except NoPlanError as wrong:
            if record.kind != UNSAID:
                raise SourceError(f"no plan for the query {record.query}: {wrong}") from None
            letters = dict(zip(names, LETTERS, strict=False))
            return replace(example, is_whole=False, query=_lettered(query, letters))
    return _PlanReading(vocabulary, record.query, types | record.query.variables, names).completed(example)


def _lettered(query: ql.AnyQuery, letters: Mapping[str, str]) -> ql.AnyQuery:
    """Return a query with letters for the names of the question."""

    def change(part: Any) -> Any:
        return ql.Named(letters[part.text], part.type) if isinstance(part, ql.Named) and part.text in letters else part

    return ql.rewrite(query, change)


def _names(record: _Question, vocabulary: Vocabulary) -> list[tuple[TypedSpan, str]]:
    """Locate the names, in reading order. Search longer names first, because they may contain others."""
    found: list[tuple[TypedSpan, str]] = []
    for mention in sorted(record.mentions, key=lambda mention: -len(mention["text"])):
        start, length = record.question.find(mention["text"]), len(mention["text"])
        while start >= 0 and any(start < span.end and span.start < start + length for span, _ in found):
            start = record.question.find(mention["text"], start + 1)
        if start >= 0:
            found.append((TypedSpan(start, start + length, vocabulary.type_words(mention["type"])), mention["name"]))
    return sorted(found, key=lambda pair: pair[0].start)[: len(LETTERS)]


@dataclass(frozen=True, eq=False)
class _PlanReading:
    """Converts a query to a plan. Each step also returns whether it covered everything."""

    vocabulary: Vocabulary
    query: _WrittenQuery
    types: dict[str, str]
    """Types of names and variables."""
    names: list[str]

    def completed(self, example: Example) -> Example:
        form, attribute, hop = self._asked()
        paths, has_paths = self._paths(is_counted=hop is not None)
        denied, has_denied = self._denied()
        required, has_required = self._required(example.quantities)
        answer, everyone = self.query.answer, tuple(range(len(self.names)))
        target = None if answer is None else self.vocabulary.schema.type_code[self.types[answer]]
        branches, mentions = (*paths, *denied), everyone if form.startswith("compare") else ()
        if form == "describe" or (form == "value" and not branches):
            mentions = everyone[:1]
        plan = Plan(form, target, branches, required, attribute, hop, mentions, example.plan.either)
        is_whole = has_paths and has_denied and has_required and not self.query.text
        return replace(example, plan=plan, is_whole=is_whole)

    def _asked(self) -> tuple[Form, int | None, int | None]:
        """Return the form, the attribute and the counted hop."""
        match self.query.aggregate:
            case None:
                return "list", None, None
            case ("count" | "exists") as form:
                return form, None, None
            case ["describe", _]:
                return "describe", None, None
            case [("max" | "min" | "value") as form, str(who), str(name)]:
                return form, self._attribute(who, name), None
            case [("most" | "fewest") as form, _, str(relation)]:
                return form, None, self._counted(relation)
            case ["compare", ("max" | "min") as extreme, str(name), [first, *_]]:
                return "compare_max" if extreme == "max" else "compare_min", self._attribute(first, name), None
        raise SourceError(f"unknown aggregate {self.query.aggregate}")

    def _paths(self, *, is_counted: bool) -> tuple[list[Branch], bool]:
        """Return the paths from every name to the answer or, for "are they related", to the other names."""
        query, found, is_whole = self.query, dict[Branch, None](), not (self.query.any and self.query.triplets)
        if query.answer is None and query.aggregate != "exists":
            return [], True
        for triplets in query.any or [query.triplets]:
            used: set[int] = set()
            for index, name in enumerate(self.names):
                for goal in self.names if query.answer is None else [query.answer]:
                    for path, places in self._walks(name, goal, triplets) if goal != name else ():
                        found[Branch(index, path)] = None
                        used.update(places)
            is_whole &= is_counted or len(used) == len(triplets)
        return list(found), is_whole

    def _denied(self) -> tuple[list[Branch], bool]:
        found: list[Branch] = []
        for triplet in self.query.absent:
            other = triplet[2] if triplet[0] == self.query.answer else triplet[0]
            hop = self._hop(triplet, other) if self.query.answer in (triplet[0], triplet[2]) else None
            if hop is not None and (other in self.names or other in self.query.variables):
                found.append(Branch(self.names.index(other) if other in self.names else None, (hop,), negated=True))
        lacked = [one for one in found if one.mention is None]
        return found, len(found) == len(self.query.absent) and len(lacked) < 2

    def _required(self, numbers: Sequence[Quantity]) -> tuple[tuple[Requirement, ...], bool]:
        """Return the requirements. Two conditions on one number, such as a year, mean equality."""
        numeric: dict[int, Requirement] = {}
        found: list[Requirement] = []
        is_whole = True
        for who, name, said, value in self.query.conditions:
            attribute, operator = self._attribute(who, name), _SAID.get(said)
            kind = "" if attribute is None else self.vocabulary.attributes[attribute].kind
            is_second = isinstance(value, bool) and any(isinstance(one.value, bool) for one in found)
            if attribute is None or operator is None or is_second:
                is_whole = False
            elif isinstance(value, bool) or (isinstance(value, str) and kind not in ("number", "date")):
                if isinstance(value, bool) and operator == "!=":
                    operator, value = "=", not value
                is_whole &= operator in OF_TEXTS
                found.append(Requirement(attribute, operator if operator in OF_TEXTS else "=", value=value))
            else:
                free = [p for p, _ in enumerate(numbers) if p not in numeric or operator in ("<=", ">=")]
                place = next((p for p in free if means(numbers[p], value, kind, name)), None)
                is_whole &= place is not None
                if place is not None:
                    own = numeric.setdefault(place, Requirement(attribute, operator, place))
                    numeric[place] = own if own.operator == operator else replace(own, operator="=")
        return (*numeric.values(), *found), is_whole

    def _attribute(self, who: str, name: str) -> int | None:
        every = enumerate(self.vocabulary.attributes)
        return next((place for place, one in every if (one.owner, one.name) == (self.types.get(who), name)), None)

    def _counted(self, relation: str) -> int | None:
        """Return the counted hop from the answer, in the direction of the triplets if they have one."""
        start = self.types.get(self.query.answer or "")
        hops = [(p, h) for p, h in enumerate(self.vocabulary.hops) if (h.relation, h.start) == (relation, start)]
        heads = [head for head, name, _ in self.query.triplets if name == relation]
        direction = "" if not heads else "out" if heads[-1] == self.query.answer else "in"
        return next((p for p, h in hops if h.direction == direction), hops[0][0] if hops else None)

    def _hop(self, triplet: Triplet, start: str) -> int | None:
        head, tail = self.types.get(triplet[0], ""), self.types.get(triplet[2], "")
        is_out = start == triplet[0]
        hop = Hop(triplet[1], "out", head, tail) if is_out else Hop(triplet[1], "in", tail, head)
        return next((index for index, one in enumerate(self.vocabulary.hops) if one == hop), None)

    def _walks(
        self, node: str, goal: str, triplets: Sequence[Triplet], used: tuple[int, ...] = ()
    ) -> Iterator[tuple[Hops, tuple[int, ...]]]:
        """Yield the paths to the goal through variables: the hops, and the triplets used."""
        if node == goal:
            yield (), used
            return
        for index, triplet in enumerate(triplets):
            for here, there in ((triplet[0], triplet[2]), (triplet[2], triplet[0])):
                hop = self._hop(triplet, here) if here == node and index not in used else None
                if hop is not None and (there == goal or there in self.query.variables):
                    for rest, every in self._walks(there, goal, triplets, (*used, index)):
                        yield (hop, *rest), every
