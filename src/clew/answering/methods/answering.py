"""From ranked candidates to an answer: who may be one, reranking, and which words of its document speak for it."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Protocol

from clew.answering.roles.rerank import Judged, Reranker
from clew.core import trace
from clew.core.types import EMPTY, Answer, Candidate, Evidence, Judgement, NodeRef, NodeSet, Passage, Ranking
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.lexical import LexicalIndex
from clew.store.index.tokens import terms
from clew.store.index.vectors import VectorIndex
from clew.store.open_base import OpenBase

SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?=\S))+[.!?]*")
"""To the end of the line, or to a dot that no letter or digit follows: "7.8" is one word."""
LONGEST_QUOTE = 300


def answer_nodes(kb: KnowledgeBase) -> NodeSet | None:
    """The nodes that may be answers; None where every type may."""
    types = kb.schema.answer_types
    if len(types) == len(kb.schema.type_names):
        return None
    return reduce(operator.or_, map(kb.nodes, types), EMPTY)


def nodes_of_type(kb: KnowledgeBase, kind: str | None) -> NodeSet | None:
    """The nodes of a type, or those that may be answers where it is not known."""
    return answer_nodes(kb) if kind is None else kb.nodes(kind)


def words_of(tools: OpenBase, relations: bool) -> LexicalIndex:
    """The words of the node documents, with or without their relations."""
    return tools.lexical_with_relations if relations else tools.lexical


def vectors_of(tools: OpenBase, relations: bool) -> VectorIndex:
    """The vectors of the node documents, with or without their relations."""
    return tools.vectors_with_relations if relations else tools.vectors


def nearest(
    tools: OpenBase,
    question: str,
    k: int,
    among: NodeSet | None,
    *,
    relations: bool = False,
    vectors: VectorIndex | None = None,
) -> Ranking:
    """The k nodes nearest by meaning, by other vectors than the base's where they are given.

    Where vectors are missing and words choose what is compared, that is said.
    """
    other = "" if vectors is None else f" --embedder {vectors.store.spec}"
    vectors = vectors_of(tools, relations) if vectors is None else vectors
    wide = len(tools.kb.nodes()) if among is None else len(among)
    if not vectors.is_complete and wide > vectors.most:
        instead = f"of {wide} candidates the {vectors.pool} that share most words with the question are compared"
        base = tools.place.name if isinstance(tools.place, Path) else "BASE"
        command = f"clew embed {base}{other}{' --relations' if relations else ''}"
        trace.fallback("vector search", f"not all nodes have vectors yet: `{command}` computes them", instead)
    return vectors.search(question, k, among=among)


def answer_with_passages(kb: KnowledgeBase, question: str, ranking: Ranking, *, relations: bool = False) -> Answer:
    """Each ranked node with the sentence of its document that shares most with the question."""
    asked = set(terms(question))
    candidates = tuple(
        Candidate(ref, score, (best_sentence(ref, kb.text(ref.id, relations=relations), asked),))
        for ref, (_, score) in zip(kb.refs(ranking.nodes), ranking, strict=True)
    )
    return Answer(question, candidates)


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


class Support(Protocol):
    """What a candidate satisfies, and can show evidence for."""

    def evidence(self, kb: KnowledgeBase, node: int) -> tuple[Evidence, ...]:
        """Paths that lead to the candidate, and what was checked to be absent."""
        ...


@dataclass(frozen=True)
class Found:
    """A candidate before reranking: the focus it satisfies, if any, and how near its document is to the question."""

    node: int
    nearness: float
    focus: Support | None = None
    how: str = ""
    """In a few words, why it is a candidate."""
    lead: float = 0.0
    """What satisfying the query adds to its score."""


@dataclass(frozen=True)
class Placed:
    """A candidate after reranking."""

    found: Found
    judged: Judged
    before: int


RERANKED = 40
"""Of each group so many are put to a reranker; the others stay below them in their order."""


def rerank_groups(reranker: Reranker, question: str, groups: Sequence[Sequence[Found]]) -> list[Placed]:
    """Rerank each group by itself, so that no group's candidates rise above those of a better one."""
    placed: list[Placed] = []
    for group in groups:
        by_node = {found.node: (found, len(placed) + place) for place, found in enumerate(group, start=1)}
        judged = [*reranker.rerank(question, [found.node for found in group[:RERANKED]])]
        judged += [Judged(found.node) for found in group[RERANKED:]]
        placed += [Placed(by_node[one.node][0], one, by_node[one.node][1]) for one in judged]
    return placed


def answer_placed(
    kb: KnowledgeBase, question: str, placed: Sequence[Placed], reranker: Reranker, shown: int | None = None
) -> Answer:
    """Candidates, the first `shown` with witnesses, quotations, and their places before and after reranking."""
    refs = kb.refs([one.found.node for one in placed])
    asked = set(terms(question))
    candidates = tuple(
        Candidate(
            ref,
            _score(one),
            _evidence(kb, one, ref, place, reranker.name, asked) if shown is None or place <= shown else (),
        )
        for place, (one, ref) in enumerate(zip(placed, refs, strict=True), start=1)
    )
    return Answer(question, candidates)


def _score(one: Placed) -> float:
    own = one.found.nearness if one.judged.score is None else one.judged.score
    return own + one.found.lead


def _evidence(
    kb: KnowledgeBase, one: Placed, ref: NodeRef, place: int, reranked_by: str, asked: set[str]
) -> tuple[Evidence, ...]:
    found = one.found
    evidence: list[Evidence] = list(found.focus.evidence(kb, found.node)) if found.focus is not None else []
    document = kb.text(found.node)
    quoted = best_sentence(ref, document, asked)
    if document and (found.focus is None or quoted.start):  # a document begins with its node's own name
        evidence.append(quoted)
    if found.nearness:
        evidence.append(Judgement("document", round(found.nearness, 4), found.how))
    elif found.how:
        evidence.append(Judgement("query", reason=found.how))
    if reranked_by != "none":
        moved = f"place {one.before} before reranking, {place} after"
        reason = f"{moved}; {one.judged.reason}" if one.judged.reason else moved
        evidence.append(Judgement(f"{reranked_by} reranking", one.judged.score, reason))
    return tuple(evidence)
