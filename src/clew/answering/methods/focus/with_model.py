"""Use a language model in Focus+.

Before: the learned reader and the model both read a question, and the results of both decide. After: the model writes
the answer from the executed query. Every claim cites its facts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clew.answering.methods.role_choice import description_of, reader_parser
from clew.answering.queries.interpretations import execute
from clew.answering.queries.linking import with_known_names
from clew.answering.queries.query_answers import (
    Executed,
    answer_query,
    relations_and_attributes,
    run_query,
    unknown_answer,
)
from clew.answering.reading.documents.close_reading import most_telling
from clew.answering.roles.formulate import ALONE, BY_TEXT, Formulated, Formulator
from clew.core import trace
from clew.core.errors import InputError
from clew.core.roles import Interpretation, Parse, Reading, Source
from clew.core.states import SATISFIES
from clew.core.types import Answer, Candidate, Evidence, Judgement, NodeSet, Passage, Path, Value
from clew.models.tokens import cut_to_question
from clew.store.graph.protocol import KnowledgeBase
from clew.store.open_base import OpenBase

if TYPE_CHECKING:
    from clew.answering.methods.focus.focus_plus import FocusPlus  # which imports this module for a model

Outcome = tuple[object, ...]
"""The result of a query with its relations and attributes."""
CERTAIN = 0.9
"""Minimum certainty of a reading that needs no model."""
AGREED = 0.97
"""Certainty of results that both readings find."""
FEW = 5
"""Number of results shown to the model that may change its query."""
STANDS = 0.6
"""Minimum certainty of a reading that is used although the model sees no answer or its query has no results."""


@dataclass(frozen=True)
class ByModel:
    """A model's executed query with its certainty."""

    formulated: Formulated
    executed: Executed
    certainty: float

    @property
    def value(self) -> Value | None:
        """The requested value, if there is a single value."""
        return not self.executed.is_empty if self.formulated.is_truth else self.executed.value

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return the results. If a text must confirm them, rank them by that text without an answer count."""
        text, first = self.formulated.text, list[int]()
        if text and self.executed.refs:
            among = NodeSet.of([ref.id for ref in self.executed.refs])
            first = tools.lexical.search(text, LISTED, among=among).nodes.tolist()
        answer = answer_query(tools.kb, question, self.executed, first)
        if self.formulated.is_truth:
            answer = replace(answer, value=self.value, columns=(), rows=(), query={**answer.query, "form": "yes/no"})
        if text and answer.candidates:
            query = {**answer.query, "form": "text", "unconfirmed": [text]}
            answer = replace(answer, answer_count=None, query=query)
        return replace(answer, certainty=self.certainty)


def answer_twice(method: FocusPlus, question: str, tools: OpenBase) -> Answer:
    """Answer by the reader's or the model's query, with a text written by the model."""

    def answered(certain: float) -> tuple[Answer, bool]:
        with trace.span("1 query") as span:
            reading = read_twice(question, tools, certain)
            query = reading.interpretation.query if isinstance(reading, Parse) else reading.executed.query
            span.note(query=str(query), certainty=reading.certainty)
        if isinstance(reading, Parse) and reading.unknown:
            return unknown_answer(question, reading.unknown, 0.0), False
        if isinstance(reading, ByModel):
            return method.written(reading.answer(question, tools), tools), False
        answer = method.written(method.ranked(question, reading, tools), tools)
        return answer, (reading.certainty or 0.0) >= CERTAIN

    answer, by_reader = answered(CERTAIN)
    if by_reader and not answer.found and (answer.certainty or 0.0) == DOUBTED:
        # The certain reader skipped the model's query, but the model doubts the result.
        again, _ = answered(1.1)
        answer = again if again.found else answer
    return answer


def read_twice(question: str, tools: OpenBase, certain: float = CERTAIN) -> Parse | ByModel:
    """Return the reader's parse if it is certain. Otherwise decide by the results, with the model's query first."""
    ours = with_known_names(reader_parser(tools).parse(question, tools.kb.schema), tools.names)
    if (ours.certainty or 0.0) >= certain and not ours.is_loose and not ours.unknown:
        return ours
    formulator = Formulator(tools.required_model("reading a question twice"), description_of(tools))
    other = _outcome(ours, tools)
    theirs, executed = _carried_out(formulator, question, tools)
    with trace.span("two readings", ours=str(ours.interpretation.query), theirs=str(theirs and theirs.query)) as span:
        decided, why = _decide(ours, other, theirs, executed)
        span.note(decided=why)
    return decided


def _carried_out(formulator: Formulator, question: str, tools: OpenBase) -> tuple[Formulated | None, Executed | None]:
    """Return a model's query and its result. If these are doubtful, show them to the model and ask once more."""
    theirs = formulator.formulate(question)
    executed, doubt = _executed(theirs, tools)
    if theirs is not None and doubt:
        again = formulator.formulate(question, f"Your query was: {theirs.query}\n{doubt}")
        if again is not None:
            theirs, (executed, _) = again, _executed(again, tools)
    return theirs, executed


def _executed(formulated: Formulated | None, tools: OpenBase) -> tuple[Executed | None, str]:
    """Return the result of a query, and a remark for the model if it is doubtful."""
    if formulated is None or formulated.query is None:
        return None, ""
    try:
        executed = run_query(tools.kb, tools.names, formulated.query)
    except InputError as error:
        return None, f"It cannot be carried out: {error}"
    if executed.unknown:
        near = {one.text: [link.alias for link in tools.names.link(one.text, k=5)] for one in executed.unknown}
        told = "; ".join(f"“{name}” is not a name here, nearest are {', '.join(names)}" for name, names in near.items())
        return executed, f"{told}."
    if executed.is_empty and not formulated.is_truth:
        return None, "It finds nothing. If the question can be put otherwise, write another query."
    if not executed.notes:
        return executed, ""
    return executed, (
        f"It finds {_told(executed)}. But {'; '.join(executed.notes)}. If your query is what the question asks for, "
        "reply with it again. Otherwise write another query, or reply that the question is not answerable."
    )


def _told(executed: Executed) -> str:
    """Return the number of results and some of them, for a model."""
    cells = [str(getattr(row[0], "name", row[0])) for row in executed.result.rows]
    return f"{len(cells)} result{'s' * (len(cells) != 1)}: {', '.join(cells[:FEW])}{', …' * (len(cells) > FEW)}"


def _decide(
    ours: Parse, other: Outcome | None, theirs: Formulated | None, executed: Executed | None
) -> tuple[Parse | ByModel, str]:
    sure = ours.certainty or 0.0
    if theirs is None:
        return ours, "the model's reply was of no use"
    if not theirs.is_answerable:
        return (ours if sure >= STANDS else replace(ours, certainty=0.0)), "the model sees no answer"
    if theirs.query is None:
        by_text = replace(Interpretation.of_text(theirs.text, ours.interpretation.type), score=1.0)
        return Parse(by_text, certainty=BY_TEXT, is_loose=True), "the model says that texts tell it"
    if executed is not None and executed.unknown:
        stands = ours if sure >= STANDS and not ours.unknown else replace(ours, unknown=executed.unknown)
        return stands, "the model's query names what the base does not have"
    if executed is None:
        is_found = sure >= STANDS and other is not None
        return (ours if is_found else replace(ours, certainty=0.0)), "the model's query finds nothing"
    by_model = ByModel(theirs, executed, ALONE)
    if not theirs.text and other == _result(theirs, executed):
        return replace(ours, certainty=AGREED, is_loose=False, unknown=()), "both agree"
    return by_model, "the model's query stands"


def _result(formulated: Formulated, executed: Executed) -> Outcome:
    """Return the result of a model's query with its relations and attributes, to compare with `_outcome`."""
    value = ByModel(formulated, executed, ALONE).value
    found = frozenset(ref.id for ref in executed.refs)
    return found if value is None else value, *relations_and_attributes(executed.query)


def _outcome(parse: Parse, tools: OpenBase) -> Outcome | None:
    """Return the result of a reading with its relations and attributes, or None. Equal numbers may be a coincidence."""
    asked = parse.interpretation
    if not asked.is_restricted:
        return None
    found = execute(tools.kb, tools.names, asked)
    if not found.is_answer:
        return None
    relations, attributes = relations_and_attributes(found.executed.query)
    attributes |= {asked.attribute} if asked.attribute else set()
    return frozenset(found.nodes) if found.value is None else found.value, relations - {None}, attributes


SHOWN = 12
"""Maximum number of matches whose evidence the model reads."""
LISTED = 40
"""Maximum number of matches named to the model."""
TEXT_TOKENS = 100
"""Maximum tokens of a text that has to decide whether a match is an answer."""
DOUBTED = 0.2
"""Maximum certainty of an answer that the model does not find in its evidence."""


def written(answer: Answer, tools: OpenBase) -> Answer:
    """Add the model's sentences. If the evidence lacks the answer, the results become close matches."""
    from clew.answering.roles.read import ModelReader, cited_text  # needs a model

    model = tools.required_model("writing the answer")
    by_text = answer.query.get("form") == "text"
    matches = answer.candidates[:SHOWN] if by_text else answer.matches
    total = len(matches)
    names = ", ".join(candidate.node.name for candidate in matches[:LISTED])
    more = f" and {total - LISTED} more" if total > LISTED else ""
    told = f"the query “{answer.query.get('text')}” for the question “{answer.question}”"  # a claim may use its words
    result = f"All results of {told}, {total} in number: {names}{more}."
    if by_text:
        result = f"Found by their texts, not all of them fit: {names}."
    about = " ".join(answer.query.get("unconfirmed", ())) or answer.question if by_text else ""
    pieces = [_piece(candidate, tools.kb, about) for candidate in matches[:SHOWN]]
    sources = [Source(result), *(Source(text) for text, _ in pieces)]
    reader = ModelReader(model, None, embedder=tools.embedder, fallback=None)
    [read] = reader.read([Reading(answer.question, tuple(sources))])
    if read.problem is not None:
        return replace(answer, notes=(*answer.notes, *read.notes))
    if read.text is None:
        doubt = f"the model does not find the answer in this evidence{f': {read.missing}' if read.missing else ''}"
        sure = min(DOUBTED, 1.0 if answer.certainty is None else answer.certainty)
        return replace(answer, certainty=sure, answer_count=0, notes=(doubt, *answer.notes))
    known: list[Evidence] = [Judgement("query", reason=result), *(piece for _, piece in pieces)]
    evidence = tuple(known[place] for place in read.citations)
    if by_text:  # the cited matches are the answers
        cited = [matches[place - 1] for place in read.citations if place]
        others = [candidate for candidate in answer.candidates if candidate not in cited]
        answer = replace(answer, candidates=(*cited, *others), answer_count=len(cited))
    missing = (f"not in the evidence: {read.missing}",) if read.missing else ()
    return replace(answer, text=cited_text(read), evidence=evidence, notes=(*missing, *answer.notes, *read.notes))


def _piece(candidate: Candidate, kb: KnowledgeBase, about: str) -> tuple[str, Evidence]:
    """Return the evidence for a match, as text and as one piece. With `about`, its text has to decide and is shown."""
    node = kb.node(candidate.node.id)
    shown = [piece for piece in candidate.evidence if isinstance(piece, Path | Passage) or _is_value(piece)]
    told = [piece.in_words() for piece in shown]
    text = kb.text(node.id).partition("\n")[2] if about else ""  # without the name
    told += [" ".join(cut_to_question(text, about, TEXT_TOKENS).split())] if text else []
    reason = "; ".join(told) or SATISFIES
    named = f"{node.name} ({node.type}): {reason}"
    if about and node.text:
        return named, most_telling(node, about)
    return named, shown[0] if len(shown) == 1 else Judgement(node.name, reason=reason)


def _is_value(piece: Evidence) -> bool:
    return isinstance(piece, Judgement) and piece.by not in ("query", "document") and piece.score is None
