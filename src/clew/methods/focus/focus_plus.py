"""Focus+: 4StepFocus with the ideas of its successors (Boer, Koch, Kramer: FocusedRetriever; AF-Retriever, 2025).

1  triplets: the target's type first, then triplets, conditions, counts and what must be absent
2  substitution in tiers: as asked, with hierarchies, with near names, other readings, relaxed
3  rank inside each tier by the documents; beside it a strand of candidates by words and meaning alone
4  merge: the first α of the tiers, the rest from the strand; rerank the k best

Works with a model as parser and reranker, and without one. Deviations: since a substitution takes milliseconds, large
sides are expanded too, and cyclic queries are solved exactly; documents are ranked by words and meaning, not by
meaning alone; where the triplets explain little of the question, they add to a candidate's score instead of coming
first, and where they say all that is asked, α is k (docs/adr/0003-text-against-triplets.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import or_

from clew.core import trace
from clew.core.types import Answer, Ranking
from clew.index.fusion import min_max_sum, preferring
from clew.methods.answering import Found, answer_nodes, answer_placed, nodes_of_type, rerank_groups
from clew.methods.focus.evidence import explained_share, weighed, with_query
from clew.methods.focus.tiers import Tier, asks_more, tiers, unrestricted
from clew.methods.protocol import Method
from clew.methods.role_choice import ParserName, parser_for, reranker_for
from clew.roles.rerank import RerankerName
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class FocusPlus(Method):
    """Triplets with negation, counts, conditions and hierarchies filter in tiers; documents rank and fill up."""

    name = "focus_plus"
    k: int = 20
    alpha: int = 13
    depth: int = 100
    words: float = 2.0
    """How much words count against meaning inside tiers and strand."""
    doubt: float = 0.55
    """Where more of what the question says than this is left to the text, the triplets say too little to come first."""
    other_types: float = 0.7
    """What words and meaning count in the strand where a candidate is not of the type that was asked for."""
    parser: ParserName = "auto"
    """By default the schema linker, and a model where that finds no triplet."""
    reranker: RerankerName = "auto"

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """Ranked candidates with the tier each comes from."""
        kb, reranker = tools.kb, reranker_for(tools, self.reranker)
        with trace.span("1 triplets") as span:
            parse = parser_for(tools, self.parser).parse(question, kb.schema)
            span.note(query=str(parse.query), alternatives=len(parse.alternatives), problem=parse.problem)
        with trace.span("2 substitution") as span:
            found = list(tiers(kb, tools.names, (parse.query, *parse.alternatives), self.k))
            span.note(tiers=[f"{len(tier.nodes)} {tier.how}" for tier in found])
            if parse.query.triplets and not found:
                trace.fallback("substitution", f"nothing satisfies {parse.query}", "candidates by words and meaning")
        focus = found[0].focus if found else unrestricted(kb, tools.names, parse.query)
        with trace.span("3 rank"):
            levels = [list(level) for _, level in groupby(found, key=lambda tier: tier.level)]
            filtered = [one for level in levels for one in self._rank_level(question, level, tools)]
            strand = self._strand(question, parse.query.target.type, tools)
        with trace.span("4 merge and rerank") as span:
            share = explained_share(question, focus, tools.lexical.weight)
            span.note(explained=round(share, 2))
            if 1 - share > self.doubt:
                groups = [weighed(filtered, strand, share)[: self.k]]
            else:
                groups = self._merge(filtered, strand, self.alpha if asks_more(focus.query) else self.k)
            placed = rerank_groups(reranker, question, groups)
        return with_query(answer_placed(kb, question, placed, reranker), kb, focus)

    def _rank_level(self, question: str, level: Sequence[Tier], tools: Toolbox) -> list[Found]:
        """By the words that no triplet accounts for, or by the whole question where all are accounted for."""
        text = " ".join(level[0].focus.query.unexplained) or question
        among = reduce(or_, (tier.nodes for tier in level))
        rankings = [index.search(text, self.depth, among=among) for index in (tools.lexical, tools.vectors)]
        tier_of = {node: tier for tier in level for node in tier.nodes}
        return [
            Found(node, score, tier_of[node].focus, tier_of[node].how, lead=1.0)
            for node, score in self._fused(rankings).top(self.k)
        ]

    def _strand(self, question: str, kind: str | None, tools: Toolbox) -> list[Found]:
        """Candidates by words and meaning, preferably of the target's type."""
        own, every = nodes_of_type(tools.kb, kind), answer_nodes(tools.kb)
        rankings = [index.search(question, self.depth, among=own) for index in (tools.lexical, tools.vectors)]
        if kind is not None and self.other_types > 0:
            others = [index.search(question, self.depth, among=every) for index in (tools.lexical, tools.vectors)]
            rankings = [preferring(*both, self.other_types) for both in zip(rankings, others, strict=True)]
        return [Found(node, score, None, "by words and meaning alone") for node, score in self._fused(rankings)]

    def _fused(self, rankings: Sequence[Ranking]) -> Ranking:
        """Scores between 0 and 1."""
        return min_max_sum(rankings, weights=(self.words / (self.words + 1), 1 / (self.words + 1)))

    def _merge(self, filtered: list[Found], strand: list[Found], alpha: int) -> list[list[Found]]:
        """The first α of the tiers, then the strand, then the rest of the tiers, up to k."""
        first = filtered[:alpha]
        known = {one.node for one in first}
        rest = [one for one in strand if one.node not in known]
        late = [one for one in filtered[alpha:] if one.node not in {one.node for one in rest}]
        return [first, [*rest, *late][: self.k - len(first)]]
