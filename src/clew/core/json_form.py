"""Answers as plain values, for JSON and for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clew.core.types import Answer, Candidate, Evidence, Fact, Judgement, NodeRef, Passage, Path


def answer_json(answer: Answer) -> dict[str, Any]:
    """The answer as `clew ask --json` prints it."""
    shown: dict[str, Any] = {
        "question": answer.question,
        "method": answer.method,
        "model": answer.model,
        "answers": [candidate_json(rank, candidate) for rank, candidate in enumerate(answer.candidates, start=1)],
        "fallbacks": [{"step": f.step, "reason": f.reason, "instead": f.instead} for f in answer.fallbacks],
        "seconds": round(answer.seconds, 6),
    }
    if answer.text is not None:
        shown["text"] = answer.text
    if answer.evidence:
        shown["evidence"] = [evidence_json(piece) for piece in answer.evidence]
    if answer.query:
        shown["query"] = dict(answer.query)
    if answer.notes:
        shown["notes"] = list(answer.notes)
    return shown


def candidate_json(rank: int, candidate: Candidate) -> dict[str, Any]:
    """One candidate with its rank and evidence."""
    return {
        "rank": rank,
        **node_json(candidate.node),
        "score": round(float(candidate.score), 6),
        "evidence": [evidence_json(piece) for piece in candidate.evidence],
    }


def node_json(node: NodeRef) -> dict[str, str]:
    """A node by the user's key."""
    return {"key": node.key, "name": node.name, "type": node.type}


def evidence_json(piece: Evidence) -> dict[str, Any]:
    """One piece of evidence; `kind` tells which."""
    match piece:
        case Fact():
            return {"kind": "fact", **fact_json(piece), "text": piece.in_words()}
        case Path():
            return {"kind": "path", "facts": [fact_json(fact) for fact in piece.facts], "text": piece.in_words()}
        case Passage():
            place = {"file": piece.file, "page": piece.page, "start": piece.start, "end": piece.end}
            known = {name: value for name, value in place.items() if value is not None}
            return {"kind": "passage", "node": node_json(piece.node), "text": piece.text, **known}
        case Judgement():
            return {"kind": "judgement", "by": piece.by, "score": piece.score, "text": piece.in_words()}


def fact_json(fact: Fact) -> dict[str, Any]:
    """A triple in its stored direction."""
    shown = {"head": node_json(fact.head), "relation": fact.relation, "tail": node_json(fact.tail)}
    return shown | ({"attributes": plain(fact.attributes)} if fact.attributes else {})


def plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as JSON knows them: dates become text."""
    kept = (str, int, float, bool, list, type(None))
    return {name: value if isinstance(value, kept) else str(value) for name, value in attributes.items()}
