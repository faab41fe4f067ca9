"""Focus+: 4StepFocus with the ideas of its successors (Boer, Koch, Kramer: FocusedRetriever; AF-Retriever, 2025).

1  triplets: the target's type first, then triplets, conditions, counts and absent edges
2  substitution: all nodes that satisfy the query, including nodes below its names in a hierarchy
3  rank them by the documents, direct matches first. Add close matches (similar names, relaxed requirements) and
   candidates by words and meaning
4  merge: all matches, then close matches. If texts decide, the first α and the text candidates, reranked

Works with a model as parser and reranker, and without a model. Deviations from the papers:

- A substitution takes milliseconds, so large sides are also expanded. Cyclic queries are solved exactly.
- Documents are ranked by words and meaning, not only by meaning.
- If the triplets explain little of the question, they add to a candidate's score instead of coming first.
- If they explain the whole question, α is k (docs/adr/0003-text-against-triplets.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from clew.answering.methods.answering import RetrievedNode, answer_nodes, answer_placed, nodes_of_type, rerank_groups
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import ParserName, can_write, parser_for, reader_of, reranker_for
from clew.answering.queries.interpretations import Execution, first_found, near, with_query
from clew.answering.queries.linking import hierarchies, with_known_names
from clew.answering.queries.query_answers import answer_query, run_query, unknown_answer, with_table
from clew.answering.queries.sentences import description
from clew.answering.roles.rerank import Reranker, RerankerName
from clew.core import trace
from clew.core.query import Edge, walk
from clew.core.roles import Interpretation, Parse
from clew.core.states import SATISFIES
from clew.core.types import EMPTY, Answer, NodeSet, Ranking
from clew.store.index.fusion import min_max_sum, preferring
from clew.store.index.protocol import Index
from clew.store.index.tokens import terms
from clew.store.open_base import OpenBase

DESCRIBED = 3
"""Maximum number of same-named nodes to describe."""
NONE_COUNTED = 0.5
"""Maximum certainty of a count of zero. Of 20 such answers over tables 2 were right: "how many" expects some."""


@dataclass(frozen=True)
class FocusPlus(Method):
    """Triplets with negation, counts, conditions and hierarchies filter in tiers. Documents rank and fill up."""

    name = "focus_plus"
    k: int = 20
    alpha: int = 13
    shown: int = 50
    """Maximum number of matching nodes listed with their evidence. Further nodes are listed without evidence."""
    kinds: bool = True
    """Whether a name also includes the nodes below it in a hierarchy."""
    depth: int = 100
    words: float = 2.0
    """Weight of words relative to meaning in the ranking."""
    doubt: float = 0.45
    """Minimum certainty of a loose reading. Below it, the query only adds to the scores of the text candidates."""
    sure: float = 0.2
    """Minimum certainty of an answer. Below it, results are shown as close matches."""
    other_types: float = 0.7
    """Factor for the scores of text candidates of another type than requested."""
    parser: ParserName = "auto"
    """By default the learned reader. If it is not certain, a model that is not small also reads the question."""
    reranker: RerankerName = "auto"
    """By default a model that is not small reranks results that depend on texts."""
    write: bool = True
    """Whether a model that is not small writes the answer from its evidence."""

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return all matches with their evidence, then close matches, and the answer as text."""
        if self.parser == "auto" and tools.parser is None and can_write(tools):
            from clew.answering.methods.focus.with_model import answer_twice  # needs a model

            return answer_twice(self, question, tools)
        with trace.span("1 triplets") as span:
            parse = parser_for(tools, self.parser).parse(question, tools.kb.schema)
            span.note(
                query=str(parse.interpretation.query), alternatives=len(parse.alternatives), problem=parse.problem
            )
            parse = with_known_names(parse, tools.names)
            span.note(certainty=parse.certainty, unknown=[one.text for one in parse.unknown])
        if parse.unknown:
            return unknown_answer(question, parse.unknown, 0.0)
        if parse.rows is not None and parse.rows_certainty >= self.sure:
            executed = run_query(tools.kb, tools.names, parse.rows, kinds=self.kinds)
            if not executed.is_empty and not executed.unknown:
                return replace(answer_query(tools.kb, question, executed), certainty=parse.rows_certainty)
        return self.written(self.ranked(question, parse, tools), tools)

    def written(self, answer: Answer, tools: OpenBase) -> Answer:
        """Add an answer text written by a model, if there is a model that writes well."""
        is_told = answer.value is not None or answer.text is not None or bool(answer.rows)
        if not self.write or is_told or not answer.found or not answer.query or not can_write(tools):
            return answer
        from clew.answering.methods.focus.with_model import written

        with trace.span("5 write"):
            return written(answer, tools)

    def ranked(self, question: str, parse: Parse, tools: OpenBase) -> Answer:
        """Rank all matches of the query, or the text candidates if texts decide."""
        kb, asked = tools.kb, parse.interpretation
        parse = replace(parse, is_loose=parse.is_loose and reader_of(tools).is_written_about(asked.type))
        is_doubtful = parse.certainty is not None and parse.certainty < self.sure
        if parse.is_loose and is_doubtful:
            asked = Interpretation.of_text(question, asked.type)
        with trace.span("2 substitution") as span:
            others = parse.alternatives if asked is parse.interpretation else ()
            execution = first_found(kb, tools.names, (asked, *others), kinds=self.kinds)
            span.note(nodes=len(execution.nodes), direct=len(execution.direct), value=execution.value)
        certainty = parse.certainty
        if execution.asked is not asked and certainty is not None:
            certainty = min(certainty, execution.asked.score)  # the first interpretation was more certain
        if execution.asked.asks == "number" and execution.value == 0 and certainty is not None:
            certainty = min(certainty, NONE_COUNTED)
        share = explained_share(question, execution.asked, tools.lexical.weight if kb.described else count_terms)
        sure = share if certainty is None else certainty if parse.is_loose else 1.0
        by_text = self._is_by_text(execution, parse, sure)
        is_doubtful = is_doubtful or (certainty is not None and certainty < self.sure)
        with trace.span("3 rank"):
            is_restricted = execution.asked.is_restricted
            found = self._matches(question, execution, tools) if is_restricted or not by_text else []
            missing = self.k - len(found)
            more = list(near(kb, execution, missing, kinds=self.kinds)) if missing > 0 and is_restricted else []
            nearby = [one for some in more for one in self._rank(question, some, tools)]
            is_full = certainty is not None and not parse.is_loose and bool(found)
            strand = [] if is_full else self._strand(question, asked.type, tools)
            named = {node for grounding in execution.groundings.values() for node in grounding.nodes}
            strand = [one for one in strand if parse.is_loose or one.node not in named]
        with trace.span("4 merge and rerank") as span:
            span.note(explained=round(share, 2), by_text=by_text)
            if sure < self.doubt:
                groups = [weighed([*found, *nearby], strand, sure)[: self.k]]
            else:
                groups = self._merge([*found, *nearby], strand, self.alpha if by_text else max(self.k, len(found)))
            reranker = self._reranker(parse, tools)
            placed = rerank_groups(reranker, question, groups)
        answer = replace(answer_placed(kb, question, placed, reranker, self.shown), certainty=certainty)
        if not execution.is_answer and is_restricted:
            relaxed = tuple(some.how for some in more)
            answer = with_query(replace(answer, answer_count=0, notes=relaxed), kb, execution)
            return replace(answer, query={**answer.query, "relaxed": list(relaxed)})
        if by_text:
            if parse.is_loose:  # the certainty is that of a query, and none was carried out
                return with_query(replace(answer, answer_count=None, certainty=None), kb, execution, by_text=True)
            answer = replace(answer, answer_count=0 if is_doubtful else None)
            return with_query(answer, kb, execution, by_text=True)
        answer = with_query(answer, kb, execution)
        if is_doubtful:
            return replace(answer, answer_count=0)
        if answer.query["form"] == "describe":
            about = [description(kb, node) for node in execution.nodes.array[:DESCRIBED].tolist()]
            answer = replace(answer, text=" ".join(about))
        told: dict[str, object] = {"direct": len(execution.direct)}
        if asks_more(execution.asked) and reader_of(tools).is_written_about(asked.type):
            told["unconfirmed"] = list(execution.asked.unexplained)  # texts may confirm it, but they were not read
        answer = replace(answer, query={**answer.query, **told})
        if execution.table is not None:
            answer = with_table(answer, execution.table)
        return replace(answer, value=execution.value, answer_count=len(found))

    def _is_by_text(self, execution: Execution, parse: Parse, sure: float) -> bool:
        """Check whether texts decide: there is no other requirement, or the query explains too little."""
        asked, certainty = execution.asked, parse.certainty
        if not asked.is_restricted and asked.asks == "nodes":
            return parse.is_loose or bool(asked.unexplained) or certainty is None or certainty < self.doubt
        return sure < self.doubt or (certainty is None and asks_more(asked))

    def _matches(self, question: str, execution: Execution, tools: OpenBase) -> list[RetrievedNode]:
        """Return all matches of a query. Direct matches come first, unless texts decide."""
        if not execution.is_answer:
            return []
        asked, direct, below = execution.asked, execution.direct, execution.nodes - execution.direct
        transitive = {row.name for row in hierarchies(tools.kb.schema)}
        relations = {one.relation for one in walk(asked.query) if isinstance(one, Edge)}
        if asks_more(asked) and transitive.isdisjoint(relations):
            direct, below = execution.nodes, EMPTY
        text = " ".join(asked.unexplained) or question
        found: list[RetrievedNode] = []
        for nodes, lead in ((direct, 3.0), (below, 2.0)):
            is_ordered = len(nodes) > 1 and asked.asks == "nodes" and not asked.query.order
            order = (
                self._order(text, nodes, tools)
                if is_ordered
                else dict.fromkeys((len(nodes) and execution.in_order) or nodes, 0.0)
            )
            found += [RetrievedNode(n, score, execution, SATISFIES, lead) for n, score in order.items()]
        return found

    def _reranker(self, parse: Parse, tools: OpenBase) -> Reranker:
        if self.reranker != "auto":
            return reranker_for(tools, self.reranker)
        by_text = parse.is_loose or parse.certainty is None
        return reranker_for(tools, "listwise" if by_text and can_write(tools) else "none")

    def _rank(self, question: str, one: Execution, tools: OpenBase) -> list[RetrievedNode]:
        """Rank by the words that the query does not explain, or by the whole question if it explains all."""
        text = " ".join(one.asked.unexplained) or question
        return [
            RetrievedNode(node, score, one, one.how, 1.0) for node, score in self._order(text, one.nodes, tools).items()
        ]

    def _order(self, text: str, nodes: NodeSet, tools: OpenBase) -> dict[int, float]:
        """Return all given nodes with the similarity of their documents to a text, in descending order."""
        ranked = dict(self._fused([index.search(text, self.depth, among=nodes) for index in _indexes(tools)]))
        return ranked | {node: 0.0 for node in nodes if node not in ranked}

    def _strand(self, question: str, kind: str | None, tools: OpenBase) -> list[RetrievedNode]:
        """Find candidates by words and meaning, preferably of the target's type."""
        own, every = nodes_of_type(tools.kb, kind), answer_nodes(tools.kb)
        rankings = [index.search(question, self.depth, among=own) for index in _indexes(tools)]
        if kind is not None and self.other_types > 0:
            others = [index.search(question, self.depth, among=every) for index in _indexes(tools)]
            rankings = [preferring(*both, self.other_types) for both in zip(rankings, others, strict=True)]
        return [RetrievedNode(node, score, None, "by words and meaning alone") for node, score in self._fused(rankings)]

    def _fused(self, rankings: Sequence[Ranking]) -> Ranking:
        """Fuse rankings to scores between 0 and 1."""
        weights = (self.words / (self.words + 1), 1 / (self.words + 1))
        return min_max_sum(rankings, weights=weights[: len(rankings)])

    def _merge(
        self, filtered: list[RetrievedNode], strand: list[RetrievedNode], first: int
    ) -> list[list[RetrievedNode]]:
        """Return the first matches and close matches, then text candidates and the remaining matches, up to k."""
        head = filtered[:first]
        known = {one.node for one in head}
        rest = {one.node: one for one in (*strand, *filtered[first:]) if one.node not in known}
        return [head, list(rest.values())[: max(0, self.k - len(head))]]


def asks_more(asked: Interpretation) -> bool:
    """Check for a textual requirement: an unexplained part with at least two terms. A single word is just phrasing."""
    return any(len(terms(piece)) > 1 for piece in asked.unexplained)


def _indexes(tools: OpenBase) -> tuple[Index, ...]:
    """Return the indexes by words and by meaning. Only words if nodes have no texts. None at a large endpoint."""
    known = tools.kb.described
    if known is None:
        return ()
    return (tools.lexical, tools.vectors) if known.has_texts else (tools.lexical,)


def count_terms(text: str) -> float:
    """Return the number of terms as the weight of a text, if term frequencies are unknown."""
    return len(terms(text))


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
