"""Read a question that depends on earlier questions: its possible readings with their certainty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from clew.answering.methods.role_choice import reader_of
from clew.answering.queries.interpretations import names_answers
from clew.answering.queries.linking import keys_of
from clew.answering.queries.parsing import parse
from clew.answering.queries.words import kind_in_words
from clew.answering.reading.follow_ups import (
    Pointing,
    asked_order,
    asks_for_number,
    is_fragment,
    pointing,
    replaced,
    switched,
    telling_words,
)
from clew.answering.reading.mentions import NamedSpan, Sense, find_named
from clew.answering.reading.parsing import LearnedParser
from clew.answering.reading.quantities import quantities
from clew.core.nouns import plural, singular
from clew.core.query import Aggregate, Attribute, Column, Compare, Named, Order, Pattern, Query, Var, find, requiring
from clew.core.roles import Parse
from clew.core.schema import Schema, words_of
from clew.core.types import Answer, NodeSet
from clew.store.index.protocol import Link
from clew.store.open_base import OpenBase


@dataclass(frozen=True)
class Turn:
    """A question, its complete form and the answer."""

    question: str
    asked: str
    answer: Answer
    named: tuple[NamedSpan, ...] = ()
    """Names in the complete question, including words that refer back."""
    within: NodeSet | None = None
    """The earlier matches that the question was restricted to, if any."""

    @property
    def nodes(self) -> NodeSet:
        """Nodes that were found."""
        return NodeSet.of([candidate.node.id for candidate in self.answer.matches])


@dataclass(frozen=True)
class FollowUpReading:
    """One way to read a question in its conversation."""

    asked: str
    parse: Parse | None = None
    """None if `asked` is a complete question."""
    fixes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    named: tuple[NamedSpan, ...] = ()
    within: NodeSet | None = None
    is_query: bool = False
    """Whether `asked` is a query of the query language."""

    @property
    def certainty(self) -> float:
        """Certainty of the parse. 1.0 for a complete question, which is not parsed yet."""
        return 1.0 if self.parse is None else self.parse.certainty or 0.0


REMEMBERED = 3
"""Number of turns that words may refer back to."""
READ = 0.25
"""Minimum certainty of a reading. Less certain readings do not count."""
SHORT = 3
"""Maximum number of content words in a question that may complete the last question."""


@dataclass(frozen=True)
class FollowUps:
    """Reads questions in the context of the earlier turns."""

    tools: OpenBase
    turns: Sequence[Turn]

    def leans(self, question: str) -> bool:
        """Check whether a question depends on earlier questions."""
        if (
            self._again_as_query(question) is not None
            or self._points(question) is not None
            or switched(question) is not None
        ):
            return True
        if not self.has_graph or not is_fragment(question):
            return False
        names = self._names(question)
        return not names or not self._telling(question, names)

    def _telling(self, text: str, names: Sequence[NamedSpan]) -> list[str]:
        """Return the words other than names, numbers and node types."""
        kinds = [kind_in_words(self._schema, kind) for kind in self._schema.type_names]
        telling = telling_words(text, [(name.start, name.end) for name in names])
        return [word for word in telling if word not in {*kinds, *map(plural, kinds)}]

    def _points(self, question: str) -> Pointing | None:
        points = pointing(question, self._schema.type_names)
        if points is None or not points.is_implied:
            return points
        return None if len(self.turns[-1].nodes) < 2 or self._names(question) else points

    def readings(self, question: str) -> Iterator[FollowUpReading]:
        """Yield the possible readings of a question that depends on earlier questions."""
        query = self._again_as_query(question)
        if query is not None:
            yield FollowUpReading(str(query), is_query=True)
            return
        points, rest = self._points(question), switched(question)
        names = self._names(question)
        if points is not None:
            yield from self._pointing(question, points)
            is_complete = points.is_implied or (names and not points.is_part)  # "did he win his first prize in Rome?"
        else:
            leaning = list(self._switched(rest or question))
            yield from leaning
            is_complete = rest is None or not leaning
        if is_complete:
            yield FollowUpReading(question, self._parsed(question, names), named=tuple(names))

    def _again_as_query(self, question: str) -> Query | None:
        """Return the last query in a new order, or for the number of its results, if the question asks for that."""
        order, last = asked_order(question), self._last_query
        if last is None or (order is None and not asks_for_number(question)):
            return None
        shown = last.columns[0].expression
        if order is None:
            if not isinstance(shown, Var) or last.is_grouped:
                return None
            return replace(last, columns=(Column(Aggregate("count", shown, distinct=True)),), distinct=False, order=())
        said, descending = order
        options = {
            column.expression: words_of(column.name)
            for column in last.columns
            if not isinstance(column.expression, Var)
        }
        if isinstance(shown, Var):
            names = self._schema.node_type(self._by_kind(self.turns[-1].nodes)[0][0]).attributes
            options |= {Attribute(shown.name, name): words_of(name) for name in ("name", *names)}
        words = {part: {singular(word) for word in text.lower().split()} for part, text in options.items()}
        fitting = [part for part, own in words.items() if own and said and (said <= own or own <= said)]
        if not fitting:
            return None
        key = max(fitting, key=lambda part: len(words[part] & said) / len(words[part] | said))
        columns = last.columns
        if isinstance(key, Attribute) and key.name != "name" and not last.is_grouped:
            columns = tuple(dict.fromkeys((*columns, Column(key, words_of(key.name)))))
        return replace(last, columns=columns, order=(Order(key, descending),))

    @property
    def _last_query(self) -> Query | None:
        """Query of the last answer. If that query was cut or combined, a query for the nodes that were found."""
        turn = self.turns[-1]
        written = turn.answer.query.get("query")
        query = parse(written) if isinstance(written, str) and turn.answer.found else None
        if isinstance(query, Query) and query.first is None and not query.skip:
            return query
        kinds = self._by_kind(turn.nodes)
        if query is None or len(kinds) != 1:
            return None
        among = Compare(Var("x"), "=", keys_of(self.tools.kb, turn.nodes))
        return find("x", kinds[0][0], Pattern((), (), (among,)))

    def _pointing(self, question: str, points: Pointing) -> Iterator[FollowUpReading]:
        for kind, nodes in self._referents(points):
            if points.is_part or points.is_several:
                yield from self._parts(question, points, kind, nodes)
            if points.is_part:
                return
            yield self._about(question, points, kind, nodes)

    def _parts(self, question: str, points: Pointing, kind: str, nodes: NodeSet) -> Iterator[FollowUpReading]:
        """Yield the question about all nodes of a type, restricted to the given nodes."""
        called = plural(kind_in_words(self._schema, kind))
        called = f"which {called}" if points.is_implied else called
        for words in (called, f"of {called}") if points.text.lower().startswith("of ") else (called,):
            part = self._restricted(replaced(question, [(points.start, points.end, words)]), kind, nodes)
            if part is not None:
                yield part

    def _restricted(self, asked: str, kind: str, nodes: NodeSet) -> FollowUpReading | None:
        names = self._names(asked)
        parse = self._parsed(asked, names)
        read = parse.interpretation
        if (
            read.type != kind
            or names_answers(read)
            or not (read.is_restricted or read.asks not in ("nodes", "each", "columns"))
        ):
            return None
        label = f"the {len(nodes)} found before"
        among = Compare(Var(read.variable), "=", Named(label, kind))
        query = replace(read.query, pattern=requiring(read.query.pattern, among))
        parse = replace(parse, interpretation=replace(read, query=query), alternatives=(), is_loose=False)
        return FollowUpReading(asked, parse, {label: self._keys(nodes)}, tuple(names), nodes)

    def _about(self, question: str, points: Pointing, kind: str, nodes: NodeSet) -> FollowUpReading:
        """Read the words that refer back as one more name."""
        links = tuple(Link(node, points.text, "exact", 1.0) for node in nodes)
        named = NamedSpan(points.start, points.end, points.text, (Sense(kind, links),))
        clear = [one for one in self._names(question) if one.end <= points.start or points.end <= one.start]
        names = sorted([*clear, named], key=lambda one: one.start)
        parse = replace(self._parsed(question, names), is_loose=False)
        return FollowUpReading(question, parse, {points.text: self._keys(nodes)}, tuple(names))

    def _switched(self, rest: str) -> Iterator[FollowUpReading]:
        """Yield an earlier question with new names and numbers, or a question about a name in the last question."""
        names = self._names(rest)
        numbers = [one for one in quantities(rest) if not any(n.start <= one.start < n.end for n in names)]
        if names or numbers:
            earlier = self._switchable(names)
            pieces = _exchanged(earlier.named, names)
            pieces += [
                (old.start, old.end, new.text)
                for old, new in zip(quantities(earlier.asked), numbers, strict=False)
                if not names or old.is_date == new.is_date
            ]
            if pieces:
                yield self._again(earlier, replaced(earlier.asked, pieces))
            return
        few = list(self._rest(rest))
        yield from few
        last = self.turns[-1]
        if last.named and not any(one.certainty >= READ for one in few):  # an unknown name: the answer must state it
            old = last.named[-1]
            yield FollowUpReading(replaced(last.asked, [(old.start, old.end, rest)]))

    def _switchable(self, names: Sequence[NamedSpan]) -> Turn:
        """Return the latest turn that names a node of the same type, or else the last turn."""
        kinds = {sense.type for name in names for sense in name.senses}
        for turn in reversed(self.turns[-REMEMBERED:]):
            if any(kinds & {sense.type for sense in one.senses} for one in turn.named):
                return turn
        return self.turns[-1]

    def _again(self, turn: Turn, asked: str) -> FollowUpReading:
        """Ask a question under the same restriction as an earlier turn."""
        again = None
        if turn.within is not None:
            (first,) = self.tools.kb.refs(turn.within.array[:1])
            again = self._restricted(asked, first.type, turn.within)
        return again or FollowUpReading(asked)

    def _rest(self, question: str) -> Iterator[FollowUpReading]:
        """Read a few words without a name: as a filter of the matches, or about a name in the last question."""
        last, said = self.turns[-1], question.strip(" ?.!")
        if len(telling_words(said, ())) > SHORT:
            return
        for kind, nodes in self._by_kind(last.nodes if last.within is None else last.within):
            part = self._restricted(f"{said} {plural(kind_in_words(self._schema, kind))}", kind, nodes)
            if part is not None and len(nodes) > 1:
                yield part
        for old in last.named:
            asked = f"{said} of {old.text}"
            moved = replace(old, start=len(asked) - len(old.text), end=len(asked))
            parse = replace(self._parsed(asked, [moved]), is_loose=False)
            yield FollowUpReading(asked, parse, {old.text: self._keys(old.senses[0].nodes)}, (moved,))

    # Nodes of the conversation

    def _referents(self, points: Pointing) -> Iterator[tuple[str, NodeSet]]:
        """Yield the nodes that words may refer to, latest first: found nodes, then named nodes."""
        turns = self.turns[: -REMEMBERED - 1 : -1]
        if points.is_several and any(len(turn.nodes) > 1 for turn in turns):
            turns = [turn for turn in turns if len(turn.nodes) > 1]
        for turn in turns:
            spoken = self._by_kind(turn.nodes)
            if not points.is_part:  # "which of them" asks for some of the found nodes
                spoken += [(one.senses[0].type, one.senses[0].nodes) for one in turn.named]
            fitting = [(kind, nodes) for kind, nodes in spoken if points.kind in (None, kind)]
            single = [(kind, nodes) for kind, nodes in fitting if len(nodes) == 1]
            if fitting:
                yield from fitting if points.is_several else single or fitting
                return

    def _by_kind(self, nodes: NodeSet) -> list[tuple[str, NodeSet]]:
        kinds: dict[str, list[int]] = {}
        for ref in self.tools.kb.refs(nodes.array):
            kinds.setdefault(ref.type, []).append(ref.id)
        return [(kind, NodeSet.of(some)) for kind, some in kinds.items()]

    def _keys(self, nodes: NodeSet) -> tuple[str, ...]:
        return tuple(ref.key for ref in self.tools.kb.refs(nodes.array))

    def _names(self, text: str) -> list[NamedSpan]:
        return find_named(text, self.tools.kb, self.tools.names)[1]

    def _parsed(self, question: str, names: Sequence[NamedSpan]) -> Parse:
        reader = reader_of(self.tools)
        return LearnedParser(reader).parsed(reader.understand(question, names))

    @property
    def _schema(self) -> Schema:
        return self.tools.kb.schema

    @property
    def has_graph(self) -> bool:
        """Whether the learned reader can read questions over the base."""
        schema = self._schema
        return bool(schema.relations) and not schema.holds_passages and self.tools.kb.stored is not None


def _exchanged(old: Sequence[NamedSpan], new: Sequence[NamedSpan]) -> list[tuple[int, int, str]]:
    """Replace an old name of the same type by each new name, or else the last old name not yet replaced."""
    left, pieces = list(old), []
    for name in new:
        kinds = {sense.type for sense in name.senses}
        alike = [one for one in left if kinds & {sense.type for sense in one.senses}] or left[-1:]
        if alike:
            left.remove(alike[0])
            pieces.append((alike[0].start, alike[0].end, name.text))
    return pieces
