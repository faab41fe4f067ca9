"""Turn ranked candidates into an answer: allowed nodes, reranking and quotations from their documents."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from clew.answering.roles.rerank import Judged, Reranker
from clew.core import trace
from clew.core.types import EMPTY, Answer, Candidate, Evidence, Judgement, NodeRef, NodeSet, Passage, Ranking
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.lexical import LexicalIndex
from clew.store.index.tokens import terms
from clew.store.index.vectors import VectorIndex
from clew.store.open_base import OpenBase

if TYPE_CHECKING:
    from clew.answering.queries.interpretations import Execution

SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?=\S))+[.!?]*")
"""A sentence ends at the line break, or at a mark that a space follows. "7.8" is one word."""


def answer_nodes(kb: KnowledgeBase) -> NodeSet | None:
    """Return the nodes that may be answers, or None if all types may be."""
    types = kb.schema.answer_types
    if len(types) == len(kb.schema.type_names):
        return None
    return reduce(operator.or_, map(kb.nodes, types), EMPTY)


def nodes_of_type(kb: KnowledgeBase, kind: str | None) -> NodeSet | None:
    """Return the nodes of a type, or the nodes that may be answers if the type is unknown."""
    return answer_nodes(kb) if kind is None else kb.nodes(kind)


def words_of(tools: OpenBase, relations: bool) -> LexicalIndex:
    """Return the lexical index of the node documents, with or without their relations."""
    return tools.lexical_with_relations if relations else tools.lexical


def vectors_of(tools: OpenBase, relations: bool) -> VectorIndex:
    """Return the vector index of the node documents, with or without their relations."""
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
    """Return the k nodes with the most similar vectors. `vectors` replaces the base's vectors.

    If vectors are missing and words select the nodes to compare, record a fallback.
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
    """Return each ranked node with the sentence of its document that shares most words with the question."""
    asked = set(terms(question))
    candidates = tuple(
        Candidate(ref, score, (best_sentence(ref, kb.text(ref.id, relations=relations), asked),))
        for ref, (_, score) in zip(kb.refs(ranking.nodes), ranking, strict=True)
    )
    return Answer(question, candidates)


def best_sentence(node: NodeRef, document: str, asked: Iterable[str]) -> Passage:
    """Return the first sentence with the most words of the question, with its span."""
    wanted = set(asked)
    sentences = [match for match in SENTENCE.finditer(document) if match.group().strip()]
    if not sentences:
        return Passage(node, document, start=0, end=len(document))
    best = max(sentences, key=lambda match: len(wanted & set(terms(match.group()))))
    start = best.start() + len(best.group()) - len(best.group().lstrip())
    end = min(best.end(), start + 300)
    return Passage(node, document[start:end], start=start, end=end)


@dataclass(frozen=True)
class RetrievedNode:
    """A candidate before reranking, with the query it satisfies, if any, and the similarity of its document."""

    node: int
    nearness: float
    focus: Execution | None = None
    how: str = ""
    """Short reason why the node is a candidate."""
    lead: float = 0.0
    """Bonus for satisfying the query, added to the score."""


@dataclass(frozen=True)
class Placed:
    """A candidate after reranking."""

    found: RetrievedNode
    judged: Judged
    before: int


RERANKED = 40
"""Maximum candidates per group for the reranker. The remaining candidates follow in their old order."""


def rerank_groups(reranker: Reranker, question: str, groups: Sequence[Sequence[RetrievedNode]]) -> list[Placed]:
    """Rerank each group separately, so that the order of the groups stays unchanged."""
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
    """Build the answer. Only the first `shown` candidates get evidence, such as their ranks before reranking."""
    refs = kb.refs([one.found.node for one in placed])
    asked = set(terms(question))
    paths: dict[int, tuple[Evidence, ...]] = {}
    for focus in {id(one.found.focus): one.found.focus for one in placed[:shown]}.values():
        if focus is not None:
            nodes = [one.found.node for one in placed[:shown] if one.found.focus is focus]
            paths.update(zip(nodes, focus.evidence(kb, nodes), strict=True))
    candidates = tuple(
        Candidate(
            ref,
            one.found.lead + (one.found.nearness if one.judged.score is None else one.judged.score),
            (*paths.get(ref.id, ()), *_evidence(kb, one, ref, place, reranker.name, asked))
            if shown is None or place <= shown
            else (),
        )
        for place, (one, ref) in enumerate(zip(placed, refs, strict=True), start=1)
    )
    return Answer(question, candidates)


def _evidence(
    kb: KnowledgeBase, one: Placed, ref: NodeRef, place: int, reranked_by: str, asked: set[str]
) -> tuple[Evidence, ...]:
    found = one.found
    evidence: list[Evidence] = []
    document = kb.text(found.node)
    quoted = best_sentence(ref, document, asked)
    if document and (found.focus is None or quoted.start):  # a document starts with the name of its node
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
