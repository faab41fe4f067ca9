"""Details that the focus methods add to their answers: the query, the nodes of its names, and the executed query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from clew.answering.methods.answering import RetrievedNode
from clew.answering.queries.certificates import certificate
from clew.answering.queries.interpretations import Execution
from clew.answering.queries.linking import Grounding
from clew.answering.queries.words import kind_in_words
from clew.core.query import Aggregate, Attribute, Compare, Constant, Edge, Named, Not, Pattern, Value, walk
from clew.core.roles import Interpretation
from clew.core.types import Answer
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.protocol import Link


def to_json(execution: Execution, kb: KnowledgeBase) -> dict[str, Any]:
    """Return the interpreted query, the nodes of its names, and the relaxed requirements."""
    asked = execution.asked
    query = asked.query
    order = query.order[0] if query.order else None
    counted = order.expression if order and isinstance(order.expression, Aggregate) else None
    by = counted.over.edges[0] if counted and counted.over else None
    denied = {id(edge) for part in walk(query.pattern) if isinstance(part, Not) for edge in _edges(part)}
    types = {one.name: one.type for part in walk(query) if isinstance(part, Pattern) for one in part.variables}
    return {
        "target": {"name": asked.variable, "type": asked.type},
        "triplets": [
            {
                "head": _end(edge.head, types),
                "relation": edge.relation,
                "tail": _end(edge.tail, types),
                "negated": id(edge) in denied,
            }
            for edge in _edges(query.pattern)
        ],
        "constants": [_grounding(kb, grounding) for grounding in execution.groundings.values()],
        "conditions": [
            {
                "variable": part.left.variable,
                "attribute": part.left.name,
                "comparison": part.comparison,
                "value": str(part.right.value),
            }
            for part in walk(query.pattern)
            if isinstance(part, Compare) and isinstance(part.left, Attribute) and isinstance(part.right, Value)
        ],
        "best": None if order is None else {"most": order.descending, "relation": by.relation if by else None},
        "relaxed": [execution.how] if execution.how else [],
        "unexplained": list(asked.unexplained),
    }


def _edges(part: Any) -> list[Edge]:
    return [one for one in walk(part) if isinstance(one, Edge)]


def _end(end: str | Constant, types: Mapping[str, str | None]) -> dict[str, Any]:
    if isinstance(end, str):
        return {"variable": end, "type": types.get(end)}
    return {"constant": end.text, "type": end.type} if isinstance(end, Named) else {"constant": str(end), "type": None}


def _grounding(kb: KnowledgeBase, grounding: Grounding) -> dict[str, Any]:
    return {
        "text": grounding.constant.text,
        "type": grounding.constant.type,
        "nodes": _links(kb, grounding.links),
        "alternatives": _links(kb, grounding.alternatives[:5]),
    }


def _links(kb: KnowledgeBase, links: Sequence[Link]) -> list[Mapping[str, Any]]:
    refs = kb.refs([link.node for link in links])
    return [
        {"key": ref.key, "name": ref.name, "type": ref.type, "alias": link.alias, "how": link.how, "score": link.score}
        for ref, link in zip(refs, links, strict=True)
    ]


def explained_share(question: str, asked: Interpretation, weight: Callable[[str], float]) -> float:
    """Return the weighted share of a question that its query explains."""
    whole = weight(question)
    left = sum(weight(piece) for piece in asked.unexplained)
    return max(0.0, 1 - left / whole) if whole else 1.0


def weighed(filtered: Sequence[RetrievedNode], strand: Sequence[RetrievedNode], share: float) -> list[RetrievedNode]:
    """Merge both lists by document score. Candidates that satisfy the query get `share` as a bonus."""
    near = {one.node: one for one in strand}
    for one in filtered:
        nearness = near[one.node].nearness if one.node in near else 0.0
        near[one.node] = replace(one, nearness=nearness, lead=share)
    return sorted(near.values(), key=lambda one: -(one.nearness + one.lead))


def with_query(
    answer: Answer, kb: KnowledgeBase, execution: Execution, *, by_text: bool = False, is_exact: bool = True
) -> Answer:
    """Add the query to an answer. With `by_text`, the query had no requirements on the answers.

    With `is_exact=False`, omit the formal query: no query describes the paper's fixpoint on a cycle of requirements.
    """
    written = certificate(execution.executed, kb)
    if by_text:
        written = _in_words_only(written, "by what is written about them") | {"form": "text"}
    elif not is_exact:
        written = _in_words_only(written, "with each requirement checked separately")
    return replace(
        answer, query={**to_json(execution, kb), **written}, notes=(*answer.notes, *_other_types(kb, execution))
    )


def _other_types(kb: KnowledgeBase, execution: Execution) -> Iterator[str]:
    """Yield a note for each name whose node has another type than the query states."""
    told = partial(kind_in_words, kb.schema)
    for constant, grounding in execution.groundings.items():
        kinds = {ref.type for ref in kb.refs([link.node for link in grounding.links[:1]])} - {constant.type}
        if constant.type is not None and kinds:
            yield f"“{constant.text}” is a {told(kinds.pop())} here, not a {told(constant.type)}"


def _in_words_only(written: dict[str, str], how: str) -> dict[str, str]:
    """Return a certificate without the formal queries, which would have another meaning."""
    return {"form": written["form"], "kind": written["kind"], "text": f"{written['text']}, {how}"}
