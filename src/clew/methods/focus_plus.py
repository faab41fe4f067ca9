"""Focus+: 4StepFocus with the ideas of its successors (Boer, Koch, Kramer: FocusedRetriever; AF-Retriever, 2025).

1  triplets: the target's type first, then triplets, conditions, counts and what must be absent
2  substitution in tiers: as asked, with hierarchies, with near names, other readings, relaxed
3  rank inside each tier by the documents; beside it a strand of candidates by words and meaning alone
4  merge: the first α of the tiers, the rest from the strand; rerank the k best

Works with a model as parser and reranker, and without one. Deviation: since a substitution takes milliseconds, large
sides are expanded too, and cyclic queries are solved exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

from clew import trace
from clew.index.fusion import min_max_sum
from clew.index.protocol import Index, Names
from clew.kb.protocol import KnowledgeBase
from clew.query import TripletQuery
from clew.steps.answering import answer_nodes
from clew.steps.focus.focus_answer import (
    Found,
    answer_placed,
    interleaved,
    rerank_groups,
    unexplained_share,
    with_query,
)
from clew.steps.focus.tiers import Tier, tiers, unrestricted
from clew.steps.roles.protocol import TripletParser
from clew.steps.roles.reranking import Reranker, RerankerName
from clew.steps.roles.role_choice import ParserName, parser_for, reranker_for
from clew.toolbox import Toolbox
from clew.types import Answer, NodeSet, Ranking


@dataclass(frozen=True)
class FocusPlus:
    """Triplets with negation, counts, conditions and hierarchies filter in tiers; documents rank and fill up."""

    kb: KnowledgeBase
    parser: TripletParser
    names: Names
    lexical: Index
    vectors: Index
    reranker: Reranker
    k: int = 20
    alpha: int = 13
    depth: int = 100
    words: float = 2.0
    """How much words count against meaning inside tiers and strand."""
    doubt: float = 0.6
    """Where more of the question than this is left to the text, the triplets say too little to come first."""
    model: str = "none"

    @classmethod
    def build(
        cls,
        toolbox: Toolbox,
        k: int = 20,
        alpha: int = 13,
        depth: int = 100,
        words: float = 2.0,
        doubt: float = 0.6,
        parser: ParserName = "auto",
        reranker: RerankerName = "auto",
    ) -> FocusPlus:
        """Parsed and reranked by the toolbox's model; without one by the schema linker, and not reranked."""
        return cls(
            toolbox.kb,
            parser_for(toolbox, parser),
            toolbox.names,
            toolbox.lexical,
            toolbox.vectors,
            reranker_for(toolbox, reranker),
            k,
            alpha,
            depth,
            words,
            doubt,
            "none" if toolbox.model is None else toolbox.model.name,
        )

    def answer(self, question: str) -> Answer:
        """Ranked candidates with the tier each comes from."""
        with trace.span("1 triplets") as span:
            parse = self.parser.parse(question, self.kb.schema)
            span.note(query=str(parse.query), alternatives=len(parse.alternatives), problem=parse.problem)
        with trace.span("2 substitution") as span:
            found = list(tiers(self.kb, self.names, (parse.query, *parse.alternatives), self.k))
            span.note(tiers=[f"{len(tier.nodes)} {tier.how}" for tier in found])
            if parse.query.triplets and not found:
                trace.fallback("substitution", f"nothing satisfies {parse.query}", "candidates by words and meaning")
        with trace.span("3 rank"):
            filtered = [one for tier in found for one in self._rank_tier(question, tier)]
            strand = self._strand(question, parse.query)
        with trace.span("4 merge and rerank"):
            says_little = unexplained_share(question, parse.query) > self.doubt
            groups = ((), interleaved(filtered, strand, self.k)) if says_little else self._merge(filtered, strand)
            placed = rerank_groups(self.reranker, question, groups)
        focus = found[0].focus if found else unrestricted(self.kb, self.names, parse.query)
        answer = answer_placed(self.kb, question, "focus_plus", self.model, placed, self.reranker)
        return with_query(answer, self.kb, focus)

    def _rank_tier(self, question: str, tier: Tier) -> list[Found]:
        """By the words that no triplet accounts for, or by the whole question where all are accounted for."""
        text = " ".join(tier.focus.query.unexplained) or question
        ranking = self._by_documents(text, tier.nodes, self.k)
        return [Found(node, score, tier.focus, tier.how) for node, score in ranking]

    def _strand(self, question: str, query: TripletQuery) -> list[Found]:
        """Candidates of the target's type by words and meaning."""
        kind = query.target.type
        among = answer_nodes(self.kb) if kind is None else self.kb.nodes(kind)
        return [
            Found(node, score, None, "by words and meaning alone")
            for node, score in self._by_documents(question, among, self.k)
        ]

    def _by_documents(self, text: str, among: NodeSet | None, k: int) -> Ranking:
        rankings = [index.search(text, max(k, self.depth), among=among) for index in (self.lexical, self.vectors)]
        return min_max_sum(rankings, weights=(self.words, 1.0)).top(k)

    def _merge(self, filtered: list[Found], strand: list[Found]) -> tuple[list[Found], list[Found]]:
        """The first α of the tiers, then the strand, then the rest of the tiers, up to k."""
        first = filtered[: self.alpha]
        known = {one.node for one in first}
        rest = [one for one in strand if one.node not in known]
        late = [one for one in filtered[self.alpha :] if one.node not in {one.node for one in rest}]
        return first, [*rest, *late][: self.k - len(first)]
