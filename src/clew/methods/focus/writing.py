"""The answer in sentences by a model, from what was executed: every claim cites the facts it rests on."""

from __future__ import annotations

from dataclasses import replace

from clew.core.roles import Reading, Source
from clew.core.types import Answer, Candidate, Evidence, Judgement, Passage, Path
from clew.roles.read import ModelReader
from clew.toolbox import Toolbox

SHOWN = 12
"""Matches whose evidence the model reads."""
LISTED = 40
"""Matches that are named to it."""
DOUBTED = 0.2
"""How sure at most an answer is that the model does not find in its evidence."""


def written(answer: Answer, tools: Toolbox) -> Answer:
    """The answer with the model's sentences; where the evidence does not say it to the model, it is only near."""
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
        return answer
    if read.text is None:
        doubt = f"the model does not find the answer in this evidence{f': {read.missing}' if read.missing else ''}"
        sure = min(DOUBTED, 1.0 if answer.certainty is None else answer.certainty)
        return replace(answer, certainty=sure, answer_count=0, notes=(doubt, *answer.notes))
    known: list[Evidence] = [Judgement("query", reason=result), *(piece for _, piece in pieces)]
    numbers = {place: number for number, place in enumerate(read.citations, start=1)}
    said = [
        f"{claim.text} {''.join(f'[{numbers[place]}]' for place in claim.citations)}".rstrip()
        + ("" if claim.is_supported else " (its source may not say this)")
        for claim in read.claims
    ]
    evidence = tuple(known[place] for place in read.citations)
    if by_text:  # what is cited is the answer
        cited = [matches[place - 1] for place in read.citations if place]
        others = [candidate for candidate in answer.candidates if candidate not in cited]
        answer = replace(answer, candidates=(*cited, *others), answer_count=len(cited))
    return replace(answer, text=" ".join(said), evidence=evidence, notes=(*answer.notes, *read.notes))


def _piece(candidate: Candidate) -> tuple[str, Evidence]:
    """What speaks for a match, in words and as one piece of evidence."""
    shown = [piece for piece in candidate.evidence if isinstance(piece, Path | Passage) or _is_value(piece)]
    name = f"{candidate.node.name} ({candidate.node.type})"
    told = "; ".join(piece.in_words() for piece in shown) or "satisfies the query"
    return f"{name}: {told}", shown[0] if len(shown) == 1 else Judgement(candidate.node.name, reason=told)


def _is_value(piece: Evidence) -> bool:
    return isinstance(piece, Judgement) and piece.by not in ("query", "document") and piece.score is None
