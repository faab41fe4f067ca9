"""Questions one after another, each of which may lean on those before it.

A question leans on the last one in four ways, all of which work without a model:

why       "how do you know?"             the reasons of the last answer
part      "which of them are islands?"   read as usual, only what matched before can be an answer
about     "where was she born?"          the words that point back are a name for what was found or named before
switch    "what about Peru?"             the last question with another name or number in it

Any other question is asked as it stands. A model, where there is one, rewrites what cannot be read so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clew.core.query import Constant
from clew.core.roles import Parse
from clew.core.schema import Schema
from clew.core.trace import Recorder, recording
from clew.core.types import Answer, Judgement, NodeSet
from clew.index.protocol import Link
from clew.kb.arrays import ArrayKnowledgeBase
from clew.methods import catalog
from clew.methods.answering import READABLE
from clew.methods.protocol import Method
from clew.methods.role_choice import CorrectedRelations, parser_for, reader_of
from clew.queries.wording import kind_in_words, plural
from clew.reading.follow_ups import (
    Pointing,
    asks_for_reasons,
    is_fragment,
    pointing,
    replaced,
    switched,
    telling_words,
    untied,
)
from clew.reading.mentions import Named, Sense, find_named
from clew.reading.parsing import LearnedParser
from clew.reading.quantities import quantities
from clew.reading.reader import LearnedReader
from clew.roles.rewrite import Exchange, rewrite
from clew.toolbox import Toolbox

REMEMBERED = 3
"""Turns that words may point back to."""
SURE = 0.6
"""A reading at least this certain is not given to a model to rewrite."""
READ = 0.25
"""A reading less certain than this is none."""
SHORT = 3
"""A question of at most so many telling words may be the rest of the one before."""
LOST = "I did not find this. I could not tell what this asks of what we spoke of; please ask it as a whole question."
REASONS = 3
"""Answers whose evidence is told where reasons are asked for."""


@dataclass(frozen=True)
class Turn:
    """A question, the whole question that it stood for, and the answer."""

    question: str
    asked: str
    answer: Answer
    named: tuple[Named, ...] = ()
    """What the whole question names; words that pointed back are among it."""
    within: NodeSet | None = None
    """Where only some of what matched before was asked for, what that was."""

    @property
    def nodes(self) -> NodeSet:
        """What was found."""
        if self.answer.matched is not None and self.answer.found:
            return self.answer.matched
        return NodeSet.of([candidate.node.id for candidate in self.answer.matches])


@dataclass(frozen=True)
class _Reading:
    """One way to read a question in its conversation."""

    asked: str
    parse: Parse | None = None
    """None: `asked` is a whole question."""
    fixes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    named: tuple[Named, ...] = ()
    within: NodeSet | None = None

    @property
    def certainty(self) -> float:
        """That of a whole question is not known yet: nothing else is meant."""
        return 1.0 if self.parse is None else self.parse.certainty or 0.0


@dataclass
class Conversation:
    """Turns with one base; not safe for threads.

    >>> import clew
    >>> conversation = clew.open("world.kb").conversation()                      # doctest: +SKIP
    >>> conversation.ask("Which countries border Peru?")                         # doctest: +SKIP
    >>> conversation.ask("Which of them have more than 20 million people?")      # doctest: +SKIP
    """

    tools: Toolbox
    method: Method
    turns: list[Turn] = field(default_factory=list)

    fixes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What names in the next question stand for, by key."""
    relations: Mapping[str, str] = field(default_factory=dict)
    """Which relation is meant in the next question in the place of another."""

    def ask(self, question: str, recorder: Recorder | None = None) -> Answer:
        """Answer a question in the light of those before it."""
        turn = self._turn(question.strip(), recorder or Recorder())
        self.turns.append(turn)
        self.fixes, self.relations = {}, {}
        return turn.answer

    def corrected(self, fixes: Mapping[str, Sequence[str]], relations: Mapping[str, str]) -> Conversation:
        """This conversation, where names and relations of the next question stand for others."""
        self.fixes, self.relations = fixes, relations
        return self

    def after(self, questions: Sequence[str]) -> Conversation:
        """This conversation after some more questions; those that words can still point back to are asked."""
        for question in questions[-REMEMBERED - 1 :]:
            self.ask(question)
        return self

    def _turn(self, question: str, recorder: Recorder) -> Turn:
        if not self.turns:
            return self._whole(question, question, recorder)
        said = untied(question)
        if asks_for_reasons(said):
            return replace(self.turns[-1], question=question, answer=reasons(question, self.turns[-1].answer))
        if not self._has_graph:
            return self._whole(question, self._complete(said, recorder), recorder)
        is_tied = said != question and is_fragment(said)  # "and racing games?"
        if not is_tied and not self._leans(said):
            return self._whole(question, said, recorder)
        found = max(self._readings(said), key=lambda one: one.certainty, default=None)
        if found is not None and (found.parse is None or found.certainty >= SURE or self.tools.model is None):
            return self._carried_out(question, found, recorder)
        if self.tools.model is not None:
            return self._whole(question, self._rewritten(said, recorder), recorder)
        return Turn(question, question, Answer(question, method=self.method.name, text=LOST, answer_count=0))

    # Asking

    def _whole(self, question: str, asked: str, recorder: Recorder) -> Turn:
        tools = self.tools.corrected({name: tuple(keys) for name, keys in self.fixes.items()})
        if self.relations:
            tools = tools.with_parser(CorrectedRelations(parser_for(tools), self.relations))
        answer = replace(catalog.ask(self.method, asked, tools, recorder), question=question)
        if asked != untied(question):
            answer = replace(answer, notes=(f"asked as: {asked}", *answer.notes))
        named = tuple(find_named(asked, self.tools.kb, self.tools.names)[1]) if self._has_graph else ()
        return Turn(question, asked, replace(answer, trace=tuple(recorder.spans)), named)

    def _carried_out(self, question: str, reading: _Reading, recorder: Recorder) -> Turn:
        if reading.parse is None:
            return self._whole(question, reading.asked, recorder)
        fixes = reading.fixes | {name: tuple(keys) for name, keys in self.fixes.items()}
        parser = CorrectedRelations(_Given(reading.parse), self.relations) if self.relations else _Given(reading.parse)
        tools = self.tools.corrected(fixes).with_parser(parser)
        answer = replace(catalog.ask(catalog.create("focus_plus"), question, tools, recorder), question=question)
        return Turn(
            question, reading.asked, replace(answer, trace=tuple(recorder.spans)), reading.named, reading.within
        )

    def _complete(self, question: str, recorder: Recorder) -> str:
        """Over documents: rewritten by a model, or with the last question beside it."""
        if not self._leans(question):
            return question
        if self.tools.model is None:
            return f"{question} ({self.turns[-1].asked})"
        return self._rewritten(question, recorder)

    def _rewritten(self, question: str, recorder: Recorder) -> str:
        model = self.tools.required_model("rewriting")
        history = [Exchange(turn.question, turn.answer.text or "") for turn in self.turns[-REMEMBERED:]]
        with recording(recorder):
            return rewrite(model, history, question) or question

    # Reading

    def _leans(self, question: str) -> bool:
        """Whether a question is none that stands alone."""
        if self._points(question) is not None or switched(question) is not None:
            return True
        if not self._has_graph or not is_fragment(question):
            return False
        names = self._names(question)
        return not names or not self._telling(question, names)

    def _telling(self, text: str, names: Sequence[Named]) -> list[str]:
        """The words that say more than names, numbers and kinds of things."""
        telling = telling_words(text, [(one.start, one.end) for one in names])
        return [word for word in telling if not self._is_kind(word)]

    def _points(self, question: str) -> Pointing | None:
        points = pointing(question, self._kinds)
        if points is None or not points.is_implied:
            return points
        return None if len(self.turns[-1].nodes) < 2 or self._names(question) else points

    def _readings(self, question: str) -> Iterator[_Reading]:
        points, rest = self._points(question), switched(question)
        names = self._names(question)
        plain = _Reading(question, self._parsed(question, names), named=tuple(names))
        if points is not None:
            yield from self._pointing(question, points)
            if points.is_implied or (names and not points.is_part):  # "did he win his first prize in Rome?"
                yield plain
            return
        leaning = list(self._switched(rest or question))
        yield from leaning
        if rest is None or not leaning:
            yield plain

    def _pointing(self, question: str, points: Pointing) -> Iterator[_Reading]:
        for kind, nodes in self._referents(points):
            if points.is_part or points.is_several:
                part = self._part(question, points, kind, nodes)
                if part is not None:
                    yield part
            if points.is_part:
                return
            yield self._about(question, points, kind, nodes)

    def _part(self, question: str, points: Pointing, kind: str, nodes: NodeSet) -> _Reading | None:
        """The question about all things of a kind; only some of them may be the answer."""
        called = plural(kind_in_words(self._schema, kind))
        called = f"which {called}" if points.is_implied else called
        return self._restricted(replaced(question, [(points.start, points.end, called)]), kind, nodes)

    def _restricted(self, asked: str, kind: str, nodes: NodeSet) -> _Reading | None:
        names = self._names(asked)
        parse = self._parsed(asked, names)
        query = parse.query
        requires = query.triplets or query.conditions or query.best or query.either
        if query.target.type != kind or query.among or not requires:
            return None
        label = f"the {len(nodes)} found before"
        among = (Constant(label, kind),)
        either = tuple(replace(one, among=among) for one in query.either)
        parse = replace(parse, query=replace(query, among=among, either=either), alternatives=(), is_loose=False)
        return _Reading(asked, parse, {label: self._keys(nodes)}, tuple(names), nodes)

    def _about(self, question: str, points: Pointing, kind: str, nodes: NodeSet) -> _Reading:
        """The words that point back as one more name."""
        links = tuple(Link(node, points.text, "exact", 1.0) for node in nodes)
        named = Named(points.start, points.end, points.text, (Sense(kind, links),))
        clear = [one for one in self._names(question) if one.end <= points.start or points.end <= one.start]
        names = sorted([*clear, named], key=lambda one: one.start)
        parse = replace(self._parsed(question, names), is_loose=False)
        return _Reading(question, parse, {points.text: self._keys(nodes)}, tuple(names))

    def _switched(self, rest: str) -> Iterator[_Reading]:
        """An earlier question with other names and numbers; or something else about what the last one names."""
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
        if last.named and not any(one.certainty >= READ for one in few):  # a name that is not known: that must be said
            old = last.named[-1]
            yield _Reading(replaced(last.asked, [(old.start, old.end, rest)]))

    def _switchable(self, names: Sequence[Named]) -> Turn:
        """The latest question that names something of the same type, or else the last one."""
        kinds = {sense.type for name in names for sense in name.senses}
        for turn in reversed(self.turns[-REMEMBERED:]):
            if any(kinds & {sense.type for sense in one.senses} for one in turn.named):
                return turn
        return self.turns[-1]

    def _again(self, turn: Turn, asked: str) -> _Reading:
        """A question as that of an earlier turn: about some of what was found before it, where that one was."""
        again = None
        if turn.within is not None:
            (first,) = self.tools.kb.refs(turn.within.array[:1])
            again = self._restricted(asked, first.type, turn.within)
        return again or _Reading(asked)

    def _rest(self, question: str) -> Iterator[_Reading]:
        """A few words without a name: which of what was found, or about what the last question names."""
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
            yield _Reading(asked, parse, {old.text: self._keys(old.senses[0].nodes)}, (moved,))

    # What the conversation spoke of

    def _referents(self, points: Pointing) -> Iterator[tuple[str, NodeSet]]:
        """What words may point to, the latest first: what was found, then what was named."""
        turns = self.turns[: -REMEMBERED - 1 : -1]
        if points.is_several and any(len(turn.nodes) > 1 for turn in turns):
            turns = [turn for turn in turns if len(turn.nodes) > 1]
        for turn in turns:
            spoken = self._by_kind(turn.nodes)
            if not points.is_part:  # "which of them" asks for some of what was found
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

    def _names(self, text: str) -> list[Named]:
        return find_named(text, self.tools.kb, self.tools.names)[1]

    def _parsed(self, question: str, names: Sequence[Named]) -> Parse:
        return LearnedParser(self._reader).parsed(self._reader.understand(question, names))

    def _is_kind(self, word: str) -> bool:
        return any(word in (kind, plural(kind)) for kind in (kind_in_words(self._schema, one) for one in self._kinds))

    @property
    def _reader(self) -> LearnedReader:
        return reader_of(self.tools)

    @property
    def _schema(self) -> Schema:
        return self.tools.kb.schema

    @property
    def _kinds(self) -> tuple[str, ...]:
        return tuple(self._schema.type_names)

    @property
    def _has_graph(self) -> bool:
        is_readable = any(kind in self._schema.type_names for kind in READABLE)
        return bool(self._schema.relations) and not is_readable and isinstance(self.tools.kb, ArrayKnowledgeBase)


@dataclass(frozen=True)
class _Given:
    """A question that is read already."""

    given: Parse

    def parse(self, question: str, schema: Schema) -> Parse:  # noqa: ARG002
        return self.given


def _exchanged(old: Sequence[Named], new: Sequence[Named]) -> list[tuple[int, int, str]]:
    """Each new name in the place of an old one of its type, or else of the last one that is left."""
    left, pieces = list(old), []
    for name in new:
        kinds = {sense.type for sense in name.senses}
        alike = [one for one in left if kinds & {sense.type for sense in one.senses}] or left[-1:]
        if alike:
            left.remove(alike[0])
            pieces.append((alike[0].start, alike[0].end, name.text))
    return pieces


def reasons(question: str, last: Answer) -> Answer:
    """Why the last answer was given: what was understood, how sure that is, and the evidence in words."""
    understood = last.query.get("text")
    told = [f"I understood: {understood}." if understood else f"Found by {last.method}."]
    if last.certainty is not None:
        told.append(f"I am {last.certainty:.0%} sure of that.")
    for candidate in last.matches[:REASONS]:
        shown = [piece.in_words() for piece in candidate.evidence if not isinstance(piece, Judgement)]
        told += [f"{candidate.node.name}: {shown[0]}."] if shown else []
    told += [piece.in_words() for piece in last.evidence[:REASONS]]
    if not last.found:
        told.append("Nothing in the base says it.")
    return replace(last, question=question, text=" ".join(told), notes=(), fallbacks=(), seconds=0.0)
