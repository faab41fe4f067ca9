"""What a language model adds to Focus+.

Before: a question is read twice, by the learned reader and by the model; what each reading finds decides.
After: the model writes the answer in sentences from what was executed; every claim cites the facts it rests on.
"""

from __future__ import annotations

from dataclasses import replace

from clew.answering.methods.focus.tiers import finished
from clew.answering.methods.focus.unknown import with_known_names
from clew.answering.methods.role_choice import reader_of, reader_parser
from clew.core import trace
from clew.core.roles import Parse, Reading, Source
from clew.core.types import Answer, Candidate, Evidence, Judgement, Passage, Path, Value
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


def read_twice(question: str, tools: OpenBase, certain: float = CERTAIN) -> Parse:
    """The reader's parse where it is certain; otherwise the one of the two that finds something, the model's first."""
    from clew.answering.roles.parse import ModelQueryParser  # where there is a model

    schema, model = tools.kb.schema, tools.required_model("reading a question twice")
    ours = reader_parser(tools).parse(question, schema)
    if (ours.certainty or 0.0) >= certain and not ours.is_loose:
        return ours
    theirs = ModelQueryParser(model, reader_of(tools).values).parse(question, schema)
    with trace.span("two readings", ours=str(ours.query), theirs=None if theirs is None else str(theirs.query)) as span:
        decided, why = (ours, "the model's reply was of no use") if theirs is None else _decide(ours, theirs, tools)
        span.note(decided=why)
    return decided


def _decide(ours: Parse, theirs: Parse, tools: OpenBase) -> tuple[Parse, str]:
    sure, theirs = ours.certainty or 0.0, with_known_names(theirs, tools.names)
    if theirs.unknown:
        stands = ours if sure >= STANDS and not ours.unknown else theirs
        return stands, "the model's query names what the base does not have"
    if theirs.certainty == 0.0:
        return (ours if sure >= STANDS else replace(ours, certainty=0.0)), "the model sees no answer"
    found, other = _outcome(ours, tools), _outcome(theirs, tools)
    if other is None and theirs.query.unexplained and not theirs.query.triplets:
        return replace(theirs, certainty=BY_TEXT, is_loose=True), "the model says that texts tell it"
    if other is None:
        stands = ours if found is not None and sure >= STANDS else replace(theirs, certainty=min(sure, ALONE))
        return stands, "the model's query finds nothing"
    if found == other:
        return replace(ours, certainty=AGREED, is_loose=False, unknown=()), "both agree"
    is_loose = bool(theirs.query.unexplained)
    return replace(theirs, certainty=ALONE, alternatives=(ours.query,), is_loose=is_loose), "the model's query stands"


def _outcome(parse: Parse, tools: OpenBase) -> tuple[frozenset[int], Value | None] | None:
    """What a reading finds; None for nothing."""
    query = parse.query
    if not (query.triplets or query.conditions or query.among or query.best):
        return None
    outcome = finished(tools.kb, tools.names, query).outcome
    if query.asks == "nodes" and not len(outcome.nodes):
        return None
    if query.asks == "value" and outcome.value is None:
        return None
    return frozenset(outcome.nodes) if query.asks in ("nodes", "value") else frozenset(), outcome.value


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
    total = answer.query.get("matches") or len(matches)
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
    return replace(answer, text=cited_text(read), evidence=evidence, notes=(*answer.notes, *read.notes))


def _piece(candidate: Candidate) -> tuple[str, Evidence]:
    """What speaks for a match, in words and as one piece of evidence."""
    shown = [piece for piece in candidate.evidence if isinstance(piece, Path | Passage) or _is_value(piece)]
    name = f"{candidate.node.name} ({candidate.node.type})"
    told = "; ".join(piece.in_words() for piece in shown) or "satisfies the query"
    return f"{name}: {told}", shown[0] if len(shown) == 1 else Judgement(candidate.node.name, reason=told)


def _is_value(piece: Evidence) -> bool:
    return isinstance(piece, Judgement) and piece.by not in ("query", "document") and piece.score is None
