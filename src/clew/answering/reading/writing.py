"""The reader that writes queries: the likeliest ones that a network writes, checked against the base.

1  mentions, numbers and values, as in reader.py
2  a network writes queries for the question (query_writer.py), for up to two assignments of the names
3  queries without results are less likely, and so are comparisons that no value or nearly every value satisfies
4  certainty and unknown names, as in reader.py

A base with a fit of its own prefers the relations and attributes that it learned. Questions in other languages are read
by plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from clew.answering.queries.interpretations import execute
from clew.answering.queries.kinds import check
from clew.answering.queries.query_answers import run_query
from clew.answering.reading.attribute_values import denials, is_denied
from clew.answering.reading.encoders import Floats, ReadQuestion, unit
from clew.answering.reading.meaning import CERTAIN, Meaning, Understanding, Word, explained_part
from clew.answering.reading.mentions import NamedSpan, Sense
from clew.answering.reading.other_languages import encoders_for
from clew.answering.reading.plan import COMPARISONS, LETTERS, Form, Plan, Requirement, Translator, Wording
from clew.answering.reading.quantities import Quantity, quantities
from clew.answering.reading.query_tokens import NUMBERS, VALUES, WORDS, Terms
from clew.answering.reading.query_writer import Draft, QueryWriter, Relevance, SchemaText
from clew.answering.reading.reader import MOST_NUMBERS, Combiner, LearnedReader, Option, assignments, overlaps
from clew.answering.reading.scoring import HEADS, TypedSpan, lettered, masked
from clew.core import query as ql
from clew.core.errors import InputError
from clew.core.roles import Asks, Interpretation
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.tokens import tokenise

MAX_ASSIGNMENTS = 2
"""Maximum number of assignments of names for which queries are written. Each takes as long as a question."""
CLEAR = 0.9
"""Probability of a query for the first assignment from which on no other assignment is tried."""
CHECKED = 3
"""Maximum number of queries that are carried out to see whether they have results."""
EMPTY, NONE_COUNTED = -2.5, -1.0
"""Score change for a query without results, and for one that counts none."""
EXPLAINED = 0.6
"""Minimum share of the words of a question that a query explains, if texts may answer."""
SAYABLE = 0.2
"""Minimum probability of all written queries together for a question that the schema can answer."""
LEAST_PLANNED = 0.4
"""Minimum certainty of a plan that is used because no written query is likely."""
FORMS: Mapping[Asks, Form] = {
    "number": "count",
    "truth": "exists",
    "value": "value",
    "average": "average",
    "sum": "sum",
    "highest": "highest",
    "lowest": "lowest",
    "different": "different",
    "common": "common",
}
"""Forms in the outline of a written query. All others are lists or superlatives."""
OF_ATTRIBUTES = ("value", "value of answer", "extreme", "quantity", "switch")
OF_HOPS = ("only", "first of two", "second of two", "first of three", "third of three", "counted", "relating")
"""Comparisons of the smaller encoder that tell the likeliest parts of a long schema."""
NAMED = 3.0
"""Score added for relations at the type of a name."""
SAID: Mapping[str, str] = {
    "count": "count",
    "sum": "sum",
    "avg": "average",
    "max": "highest",
    "min": "lowest",
    "desc": "most",
    "asc": "least",
    "not": "not",
    "different": "different",
    "-": "difference",
    "group": "each",
    "whether": "exists",
}
"""Words for tokens in the text of a query."""


@dataclass(frozen=True)
class _Posed:
    """A question with one assignment of its names, as the network reads it."""

    asked: str
    """The question with letters for names."""
    named: tuple[NamedSpan, ...]
    senses: tuple[Sense, ...]
    numbers: tuple[Quantity, ...]
    terms: Terms
    links: tuple[tuple[int, int], ...]
    """Attributes with the values that the question may mention, as pairs of indexes."""
    cost: float
    """Log-probability of the assignment."""
    relevance: Relevance


class WritingReader(LearnedReader):
    """Reads questions over one knowledge base by writing queries."""

    kb: KnowledgeBase

    @cached_property
    def writer(self) -> QueryWriter:
        """The network that writes queries."""
        return QueryWriter(self.encoders)

    @cached_property
    def certainty(self) -> Combiner:
        """Computes the certainty of a written query. The combiner of the superclass is for plans."""
        return Combiner.open(self.weights, "writing.json")

    @cached_property
    def text(self) -> SchemaText:
        """The schema as the network reads it."""
        return SchemaText(self.vocabulary)

    def understand(self, question: str, named: Sequence[NamedSpan]) -> Understanding:
        """Return the possible meanings of a question with known mentions."""
        spans = [(one.start, one.end) for one in named]
        encoders = encoders_for(question, spans, self.encoders, self.vocabulary.words)
        if not encoders.reads_english:
            return super().understand(question, named)
        meanings, read = self._meanings(question, named)
        if not meanings:
            alone = self._words_alone(question, named, encoders)
            return Understanding(question, tuple(named), words=tuple(alone), is_sayable=False)
        certainty = self.certainty.certainty(self.features(question, meanings))
        is_sayable = sum(one.share for one in meanings) >= SAYABLE
        if certainty < CERTAIN or not is_sayable:
            planned = super().understand(question, named)
            if planned.certainty >= max(LEAST_PLANNED, certainty) and self._is_query(question, planned.meanings[0]):
                return planned
        best = meanings[0]
        option = Option(best.plan, best.named, best.senses, best.numbers, 0.0, "", "", best.text)
        words = super()._name_words(question, option, read[best.named], certainty)
        return Understanding(
            question, tuple(named), tuple(meanings), certainty, words=tuple(words), is_sayable=is_sayable
        )

    def _is_query(self, question: str, planned: Meaning) -> bool:
        """Return whether a plan says most of a question. Otherwise texts may answer it, if there are any."""
        target = planned.plan.target
        kind = None if target is None else self.schema.type_names[target]
        return explained_part(question, planned) >= EXPLAINED or not self.is_written_about(kind)

    def _name_words(self, question: str, option: Option, read: ReadQuestion, certainty: float) -> list[Word]:
        senses = option.senses or [one.senses[0] for one in option.named]
        relevance = partial(self._relevance, masked(question, self._spans(option.named, senses)), senses)
        read = self.writer.read(read.text, self.text, relevance).question
        return super()._name_words(question, option, read, certainty)

    def _spans(self, named: Sequence[NamedSpan], senses: Sequence[Sense]) -> list[TypedSpan]:
        words = self.vocabulary.type_words
        return [TypedSpan(one.start, one.end, words(s.type)) for one, s in zip(named, senses, strict=True)]

    def _meanings(
        self, question: str, named: Sequence[NamedSpan]
    ) -> tuple[list[Meaning], dict[tuple[NamedSpan, ...], ReadQuestion]]:
        """Return the likeliest readings, the likeliest first, and the question as encoded with each choice of names.

        The probabilities of the readings leave room for other queries.
        """
        chosen = assignments(named, self._value_texts)[:MAX_ASSIGNMENTS]
        total = float(np.logaddexp.reduce([cost for _, cost in chosen]))
        found: dict[str, Meaning] = {}
        encoded: dict[tuple[NamedSpan, ...], ReadQuestion] = {}
        for taken, cost in chosen:
            posed = self._posed(question, taken, cost - total)
            read = self.writer.read(posed.asked, self.text, posed.relevance, posed.terms.values, posed.links)
            encoded.setdefault(posed.named, read.question)
            for draft in self.writer.write(read, posed.terms, self._preferred(question, posed)):
                if draft.query is None or not self._is_valid(draft.query):
                    continue
                one, key = self._meaning(posed, draft), str(draft.query)
                if key in found:
                    one = replace(one, score=float(np.logaddexp(one.score, found[key].score)))
                found[key] = one
            if max((one.share for one in found.values()), default=0.0) >= CLEAR:
                break
        likely = sorted(found.values(), key=lambda one: -one.score)
        if denials(masked(question, self._spans(named, [one.senses[0] for one in named]))):
            likely = _scaled([one for one in likely if _denies(one)], likely) or likely
        likely[:CHECKED] = map(self._checked, likely[:CHECKED])
        return sorted(likely, key=lambda one: -one.score), encoded

    def _is_valid(self, query: ql.AnyQuery) -> bool:
        """Return whether a query only compares and adds up what can be."""
        try:
            check(query, self.schema)
        except InputError:
            return False
        return True

    def _posed(self, question: str, taken: Sequence[tuple[NamedSpan, Sense]], cost: float) -> _Posed:
        taken = taken[: len(LETTERS)]
        numbers = tuple(one for one in quantities(question) if not overlaps(one, taken))[:MOST_NUMBERS]
        named, senses = tuple(one for one, _ in taken), tuple(sense for _, sense in taken)
        tokens = tokenise(question)
        outside = [at for at, one in enumerate(tokens) if not any(n.start <= one.start < n.end for n in named)]
        whole = self.said_values.of(tokens, outside)
        words = {word for _, value in whole for word in value.lower().split()}
        texts = [one.text for one in tokens]
        others = [at for at in outside if texts[at] not in words and not is_denied(texts[:at])]
        parts = self.said_parts.of(tokens, others)
        joined = self._alternatives(whole)
        told = {value: " or ".join(group) for group in joined for value in group}
        values = tuple(dict.fromkeys(told.get(value, value) for _, value in (*whole, *parts)))[: len(VALUES)]
        links, contained = (
            tuple({(at, values.index(text)) for at, value in some if (text := told.get(value, value)) in values})
            for some in (whole, parts)
        )
        options = {values.index(" or ".join(group)): group for group in joined if " or ".join(group) in values}
        translator = Translator(self.vocabulary, named, senses, numbers)

        def conditions(place: int, variable: str, comparison: ql.Comparison, number: int) -> Iterable[ql.Formula]:
            plan, _ = self.extents.fitted(Plan("list", requirements=(Requirement(place, comparison, number),)), numbers)
            return translator.conditions(plan.requirements[0], variable)

        names = [(translator.constant(place), sense.type) for place, sense in enumerate(senses)]
        terms = Terms(names, numbers, values, conditions, frozenset(contained), options)
        spans = self._spans(named, senses)
        relevance = partial(self._relevance, masked(question, spans), senses)
        links = (*links, *contained)
        return _Posed(lettered(question, spans, numbers), named, senses, numbers, terms, links, cost, relevance)

    def _preferred(self, question: str, posed: _Posed) -> Floats | None:
        """Return the scores that the fit of the base adds for its relations and attributes."""
        if self.fitted is None:
            return None
        symbols, pairs = self.text.symbols, self.encoders.heads["pairs"]
        said = masked(question, self._spans(posed.named, posed.senses), 0 if posed.named else None)
        (vector,) = unit(self.encoders.asked([said]))
        found = np.zeros(symbols.size, dtype=np.float32)
        head = "value" if posed.named else "value of answer"
        parts = (
            (symbols.hops, self.vocabulary.hop_texts, "only"),
            (symbols.attributes, self.vocabulary.attribute_texts, head),
        )
        for first, texts, name in parts:
            learned = self.fitted.of(texts)
            if len(learned):
                found[first : first + len(texts)] = learned @ (vector @ pairs[HEADS.index(name)])
        places = symbols.hops + (np.arange(len(self.vocabulary.hops)) ^ 1)  # queries are written towards the names
        found[symbols.hops :] = found[places]
        return found

    def _relevance(self, said: str, senses: Sequence[Sense]) -> Floats:
        """Return how likely a question asks for each token of the schema, by the smaller encoder.

        Relations at the types of its names are likelier than others.
        """
        symbols, labels, pairs = self.text.symbols, self.scorer.labels, self.encoders.heads["pairs"]
        (vector,) = unit(self.encoders.asked([said]))
        found = np.zeros(symbols.size, dtype=np.float32)
        for first, own, heads in (
            (symbols.attributes, labels.attributes, OF_ATTRIBUTES),
            (symbols.hops, labels.hops, OF_HOPS),
        ):
            if len(own):
                scores = np.stack([own @ (vector @ pairs[HEADS.index(head)]) for head in heads])
                found[first : first + len(own)] = (scores - scores.max(axis=1, keepdims=True)).max(axis=0)
        for kind in {sense.type for sense in senses}:
            found[symbols.starting[kind]] += NAMED
        return found

    def _alternatives(self, said: Iterable[tuple[int, str]]) -> list[tuple[str, ...]]:
        """Return the values of each attribute of which the question has several."""
        owners: dict[str, set[int]] = {}
        for place, value in said:
            owners.setdefault(value, set()).add(place)
        groups: dict[int, list[str]] = {}
        for value, places in owners.items():
            if len(places) == 1:
                groups.setdefault(min(places), []).append(value)
        return [tuple(group) for group in groups.values() if len(group) > 1]

    def _meaning(self, posed: _Posed, draft: Draft) -> Meaning:
        """Return a written query as a meaning. Its plan outlines the query."""
        assert draft.query is not None, "only written queries have a meaning"
        asked = interpreted(draft.query)
        compared = tuple(self._compared(draft))
        _, unlikely = self.extents.fitted(Plan("list", requirements=compared), posed.numbers)
        words = [WORDS[token] for token in draft.tokens if token < len(WORDS)]
        used = {NUMBERS.index(word) for word in words if word in NUMBERS} - {one.quantity for one in compared}
        values = tuple(Requirement(None, "=", value=posed.terms.values[VALUES.index(w)]) for w in words if w in VALUES)
        limits = tuple(Requirement(None, "<=", number) for number in sorted(used))
        is_sorted = "asc" in words or "desc" in words
        form = FORMS.get(asked.asks if asked else "columns", "max" if is_sorted else "list")
        outline = Plan(form, requirements=(*compared, *values, *limits))
        score, text = posed.cost + draft.score + unlikely, self._said(draft, posed)
        return Meaning(
            outline, posed.named, posed.senses, posed.numbers, score, draft.score, text, asked or draft.query
        )

    def _compared(self, draft: Draft) -> Iterator[Requirement]:
        """Yield the comparisons of attributes with numbers of the question."""
        symbols = self.text.symbols
        for word, own, _, number in zip(*(draft.tokens[start:] for start in range(4)), strict=False):
            is_compared = word < symbols.types and symbols.attributes <= own < symbols.hops and number < symbols.types
            if is_compared and WORDS[word] in COMPARISONS and WORDS[number] in NUMBERS:
                comparison = cast(ql.Comparison, WORDS[word])
                yield Requirement(own - symbols.attributes, comparison, NUMBERS.index(WORDS[number]))

    def _said(self, draft: Draft, posed: _Posed) -> str:
        """Return the parts of a query in words, with letters for its names."""
        symbols, known, wording = self.text.symbols, self.vocabulary, Wording(self.vocabulary)
        said = []
        for token in draft.tokens:
            word = WORDS[token] if token < symbols.types else ""
            if token >= symbols.hops:
                said.append(wording.hop((token - symbols.hops) ^ 1))
            elif token >= symbols.attributes:
                said.append(known.attributes[token - symbols.attributes].words)
            elif token >= symbols.types:
                said.append(known.type_words(known.schema.type_names[token - symbols.types]))
            elif word in VALUES:
                said.append(posed.terms.values[VALUES.index(word)].lower())
            elif word in SAID or word in LETTERS or word in COMPARISONS:
                said.append(SAID.get(word, word))
        return " ".join(said)

    def _checked(self, one: Meaning) -> Meaning:
        """Return a meaning with a lower score if its query has no results.

        Two names at the same relation are those of one row if a row has both: "diseases with both A and B".
        """
        if self.kb.described is None:
            return one
        if isinstance(one.asked, Interpretation):
            pattern = in_one_row(one.asked.query.pattern, one.asked.variable)
            if pattern != one.asked.query.pattern:
                joined = replace(one.asked, query=replace(one.asked.query, pattern=pattern))
                with suppress(InputError):
                    if len(execute(self.kb, self.names, joined).nodes):
                        return replace(one, asked=joined)
        try:
            if isinstance(one.asked, Interpretation):
                found = execute(self.kb, self.names, one.asked)
                is_counted = one.asked.asks in ("number", "truth")
                change = 0.0 if len(found.nodes) and found.is_answer else NONE_COUNTED if is_counted else EMPTY
            else:
                assert one.asked is not None, "written queries are kept"
                change = EMPTY if run_query(self.kb, self.names, one.asked).is_empty else 0.0
        except InputError:  # too large, or values that cannot be compared
            change = EMPTY
        return replace(one, score=one.score + change)


def in_one_row(pattern: ql.Pattern, variable: str) -> ql.Pattern:
    """Return a pattern in which rows that the same edge leads to, and that have names, are one row."""
    named = {end for edge in pattern.edges if len(edge.variables) == 1 for end in edge.variables} - {variable}
    ways: dict[object, str] = {}
    same: dict[str, str] = {}
    for edge in pattern.edges:
        for end in set(edge.variables) & named:
            rest = replace(edge, head="", name=None) if edge.head == end else replace(edge, tail="", name=None)
            if len(edge.variables) > 1:
                same[end] = ways.setdefault((rest, edge.head == end), end)

    def change(part: Any) -> Any:
        match part:
            case ql.Edge():
                head, tail = (same.get(one, one) if isinstance(one, str) else one for one in (part.head, part.tail))
                return replace(part, head=head, tail=tail)
            case ql.Variable() | ql.Var():
                return replace(part, name=same.get(part.name, part.name))
            case ql.Attribute():
                return replace(part, variable=same.get(part.variable, part.variable))
        return part

    found = ql.rewrite(pattern, change)
    return replace(found, edges=tuple(dict.fromkeys(found.edges))) if found != pattern else pattern


def _scaled(some: Sequence[Meaning], among: Sequence[Meaning]) -> list[Meaning]:
    """Return some readings with the probability of all of them."""
    total, left = (float(np.logaddexp.reduce([one.score for one in part])) for part in (among, some))
    return [replace(one, score=one.score + total - left) for one in some]


def _denies(one: Meaning) -> bool:
    """Return whether a query denies something, or compares with a number, as in "not more than"."""
    is_compared = any(required.quantity is not None for required in one.plan.requirements)
    parts = ql.walk(one.asked.query if isinstance(one.asked, Interpretation) else one.asked)
    return is_compared or any(
        isinstance(part, ql.Not | ql.Missing) or getattr(part, "comparison", "") == "!=" or part == ql.Value(False)
        for part in parts
    )


OF_VALUES: Mapping[str, Asks] = {"avg": "average", "sum": "sum", "max": "highest", "min": "lowest"}


def interpreted(query: ql.AnyQuery) -> Interpretation | None:
    """Return a query for nodes with the result requested about them. None if the query asks for something else."""
    if not isinstance(query, ql.Query) or query.having or query.skip:
        return None
    columns = [column.expression for column in query.columns]

    def asking(
        name: str, asks: Asks, attribute: str | None = None, amount: ql.Expression | None = None
    ) -> Interpretation:
        found = ql.find(name, query.pattern.types.get(name), query.pattern)
        found = replace(found, order=query.order, first=query.first, ties=query.ties)
        return Interpretation(found, asks, attribute, amount=amount)

    if query.group:
        return _grouped(query, columns)
    match columns:
        case [ql.Var(name)]:
            return asking(name, "nodes")
        case [ql.Aggregate("exists", None, _, None)] if not query.order:
            return asking(query.pattern.variables[0].name, "truth")
        case [ql.Aggregate("count", ql.Var(name), _, None)]:
            return asking(name, "number")
        case [ql.Aggregate("count", ql.Attribute(name, attribute), True, None)]:
            return asking(name, "different", attribute)
        case [ql.Aggregate(function, ql.Attribute(name, attribute) as value, _, None)] if function in OF_VALUES:
            return asking(name, OF_VALUES[function], attribute, value)
        case [ql.Aggregate(function, ql.Call(read, (ql.Attribute(name, attribute),)) as value, _, None)] if (
            function in OF_VALUES and read in ql.READING
        ):
            return asking(name, OF_VALUES[function], attribute, value)
        case [ql.Var(name), ql.Aggregate(over=ql.Pattern()) as amount] if all(
            key.expression == amount for key in query.order
        ):
            order = query.order or (ql.Order(amount, descending=True),)
            found = asking(name, "each")
            return replace(found, query=replace(found.query, order=order))
    shown = [one for one in columns if isinstance(one, ql.Attribute)]
    owners = {one.variable for one in shown} | {one.name for one in columns if isinstance(one, ql.Var)}
    others = [one for one in columns if not isinstance(one, ql.Attribute | ql.Var)]
    if not shown or others or len(owners) != 1:
        return None
    first, *rest = shown
    more = tuple(one.name for one in rest)
    return replace(asking(first.variable, "columns" if more else "value", first.name), more=more)


def _grouped(query: ql.Query, columns: Sequence[ql.Expression]) -> Interpretation | None:
    """Return a query for the number of nodes with each value, or for the most common value."""
    key = query.group[0]
    if not isinstance(key, ql.Attribute) or len(query.group) > 1:
        return None
    counted = ql.Aggregate("count", ql.Var(key.variable), distinct=True)
    keys = [one for one in columns if one != counted]
    if keys != [key] or any(one.expression != counted for one in query.order):
        return None
    found = ql.find(key.variable, query.pattern.types.get(key.variable), query.pattern)
    if query.first is None:
        return Interpretation(found, "each", key.name)
    is_most = query.first == 1 and bool(query.order) and query.order[0].descending
    return Interpretation(found, "common", key.name) if is_most else None
