"""4StepFocus (Boer, Koch, Kramer: Harnessing the Power of Semi-Structured Knowledge and LLMs with Triplet-Based
Prefiltering for Question Answering, 2024).

1  triplets: parse the question into triplets of constants and variables, one of them the target
2  substitution: ground the constants and narrow the variables' domains to a fixpoint
3  vector search: rank the filtered candidates by their documents, then top up with the best unfiltered ones
4  rerank the k best by a model; filtered candidates stay above the others

With the paper's settings edge types and directions are ignored. Deviations: types are enforced, an alias of several
nodes stands for all of them, and a constant without a match stands for the nearest node by meaning
(`unmatched=drop` leaves its triplets out, as the paper does).
"""

from __future__ import annotations

from dataclasses import dataclass

from clew.core import trace
from clew.core.query import TripletQuery
from clew.core.roles import TripletParser
from clew.core.types import Answer
from clew.index.protocol import Index, Names
from clew.kb.protocol import KnowledgeBase
from clew.methods.answering import answer_nodes, nodes_of_type
from clew.methods.focus.evidence import Focus
from clew.methods.focus.placing import Found, answer_placed, rerank_groups, with_query
from clew.methods.role_choice import ParserName, parser_for, reranker_for
from clew.queries.grounding import DirectionRule, EdgeTypes, Unmatched, ground, pose
from clew.queries.solutions import solve_relaxed
from clew.roles.rerank import Reranker, RerankerName
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class FourStepFocus:
    """Triplets filter the candidates, vectors rank them, a model reranks them."""

    kb: KnowledgeBase
    parser: TripletParser
    names: Names
    documents: Index
    reranker: Reranker
    k: int = 20
    edge_types: EdgeTypes = "ignore"
    direction: DirectionRule = "any"
    unmatched: Unmatched = "vector"
    model: str = "none"

    @classmethod
    def build(
        cls,
        toolbox: Toolbox,
        k: int = 20,
        edge_types: EdgeTypes = "ignore",
        direction: DirectionRule = "any",
        unmatched: Unmatched = "vector",
        parser: ParserName | None = None,
        reranker: RerankerName = "auto",
    ) -> FourStepFocus:
        """Parsed and reranked by the toolbox's model; without one by the schema linker, and not reranked."""
        return cls(
            toolbox.kb,
            parser_for(toolbox, parser or ("linker" if toolbox.model is None else "model")),
            toolbox.names,
            toolbox.vectors,
            reranker_for(toolbox, reranker),
            k,
            edge_types,
            direction,
            unmatched,
            toolbox.model_name,
        )

    def answer(self, question: str) -> Answer:
        """Ranked candidates, those that satisfy the triplets first."""
        with trace.span("1 triplets") as span:
            parse = self.parser.parse(question, self.kb.schema)
            span.note(query=str(parse.query), problem=parse.problem)
        with trace.span("2 substitution") as span:
            focus = self._substitute(parse.query)
            span.note(filtered=None if focus.nodes is None else len(focus.nodes))
        with trace.span("3 vector search"):
            groups = self._rank(question, focus)
        with trace.span("4 rerank"):
            placed = rerank_groups(self.reranker, question, groups)
        answer = answer_placed(self.kb, question, "four_step_focus", self.model, placed, self.reranker)
        return with_query(answer, self.kb, focus)

    def _rank(self, question: str, focus: Focus) -> tuple[list[Found], list[Found]]:
        """The filtered candidates, and the best others to fill up with."""
        satisfying = nodes_of_type(self.kb, focus.query.target.type) if focus.nodes is None else focus.nodes
        if satisfying is not None and not len(satisfying):
            trace.fallback("substitution", f"nothing satisfies {focus.query}", "candidates by meaning alone")
        filtered = [
            Found(node, score, focus, "satisfies the query", lead=1.0)
            for node, score in self.documents.search(question, self.k, among=satisfying)
        ]
        known, missing = {found.node for found in filtered}, self.k - len(filtered)
        others = self.documents.search(question, self.k, among=answer_nodes(self.kb)) if missing else ()
        additional = [Found(node, score, None, "by meaning alone") for node, score in others if node not in known]
        return filtered, additional[:missing]

    def _substitute(self, query: TripletQuery) -> Focus:
        groundings = ground(query, self.names, unmatched=self.unmatched)
        problem = pose(query, groundings, self.kb, edge_types=self.edge_types, direction=self.direction)
        relaxed = solve_relaxed(self.kb, problem, ("loosen",) if self.edge_types == "prefer" else (), exact=False)
        return Focus(query, groundings, relaxed.solution, relaxed.relaxations)
