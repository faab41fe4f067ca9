"""Retrievers for other libraries. Each module needs the extra of its name, and all return the same data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clew.api import Base


@dataclass(frozen=True, slots=True)
class Retrieved:
    """An answer as a passage, with its evidence as metadata."""

    text: str
    score: float
    metadata: Mapping[str, Any]


def retrieve(base: Base, question: str, method: str, k: int) -> list[Retrieved]:
    """Return the k best answers with their documents."""
    passages = []
    answer = base.ask(question, method=method)
    for rank, candidate in enumerate(answer.candidates[:k]):
        node = candidate.node
        metadata = {
            **node.to_dict(),
            "score": float(candidate.score),
            "state": answer.state,
            "group": "match" if rank < len(answer.matches) else "near",
            "evidence": [piece.to_dict() for piece in candidate.evidence],
        }
        passages.append(Retrieved(base.tools.kb.text(node.id), float(candidate.score), metadata))
    return passages
