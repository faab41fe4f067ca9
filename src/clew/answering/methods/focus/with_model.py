"""What a language model adds to Focus+.

Before: a question is read twice, by the learned reader and by the model; what each reading finds decides.
After: the model writes the answer in sentences from what was executed; every claim cites the facts it rests on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from clew.answering.methods.focus.execution import execute
from clew.answering.methods.focus.unknown import unknown_answer, with_known_names
from clew.answering.methods.role_choice import reader_of, reader_parser
from clew.answering.queries.query_answers import Executed, answer_query, relations_and_attributes, run_query
from clew.answering.roles.formulate import Formulated, Formulator
from clew.core import trace
from clew.core.errors import InputError
from clew.core.roles import Interpretation, Parse, Reading, Source
from clew.core.types import Answer, Candidate, Evidence, Judgement, NodeSet, Passage, Path, Value
from clew.store.open_base import OpenBase

CERTAIN = 0.9
"""A reading at least this certain is not put to a model."""
AGREED = 0.97
"""How sure it is what both find, and"""
ALONE = 0.8
"""what the model alone finds, where the reader was not sure."""
BY_TEXT = 0.5
"""How sure it is that texts say what the model says they do."""
STANDS = 0.6
"""A reading at least this certain stands where the model sees no answer, or finds nothing."""


@dataclass(frozen=True)
class ByModel:
    """A model's query, carried out, and how sure it is."""

    formulated: Formulated
    executed: Executed
    certainty: float

    @property
    def value(self) -> Value | None:
        """The value that is asked for, where it is one."""
        return not self.executed.is_empty if self.formulated.is_truth else self.executed.value

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """What the query finds; where a text has to confirm it, ranked by that and not put forward yet."""
        answer = answer_query(tools.kb, question, self.executed)
        if self.formulated.is_truth:
            answer = replace(answer, value=self.value, columns=(), rows=(), query={**answer.query, "form": "yes/no"})
        if self.formulated.text and answer.candidates:
            among = NodeSet.of([one.node.id for one in answer.candidates])
            order = tools.lexical.search(self.formulated.text, LISTED, among=among).nodes.tolist()
            ranked = sorted(answer.candidates, key=lambda one: (*order, one.node.id).index(one.node.id))
            query = {**answer.query, "form": "text", "unconfirmed": [self.formulated.text]}
            answer = replace(answer, candidates=tuple(ranked), answer_count=None, query=query)
        return replace(answer, certainty=self.certainty)


class Ranks(Protocol):
    """What makes an answer of a reading, and puts an answer into words."""

    def ranked(self, question: str, parse: Parse, tools: OpenBase) -> Answer:
        """What a reading finds, in an order."""
        ...

    def written(self, answer: Answer, tools: OpenBase) -> Answer:
        """The answer in the words of a model."""
        ...


def answer_twice(method: Ranks, question: str, tools: OpenBase) -> Answer:
    """The answer by the reader or by the model's query, in the model's words."""

    def answered(certain: float) -> tuple[Answer, bool]:
        with trace.span("1 query") as span:
            reading = read_twice(question, tools, certain)
            query = reading.interpretation.query if isinstance(reading, Parse) else reading.executed.query
            span.note(query=str(query), certainty=reading.certainty)
        if isinstance(reading, Parse) and reading.unknown:
            return unknown_answer(question, reading.unknown), False
        if isinstance(reading, ByModel):
            return method.written(reading.answer(question, tools), tools), False
        answer = method.written(method.ranked(question, reading, tools), tools)
        return answer, (reading.certainty or 0.0) >= CERTAIN

    answer, by_reader = answered(CERTAIN)
    if by_reader and not answer.found and (answer.certainty or 0.0) == DOUBTED:
        # The reader was certain and the model was not asked, but it doubts what the reader found.
        again, _ = answered(1.1)
        answer = again if again.found else answer
    return answer


def read_twice(question: str, tools: OpenBase, certain: float = CERTAIN) -> Parse | ByModel:
    """The reader's parse where it is certain; otherwise the one of the two that finds something, the model's first."""
    ours = with_known_names(reader_parser(tools).parse(question, tools.kb.schema), tools.names)
    if (ours.certainty or 0.0) >= certain and not ours.is_loose and not ours.unknown:
        return ours
    model = tools.required_model("reading a question twice")
    formulator = Formulator(model, tools.kb, reader_of(tools).values)
    theirs, executed = _carried_out(formulator, question, tools)
    with trace.span("two readings", ours=str(ours.interpretation.query), theirs=str(theirs and theirs.query)) as span:
        decided, why = _decide(ours, theirs, executed, tools)
        span.note(decided=why)
    return decided


def _carried_out(formulator: Formulator, question: str, tools: OpenBase) -> tuple[Formulated | None, Executed | None]:
    """A model's query and what it finds. Where that is nothing, the model is told so and asked once more."""
    theirs = formulator.formulate(question)
    executed, problem = _executed(theirs, tools)
    if problem:
        again = formulator.formulate(question, problem)
        if again is not None:
            theirs, (executed, _) = again, _executed(again, tools)
    return theirs, executed


def _executed(formulated: Formulated | None, tools: OpenBase) -> tuple[Executed | None, str]:
    """What a query finds, and what to tell the model where that is nothing."""
    if formulated is None or formulated.query is None:
        return None, ""
    shown = f"Your query was: {formulated.query}\n"
    try:
        executed = run_query(tools.kb, tools.names, formulated.query)
    except InputError as error:
        return None, f"{shown}It cannot be carried out: {error}"
    if executed.unknown:
        near = {one.text: [link.alias for link in tools.names.link(one.text, k=5)] for one in executed.unknown}
        told = "; ".join(f"“{name}” is not a name here, nearest are {', '.join(names)}" for name, names in near.items())
        return executed, f"{shown}{told}."
    if executed.is_empty and not formulated.is_truth:
        return None, f"{shown}It finds nothing. If the question can be put otherwise, write another query."
    return executed, ""


def _decide(
    ours: Parse, theirs: Formulated | None, executed: Executed | None, tools: OpenBase
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
        is_found = sure >= STANDS and _outcome(ours, tools) is not None
        return (ours if is_found else replace(ours, certainty=0.0)), "the model's query finds nothing"
    by_model = ByModel(theirs, executed, ALONE)
    found, by = frozenset(ref.id for ref in executed.refs), relations_and_attributes(executed.query)
    if not theirs.text and _outcome(ours, tools) == (found if by_model.value is None else by_model.value, *by):
        return replace(ours, certainty=AGREED, is_loose=False, unknown=()), "both agree"
    return by_model, "the model's query stands"


def _outcome(parse: Parse, tools: OpenBase) -> tuple[object, ...] | None:
    """What a reading finds and by what, since two numbers may be equal by chance; None for nothing."""
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
"""Matches whose evidence the model reads."""
LISTED = 40
"""Matches that are named to it."""
DOUBTED = 0.2
"""How sure at most an answer is that the model does not find in its evidence."""


def written(answer: Answer, tools: OpenBase) -> Answer:
    """The answer with the model's sentences; where the evidence does not say it to the model, it is only near."""
    from clew.answering.roles.read import ModelReader, cited_text  # where there is a model

    model = tools.required_model("writing the answer")
    by_text = answer.query.get("form") == "text"
    matches = answer.candidates[:SHOWN] if by_text else answer.matches
    total = len(matches)
    names = ", ".join(candidate.node.name for candidate in matches[:LISTED])
    more = f" and {total - LISTED} more" if total > LISTED else ""
    result = f"All results of the query “{answer.query.get('text')}”, {total} in number: {names}{more}."
    if by_text:
        result = f"Found by their texts, not all of them fit: {names}."
    pieces = [_piece(candidate) for candidate in matches[:SHOWN]]
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
    if by_text:  # what is cited is the answer
        cited = [matches[place - 1] for place in read.citations if place]
        others = [candidate for candidate in answer.candidates if candidate not in cited]
        answer = replace(answer, candidates=(*cited, *others), answer_count=len(cited))
    missing = (f"not in the evidence: {read.missing}",) if read.missing else ()
    return replace(answer, text=cited_text(read), evidence=evidence, notes=(*missing, *answer.notes, *read.notes))


def _piece(candidate: Candidate) -> tuple[str, Evidence]:
    """What speaks for a match, in words and as one piece of evidence."""
    shown = [piece for piece in candidate.evidence if isinstance(piece, Path | Passage) or _is_value(piece)]
    name = f"{candidate.node.name} ({candidate.node.type})"
    told = "; ".join(piece.in_words() for piece in shown) or "satisfies the query"
    return f"{name}: {told}", shown[0] if len(shown) == 1 else Judgement(candidate.node.name, reason=told)


def _is_value(piece: Evidence) -> bool:
    return isinstance(piece, Judgement) and piece.by not in ("query", "document") and piece.score is None
