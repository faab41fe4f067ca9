"""From a ranking to an answer: who may be an answer, and which words of its document speak for it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from clew.core.types import Answer, Candidate, NodeRef, NodeSet, Passage, Ranking
from clew.index.tokens import terms
from clew.kb.protocol import KnowledgeBase

SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
LONGEST_QUOTE = 300


def answer_nodes(kb: KnowledgeBase) -> NodeSet | None:
    """The nodes that may be answers; None where every type may."""
    types = kb.schema.answer_types
    if len(types) == len(kb.schema.type_names):
        return None
    return NodeSet.of([node for name in types for node in kb.nodes(name)])


def nodes_of_type(kb: KnowledgeBase, kind: str | None) -> NodeSet | None:
    """The nodes of a type, or those that may be answers where it is not known."""
    return answer_nodes(kb) if kind is None else kb.nodes(kind)


def answer_with_passages(kb: KnowledgeBase, question: str, method: str, ranking: Ranking) -> Answer:
    """Each ranked node with the sentence of its document that shares most with the question."""
    asked = set(terms(question))
    candidates = tuple(
        Candidate(ref, score, (best_sentence(ref, kb.text(ref.id), asked),))
        for ref, (_, score) in zip(kb.refs(ranking.nodes), ranking, strict=True)
    )
    return Answer(question, method, candidates)


def best_sentence(node: NodeRef, document: str, asked: Iterable[str]) -> Passage:
    """The sentence with most words of the question, the first of them where several tie; quoted with its span."""
    wanted = set(asked)
    sentences = [match for match in SENTENCE.finditer(document) if match.group().strip()]
    if not sentences:
        return Passage(node, document, start=0, end=len(document))
    best = max(sentences, key=lambda match: len(wanted & set(terms(match.group()))))
    start = best.start() + len(best.group()) - len(best.group().lstrip())
    end = min(best.end(), start + LONGEST_QUOTE)
    return Passage(node, document[start:end], start=start, end=end)
