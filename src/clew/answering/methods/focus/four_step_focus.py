"""4StepFocus (Boer, Koch, Kramer 2024): filter candidates by triplets, then rank them by their documents.

The paper is "Harnessing the Power of Semi-Structured Knowledge and LLMs with Triplet-Based Prefiltering for Question
Answering".

1  triplets: parse the question into triplets of constants and variables, one of them the target
2  substitution: ground the constants and narrow the variables' domains to a fixpoint
3  vector search: rank the filtered candidates by their documents, then fill up with the best unfiltered candidates
4  rerank the k best with a model. Filtered candidates stay above the other candidates

With the paper's settings, edge types and directions are ignored. Deviations: types are enforced. An alias of several
nodes refers to all of them. A constant without a match refers to the nearest node by meaning (`unmatched=drop` omits
its triplets, as the paper does).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from clew.answering.methods.answering import (
    RetrievedNode,
    answer_nodes,
    answer_placed,
    nearest,
    nodes_of_type,
    rerank_groups,
)
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import ParserName, parser_for, reranker_for
from clew.answering.queries.execution import satisfying
from clew.answering.queries.interpretations import Execution, with_query
from clew.answering.queries.linking import Unmatched, ground, link
from clew.answering.queries.pushdown import found_nodes
from clew.answering.reading.follow_ups import with_names
from clew.answering.roles.rerank import RerankerName
from clew.core import trace
from clew.core.query import Edge, Nodes, Pattern, connected, constants, find, names_used
from clew.core.roles import Interpretation
from clew.core.states import SATISFIES
from clew.core.types import EMPTY, Answer, Direction, NodeSet
from clew.store.graph.protocol import KnowledgeBase, is_sparql
from clew.store.open_base import OpenBase

EdgeTypes = Literal["ignore", "prefer", "strict"]
DirectionRule = Literal["any", "strict"]


@dataclass(frozen=True)
class FourStepFocus(Method):
    """Triplets filter the candidates, vectors rank them, a model reranks them."""

    name = "four_step_focus"
    k: int = 20
    edge_types: EdgeTypes = "ignore"
    direction: DirectionRule = "any"
    unmatched: Unmatched = "vector"
    parser: ParserName | None = None
    """By default the model, or the learned reader if there is no model."""
    reranker: RerankerName = "auto"
    shown: int = 50
    """Maximum number of matching nodes listed with their evidence. Further nodes are listed without evidence."""
    with_relations: bool = False
    """Whether the documents of step 3 include relations."""
    pronouns: bool = True
    """Whether to replace a pronoun by a name from an earlier sentence."""

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return ranked candidates. Candidates that satisfy the triplets come first."""
        parser = parser_for(tools, self.parser or ("reader" if tools.model is None else "model"))
        reranker = reranker_for(tools, self.reranker)
        with trace.span("1 triplets") as span:
            asked = with_names(question, tools.names.mentions) if self.pronouns else question
            parse = parser.parse(asked, tools.kb.schema)
            span.note(asked=asked, query=str(parse.interpretation.query), problem=parse.problem)
        with trace.span("2 substitution") as span:
            found, nodes = self._substitute(parse.interpretation, tools)
            span.note(filtered=None if nodes is None else len(nodes))
        with trace.span("3 vector search"):
            groups = self._rank(question, found, nodes, tools)
        with trace.span("4 rerank"):
            placed = rerank_groups(reranker, question, groups)
        answer = answer_placed(tools.kb, question, placed, reranker, self.shown)
        if nodes is not None:
            value = len(nodes) if found.asked.asks == "number" else None
            answer = replace(answer, answer_count=len(nodes), value=value)
        exact = is_exact(found.executed.query.pattern, found.asked.variable)
        return with_query(answer, tools.kb, found, by_text=nodes is None, is_exact=exact)

    def _rank(
        self, question: str, found: Execution, nodes: NodeSet | None, tools: OpenBase
    ) -> tuple[list[RetrievedNode], list[RetrievedNode]]:
        """Return the filtered candidates, and the best other candidates to fill up with."""
        satisfying = nodes_of_type(tools.kb, found.asked.type) if nodes is None else nodes
        if satisfying is not None and not len(satisfying):
            nothing = f"nothing satisfies {found.asked.query}"
            trace.fallback("substitution", nothing, "candidates by meaning alone")
        order = dict(nearest(tools, question, self.k, satisfying, relations=self.with_relations))
        order |= {node: 0.0 for node in nodes or () if node not in order}
        filtered = [RetrievedNode(node, score, found, SATISFIES, lead=1.0) for node, score in order.items()]
        known, missing = {one.node for one in filtered}, max(0, self.k - len(filtered))
        everything = answer_nodes(tools.kb)
        others = nearest(tools, question, self.k, everything, relations=self.with_relations) if missing else ()
        additional = [
            RetrievedNode(node, score, None, "by meaning alone") for node, score in others if node not in known
        ]
        return filtered, additional[:missing]

    def _substitute(self, asked: Interpretation, tools: OpenBase) -> tuple[Execution, NodeSet | None]:
        """Return the execution and the nodes that satisfy it, or None if there are no requirements."""
        asked = replace(asked, asks="number" if asked.asks == "number" else "nodes")
        groundings = ground(constants(asked.query), tools.names, unmatched=self.unmatched)
        query = link(replace(asked.query, order=(), first=None, ties=False), groundings, tools.kb, kinds=False)
        for edge_types in ("strict", "ignore") if self.edge_types == "prefer" else (self.edge_types,):
            pattern = loosened(query.pattern, edge_types, self.direction)
            nodes = substitute(tools.kb, pattern, asked.variable)
            if nodes is None or len(nodes):
                break
        executed = replace(asked, query=replace(query, pattern=pattern))
        found = EMPTY if nodes is None else nodes
        how = "any relation will do" if edge_types != "strict" and self.edge_types == "prefer" else ""
        return Execution(asked, executed, groundings, found, found, how=how), nodes


def loosened(pattern: Pattern, edge_types: EdgeTypes, direction: DirectionRule) -> Pattern:
    """Ignore relations or directions as the options request, and remove unusable triplets."""

    def loose(edge: Edge) -> Edge:
        relation = None if edge_types == "ignore" else edge.relation
        return replace(edge, relation=relation, directed=direction == "strict" and relation is not None)

    usable = [edge for edge in pattern.edges if edge.variables and len({edge.head, edge.tail}) == 2]
    named = [
        edge for edge in usable if not any(isinstance(end, Nodes) and not end.keys for end in (edge.head, edge.tail))
    ]
    return replace(pattern, edges=tuple(map(loose, named)))


def substitute(kb: KnowledgeBase, pattern: Pattern, target: str) -> NodeSet | None:
    """Shrink the variables' domains until all triplets are pairwise consistent, as Algorithm 2 of the paper does.

    Return the domain of the target, or None if there are no requirements. Conditions and negations, which the paper
    does not have, restrict the domains at the start. On a cycle of triplets, the fixpoint may contain nodes that
    satisfy each triplet but not all of them together.
    """
    edges = _tied(pattern, target)
    names = {target, *(name for edge in edges for name in edge.variables)}
    own = [formula for formula in pattern.where if names_used(formula) & names]
    if not edges and not own:
        return None
    if is_sparql(kb):  # an endpoint computes the join itself
        return found_nodes(kb, find(target, None, pattern))
    domains: dict[str, NodeSet] = {}  # lines 1-4: a domain for each variable
    for name in names:
        alone = tuple(formula for formula in own if names_used(formula) & set(pattern.types) == {name})
        variables = tuple(variable for variable in pattern.variables if variable.name == name)
        domains[name] = satisfying(kb, Pattern(variables, (), alone), name)
    changed = True
    while changed:  # lines 5-15: until no domain changes
        changed = False
        for edge in edges:
            for here, there, forward in ((edge.head, edge.tail, True), (edge.tail, edge.head, False)):
                if not isinstance(there, str):
                    continue
                start = domains[here] if isinstance(here, str) else NodeSet.of([kb.find(key) for key in _keys(here)])
                direction: Direction = "any" if not edge.directed else "out" if forward else "in"
                left = domains[there] & kb.neighbors(start, edge.relation, direction)
                changed = changed or len(left) < len(domains[there])
                domains[there] = left
    return domains[target]


def is_exact(pattern: Pattern, target: str) -> bool:
    """Check whether the triplets form no cycle, so that the fixpoint is exact."""
    edges = [edge for edge in _tied(pattern, target) if len(edge.variables) == 2]
    names = {name for edge in edges for name in edge.variables}
    return len(edges) < max(1, len(names))


def _tied(pattern: Pattern, target: str) -> list[Edge]:
    """Return the edges that are connected to the target."""
    tied = connected(pattern.edges, [target])
    return [edge for edge in pattern.edges if tied & {*edge.variables}]


def _keys(constant: object) -> tuple[str, ...]:
    assert isinstance(constant, Nodes)
    return constant.keys
