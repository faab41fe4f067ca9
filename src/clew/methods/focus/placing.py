"""From focused candidates to an answer: reranking inside groups, and everything the reader may want to check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from clew.core.types import Answer, Candidate, Evidence, Judgement, NodeRef
from clew.index.tokens import terms
from clew.kb.protocol import KnowledgeBase
from clew.methods.answering import best_sentence
from clew.methods.focus.evidence import Focus
from clew.roles.rerank import Judged, Reranker


@dataclass(frozen=True)
class Found:
    """A candidate before reranking: the focus it satisfies, if any, and how near its document is to the question."""

    node: int
    nearness: float
    focus: Focus | None = None
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


def rerank_groups(reranker: Reranker, question: str, groups: Sequence[Sequence[Found]]) -> list[Placed]:
    """Rerank each group by itself, so that no group's candidates rise above those of a better one."""
    placed: list[Placed] = []
    for group in groups:
        by_node = {found.node: (found, len(placed) + place) for place, found in enumerate(group, start=1)}
        judged = reranker.rerank(question, [found.node for found in group])
        placed += [Placed(by_node[one.node][0], one, by_node[one.node][1]) for one in judged]
    return placed


def explained_share(question: str, focus: Focus, weight: Callable[[str], float]) -> float:
    """The part of what a question says that its query accounts for, less what relaxing the query has dropped."""
    whole = weight(question)
    left = sum(weight(piece) for piece in focus.query.unexplained)
    dropped = sum(relaxation.step == "drop" for relaxation in focus.relaxations)
    kept = 1 - dropped / max(1, len(focus.query.triplets))
    return kept * max(0.0, 1 - left / whole) if whole else kept


def weighed(filtered: Sequence[Found], strand: Sequence[Found], share: float) -> list[Found]:
    """Candidates of both lists by their documents; those that satisfy the query lead by the share it explains."""
    near = {one.node: one for one in strand}
    for one in filtered:
        nearness = near[one.node].nearness if one.node in near else 0.0
        near[one.node] = replace(one, nearness=nearness, lead=share)
    return sorted(near.values(), key=lambda one: -(one.nearness + one.lead))


def answer_placed(
    kb: KnowledgeBase, question: str, method: str, model: str, placed: Sequence[Placed], reranker: Reranker
) -> Answer:
    """Candidates with witnesses, quotations, and their places before and after reranking."""
    refs = kb.refs([one.found.node for one in placed])
    asked = set(terms(question))
    candidates = tuple(
        Candidate(ref, _score(one), _evidence(kb, one, ref, place, reranker.name, asked))
        for place, (one, ref) in enumerate(zip(placed, refs, strict=True), start=1)
    )
    return Answer(question, method, candidates, model)


def with_query(answer: Answer, kb: KnowledgeBase, focus: Focus) -> Answer:
    """The answer with the query that its first candidates rest on, and their number where that is asked for."""
    counted = focus.query.asks == "number" and focus.nodes is not None
    return replace(
        answer,
        query=focus.to_json(kb),
        text=str(len(focus.nodes or ())) if counted else None,
        notes=tuple(relaxation.in_words(focus.query) for relaxation in focus.relaxations),
    )


def _score(one: Placed) -> float:
    own = one.found.nearness if one.judged.score is None else one.judged.score
    return own + one.found.lead


def _evidence(
    kb: KnowledgeBase, one: Placed, ref: NodeRef, place: int, reranked_by: str, asked: set[str]
) -> tuple[Evidence, ...]:
    found = one.found
    evidence: list[Evidence] = list(found.focus.evidence(kb, found.node)) if found.focus is not None else []
    document = kb.text(found.node)
    if document:
        evidence.append(best_sentence(ref, document, asked))
    evidence.append(Judgement("document", round(found.nearness, 4), found.how))
    if reranked_by != "none":
        moved = f"place {one.before} before reranking, {place} after"
        reason = f"{moved}; {one.judged.reason}" if one.judged.reason else moved
        evidence.append(Judgement(f"{reranked_by} reranking", one.judged.score, reason))
    return tuple(evidence)
