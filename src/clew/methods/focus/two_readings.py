"""A question read twice, by the learned reader and by a language model; what each reading finds decides."""

from __future__ import annotations

from dataclasses import replace

from clew.core import trace
from clew.core.roles import Parse
from clew.core.types import Value
from clew.methods.focus.tiers import finished
from clew.methods.role_choice import reader_of, reader_parser
from clew.roles.parse import ModelQueryParser
from clew.toolbox import Toolbox

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


def read_twice(question: str, tools: Toolbox, certain: float = CERTAIN) -> Parse:
    """The reader's parse where it is certain; otherwise the one of the two that finds something, the model's first."""
    schema, model = tools.kb.schema, tools.required_model("reading a question twice")
    ours = reader_parser(tools).parse(question, schema)
    if (ours.certainty or 0.0) >= certain and not ours.is_loose:
        return ours
    theirs = ModelQueryParser(model, reader_of(tools).values).parse(question, schema)
    with trace.span("two readings", ours=str(ours.query), theirs=None if theirs is None else str(theirs.query)) as span:
        decided, why = (ours, "the model's reply was of no use") if theirs is None else _decide(ours, theirs, tools)
        span.note(decided=why)
    return decided


def _decide(ours: Parse, theirs: Parse, tools: Toolbox) -> tuple[Parse, str]:
    sure = ours.certainty or 0.0
    if theirs.certainty == 0.0:
        return (ours if sure >= STANDS else replace(ours, certainty=0.0)), "the model sees no answer"
    found, other = _outcome(ours, tools), _outcome(theirs, tools)
    if other is None and theirs.query.unexplained and not theirs.query.triplets:
        return replace(theirs, certainty=BY_TEXT, is_loose=True), "the model says that texts tell it"
    if other is None:
        stands = ours if found is not None and sure >= STANDS else replace(theirs, certainty=min(sure, ALONE))
        return stands, "the model's query finds nothing"
    if found == other:
        return replace(ours, certainty=AGREED, is_loose=False), "both agree"
    is_loose = bool(theirs.query.unexplained)
    return replace(theirs, certainty=ALONE, alternatives=(ours.query,), is_loose=is_loose), "the model's query stands"


def _outcome(parse: Parse, tools: Toolbox) -> tuple[frozenset[int], Value | None] | None:
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
