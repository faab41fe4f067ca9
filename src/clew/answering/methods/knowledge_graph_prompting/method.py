"""Knowledge Graph Prompting (Wang et al., AAAI 2024): answer from a graph of passages that a traverser walks.

1  a question about structure (pages, tables, sections) is answered from the nodes it names
2  seeds: the passages that fit best by words, by meaning and by titles in the question
3  Algorithm 1: paths grow from the seeds. The traverser ranks each path's neighbours, and the best join until the
   budget is used up
4  rank all visited passages by their own fit and by their contribution to their path
5  read the best closely: a small network reranks them, marks the relevant sentences, and estimates the certainty
6  the answer is a value of a table, cited and checked sentences of a model, or the whole best passage

The path to each passage is evidence in addition to its quotation: the passages and kinds of edges on the way.

Deviations from the paper: the default traverser needs no model (missing evidence), seeds come from hybrid search
instead of TF-IDF, passages visited twice count once against the budget, and step 5 is new. Settings of the paper: `-O
traverser=generative seeds_by=tfidf seeds=10 branching=3 hops=2 beam=none closely=0 short=true read=30 pairs=true`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from clew.answering.methods.knowledge_graph_prompting import traversal
from clew.answering.methods.knowledge_graph_prompting.answer import (
    READ,
    READ_BY_LARGE,
    answer_from_passages,
    answer_from_quotes,
    with_reader,
)
from clew.answering.methods.knowledge_graph_prompting.structure import StructureAnswers
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import can_write, reader_for
from clew.answering.reading.documents.close_reading import FOUND, CloseReading, read_closely
from clew.answering.reading.documents.references import asked_of_parts
from clew.answering.reading.documents.search import AskedPassages, PassageSearch, tf_idf_ranking
from clew.answering.reading.documents.tables import LEAST, TableReader
from clew.answering.roles.write import ModelWriter
from clew.core import trace
from clew.core.errors import InputError
from clew.core.types import Answer, Ranking
from clew.models.opening import open_model
from clew.models.passages import PassageNetwork
from clew.models.protocol import LanguageModel
from clew.store.index.tokens import ENGLISH, language_of
from clew.store.open_base import OpenBase

TABLES, TABLE = 3, 0.8
"""Number of first passages to search for tables, and minimum certainty of a value that is not in the first."""
UNREAD = 0.4
"""Certainty if the network cannot read the passages. The text then quotes the next passages as well."""
NEAREST = 10
"""Number of neighbours by vector, if no knn edges are stored."""
Traversers = Literal["evidence", "lexical", "embedding", "generative", "none"]


@dataclass(frozen=True)
class KnowledgeGraphPrompting(Method):
    """Passages found by walking the graph of documents from the best ones, read and cited, with or without a model."""

    name = "knowledge_graph_prompting"
    traverser: Traversers = "evidence"
    """Ranker of the neighbours of a path. `generative` needs a model."""
    traverser_model: str | None = None
    """Separate model for the generative traverser, such as `hf:FOLDER` of `clew train traverser`."""
    graph: tuple[str, ...] | None = None
    """Kinds of edges to walk, by default all. If knn is listed but not stored, neighbours are searched live."""
    seeds: int = 8
    branching: int = 4
    hops: int = 3
    budget: int = 60
    beam: int | None = 8
    k: int = 30
    read: int | None = None
    """Number of passages that a model reads. By default 20, or 10 for a small model."""
    closely: int = 6
    """Number of passages that the network reads. More cost time without gain. 0 leaves the order of the walk."""
    short: bool = False
    """Answer in a few words, as benchmarks require, instead of sentences or a passage."""
    pairs: bool = False
    """Read reasoning paths with their passages together, as the paper does. Requires `short`."""
    seeds_by: Literal["hybrid", "tfidf"] = "hybrid"
    """Search method for the seeds. The paper uses TF-IDF."""

    def __post_init__(self) -> None:
        """Reject options that have no effect."""
        super().__post_init__()
        if not self.short:
            self.refuse(("pairs",), "without short=true")
        if self.traverser != "generative":
            self.refuse(("traverser_model",), "without traverser=generative")
        if self.traverser == "none":
            self.refuse(("graph", "seeds", "branching", "hops", "budget", "beam", "seeds_by"), "with traverser=none")

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return the answer with its citations. The candidates are the passages, best first."""
        if language_of(question, default=tools.stored.language) != ENGLISH:
            return self._unread(question, tools)
        asked_of = asked_of_parts(question) if "document" in tools.kb.schema.type_names else None
        if asked_of is not None:  # 1
            structural = structure_of(tools).answer(question, *asked_of, reader_for(tools, None))
            if structural is not None:
                return structural
        kb, graph, asked = tools.stored, self._graph(tools), search_of(tools).about(question)
        ranking, paths = self._walked(asked, graph, tools)
        close = self._closely(asked, ranking, tools)
        if self.short:
            count, ranked = self.read or READ, close.ranking.nodes.tolist()
            pairs = traversal.pairs_to_read(paths, ranked, count) if self.pairs else None
            short = answer_from_passages(kb, question, close.ranking, reader_for(tools), read=count, pairs=pairs)
            return traversal.with_paths(kb, graph, short, paths)
        first = [node for node, _ in close.ranking.top(self.read or (READ_BY_LARGE if can_write(tools) else READ))]
        table = tables_of(tools).likeliest(question, first[:TABLES])
        is_first = table is not None and table.table in tables_of(tools).tables(first[:1])
        looked_up = f"{table.text} ({table.how})" if table and is_first and table.certainty >= FOUND else None
        if table and looked_up:
            close = replace(close, certainty=min(close.certainty, table.certainty))
        answer = traversal.with_paths(kb, graph, answer_from_quotes(kb, question, close, looked_up), paths)
        if table and looked_up and table.rows and answer.found:
            answer = replace(answer, evidence=(tables_of(tools).quotes(table)[0], *answer.evidence[1:]))
        if table is not None and ((is_first and table.certainty >= LEAST) or table.certainty >= TABLE):
            told = replace(answer, text=table.text, value=table.value, evidence=tables_of(tools).quotes(table))
            return replace(told, certainty=table.certainty, answer_count=1)
        return with_reader(tools.stored, answer, first, reader_for(tools, None)) if can_write(tools) else answer

    def _unread(self, question: str, tools: OpenBase) -> Answer:
        """Answer a question in another language by words and meaning, because the network reads only English."""
        trace.fallback("read closely", "the question is not in English", "the best passages of the search are quoted")
        close = CloseReading(search_of(tools).about(question).pool.top(self.k), {}, UNREAD)
        answer = answer_from_quotes(tools.kb, question, close, is_english=False)
        first = [node for node, _ in close.ranking.top(self.read or READ_BY_LARGE)]
        return with_reader(tools.stored, answer, first, reader_for(tools, None)) if can_write(tools) else answer

    def rank(self, question: str, tools: OpenBase) -> Ranking:
        """Return the passages for the reader, best first."""
        asked = search_of(tools).about(question)
        return self._closely(asked, self._walked(asked, self._graph(tools), tools)[0], tools).ranking

    def learned(self, tools: OpenBase) -> Mapping[str, Any]:
        """Return the name of the traverser's own model. It contains the digest of the trained weights."""
        return (
            {} if self.traverser_model is None else {"traverser_model": writing_model(tools, self.traverser_model).name}
        )

    def _closely(self, asked: AskedPassages, ranking: Ranking, tools: OpenBase) -> CloseReading:
        if not self.closely:
            return CloseReading(ranking, {}, 1.0)
        if "document" not in tools.kb.schema.type_names:  # articles linked by their titles: the order of the walk stays
            first = ranking.nodes[: self.closely].tolist()
            return replace(read_closely(tools.kb, network_of(tools), asked.question, ranking, first), ranking=ranking)
        first = asked.pool.nodes[: self.k].tolist()  # over manuals the walk misleads: add only one of its passages
        read = with_walked(first, ranking.nodes.tolist(), self.closely)
        nodes = np.union1d(first, ranking.nodes).astype(np.int32)
        fitting = Ranking.of(nodes, asked.prior(nodes))
        return read_closely(tools.kb, network_of(tools), asked.question, fitting, read)

    def _graph(self, tools: OpenBase) -> traversal.PassageGraph:
        search = search_of(tools)

        def nearest(node: int) -> Ranking:
            vectors = tools.vectors
            return vectors.nearest(node, NEAREST, search.passages) if vectors.is_complete else Ranking.of([], [])

        kinds, live = self.graph or traversal.KINDS, None if self.graph is None else nearest
        key = "passage graph", self.graph, live is not None and tools.vectors.is_complete
        return tools.get_or_create(key, lambda: traversal.PassageGraph(tools.stored, kinds, live))

    def _walked(
        self, asked: AskedPassages, graph: traversal.PassageGraph, tools: OpenBase
    ) -> tuple[Ranking, list[traversal.ReasoningPath]]:
        traverser = traverser_named(self.traverser, tools, self.traverser_model)
        if traverser is None:
            return traversal.fused(asked, [], self.k), []
        by_words = self.seeds_by == "tfidf"
        seeds = tf_idf_ranking(tools.stored, tools.lexical, asked.question, self.seeds) if by_words else asked.pool  # 2
        paths = traversal.walk(  # 3
            asked,
            graph,
            traverser,
            seeds.top(self.seeds),
            branching=self.branching,
            hops=self.hops,
            budget=self.budget,
            beam=self.beam,
        )
        return traversal.fused(asked, paths, self.k), paths  # 4


def with_walked(found: Sequence[int], walked: Sequence[int], most: int) -> list[int]:
    """Return the first `most - 1` search results, filled up to `most` with the best other passages of the walk."""
    first = list(found[: most - 1])
    return [*first, *[node for node in walked if node not in first][: most - len(first)]]


def network_of(tools: OpenBase) -> PassageNetwork:
    """Return the network that reads passages, opened once."""
    return tools.get_or_create("passage network", PassageNetwork)


def search_of(tools: OpenBase) -> PassageSearch:
    """Return the search over the passages of a base, created once."""
    return tools.get_or_create("passage search", lambda: PassageSearch(tools.stored, tools.lexical, tools.vectors))


def tables_of(tools: OpenBase) -> TableReader:
    """Return the reader of the tables of a base, created once."""
    return tools.get_or_create("table reader", lambda: TableReader(tools.stored))


def structure_of(tools: OpenBase) -> StructureAnswers:
    """Return the answers about pages, sections and tables of a base, created once."""

    def made() -> StructureAnswers:
        return StructureAnswers(tools.stored, search_of(tools), tables_of(tools), network_of(tools))

    return tools.get_or_create("structure answers", made)


def writing_model(tools: OpenBase, own: str | None) -> LanguageModel:
    """Return the model that writes the next evidence: the traverser's own, opened once, or that of the base."""
    if own is None:
        return tools.required_model("the generative traverser")
    model = tools.get_or_create(("traverser model", own), lambda: open_model(own))
    if model is None:
        raise InputError("traverser_model=none is not a model: name a model, or omit the option")
    return model


def traverser_named(name: Traversers, tools: OpenBase, model: str | None = None) -> traversal.Traverser | None:
    """Return a traverser by name, or None for `none`."""

    def text(node: int) -> str:
        return tools.kb.node(node).text

    if name == "generative":
        writer = ModelWriter(writing_model(tools, model))
        return traversal.by_written_evidence(writer, tools.vectors, tools.embedder, text)
    if name == "embedding":
        return traversal.by_meaning(tools.vectors, tools.embedder, text)
    return {"evidence": traversal.missing_evidence, "lexical": traversal.shared_words}.get(name)
