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

from dataclasses import dataclass, replace

from clew.answering.methods.answering import Found, answer_nodes, answer_placed, nearest, nodes_of_type, rerank_groups
from clew.answering.methods.focus.evidence import Focus, with_query
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import ParserName, parser_for, reranker_for
from clew.answering.queries.claims import Claim
from clew.answering.queries.grounding import DirectionRule, EdgeTypes, Unmatched, ground, pose
from clew.answering.queries.pushdown import solver
from clew.answering.queries.solutions import solve_relaxed
from clew.answering.reading.pronouns import with_names
from clew.answering.roles.rerank import RerankerName
from clew.core import trace
from clew.core.query import TripletQuery
from clew.core.types import Answer
from clew.store.open_base import OpenBase


@dataclass(frozen=True)
class FourStepFocus(Method):
    """Triplets filter the candidates, vectors rank them, a model reranks them."""

    name = "four_step_focus"
    k: int = 20
    edge_types: EdgeTypes = "ignore"
    direction: DirectionRule = "any"
    unmatched: Unmatched = "vector"
    parser: ParserName | None = None
    """By default the model, and the learned reader where there is none."""
    reranker: RerankerName = "auto"
    shown: int = 50
    """So many of the nodes that satisfy the query are listed with their evidence, the others without."""
    with_relations: bool = False
    """Whether the documents of step 3 hold relations."""
    pronouns: bool = True
    """Whether a pronoun is read as the name it stands for, where an earlier sentence says it."""

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Ranked candidates, those that satisfy the triplets first."""
        parser = parser_for(tools, self.parser or ("reader" if tools.model is None else "model"))
        reranker = reranker_for(tools, self.reranker)
        with trace.span("1 triplets") as span:
            asked = with_names(question, tools.names.mentions) if self.pronouns else question
            parse = parser.parse(asked, tools.kb.schema)
            span.note(asked=asked, query=str(parse.query), problem=parse.problem)
        with trace.span("2 substitution") as span:
            focus = self._substitute(parse.query, tools)
            span.note(filtered=None if focus.nodes is None else len(focus.nodes))
        with trace.span("3 vector search"):
            groups = self._rank(question, focus, tools)
        with trace.span("4 rerank"):
            placed = rerank_groups(reranker, question, groups)
        answer = answer_placed(tools.kb, question, placed, reranker, self.shown)
        if focus.nodes is not None:
            answer = replace(answer, answer_count=len(focus.nodes))
        is_number = focus.query.asks == "number"
        if is_number and focus.nodes is not None:
            answer = replace(answer, value=len(focus.nodes))
        claim = Claim((focus.block(tools.kb),), asks="number" if is_number else "nodes")
        return with_query(answer, tools.kb, focus, claim, by_text=focus.nodes is None)

    def _rank(self, question: str, focus: Focus, tools: OpenBase) -> tuple[list[Found], list[Found]]:
        """The filtered candidates, and the best others to fill up with."""
        satisfying = nodes_of_type(tools.kb, focus.query.target.type) if focus.nodes is None else focus.nodes
        if satisfying is not None and not len(satisfying):
            trace.fallback("substitution", f"nothing satisfies {focus.query}", "candidates by meaning alone")
        order = dict(nearest(tools, question, self.k, satisfying, relations=self.with_relations))
        order |= {node: 0.0 for node in focus.nodes or () if node not in order}
        filtered = [Found(node, score, focus, "satisfies the query", lead=1.0) for node, score in order.items()]
        known, missing = {found.node for found in filtered}, max(0, self.k - len(filtered))
        everything = answer_nodes(tools.kb)
        others = nearest(tools, question, self.k, everything, relations=self.with_relations) if missing else ()
        additional = [Found(node, score, None, "by meaning alone") for node, score in others if node not in known]
        return filtered, additional[:missing]

    def _substitute(self, query: TripletQuery, tools: OpenBase) -> Focus:
        groundings = ground(query, tools.names, unmatched=self.unmatched)
        problem = pose(query, groundings, tools.kb, edge_types=self.edge_types, direction=self.direction)
        solve = solver(tools.kb, query, groundings, exact=False)
        relaxed = solve_relaxed(solve, problem, ("loosen",) if self.edge_types == "prefer" else ())
        return Focus(query, groundings, relaxed.solution, relaxed.relaxations)
