"""The answer in a sentence, where no method has written one: "3 drugs match: A, B and C."."""

from __future__ import annotations

from clew.core.types import Answer, Candidate, Fact, Judgement, Path, Value
from clew.queries.wording import plural, value_in_words

LISTED = 5
"""Of more answers than this the first are named and the others counted."""


def sentence(answer: Answer) -> str:
    """What is put forward, or that nothing is, from what the answer holds; ends with a full stop."""
    understood = answer.query.get("text")
    if not answer.found:
        return "I did not find this." + (f" I understood: {understood}." if understood else "")
    if isinstance(answer.value, bool):
        return _truth(answer, answer.value)
    if answer.value is not None:
        return _value(answer, answer.value)
    matches = answer.query.get("matches")
    if not answer.candidates:
        return "I did not find this."
    if not matches:
        return f"Ranked by what is written about them, nothing was checked: {_listed(answer.candidates)}."
    named = _listed(answer.matches, matches)
    if answer.query.get("form") in ("superlative", "comparison"):
        return f"{named}{_compared(answer.matches[0])}."
    return f"{_counted(answer, matches)} {'matches' if matches == 1 else 'match'}: {named}."


def _truth(answer: Answer, is_so: bool) -> str:
    if not is_so:
        return "No: nothing in the base says so."
    pieces = answer.candidates[0].evidence if answer.candidates else ()
    shown = next((piece.in_words() for piece in pieces if isinstance(piece, Fact | Path)), None)
    return f"Yes: {shown}." if shown else "Yes."


def _value(answer: Answer, value: Value) -> str:
    if answer.query.get("form") == "count":
        named = f": {_listed(answer.matches, int(value))}" if answer.matches else ""
        return f"{_counted(answer, int(value))}{named}."
    attribute = answer.query.get("attribute")
    if attribute and answer.matches:
        return f"The {attribute} of {_listed(answer.matches)} is {value_in_words(value)}."
    return f"{value_in_words(value)}."


def _counted(answer: Answer, count: int) -> str:
    kind = str(answer.query.get("kind", "thing"))
    return f"{count:,} {kind if count == 1 else plural(kind)}"


def _compared(best: Candidate) -> str:
    """By what it was compared: the attribute's value, which the evidence has."""
    told = [piece for piece in best.evidence if isinstance(piece, Judgement) and piece.by not in ("query", "document")]
    return f" ({told[0].by.replace('_', ' ')} {told[0].reason})" if told and told[0].reason else ""


def _listed(candidates: tuple[Candidate, ...], count: int | None = None) -> str:
    names = list(dict.fromkeys(candidate.node.name for candidate in candidates[:LISTED]))
    more = (len(candidates) if count is None else count) - min(LISTED, len(candidates))
    if more > 0:
        names.append(f"{more:,} more")
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
