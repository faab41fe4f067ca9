"""What the focus methods hand over with their answers: the query, how it was grounded and solved, and witnesses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from clew.answering.methods.answering import Found
from clew.answering.queries.attributes import value_in_words
from clew.answering.queries.certificates import certificate
from clew.answering.queries.claims import Block, Claim, as_block
from clew.answering.queries.finishing import edge_counts
from clew.answering.queries.grounding import Grounding, Groundings, is_usable
from clew.answering.queries.solutions import Relaxation, Solution
from clew.answering.queries.witnesses import witnesses
from clew.answering.queries.wording import counted_in_words, kind_in_words
from clew.core.query import Constant, Term, TripletQuery, Variable
from clew.core.types import EMPTY, Answer, Evidence, Judgement, NodeSet
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.protocol import Link


@dataclass(frozen=True)
class Focus:
    """A query as it was grounded and solved: what the filtered set of answers rests on."""

    query: TripletQuery
    groundings: Groundings
    solution: Solution
    relaxations: tuple[Relaxation, ...] = ()
    hierarchical: bool = False

    @property
    def nodes(self) -> NodeSet | None:
        """The nodes that satisfy it; None where nothing is required of them."""
        return self.solution.target

    @property
    def is_widened(self) -> bool:
        """Whether a name stands for more than itself by what lies below it in a hierarchy."""
        return any(
            isinstance(stands_for, NodeSet) and len(stands_for) > len(self.groundings[term].nodes)
            for one in self.solution.problem.constraints
            for term, stands_for in zip(self._ends(one.triplet), (one.head, one.tail), strict=True)
            if isinstance(term, Constant)
        )

    def _ends(self, place: int) -> tuple[Term, Term]:
        return self.query.triplets[place].head, self.query.triplets[place].tail

    def evidence(self, kb: KnowledgeBase, node: int, limit: int = 2) -> tuple[Evidence, ...]:
        """Witness paths of an answer, and what was checked to be absent."""
        named = {
            place: self.groundings[term].nodes
            for place, triplet in enumerate(self.query.triplets)
            for term in (triplet.head, triplet.tail)
            if isinstance(term, Constant)
        }
        paths = witnesses(kb, self.solution, named, node, limit) if self._has_required else ()
        (ref,) = kb.refs([node])
        checked = tuple(
            Judgement("absent", reason=shown_triplet(self.query, place, ref.name))
            for place, triplet in enumerate(self.query.triplets)
            if triplet.negated and is_usable(triplet, self.groundings)
        )
        return (*(path for path in paths if path.facts), *self._values(kb, node), *checked)

    def _values(self, kb: KnowledgeBase, node: int) -> tuple[Judgement, ...]:
        """The attributes of an answer that the question asks for, compares or sets a condition on."""
        query = self.query
        names = [query.attribute, None if query.best is None else query.best.attribute]
        names += [one.attribute for one in query.conditions if one.variable == query.target.name]
        here = NodeSet.of([node])
        told = [(name, kb.values(here, name)[0]) for name in dict.fromkeys(names) if name]
        found = [
            Judgement(name, reason=value_in_words(value) if isinstance(value, float) else str(value))
            for name, value in told
            if value is not None
        ]
        if query.best is not None and query.best.relation is not None:
            count = int(edge_counts(kb, query.best, here)[0])
            found.append(Judgement("count", reason=f"{count:,} {counted_in_words(kb.schema, query.best, count)}"))
        return tuple(found)

    @property
    def _has_required(self) -> bool:
        return any(not constraint.negated for constraint in self.solution.problem.constraints)

    def block(self, kb: KnowledgeBase, never: NodeSet = EMPTY) -> Block:
        """What its nodes have in common, but for those that are never an answer."""
        problem, wide = self.solution.problem, self.hierarchical
        return as_block(self.query, problem, self.groundings, kb.schema, hierarchical=wide, never=never)

    def to_json(self, kb: KnowledgeBase) -> dict[str, Any]:
        """The query as parsed, as grounded and as relaxed."""
        return {
            "target": {"name": self.query.target.name, "type": self.query.target.type},
            "triplets": [
                {"head": _term(t.head), "relation": t.relation, "tail": _term(t.tail), "negated": t.negated}
                for t in self.query.triplets
            ],
            "constants": [_grounding(kb, grounding) for grounding in self.groundings.values()],
            "conditions": [
                {"variable": c.variable, "attribute": c.attribute, "comparison": c.comparison, "value": str(c.value)}
                for c in self.query.conditions
            ],
            "counts": [
                {"variable": c.variable, "of": c.of, "comparison": c.comparison, "value": c.value}
                for c in self.query.counts
            ],
            "best": None if self.query.best is None else asdict(self.query.best),
            "relaxed": [relaxation.in_words(self.query) for relaxation in self.relaxations],
            "unexplained": list(self.query.unexplained),
        }


def shown_triplet(query: TripletQuery, place: int, answer: str) -> str:
    """One triplet in words, with the name of an answer in the place of the target."""
    triplet = query.triplets[place]

    def words(term: Term) -> str:
        if isinstance(term, Constant):
            return term.text
        return answer if term.name == query.target.name else f"any {term.type or 'node'}"

    return f"no edge {words(triplet.head)} —{triplet.relation or 'any relation'}→ {words(triplet.tail)}"


def _term(term: Term) -> dict[str, Any]:
    if isinstance(term, Variable):
        return {"variable": term.name, "type": term.type}
    return {"constant": term.text, "type": term.type}


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


def with_query(answer: Answer, kb: KnowledgeBase, focus: Focus, claim: Claim, *, by_text: bool = False) -> Answer:
    """The answer with the query that it rests on; `by_text` where nothing was required of the answers.

    No formal query says which nodes the paper's fixpoint leaves on a cycle of requirements.
    """
    written = certificate(claim, kb)
    if by_text:
        written = _in_words_only(written, "by what is written about them") | {"form": "text"}
    elif not focus.solution.is_exact:
        written = _in_words_only(written, "each requirement looked at by itself")
    return replace(
        answer,
        query={**focus.to_json(kb), **written},
        notes=(*(relaxation.in_words(focus.query) for relaxation in focus.relaxations), *_other_types(kb, focus)),
    )


def _other_types(kb: KnowledgeBase, focus: Focus) -> Iterator[str]:
    """Name the constants that stand for nodes of another type than the query says."""
    told = partial(kind_in_words, kb.schema)
    for constant, grounding in focus.groundings.items():
        kinds = {ref.type for ref in kb.refs([link.node for link in grounding.links[:1]])} - {constant.type}
        if constant.type is not None and kinds:
            yield f"“{constant.text}” is a {told(kinds.pop())} here, not a {told(constant.type)}"


def _in_words_only(written: dict[str, str], how: str) -> dict[str, str]:
    """A certificate without the formal queries, which would say something else."""
    return {"form": written["form"], "kind": written["kind"], "text": f"{written['text']}, {how}"}
