"""Questions one after another, each of which may lean on those before it.

A question leans on the last one in five ways, all of which work without a model:

why       "how do you know?"             the reasons of the last answer
part      "which of them are islands?"   read as usual, only what matched before can be an answer
about     "where was she born?"          the words that point back are a name for what was found or named before
switch    "what about Peru?"             the last question with another name or number in it
query     "sorted by population"         the last query in another order, or the number of what it found

Any other question is asked as it stands. A model, where there is one, rewrites what cannot be read so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from clew.answering.conversation.follow_ups import REMEMBERED, FollowUps, Reading, Turn
from clew.answering.methods import catalog
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import corrected
from clew.answering.queries.corrections import Corrections
from clew.answering.reading.follow_ups import asks_for_reasons, is_fragment, untied
from clew.answering.reading.mentions import find_named
from clew.answering.roles.wordings import Exchange, rewrite
from clew.core.roles import Parse
from clew.core.schema import Schema
from clew.core.states import WORDINGS
from clew.core.texts import asked_text
from clew.core.trace import Recorder, recording
from clew.core.types import Answer, Judgement
from clew.store.open_base import OpenBase

SURE = 0.6
"""A reading at least this certain is not given to a model to rewrite."""
LOST = (
    f"{WORDINGS['not_found'].headline} I could not tell what this asks of what we spoke of;"
    " please ask it as a whole question."
)
REASONS = 3
"""Answers whose evidence is told where reasons are asked for."""


@dataclass
class Conversation:
    """Turns with one base; not safe for threads.

    >>> import clew
    >>> conversation = clew.open("world.kb").conversation()                      # doctest: +SKIP
    >>> conversation.ask("Which countries border Peru?")                         # doctest: +SKIP
    >>> conversation.ask("Which of them have more than 20 million people?")      # doctest: +SKIP
    """

    tools: OpenBase
    method: Method
    turns: list[Turn] = field(default_factory=list)
    fixes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What names in the next question stand for, by key."""
    corrections: Corrections = field(default_factory=Corrections)
    """What else is meant in the next question in the place of what is understood."""

    def ask(self, question: str, recorder: Recorder | None = None) -> Answer:
        """Answer a question in the light of those before it."""
        turn = self._turn(asked_text(question).strip(), recorder or Recorder())
        self.turns.append(turn)
        self.fixes, self.corrections = {}, Corrections()
        return turn.answer

    def corrected(self, fixes: Mapping[str, Sequence[str]], corrections: Corrections) -> Conversation:
        """This conversation, where names of the next question stand for others, and what is understood is corrected."""
        self.fixes, self.corrections = fixes, corrections
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
        if not self._follow_ups.has_graph:
            return self._whole(question, self._complete(said, recorder), recorder)
        is_tied = said != question and is_fragment(said)  # "and racing games?"
        if not is_tied and not self._follow_ups.leans(said):
            return self._whole(question, said, recorder)
        found = max(self._follow_ups.readings(said), key=lambda one: one.certainty, default=None)
        if found is not None and (found.parse is None or found.certainty >= SURE or self.tools.model is None):
            return self._carried_out(question, found, recorder)
        if self.tools.model is not None:
            return self._whole(question, self._rewritten(said, recorder), recorder)
        return Turn(question, question, Answer(question, method=self.method.name, text=LOST, answer_count=0))

    @property
    def _follow_ups(self) -> FollowUps:
        return FollowUps(self.tools, self.turns)

    def _whole(self, question: str, asked: str, recorder: Recorder) -> Turn:
        tools = self.tools.corrected({name: tuple(keys) for name, keys in self.fixes.items()})
        tools = corrected(tools, self.corrections)
        answer = replace(catalog.ask(self.method, asked, tools, recorder), question=question)
        if asked != untied(question):
            answer = replace(answer, notes=(f"asked as: {asked}", *answer.notes))
        named = tuple(find_named(asked, self.tools.kb, self.tools.names)[1]) if self._follow_ups.has_graph else ()
        return Turn(question, asked, replace(answer, trace=tuple(recorder.spans)), named)

    def _carried_out(self, question: str, reading: Reading, recorder: Recorder) -> Turn:
        if reading.is_query:
            answer = replace(
                catalog.ask(catalog.create("query"), reading.asked, self.tools, recorder), question=question
            )
            return replace(self.turns[-1], question=question, answer=replace(answer, trace=tuple(recorder.spans)))
        if reading.parse is None:
            return self._whole(question, reading.asked, recorder)
        fixes = reading.fixes | {name: tuple(keys) for name, keys in self.fixes.items()}
        tools = corrected(self.tools.corrected(fixes).with_parser(_Given(reading.parse)), self.corrections)
        method = catalog.create("focus_plus", {"kinds": getattr(self.method, "kinds", True)})
        answer = replace(catalog.ask(method, question, tools, recorder), question=question)
        return Turn(
            question, reading.asked, replace(answer, trace=tuple(recorder.spans)), reading.named, reading.within
        )

    def _complete(self, question: str, recorder: Recorder) -> str:
        """Over documents: rewritten by a model, or with the last question beside it."""
        if not self._follow_ups.leans(question):
            return question
        if self.tools.model is None:
            return f"{question} ({self.turns[-1].asked})"
        return self._rewritten(question, recorder)

    def _rewritten(self, question: str, recorder: Recorder) -> str:
        model = self.tools.required_model("rewriting")
        history = [Exchange(turn.question, turn.answer.text or "") for turn in self.turns[-REMEMBERED:]]
        with recording(recorder):
            return rewrite(model, history, question) or question


@dataclass(frozen=True)
class _Given:
    """A question that is read already."""

    given: Parse

    def parse(self, question: str, schema: Schema) -> Parse:  # noqa: ARG002
        return self.given


def reasons(question: str, last: Answer) -> Answer:
    """Why the last answer was given: what was understood, how sure that is, and the evidence in words."""
    understood = last.query.get("text")
    told = [f"I understood: {understood}." if understood else f"Found by {last.method}."]
    if last.sure:
        told.append(f"I am {last.sure} of that.")
    for candidate in last.matches[:REASONS]:
        shown = [piece.in_words() for piece in candidate.evidence if not isinstance(piece, Judgement)]
        told += [f"{candidate.node.name}: {shown[0]}."] if shown else []
    told += [piece.in_words() for piece in last.evidence[:REASONS]]
    if not last.found:
        told.append("Nothing in the base says it.")
    return replace(last, question=question, text=" ".join(told), notes=(), fallbacks=(), seconds=0.0)
