"""Answer a sequence of questions that may refer to earlier questions.

A question refers to the last question in one of five ways. All of them work without a model.

why       "how do you know?"             the reasons of the last answer
part      "which of them are islands?"   parsed as usual, but only earlier matches can be answers
about     "where was she born?"          words that refer back mean a node that was found or named before
switch    "what about Peru?"             the last question with another name or number
query     "sorted by population"         the last query in another order, or the number of its results

Any other question is asked unchanged. If there is a model, it rewrites follow-ups that cannot be parsed this way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from clew.answering.follow_ups import REMEMBERED, FollowUpReading, FollowUps, Turn
from clew.answering.methods import catalog
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import corrected
from clew.answering.queries.corrections import Corrections
from clew.answering.reading.documents.locating import nth
from clew.answering.reading.documents.references import references
from clew.answering.reading.documents.table_columns import read_table
from clew.answering.reading.follow_ups import asks_for_reasons, is_fragment, switched, untied
from clew.answering.reading.mentions import find_named
from clew.answering.roles.wordings import Exchange, rewrite
from clew.core.roles import Parse
from clew.core.schema import Schema
from clew.core.states import WORDINGS
from clew.core.texts import asked_text
from clew.core.trace import Recorder, recording
from clew.core.types import Answer, Judgement, Passage
from clew.store.open_base import OpenBase

SURE = 0.6
"""Minimum certainty of a reading. Below it, a model rewrites the question."""
LOST = f"{WORDINGS['not_found'].headline} It is not clear what this question refers to. Please ask a complete question."
REASONS = 3
"""Maximum number of answers whose evidence is part of the reasons."""


@dataclass
class Conversation:
    """Turns with one base. Not thread-safe.

    >>> import clew
    >>> conversation = clew.open("world.kb").conversation()                      # doctest: +SKIP
    >>> conversation.ask("Which countries border Peru?")                         # doctest: +SKIP
    >>> conversation.ask("Which of them have more than 20 million people?")      # doctest: +SKIP
    """

    tools: OpenBase
    method: Method
    turns: list[Turn] = field(default_factory=list)
    fixes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Node keys that names in the next question refer to."""
    corrections: Corrections = field(default_factory=Corrections)
    """Other corrections to the reading of the next question."""

    def ask(self, question: str, recorder: Recorder | None = None) -> Answer:
        """Answer a question in the context of the earlier questions."""
        turn = self._turn(asked_text(question).strip(), recorder or Recorder())
        self.turns.append(turn)
        self.fixes, self.corrections = {}, Corrections()
        return turn.answer

    def corrected(self, fixes: Mapping[str, Sequence[str]], corrections: Corrections) -> Conversation:
        """Set the name fixes and corrections for the next question. Return this conversation."""
        self.fixes, self.corrections = fixes, corrections
        return self

    def after(self, questions: Sequence[str]) -> Conversation:
        """Ask the last `REMEMBERED + 1` of some earlier questions. Return this conversation."""
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
        answer = _answered(self.method, asked, tools, recorder, question)
        if asked != untied(question):
            answer = replace(answer, notes=(f"asked as: {asked}", *answer.notes))
        named = tuple(find_named(asked, self.tools.kb, self.tools.names)[1]) if self._follow_ups.has_graph else ()
        return Turn(question, asked, answer, named)

    def _carried_out(self, question: str, reading: FollowUpReading, recorder: Recorder) -> Turn:
        if reading.is_query:
            answer = _answered(catalog.create("query"), reading.asked, self.tools, recorder, question)
            return replace(self.turns[-1], question=question, answer=answer)
        if reading.parse is None:
            return self._whole(question, reading.asked, recorder)
        fixes = reading.fixes | {name: tuple(keys) for name, keys in self.fixes.items()}
        tools = corrected(self.tools.corrected(fixes).with_parser(_Given(reading.parse)), self.corrections)
        method = catalog.create("focus_plus", {"kinds": getattr(self.method, "kinds", True)})
        answer = _answered(method, question, tools, recorder, question)
        return Turn(question, reading.asked, answer, reading.named, reading.within)

    def _complete(self, question: str, recorder: Recorder) -> str:
        """Complete a question over documents: let a model rewrite it, or append the last question."""
        rest = question if is_fragment(question) else switched(question)
        if rest is not None and (other := self._of_other_row(rest)) is not None:
            return other
        if not self._follow_ups.leans(question):
            return question
        if self.tools.model is None:
            last = self.turns[-1].asked
            return f"{question} ({last.partition('? (')[2].removesuffix(')') or last})"
        return self._rewritten(question, recorder)

    def _of_other_row(self, rest: str) -> str | None:
        """Return the last question about another row or column of its table: "and Lyon?", "and of the second one?"."""
        last = self.turns[-1]
        quotes = [piece for piece in last.answer.evidence[:1] if isinstance(piece, Passage)]
        table = read_table(self.tools.kb.node(quotes[0].node.id).text, "", quotes[0].node.id) if quotes else None
        if table is None:
            return None
        ordinal = next((one.ordinal for one in references(rest) if one.ordinal is not None), 0)
        for cells in (*zip(*(row.cells for row in table.rows), strict=False), table.header):
            new = next(iter(_written(cells, rest).values()), None) or next(iter(nth(cells, ordinal)), "")
            for (start, end), old in _written(cells, last.asked).items():
                if new and old.isdigit() == new.isdigit():  # a year stands for another year
                    return last.asked[:start] + new + last.asked[end:]
        return None

    def _rewritten(self, question: str, recorder: Recorder) -> str:
        model = self.tools.required_model("rewriting")
        history = [Exchange(turn.question, turn.answer.text or "") for turn in self.turns[-REMEMBERED:]]
        with recording(recorder):
            return rewrite(model, history, question) or question


def _answered(method: Method, asked: str, tools: OpenBase, recorder: Recorder, question: str) -> Answer:
    """Return the answer to a question as the answer to the question that stands for it, with its trace."""
    answer = catalog.ask(method, asked, tools, recorder)
    return replace(answer, question=question, trace=tuple(recorder.spans))


def _written(cells: Iterable[str], text: str) -> dict[tuple[int, int], str]:
    """Return the spans of a text that are cells of a table, except for punctuation, the longest cell first."""
    words = {cell: re.findall(r"\w+", cell) for cell in sorted(cells, key=len, reverse=True)}
    found = ((re.search(r"\b" + r"\W+".join(own) + r"\b", text, re.I), cell) for cell, own in words.items() if own)
    return {match.span(): cell for match, cell in found if match}


@dataclass(frozen=True)
class _Given:
    """Parser that returns a precomputed parse."""

    given: Parse

    def parse(self, question: str, schema: Schema) -> Parse:  # noqa: ARG002
        return self.given


def reasons(question: str, last: Answer) -> Answer:
    """Explain the last answer: the interpreted query, its certainty and the evidence as text."""
    understood = last.query.get("text")
    told = [f"I understood: {understood}." if understood else f"Found by {last.method}."]
    if last.sure:
        told.append(f"I am {last.sure} of that.")
    for candidate in last.matches[:REASONS]:
        shown = [piece.in_words() for piece in candidate.evidence if not isinstance(piece, Judgement)]
        told += [f"{candidate.node.name}: {shown[0]}."] if shown else []
    told += [piece.in_words() for piece in last.evidence[:REASONS]]
    if not last.found:
        told.append("The base does not contain this.")
    return replace(last, question=question, text=" ".join(told), notes=(), fallbacks=(), seconds=0.0)
