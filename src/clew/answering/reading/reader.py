"""The learned reader: convert a question over any schema to possible queries with their probabilities.

1  mentions: names in the question with the nodes they may refer to, numbers and dates, values of categories
2  scores: one encoder compares the question, with masked names, to every hop, attribute and type of the schema
3  plans: the likeliest combinations for which the graph has an answer
4  choice: another encoder reads the question together with the best plans in words, and scores the plans and "none"
5  certainty: the share of such readings that were right on held-out schemas, including unanswerable questions

Except for numbers and dates, the code contains no schema and no English words. The weights were trained on questions
over many schemas.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from itertools import islice
from operator import and_
from pathlib import Path

import numpy as np

from clew.answering.queries.linking import descendants, hierarchies
from clew.answering.reading.attribute_values import Extents, SaidParts, SaidValues, denials, is_denied
from clew.answering.reading.encoders import SHIPPED, Encoders, ReadQuestion
from clew.answering.reading.fitted import Fitted
from clew.answering.reading.meaning import (
    SPELLED_ALIKE,
    Meaning,
    NameWords,
    SchemaTerms,
    Understanding,
    Word,
    are_like,
    explained_part,
    joined,
    unknown_spans,
    windows,
)
from clew.answering.reading.mentions import MARKED, MOST_NAMED, NamedSpan, Sense, close_names, find_named, linked
from clew.answering.reading.other_languages import encoders_for
from clew.answering.reading.plan import LETTERS, Plan, Wording
from clew.answering.reading.proposals import SUPERLATIVES, Proposal, Proposer
from clew.answering.reading.quantities import Quantity, asks_for, joint, quantities, steps
from clew.answering.reading.scoring import Labels, QuestionScorer, TypedSpan, lettered, masked, shared_words
from clew.answering.reading.vocabulary import TouchedSchemas, Vocabulary, is_huge, is_key
from clew.core.amounts import kind_of_texts
from clew.core.schema import Schema
from clew.core.types import Direction, NodeSet, UnknownName
from clew.store.graph.protocol import Explorable, Way, is_sparql
from clew.store.graph.tables import ROW
from clew.store.index.names import schema_words
from clew.store.index.protocol import Names
from clew.store.index.tokens import tokenise

PLANS = 16
"""Maximum number of plans per assignment of names."""
CHOSEN_AMONG = 7
"""Maximum number of plans to choose among. The budget may allow fewer."""
BUDGET = 220
"""Maximum number of tokens for the choice. The choice takes almost all of the time of a question."""
ASSIGNMENTS = 3
"""Maximum number of assignments of names that are ambiguous or may be ordinary words."""
LESSER = -0.7
"""Score change for taking the second sense of a name."""
IGNORED = {True: -2.5, False: -1.2}
"""Score change for taking a doubtful name as an ordinary word: if a node has exactly this name, and if not."""
SURELY = 0.99
"""Probability of negation for a name joined with another name by a word that negates both."""
MOST_VALUES, LONGEST_VALUE = 60, 40
"""Maximum number of different values, and characters of each, of a text attribute that counts as a category."""
MOST_LETTERS, LONGEST_PHRASE = 300_000, 80
"""Maximum number of letters in the values of a text attribute, and in a value on average, for conditions on parts of
its values. Parts of longer texts, such as comments, tell little."""
IN_BRACKETS = re.compile(r"((?:[^\W\d][\w'-]*\s+){1,3})\(([^()]+)\)")
"""Up to three words with an explanation in brackets."""
MOST_NUMBERS = 6
"""Maximum number of numbers and dates to read. Each is compared with every attribute."""
SAMPLED = 200
"""Maximum number of texts of an attribute to examine for numbers and dates."""
WRITTEN = 0.3
"""Minimum share of nodes with a text for questions that may be about texts."""
MOST_STARTS = 2_000
"""Maximum number of start nodes for a join by the endpoint. The reader follows larger sets step by step."""
DROPPED = 0.2
"""Minimum certainty left to a reading that ignores a possible name."""
LARGE = 200_000
"""Number of nodes from which on paths of three hops are not checked for results."""


@dataclass(frozen=True)
class _Texts:
    """What the texts of an attribute contain."""

    kind: str
    """Whether they are texts, numbers or dates."""
    few: tuple[str, ...]
    """The distinct values if they are few and short."""
    parts: tuple[str, ...]
    """The distinct values in lower case if they are not too long together."""

    @staticmethod
    def of(values: Sequence[object], kind: str) -> _Texts:
        """Examine the distinct values of an attribute of the kind text or list."""
        texts = [value for value in values if isinstance(value, str) and value]
        is_few = len(texts) <= MOST_VALUES and all(len(text) <= LONGEST_VALUE for text in texts)
        letters = sum(map(len, texts))
        is_searched = kind == "text" and letters <= min(MOST_LETTERS, LONGEST_PHRASE * len(texts))
        return _Texts(
            kind=kind_of_texts(list(islice(values, SAMPLED))) if kind == "text" else "text",
            few=tuple(sorted(texts)) if is_few else (),
            parts=tuple(text.lower() for text in texts) if is_searched else (),
        )


@dataclass(frozen=True)
class Option:
    """A plan before the choice: its parts, their total score, and its words."""

    plan: Plan
    named: tuple[NamedSpan, ...]
    senses: tuple[Sense, ...]
    numbers: tuple[Quantity, ...]
    prior: float
    asked: str
    """The question with letters for names."""
    said: str
    """The question without names."""
    text: str


@dataclass(frozen=True)
class Combiner:
    """Computes the certainty of a reading. Fitted on held-out schemas."""

    weights: dict[str, float] = field(default_factory=dict)
    bias: float = 0.0

    @classmethod
    def open(cls, folder: Path, name: str = "combiner.json") -> Combiner:
        """Read the fitted weights, or return a plain combiner if the folder has none."""
        file = folder / name
        return cls(**json.loads(file.read_text("utf-8"))) if file.is_file() else cls()

    def certainty(self, features: dict[str, float]) -> float:
        """Return the probability that the first meaning is right."""
        if not self.weights:
            return features["share"] * features["readable"]
        total = self.bias + sum(weight * features[name] for name, weight in self.weights.items())
        return float(1 / (1 + np.exp(-total)))


class LearnedReader:
    """Reads questions over one knowledge base."""

    def __init__(
        self,
        kb: Explorable,
        names: Names,
        *,
        weights: Path = SHIPPED,
        cache: Path | None = None,
        schema: Schema | None = None,
    ) -> None:
        """Create a reader. `weights` is the folder of the weights, `cache` a folder for the schema's vectors.

        `schema` is a part of the base's schema if the reader should not use all of it.
        """
        self.kb, self.names, self.weights, self.cache = kb, names, weights, cache
        self._joining = kb if is_sparql(kb) else None
        self.schema = schema or kb.schema
        self.encoders = shared_encoders(weights)
        self.combiner = Combiner.open(weights)
        self.name_words = NameWords.open(weights)
        self._remembered: dict[str, Understanding] = {}
        self._written: dict[str | None, bool] = {}

    @cached_property
    def _texts(self) -> dict[str, _Texts]:
        """What each text or list contains."""
        known, kinds = self.kb.described, self.schema.attribute_types
        if known is None:
            return {}
        every = {name: kind for name, kind in kinds.items() if kind in ("text", "list")}
        return {name: _Texts.of(known.distinct(name), kind) for name, kind in every.items()}

    @cached_property
    def values(self) -> dict[str, tuple[str, ...]]:
        """Distinct values of every text or list with few values."""
        return {name: texts.few for name, texts in self._texts.items() if texts.few}

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The parts of queries over this schema."""
        written = {name: texts.kind for name, texts in self._texts.items() if texts.kind != "text" and not is_key(name)}
        return Vocabulary(self.schema, frozenset(self.values), written, self._flags, self._ordered)

    @cached_property
    def _flags(self) -> frozenset[str]:
        """Integer attributes with the values 0 and 1 only."""
        known, whole = self.kb.described, [n for n, kind in self.schema.attribute_types.items() if kind == "integer"]
        return frozenset(name for name in whole if known is not None and {*known.distinct(name)} - {None} == {0, 1})

    @cached_property
    def _ordered(self) -> str | None:
        """The type of the nodes if they are the rows of a table in an order."""
        known, heads = self.kb.described, {row.head for row in self.schema.relations} or set(self.schema.type_names)
        if known is None or len(heads) != 1:
            return None
        first = NodeSet(known.nodes(min(heads)).array[:1])
        return None if known.values(first, ROW) == [None] else min(heads)

    @cached_property
    def said_values(self) -> SaidValues:
        """Finds attribute values in questions."""
        return SaidValues(self.vocabulary, self.values)

    @cached_property
    def said_parts(self) -> SaidParts:
        """Finds words of attribute values in questions."""
        texts = {name: one.parts for name, one in self._texts.items() if one.parts and not is_key(name)}
        return SaidParts(self.vocabulary, texts)

    @cached_property
    def extents(self) -> Extents:
        """Value ranges of the attributes."""
        return Extents(self.kb, self.vocabulary)

    @cached_property
    def fitted(self) -> Fitted | None:
        """The reader fit of this base."""
        return Fitted.beside(self.kb, self.encoders.version)

    @cached_property
    def scorer(self) -> QuestionScorer:
        """Compares questions with the schema."""
        labels = Labels(self.vocabulary, self.encoders, self.cache, self.fitted)
        return QuestionScorer(self.vocabulary, self.encoders, labels)

    @cached_property
    def proposer(self) -> Proposer:
        """Builds plans."""
        return Proposer(self.vocabulary)

    def over(self, question: str) -> LearnedReader:
        """Return the reader for a question. For a huge schema, it covers only the part relevant to the question."""
        if not is_huge(self.schema):
            return self
        touched = self._touched.of(question, find_named(question, self.kb, self.names)[1])
        return type(self)(self.kb, self.names, weights=self.weights, schema=touched)

    @cached_property
    def _touched(self) -> TouchedSchemas:
        return TouchedSchemas(self.kb)

    def is_written_about(self, kind: str | None) -> bool:
        """Return whether enough nodes of a type have a text, so that texts can answer."""
        if kind not in self._written:
            known = self.kb.described
            self._written[kind] = known is not None and known.written_share(kind) >= WRITTEN
        return self._written[kind]

    def read(self, question: str) -> Understanding:
        """Return the possible meanings of a question over this base. Cache recent results."""
        known = self._remembered.get(question)
        if known is None:
            plain, named = find_named(question, self.kb, self.names)
            known = self._with_unknown(self.understand(plain, named), MARKED.findall(question))
            if len(self._remembered) >= 64:
                self._remembered.clear()
            self._remembered[question] = known
        return known

    def _with_unknown(self, known: Understanding, marked: Sequence[str]) -> Understanding:
        """Add the names that are missing in the base. First try to link likely names by a less similar spelling."""
        known = self._without_explained(known)
        question, linked_texts = known.question, {one.text for one in known.named}
        texts = [one for one in marked if one not in linked_texts and not are_like(one, self._schema_terms.words)]
        if not texts:
            spans = unknown_spans(known, self._schema_terms.words) or self._spelled_alike(known)
            added = [one for span in spans if (one := self._as_name(known, *span)) is not None]
            if added:
                apart = [one for one in known.named if not any(one.start < a.end and a.start < one.end for a in added)]
                again = self.understand(question, sorted([*apart, *added], key=lambda one: one.start)[:MOST_NAMED])
                known = self._without_explained(again) if again.certainty >= known.certainty else known
            known = self._without_words_of_texts(known)
            spans = unknown_spans(known, self._schema_terms.words)
            texts = [question[a:b] for a, b in spans if not any(a < one.end and one.start < b for one in added)]
        unknown = tuple(UnknownName(text, close_names(text, self.names)) for text in texts if not self._has(text))
        left = 1 - max((word.likely for word in known.words), default=0.0)
        certainty = max(known.certainty * left, min(known.certainty, DROPPED))
        return replace(known, unknown=unknown, certainty=certainty)

    def _without_explained(self, known: Understanding) -> Understanding:
        """Remove words of required values, and words before a name or value in brackets: "Jamaican (JAM)"."""
        spans = [
            match.span(1)
            for match in IN_BRACKETS.finditer(known.question)
            if match[2].lower() in self._value_texts
            or any(one.start < match.end(2) and match.start(2) < one.end for one in known.named)
        ]
        required = known.meanings[0].plan.requirements if known.meanings else ()
        values = {word for one in required if isinstance(one.value, str) for word in one.value.lower().split()}
        kept = [one for one in known.words if not any(start <= one.start < end for start, end in spans)]
        return replace(known, words=tuple(one for one in kept if one.text not in values))

    def _has(self, text: str) -> bool:
        """Return whether the base has a name or a value that is spelled like a text."""
        is_name = any(link.how == "exact" for link in self.names.spelled(text, k=1))
        return is_name or text.lower() in self._value_texts

    @cached_property
    def _value_texts(self) -> frozenset[str]:
        return frozenset(value.lower() for values in self.values.values() for value in values)

    def _spelled_alike(self, known: Understanding) -> list[tuple[int, int]]:
        """Return spans of ordinary words that may be names and match a name exactly, such as a module called "re"."""
        doubtful = [(one.start, one.end) for one in known.words if one.likely >= SPELLED_ALIKE]
        links = [self.names.spelled(known.question[start:end], k=1) for start, end in doubtful]
        is_name = [any(link.how == "exact" and link.score == 1.0 for link in some) for some in links]
        return [span for span, is_spelled in zip(doubtful, is_name, strict=True) if is_spelled]

    def _without_words_of_texts(self, known: Understanding) -> Understanding:
        """Remove words that occur in texts, if texts may answer: the texts may contain them as conditions."""
        if not self.is_written_about(None):
            return known
        return replace(known, words=tuple(one for one in known.words if not self.names.has_word(one.text)))

    def _as_name(self, known: Understanding, start: int, end: int) -> NamedSpan | None:
        """Link a span that must be a name: together with adjacent words, on its own, or as part of a mention.

        Return None if texts may answer and the span overlaps a mention.
        """
        if self.is_written_about(None) and any(one.start < end and start < one.end for one in known.named):
            return None
        spans = windows(known.question, start, end, known.named, known.words)
        within = (replace(one, is_certain=True) for one in known.named if one.start <= start and end <= one.end)
        return linked(known.question, spans, self.kb, self.names) or next(within, None)

    def understand(self, question: str, named: Sequence[NamedSpan]) -> Understanding:
        """Return the possible meanings of a question with known mentions."""
        options, encoders = self.options(question, named)
        if not options:
            return Understanding(question, tuple(named), words=tuple(self._words_alone(question, named, encoders)))
        return self._chosen(question, named, options[:CHOSEN_AMONG], encoders)

    def options(self, question: str, named: Sequence[NamedSpan]) -> tuple[list[Option], Encoders]:
        """Return the plans to choose from, likeliest first, and the encoders for the language of the question."""
        spans = [(one.start, one.end) for one in named]
        encoders = encoders_for(question, spans, self.encoders, self.vocabulary.words)
        scorer = replace(self.scorer, encoders=encoders)
        pooled: list[Option] = []
        for taken, cost in assignments(named, self._value_texts):
            pooled += self._options(question, taken, cost, scorer)
        pooled.sort(key=lambda option: -option.prior)
        return list({(option.text, option.asked): option for option in reversed(pooled)}.values())[::-1], encoders

    def _options(
        self, question: str, taken: Sequence[tuple[NamedSpan, Sense]], cost: float, scorer: QuestionScorer
    ) -> list[Option]:
        """Return plans for one assignment of the names, with the plan and the question as the encoder reads them."""
        numbers = [one for one in quantities(question) if not overlaps(one, taken)][:MOST_NUMBERS]
        code, words = self.schema.type_code, self.vocabulary.type_words
        spans = [TypedSpan(one.start, one.end, words(sense.type)) for one, sense in taken]
        types = [code[sense.type] for _, sense in taken]
        tokens = tokenise(question)
        outside = [at for at, one in enumerate(tokens) if not any(n.start <= one.start < n.end for n, _ in taken)]
        categories = self.said_values.of(tokens, outside)
        scores = scorer.score(question, spans, types, numbers, tuple(categories))
        not_these = frozenset(one for one, not_this in categories.items() if not_this)
        values = {word for _, value in categories for word in value.lower().split()}
        starts = {one.start for one, _ in taken} | {tokens[at].start for at in outside if tokens[at].text in values}
        beside = steps(tokens, outside, starts).values()
        texts = [one.text for one in tokens]
        whole = [at for at in outside if texts[at] not in values and not is_denied(texts[:at])]
        parts = tuple(self.said_parts.of(tokens, whole))
        called = self.vocabulary.attributes_called(" ".join(tokens[at].text for at in outside))
        step = next(iter(beside), 0)
        scores = replace(scores, denied=not_these, step=step, named_attributes=called, parts=parts)
        said, names = f" {' '.join(texts)} ", self.vocabulary.attributes
        beside_names = (one for one in categories if f" {names[one[0]].words} {one[1].lower()} " in said)
        scores = replace(scores, called=frozenset(beside_names))
        averages, differs = asks_for("average", question), asks_for("difference", question)
        scores = replace(scores, averages=averages, differs=differs)
        if not_these and len(denials(question)) <= 1:  # a single negation word negates one thing
            others = tuple(replace(mention, negated=0.0) for mention in scores.mentions)
            scores = replace(scores, lacking=0.0, mentions=others)
        senses = tuple(sense for _, sense in taken)
        reached = self._reached(senses)
        mentions = tuple(
            replace(mention, first=self._first_hops(sense.type, reached(place, ())))
            for place, (mention, sense) in enumerate(zip(scores.mentions, senses, strict=True))
        )
        groups, are_denied = joined_names(question, [one for one, _ in taken], types)
        for group, denied in zip(groups, are_denied, strict=True):
            likely = SURELY if denied else max(mentions[place].negated for place in group)
            mentions = tuple(
                replace(one, negated=likely) if place in group else one for place, one in enumerate(mentions)
            )
        scores = replace(scores, mentions=mentions, groups=groups)
        proposals = self.proposer.propose(scores, PLANS, self._leads(reached))
        proposals = _different(replace(one, plan=self._possible(one.plan, reached)) for one in proposals)
        proposals = [one for one in proposals if self._may_hold(one.plan, reached)] or proposals
        said = masked(question, spans)
        if denials(said):  # a name may have such a word
            proposals = [one for one in proposals if _may_deny(one.plan)] or proposals
        proposals = [one for one in proposals if self.is_worth_choosing(one.plan, senses, numbers)]
        fitted = [(*self.extents.fitted(one.plan, numbers), one.score + cost) for one in proposals]
        asked, wording = lettered(question, spans, numbers), Wording(self.vocabulary)
        named = tuple(one for one, _ in taken)
        return [
            Option(plan, named, senses, tuple(numbers), score + more, asked, said, wording.of(plan))
            for plan, more, score in fitted
        ]

    def is_worth_choosing(self, plan: Plan, senses: Sequence[Sense], numbers: Sequence[Quantity]) -> bool:  # noqa: ARG002
        """Return whether a plan compares different nodes. Subclasses may execute the plan if the base is small."""
        compared = [tuple(senses[mention].nodes) for mention in plan.mentions]
        return len(set(compared)) == len(compared)

    def _chosen(
        self, question: str, named: Sequence[NamedSpan], options: Sequence[Option], encoders: Encoders
    ) -> Understanding:
        told, read = encoders.read_options(
            [option.asked for option in options],
            [option.text for option in options],
            [option.prior for option in options],
            [shared_words(option.said, option.text) for option in options],
            BUDGET,
        )
        meanings = [
            Meaning(one.plan, one.named, one.senses, one.numbers, float(score), one.prior, one.text)
            for one, score in zip(options, told[1:], strict=False)
        ]
        best = int(np.argmax(told[1:]))
        meanings = joined(sorted(meanings, key=lambda one: -one.score))
        features = self.features(question, meanings)
        if not encoders.reads_english:  # plans contain only English words
            features |= {"unexplained": 0.0, "everything": 0.0}
        certainty = self.combiner.certainty(features)
        is_english = encoders.reads_english
        words = self._name_words(question, options[best], read[best], certainty) if is_english else ()
        return Understanding(question, tuple(named), tuple(meanings), certainty, is_english, tuple(words))

    def _words_alone(self, question: str, named: Sequence[NamedSpan], encoders: Encoders) -> list[Word]:
        """Return the unlinked words of a question that has no plan."""
        spans = [TypedSpan(one.start, one.end, self.vocabulary.type_words(one.senses[0].type)) for one in named]
        asked = lettered(question, spans[: len(LETTERS)], ())
        _, read = encoders.read_options([asked], [""], [0.0], [(0.0, 0.0)], BUDGET)
        alone = Option(Plan("none"), tuple(named), (), (), 0.0, asked, "", "")
        return self._name_words(question, alone, read[0], 0.0) if encoders.reads_english else []

    def _name_words(self, question: str, option: Option, read: ReadQuestion, certainty: float) -> list[Word]:
        """Return the words that an option does not link, with the probability that each belongs to a name."""
        spans = [(one.start, one.end) for one in option.named] + [(one.start, one.end) for one in option.numbers]
        if self.name_words is None:
            return []
        return self.name_words.words(question, spans, read, option.text, self._schema_terms, certainty)

    @cached_property
    def _schema_terms(self) -> SchemaTerms:
        return SchemaTerms(schema_words(self.schema), self.encoders)

    def features(self, question: str, meanings: Sequence[Meaning]) -> dict[str, float]:
        """Return the features for the certainty of the first meaning."""
        first, second = meanings[0], meanings[1] if len(meanings) > 1 else None
        plan, left = first.plan, 1 - explained_part(question, first)
        is_plain = plan.form in ("list", "count", "exists", "value")
        asks_for_all = is_plain and not (plan.branches or plan.requirements or plan.mentions)
        total = float(np.logaddexp.reduce([one.score for one in meanings]))  # the rest is for no plan at all
        return {
            "readable": float(np.exp(total)),
            "share": float(np.exp(first.score - total)),
            "lead": min(8.0, first.score - second.score) if second else 8.0,
            "prior": max(first.prior, -12.0),
            "unexplained": left,
            "everything": left if asks_for_all else 0.0,
            "names": float(len(first.named)),
            "words": float(len(question.split())),
            "one_table": float(self._is_one_table),
        }

    @cached_property
    def _is_one_table(self) -> bool:
        """Whether all relations start at the rows of one table."""
        return len({row.head for row in self.schema.relations}) <= 1

    def _first_hops(self, kind: str, nodes: NodeSet) -> frozenset[int]:
        """Return the hops that have edges at nodes of a type."""
        there = {(use.relation, use.direction) for use in self.kb.relations(nodes)}
        return frozenset(
            place
            for place, hop in enumerate(self.vocabulary.hops)
            if hop.start == kind and (hop.relation, hop.direction) in there
        )

    def _reached(self, senses: Sequence[Sense]) -> Reached:
        """Return a function for the nodes that hops reach from a mention. It caches intermediate steps."""
        hops = self.vocabulary.hops

        @lru_cache(maxsize=512)
        def reached(mention: int, path: tuple[int, ...]) -> NodeSet:
            if not path:
                return self._with_below(senses[mention])
            before, hop = reached(mention, path[:-1]), hops[path[-1]]
            direction: Direction = hop.direction
            after = self.kb.neighbors(before, hop.relation, direction) if len(before) else before
            return after if self._has_one_end(hop.relation, direction) else after & self.kb.nodes(hop.end)

        return reached

    def _leads(self, reached: Reached) -> Callable[[int, tuple[int, ...]], bool]:
        """Return a function that checks whether hops reach a node."""

        def leads(mention: int, path: tuple[int, ...]) -> bool:
            if len(path) > 2 and len(self.kb.nodes()) >= LARGE:
                return True
            return self._meet([(mention, path)], (), reached)

        return leads

    def _meet(self, ends: Sequence[End], avoided: Sequence[End], reached: Reached) -> bool:
        """Return whether hops from all mentions reach a common node outside the avoided ones.

        If the base can join, the base computes it.
        """
        if self._joining is not None:
            ways = [[self._way(reached(mention, ()), path) for mention, path in some] for some in (ends, avoided)]
            if all(len(starts) <= MOST_STARTS for some in ways for starts, _ in some):
                return self._joining.meet(*ways)
        left = reduce(and_, (reached(*end) for end in ends))
        for end in avoided:
            left = left - reached(*end)
        return len(left) > 0

    def _way(self, starts: NodeSet, path: tuple[int, ...]) -> Way:
        hops = [self.vocabulary.hops[place] for place in path]
        kinds = [None if self._has_one_end(hop.relation, hop.direction) else hop.end for hop in hops]
        return starts, [(hop.relation, hop.direction, kind) for hop, kind in zip(hops, kinds, strict=True)]

    def _possible(self, plan: Plan, reached: Reached) -> Plan:
        """Return a plan whose branches with the same hops can hold together.

        If the rows of a name have no other name (captures of a species), one row of either name is meant, or two rows
        on longer ways: the plots with captures of both.
        """
        branches = [branch for branch in plan.branches if branch.mention is not None and not branch.negated]
        alike = [one for one in branches if sum(one.hops == other.hops for other in branches) > 1]
        if plan.either or not alike or not all(self._is_alone(one.mention or 0, one.hops[0], reached) for one in alike):
            return plan
        if any(len(one.hops) == 1 for one in alike):
            return replace(plan, either=len(alike) == len(plan.branches) and plan.form not in SUPERLATIVES)
        return replace(plan, branches=tuple(replace(one, apart=one in alike) for one in plan.branches))

    def _is_alone(self, mention: int, place: int, reached: Reached) -> bool:
        """Return whether the nodes that a hop reaches from a mention are not reached from others in the same way."""
        hop, rows = self.vocabulary.hops[place], NodeSet.of(reached(mention, (place,)).array[:MOST_STARTS])
        back = self.kb.neighbors(rows, hop.relation, "in" if hop.direction == "out" else "out")
        return not len((back & self.kb.nodes(hop.start)) - reached(mention, ()))

    def _may_hold(self, plan: Plan, reached: Reached) -> bool:
        """Return whether a node satisfies all branches of a plan. Return True for count and yes/no questions."""
        named = [(branch, (branch.mention, branch.hops)) for branch in plan.branches if branch.mention is not None]
        required = [end for branch, end in named if not branch.negated]
        if plan.either or plan.form in ("count", "exists") or not required or len(plan.branches) == 1:
            return True
        return self._meet(required, [end for branch, end in named if branch.negated], reached)

    def _with_below(self, sense: Sense) -> NodeSet:
        """Return the nodes of a sense and all nodes below them in a hierarchy."""
        nodes = sense.nodes
        for relation in hierarchies(self.schema, sense.type):
            nodes = nodes | descendants(self.kb, nodes, relation)
        return nodes

    def _has_one_end(self, relation: str, direction: Direction) -> bool:
        rows = self.schema.relation_rows(relation)
        return len({row.tail if direction == "out" else row.head for row in rows}) == 1


End = tuple[int, tuple[int, ...]]
"""A mention and the hops from it."""
Reached = Callable[[int, tuple[int, ...]], NodeSet]


@lru_cache(maxsize=4)
def shared_encoders(folder: Path) -> Encoders:
    """Return the encoders of a folder. Each folder is opened once per process."""
    return Encoders(folder)


def _different(proposals: Iterable[Proposal]) -> list[Proposal]:
    """Return the proposals without repeated plans. The first of each is the likeliest."""
    return list({one.plan: one for one in reversed(list(proposals))}.values())[::-1]


def overlaps(quantity: Quantity, taken: Sequence[tuple[NamedSpan, Sense]]) -> bool:
    """Return whether a number is a part of a name."""
    return any(quantity.start < one.end and one.start < quantity.end for one, _ in taken)


def _may_deny(plan: Plan) -> bool:
    """Return whether a plan negates something or compares with a number, as in "not more than"."""
    required = any(one.operator == "!=" or one.value is False or one.quantity is not None for one in plan.requirements)
    return required or any(branch.negated for branch in plan.branches)


def assignments(
    named: Sequence[NamedSpan], values: Collection[str] = ()
) -> list[tuple[list[tuple[NamedSpan, Sense]], float]]:
    """Return assignments of senses to mentions with their scores, the likeliest first.

    A name may also be a number, or one of the `values` of attributes: "octopus villagers".
    """
    options: list[list[tuple[Sense | None, float]]] = []
    for one in named:
        senses: list[tuple[Sense | None, float]] = [(s, LESSER * place) for place, s in enumerate(one.senses[:2])]
        may_be_another = one.is_doubtful or one.text.isdecimal() or one.text.lower() in values
        options.append([*senses, (None, IGNORED[one.is_exact])] if may_be_another else senses)
    every = sorted(itertools.product(*options), key=lambda chosen: -sum(cost for _, cost in chosen))
    return [
        (
            [(one, sense) for one, (sense, _) in zip(named, chosen, strict=True) if sense is not None],
            sum(cost for _, cost in chosen),
        )
        for chosen in every[:ASSIGNMENTS]
    ]


def joined_names(
    question: str, named: Sequence[NamedSpan], types: Sequence[int]
) -> tuple[tuple[tuple[int, ...], ...], tuple[bool, ...]]:
    """Return groups of joined names and whether each group is negated.

    Adjacent names of one type with only a joining word between them form a group.
    """
    groups: list[list[int]] = []
    denied: list[bool] = []
    for place, one in enumerate(named):
        how = joint(question[named[place - 1].end : one.start]) if place and types[place] == types[place - 1] else ""
        if how:
            groups[-1].append(place)
            denied[-1] = denied[-1] or how == "denied"
        else:
            groups.append([place])
            denied.append(False)
    return tuple(map(tuple, groups)), tuple(denied)
