"""From ranked passages to an answer: read the best, cite where it stands, and say what nothing carries."""

from __future__ import annotations

from collections.abc import Sequence

from clew.core import trace
from clew.core.types import Answer, Candidate, Evidence, Ranking
from clew.kb.protocol import KnowledgeBase
from clew.steps.passages.citations import cite, most_telling
from clew.steps.roles.protocol import Read, Reader, Reading, Source

READ = 10
"""Passages that are read."""


def answer_from_passages(
    kb: KnowledgeBase,
    question: str,
    method: str,
    ranking: Ranking,
    reader: Reader | None,
    *,
    paths: Sequence[Evidence] = (),
    read: int = READ,
) -> Answer:
    """The passages as candidates, each with its most telling sentence, and what a reader answers from the best."""
    refs = kb.refs(ranking.nodes)
    candidates = tuple(
        Candidate(ref, score, (most_telling(kb.node(ref.id), question),))
        for ref, (_, score) in zip(refs, ranking, strict=True)
    )
    found = read_passages(kb, question, ranking.nodes[:read].tolist(), reader) if reader else Read(None)
    if found.text is None:
        return Answer(question, method, candidates, evidence=tuple(paths))
    cited = [int(ranking.nodes[place]) for place in found.citations]
    quotes, supported = cite(kb, question, found.text, cited)
    notes = () if supported else (unsupported(found.text, quotes),)
    return Answer(question, method, candidates, text=found.text, evidence=(*quotes, *paths), notes=notes)


def unsupported(answer: str, quotes: Sequence[Evidence]) -> str:
    """What to say of an answer that no citation writes: no passage writes the yes or no that it leads to."""
    if quotes and answer.lower() in ("yes", "no"):
        return f"concluded: “{answer}” follows from the cited passages, none writes it"
    return f"unsupported: no cited passage writes “{answer}”"


def read_passages(kb: KnowledgeBase, question: str, nodes: Sequence[int], reader: Reader) -> Read:
    """What a reader answers from some passages."""
    sources = []
    for node in map(kb.node, nodes):
        sources.append(Source(node.text, node.name))
    with trace.span("read", passages=len(sources)):
        [answer] = reader.read([Reading(question, tuple(sources))])
    return answer
