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
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from operator import or_

from clew.answering.methods.answering import Found, answer_nodes, answer_placed, nodes_of_type, rerank_groups
from clew.answering.methods.focus.evidence import explained_share, weighed, with_query
from clew.answering.methods.focus.tiers import Tier, asks_more, finished, tiers, united, unrestricted
from clew.answering.methods.focus.unknown import unknown_answer, with_known_names
from clew.answering.methods.focus.with_model import CERTAIN, DOUBTED, read_twice, written
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import ParserName, can_write, parser_for, reader_of, reranker_for
from clew.answering.queries.claims import Claim
from clew.answering.queries.sentences import description
from clew.answering.roles.rerank import KeepOrder, Reranker, RerankerName
from clew.core import trace
from clew.core.query import TripletQuery
from clew.core.roles import Parse
from clew.core.types import Answer, Ranking
from clew.store.index.fusion import min_max_sum, preferring
from clew.store.index.protocol import Index
from clew.store.index.tokens import terms
from clew.store.open_base import OpenBase

DESCRIBED = 3
"""So many nodes of one name are described."""


@dataclass(frozen=True)
class FocusPlus(Method):
    """Triplets with negation, counts, conditions and hierarchies filter in tiers; documents rank and fill up."""

    name = "focus_plus"
    k: int = 20
    alpha: int = 13
    matches: int = 200
    """So many nodes that satisfy the query are listed, whatever k."""
    depth: int = 100
    words: float = 2.0
    """How much words count against meaning inside tiers and strand."""
    doubt: float = 0.45
    """A loose reading less certain than this only adds to what the question's words and meaning find."""
    sure: float = 0.2
    """What a reading less certain than this finds is shown as near, not put forward as the answer."""
    other_types: float = 0.7
    """What words and meaning count in the strand where a candidate is not of the type that was asked for."""
    parser: ParserName = "auto"
    """By default the learned reader; where that is not certain, a model that is not small reads it as well."""
    reranker: RerankerName = "auto"
    """By default a model that is not small orders what only texts can tell."""
    write: bool = True
    """Whether a model that is not small writes the answer from its evidence."""

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Ranked candidates with the tier each comes from, and the answer in words."""
        parse = self._parse(question, tools)
        if parse.unknown:
            return unknown_answer(question, parse.unknown)
        answer = self._written(self._ranked(question, parse, tools), tools)
        is_doubted = not answer.found and (answer.certainty or 0.0) == DOUBTED
        if is_doubted and self._reads_twice(tools) and (parse.certainty or 0.0) >= CERTAIN:
            # The reader was certain and was not asked about, but the model doubts what it found.
            again = self._ranked(question, self._parse(question, tools, certain=1.1), tools)
            again = self._written(again, tools)
            answer = again if again.found else answer
        return answer

    def _written(self, answer: Answer, tools: OpenBase) -> Answer:
        is_told = answer.value is not None or answer.text is not None  # a value, or a description
        if not self.write or is_told or not answer.matches or not answer.query or not can_write(tools):
            return answer
        with trace.span("5 write"):
            return written(answer, tools)

    def _reads_twice(self, tools: OpenBase) -> bool:
        return self.parser == "auto" and tools.parser is None and can_write(tools)

    def _parse(self, question: str, tools: OpenBase, certain: float = CERTAIN) -> Parse:
        with trace.span("1 triplets") as span:
            if self._reads_twice(tools):
                parse = read_twice(question, tools, certain)
            else:
                parse = parser_for(tools, self.parser).parse(question, tools.kb.schema)
            span.note(query=str(parse.query), alternatives=len(parse.alternatives), problem=parse.problem)
            span.note(certainty=parse.certainty)
            parse = with_known_names(parse, tools.names)
            span.note(unknown=[one.text for one in parse.unknown])
        return parse

    def _ranked(self, question: str, parse: Parse, tools: OpenBase) -> Answer:
        kb = tools.kb
        query, reranker = parse.query, self._reranker(parse, tools)
        parse = replace(parse, is_loose=parse.is_loose and reader_of(tools).is_written_about(query.target.type))
        if parse.is_loose and parse.certainty is not None and parse.certainty < self.sure:
            query = TripletQuery((), query.target, score=0.0, unexplained=(question,))
        if query.asks != "nodes" or query.best is not None or query.among:
            answer = self._finished(question, parse, tools)
            if answer is not None:
                return answer
        with trace.span("2 substitution") as span:
            readings = (query, *parse.alternatives) if query is parse.query else (query,)
            found = list(tiers(kb, tools.names, readings, self.k))
            span.note(tiers=[f"{len(tier.nodes)} {tier.how}" for tier in found])
            if query.triplets and not found:
                trace.fallback("substitution", f"nothing satisfies {query}", "candidates by words and meaning")
        focus = found[0].focus if found else unrestricted(kb, tools.names, query)
        with trace.span("3 rank"):
            levels = [list(level) for _, level in groupby(found, key=lambda tier: tier.level)]
            filtered = [one for level in levels for one in self._rank_level(question, level, tools)]
            is_full = parse.certainty is not None and not parse.is_loose and bool(found) and found[0].level == 0
            named = {node for grounding in focus.groundings.values() for node in grounding.nodes}
            strand = [] if is_full else self._strand(question, query.target.type, tools)
            strand = [one for one in strand if parse.is_loose or one.node not in named]
        with trace.span("4 merge and rerank") as span:
            share = explained_share(question, focus, tools.lexical.weight if kb.described else count_terms)
            sure = share if parse.certainty is None else parse.certainty if parse.is_loose else 1.0
            span.note(explained=round(share, 2))
            if sure < self.doubt:
                groups = [weighed(filtered, strand, sure)[: self.k]]
            else:
                more = parse.certainty is None and asks_more(focus.query)
                groups = self._merge(filtered, strand, self.alpha if more else self.k)
            placed = rerank_groups(reranker, question, groups)
        is_other = bool(found) and found[0].focus.query not in (query, *query.either)
        certainty = parse.certainty
        if is_other and certainty is not None:  # the first reading has no answer: its certainty is not that of another
            certainty = min(certainty, found[0].focus.query.score)
        answer = replace(answer_placed(kb, question, placed, reranker), certainty=certainty)
        is_doubtful = certainty is not None and certainty < self.sure and query is parse.query
        is_relaxed = bool(found) and bool(found[0].focus.relaxations)
        is_empty = not found and focus.nodes is not None and not parse.is_loose
        if is_doubtful or is_relaxed or is_empty or query.best is not None:
            answer = replace(answer, answer_count=0)
        elif found and (found[0].level == 0 or is_other) and sure >= self.doubt:
            answer = replace(answer, answer_count=sum(1 for one in groups[0] if one.how == found[0].how))
        if not found:
            return with_query(answer, kb, focus, Claim((focus.block(kb),)), None if focus.nodes is None else 0)
        if is_relaxed:
            asked = unrestricted(kb, tools.names, focus.query)
            relaxed = tuple(relaxation.in_words(focus.query) for relaxation in focus.relaxations)
            answer = with_query(answer, kb, asked, Claim((asked.block(kb),)), 0)
            return replace(answer, query={**answer.query, "relaxed": list(relaxed)}, notes=relaxed)
        first = [tier.focus for tier in found if (tier.level, tier.how) == (found[0].level, found[0].how)]
        result = united(kb, first, focus.query.best)
        return replace(with_query(answer, kb, focus, result.claim, len(result.nodes)), matched=result.nodes)

    def _reranker(self, parse: Parse, tools: OpenBase) -> Reranker:
        if self.reranker != "auto":
            return reranker_for(tools, self.reranker)
        by_text = parse.is_loose or parse.certainty is None
        return reranker_for(tools, "listwise" if by_text and can_write(tools) else "none")

    def _finished(self, question: str, parse: Parse, tools: OpenBase) -> Answer | None:
        """The answer to a question for a number, a truth, a value, or the most of something; None where there is none.

        Only the first reading counts: what other readings find says nothing about how many or whether.
        """
        kb, query = tools.kb, parse.query
        with trace.span("2 substitution") as span:
            result = finished(kb, tools.names, query)
            readings, outcome = result.readings, result.outcome
            span.note(nodes=len(outcome.nodes), value=outcome.value)
        if not len(outcome.nodes) and query.asks in ("nodes", "value"):
            return None
        is_known = query.asks != "value" or outcome.value is not None
        listed = [
            Found(node, 0.0, readings[0], "satisfies the query", lead=1.0)
            for node in outcome.nodes.array[: self.k].tolist()
        ]
        reranker = KeepOrder()
        placed = rerank_groups(reranker, question, [listed])
        answer = answer_placed(kb, question, placed, reranker)
        answer = with_query(answer, kb, readings[0], result.claim, len(outcome.nodes))
        if not is_known or (parse.certainty is not None and parse.certainty < self.sure):
            return replace(answer, certainty=parse.certainty, answer_count=0)
        count = len(answer.candidates)
        if answer.query["form"] == "describe":
            told = " ".join(description(kb, node) for node in outcome.nodes.array[:DESCRIBED].tolist())
            answer = replace(answer, text=told)
        return replace(
            answer, value=outcome.value, certainty=parse.certainty, answer_count=count, matched=outcome.nodes
        )

    def _rank_level(self, question: str, level: Sequence[Tier], tools: OpenBase) -> list[Found]:
        """By the words that no triplet accounts for, or by the whole question where all are accounted for."""
        text = " ".join(level[0].focus.query.unexplained) or question
        among = reduce(or_, (tier.nodes for tier in level))
        rankings = [index.search(text, self.depth, among=among) for index in _indexes(tools)]
        tier_of = {node: tier for tier in level for node in tier.nodes}
        ranked = dict(self._fused(rankings))
        ranked |= {node: 0.0 for node in among if node not in ranked}
        return [
            Found(node, score, tier_of[node].focus, tier_of[node].how, lead=1.0)
            for node, score in list(ranked.items())[: self.matches]
        ]

    def _strand(self, question: str, kind: str | None, tools: OpenBase) -> list[Found]:
        """Candidates by words and meaning, preferably of the target's type."""
        own, every = nodes_of_type(tools.kb, kind), answer_nodes(tools.kb)
        rankings = [index.search(question, self.depth, among=own) for index in _indexes(tools)]
        if kind is not None and self.other_types > 0:
            others = [index.search(question, self.depth, among=every) for index in _indexes(tools)]
            rankings = [preferring(*both, self.other_types) for both in zip(rankings, others, strict=True)]
        return [Found(node, score, None, "by words and meaning alone") for node, score in self._fused(rankings)]

    def _fused(self, rankings: Sequence[Ranking]) -> Ranking:
        """Scores between 0 and 1."""
        weights = (self.words / (self.words + 1), 1 / (self.words + 1))
        return min_max_sum(rankings, weights=weights[: len(rankings)])

    def _merge(self, filtered: list[Found], strand: list[Found], alpha: int) -> list[list[Found]]:
        """What satisfies the query as it stands, or the first α of the tiers; then the strand and the rest, up to k."""
        full = sum(1 for one in filtered if one.how == filtered[0].how) if alpha >= self.k else 0
        first = filtered[: max(alpha, full)]
        known = {one.node for one in first}
        rest = [one for one in strand if one.node not in known]
        late = [one for one in filtered[len(first) :] if one.node not in {one.node for one in rest}]
        return [first, [*rest, *late][: max(0, self.k - len(first))]]


def _indexes(tools: OpenBase) -> tuple[Index, ...]:
    """By words and by meaning; where nodes are but names, by words alone; at a large endpoint by neither."""
    known = tools.kb.described
    if known is None:
        return ()
    return (tools.lexical, tools.vectors) if known.has_texts else (tools.lexical,)


def count_terms(text: str) -> float:
    """How much a text tells where it is not known how rare its words are."""
    return len(terms(text))
