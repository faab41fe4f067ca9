"""Questions of the other forms of the query language, made of relational requirements and worded by its printer.

1. Draw a relational requirement, which is a query for nodes.
2. Change the query: count, order, group, compare or combine its nodes.
3. Execute the query and put it into words.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from clew.answering.queries.execution import execute
from clew.answering.queries.kinds import NUMERIC
from clew.answering.queries.words import words
from clew.core import query as ql
from clew.core.types import NodeRef
from clew.lab.synthesis.records import gold_rows, leaks, names_of
from clew.lab.synthesis.requirement import TARGET, GraphRequirement, Sampler
from clew.lab.synthesis.templates import Template

OPENINGS = ("Show {}.", "List {}.", "Find {}.", "Please give me {}.", "I would like to see {}.")
VALUE_OPENINGS = ("What is {}?", "Tell me {}.", "Please work out {}.")
TRIES = 30
"""Number of draws for one question before its form is given up."""
LONGEST_VALUE = 40
"""Maximum length of a value in a question, in characters."""
MAX_ANSWERS = 200
"""Maximum number of nodes that a question may ask for."""


@dataclass(frozen=True)
class _Maker:
    """Changes drawn queries. A method returns None if the base does not allow its form."""

    sampler: Sampler
    templates: Sequence[Template]
    rng: random.Random

    def draw(self, target: str | None = None) -> GraphRequirement | None:
        fitting = [one for one in self.templates if target in (None, one.target)]
        return self.sampler.draw(self.rng.choice(fitting), self.rng, with_text=True) if fitting else None

    def attribute(self, kind: str, *kinds: str) -> ql.Attribute | None:
        """Return an attribute of a node type whose values are of some kinds."""
        schema = self.sampler.kb.schema
        names = [
            name
            for name in schema.node_type(kind).attributes
            if schema.attribute_types[name] in kinds and name in self.short
        ]
        return ql.Attribute(TARGET, self.rng.choice(names)) if names else None

    @cached_property
    def short(self) -> frozenset[str]:
        """Attributes whose values can be said in a question."""
        kb = self.sampler.kb
        return frozenset(
            name
            for name in kb.schema.attribute_types
            if all(len(str(value)) <= LONGEST_VALUE for value in kb.distinct(name)[:1_000])
        )

    # Forms

    def number(self, drawn: GraphRequirement) -> ql.AnyQuery | None:
        return _value(drawn.query, ql.Aggregate("count", ql.Var(TARGET), distinct=True))

    def aggregate(self, drawn: GraphRequirement) -> ql.AnyQuery | None:
        key = self.attribute(drawn.template.target, *NUMERIC)
        names: tuple[ql.AggregateName, ...] = ("avg", "sum", "min", "max")
        return None if key is None else _value(drawn.query, ql.Aggregate(self.rng.choice(names), key))

    def different(self, drawn: GraphRequirement) -> ql.AnyQuery | None:
        key = self.attribute(drawn.template.target, "text", "integer")
        return None if key is None else _value(drawn.query, ql.Aggregate("count", key, distinct=True))

    def common(self, drawn: GraphRequirement) -> ql.AnyQuery | None:
        key = self.attribute(drawn.template.target, "text", "integer", "boolean")
        if key is None:
            return None
        most = ql.Order(ql.Aggregate("count", ql.Var(TARGET), distinct=True), descending=True)
        return replace(_value(drawn.query, key), group=(key,), order=(most,), first=1, ties=True)

    def order(self, drawn: GraphRequirement) -> ql.AnyQuery | None:
        key = self.attribute(drawn.template.target, *NUMERIC, "date")
        return None if key is None else replace(drawn.query, order=(ql.Order(key, self.rng.random() < 0.5),))

    def first(self, drawn: GraphRequirement) -> ql.AnyQuery | None:
        ordered = self.order(drawn)
        if not isinstance(ordered, ql.Query):
            return None
        return replace(ordered, first=self.rng.randint(1, min(5, len(drawn.possible))), ties=True)

    def condition(self, drawn: GraphRequirement) -> ql.AnyQuery | None:
        key = self.attribute(drawn.template.target, *NUMERIC, "text", "boolean")
        if key is None:
            return None
        values = [one for one in self.sampler.kb.values(drawn.candidates, key.name) if one is not None]
        if not values:
            return None
        value = self.rng.choice(values)
        is_number = not isinstance(value, str | bool)
        test = ql.Compare(key, self.rng.choice((">=", "<=")) if is_number else "=", ql.Value(value))
        return replace(drawn.query, pattern=ql.requiring(drawn.query.pattern, test))

    def compared(self, drawn: GraphRequirement) -> ql.AnyQuery | None:
        kind = drawn.template.target
        key = self.attribute(kind, *NUMERIC)
        if key is None:
            return None
        every = ql.Query(
            (ql.Column(ql.Aggregate("avg", ql.Attribute("y", key.name))),), ql.Pattern((ql.Variable("y", kind),))
        )
        test = ql.Compare(key, self.rng.choice((">", "<")), ql.Subquery(every))
        return replace(drawn.query, pattern=ql.requiring(drawn.query.pattern, test))

    def columns(self, drawn: GraphRequirement) -> ql.AnyQuery | None:
        key = self.attribute(drawn.template.target, "text", "date", *NUMERIC)
        return None if key is None else replace(drawn.query, columns=(ql.Column(ql.Var(TARGET)), ql.Column(key)))

    def combined(self, drawn: GraphRequirement) -> ql.AnyQuery | None:
        other = self.draw(drawn.template.target)
        operations: tuple[ql.SetOperation, ...] = ("union", "intersect", "except")
        if other is None or other.identity == drawn.identity:
            return None
        return ql.Combined(self.rng.choice(operations), drawn.query, other.query)

    def each(self, drawn: GraphRequirement) -> ql.AnyQuery | None:
        number = self.neighbors(drawn)
        if number is None:
            return None
        return replace(drawn.query, columns=(ql.Column(ql.Var(TARGET)), ql.Column(number, "number")))

    def having(self, drawn: GraphRequirement) -> ql.AnyQuery | None:
        number = self.neighbors(drawn)
        if number is None:
            return None
        test = ql.Compare(number, ">=", ql.Value(self.rng.randint(2, 4)))
        return replace(drawn.query, pattern=ql.requiring(drawn.query.pattern, test))

    def neighbors(self, drawn: GraphRequirement) -> ql.Aggregate | None:
        """Return the number of nodes that one relation joins to the answer."""
        kind = drawn.template.target
        rows = [row for row in self.sampler.kb.schema.relations if kind in (row.head, row.tail)]
        if not rows:
            return None
        row = self.rng.choice(rows)
        ends = (TARGET, "other") if row.head == kind else ("other", TARGET)
        other = ql.Variable("other", row.tail if row.head == kind else row.head)
        over = ql.Pattern((other,), (ql.Edge(ends[0], row.name, ends[1]),))
        return ql.Aggregate("count", ql.Var("other"), distinct=True, over=over)


FORMS: dict[str, Callable[[_Maker, GraphRequirement], ql.AnyQuery | None]] = {
    form.__name__: form
    for form in (
        *(_Maker.number, _Maker.aggregate, _Maker.different, _Maker.common, _Maker.order, _Maker.first),
        *(_Maker.condition, _Maker.compared, _Maker.columns, _Maker.combined, _Maker.each, _Maker.having),
    )
}
"""Forms of the query language beyond relational requirements."""


def _value(query: ql.Query, part: Any) -> ql.Query:
    return replace(query, columns=(ql.Column(part),), distinct=False)


def form_rows(
    sampler: Sampler, templates: Sequence[Template], forms: Sequence[str], count: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield up to `count` questions of the forms in turn. Forms that the base does not allow are left out."""
    maker, seen, left = _Maker(sampler, templates, random.Random(f"{seed}|forms")), set[str](), list(forms)
    done = 0
    while done < count and left:
        for form in list(left):
            rows = (row for _ in range(TRIES) if (row := _row(maker, form)) is not None and row["question"] not in seen)
            row = next(rows, None)
            if row is None:
                left.remove(form)
            elif done < count:
                done += 1
                seen.add(row["question"])
                yield row


def _row(maker: _Maker, form: str) -> dict[str, Any] | None:
    kb, drawn = maker.sampler.kb, maker.draw()
    query = None if drawn is None else FORMS[form](maker, drawn)
    if query is None or drawn is None:
        return None
    rows = gold_rows(kb, query)
    nodes = [row[0] for row in execute(kb, query).rows if isinstance(row[0], NodeRef)]
    is_value = len(rows) == 1 and not nodes and rows[0][0] not in (None, 0)
    if not (is_value or 0 < len(nodes) <= MAX_ANSWERS):
        return None
    said = words(query, kb.schema, lambda key: kb.refs([kb.find(key)])[0].name)
    opening = maker.rng.choice(VALUE_OPENINGS if is_value else OPENINGS)
    question = f"O{said[1:]}." if said.startswith("of ") else opening.format(said)
    if any(leaks(question, names_of(kb, node.id)) for node in nodes):
        return None
    entities = [{"key": ref.key, "name": ref.name, "type": ref.type} for ref in drawn.entities.values()]
    keys = list(dict.fromkeys(node.key for node in nodes))
    return {
        "question": question,
        "answers": keys,
        **({"value": rows[0][0]} if is_value else {"rows": rows}),
        "type": form,
        "topics": [ref.name for ref in drawn.entities.values()],
        "template": f"{form} of {drawn.template.name}",
        "metapath": str(drawn.template),
        "answer_type": drawn.template.target,
        "role": "user",
        "entities": entities,
        "query": str(query),
        "relational_set": keys,
        "gold": keys[0] if keys else None,
        "paths": {},
        "textual": None,
        "votes": {},
        "wording": {"how": "printer", "relational": said},
        "node_ids": sorted({node.id for node in nodes}),
    }
