"""Answer questions with names that the base does not contain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clew.answering.queries.linking import ground, unknown_names
from clew.core.query import constants
from clew.core.roles import Interpretation, Parse
from clew.core.types import Answer, UnknownName
from clew.store.index.protocol import CorrectedNames, Names


def with_known_names(parse: Parse, names: Names) -> Parse:
    """Add the unknown names of the query to the parse. Remove alternatives with unknown names."""
    others = tuple(one for one in parse.alternatives if not _unknown(one, names))
    unknown = parse.unknown or _unknown(parse.interpretation, names)
    if isinstance(names, CorrectedNames):  # the user excluded these texts as names: do not report them
        unknown = tuple(one for one in unknown if not names.is_excluded(one.text))
    return replace(parse, alternatives=others, unknown=unknown)


def _unknown(asked: Interpretation, names: Names) -> tuple[UnknownName, ...]:
    return unknown_names(ground(constants(asked.query), names))


def unknown_answer(question: str, unknown: Sequence[UnknownName]) -> Answer:
    """Return an answer without candidates whose text lists the unknown names."""
    text = " ".join(one.to_text() for one in unknown)
    return Answer(question, text=text, answer_count=0, certainty=0.0, unknown=tuple(unknown))
