"""Knowledge Graph Prompting (Wang et al., AAAI 2024): answers from a graph of passages that a traverser walks.

1  a question about structure (pages, tables, sections) is answered from the nodes it names
2  seeds: the passages that fit best by words, by meaning and by titles in the question
3  Algorithm 1: paths grow from the seeds; the traverser ranks each path's neighbours, the best join, until the budget
4  rank everything visited by how well it fits by itself and by what it added to its path
5  read the best closely: a small network ranks them anew, marks what says it, and tells how sure that is
6  the answer is the value of a table, what a model writes with citations that are checked, or the best passage whole

Deviations from the paper: the default traverser needs no model (missing evidence), seeds are found by hybrid search
instead of TF-IDF alone, passages visited twice count once against the budget, and step 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clew.core.types import Answer, IntArray, Ranking
from clew.kb.arrays import ArrayKnowledgeBase
from clew.methods.knowledge_graph_prompting.answer import (
    READ,
    READ_BY_LARGE,
    answer_from_passages,
    answer_from_quotes,
    with_reader,
)
from clew.methods.knowledge_graph_prompting.close_reading import CLOSELY, CloseReading, read_closely
from clew.methods.knowledge_graph_prompting.passages import KINDS, PassageGraph, PassageSearch
from clew.methods.knowledge_graph_prompting.structure_answer import StructureAnswers
from clew.methods.knowledge_graph_prompting.tables import TableReader
from clew.methods.knowledge_graph_prompting.traversal import (
    EmbeddingTraverser,
    GenerativeTraverser,
    LexicalTraverser,
    MissingEvidence,
    ReasoningPath,
    Traverser,
    Walk,
    fused,
    walk,
)
from clew.methods.protocol import Method
from clew.methods.role_choice import can_write, reader_for
from clew.models.passages import PassageNetwork
from clew.roles.write import ModelWriter
from clew.toolbox import Toolbox

TABLES, TABLE = 3, 0.8
"""A value is taken from the first passage, or from one of so many where it is at least so certain."""
WALKED = 0.25
"""What the first of the walk gains, as a share of what the passage that fits best by itself has."""
SHOWN_PATHS = 10
NEAREST = 10
"""Neighbours by vector, where no knn edges are stored."""
Traversers = Literal["evidence", "lexical", "embedding", "generative", "none"]


@dataclass(frozen=True)
class KnowledgeGraphPrompting(Method):
    """Passages found by walking the graph of documents from the best ones, read and cited; with a model or none."""

    name = "knowledge_graph_prompting"
    traverser: Traversers = "evidence"
    """Who ranks the neighbours of a path; `generative` needs a model."""
    graph: tuple[str, ...] | None = None
    """Kinds of edges to walk, by default all; knn named without stored edges finds them live."""
    seeds: int = 8
    branching: int = 4
    hops: int = 3
    budget: int = 60
    beam: int | None = 8
    k: int = 30
    read: int | None = None
    """Passages that a model reads; by default 20, a small one 10."""
    closely: int = CLOSELY
    """Passages that the network reads; 0 leaves the order of the walk."""
    short: bool = False
    """Answer in a few words, as benchmarks ask, instead of sentences or a passage."""

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """What is put forward, with its citations; the candidates are the passages, best first."""
        if "document" in tools.kb.schema.type_names:  # 1
            structural = structure_of(tools).answer(question, reader_for(tools, None))
            if structural is not None:
                return structural
        ranking, paths = self._walked(question, tools)
        close = self._closely(question, ranking, paths, tools)
        if self.short:
            return answer_from_passages(tools.local, question, close.ranking, reader_for(tools), read=self.read or READ)
        answer = answer_from_quotes(tools.local, question, close)
        answer = replace(answer, query={"paths": shown_paths(tools.local, paths, close.ranking)})
        first = [node for node, _ in close.ranking.top(self.read or (READ_BY_LARGE if can_write(tools) else READ))]
        table = tables_of(tools).answer(question, first[:TABLES])
        if table is not None and (table.table in tables_of(tools).tables(first[:1]) or table.certainty >= TABLE):
            told = replace(answer, text=table.text, value=table.value, evidence=tables_of(tools).quotes(table))
            return replace(told, certainty=table.certainty, answer_count=1)
        return answer if tools.model is None else with_reader(tools.local, answer, first, reader_for(tools, None))

    def rank(self, question: str, tools: Toolbox) -> Ranking:
        """The passages that the reader is given, best first."""
        return self._closely(question, *self._walked(question, tools), tools).ranking

    def _closely(self, question: str, ranking: Ranking, paths: Sequence[ReasoningPath], tools: Toolbox) -> CloseReading:
        if not self.closely:
            return CloseReading(ranking, {}, 1.0)
        led = sorted(best_paths(paths).values(), key=lambda path: -path.gain)
        steps = {path.nodes[-1]: path.nodes[-2] for path in led}
        asked = search_of(tools).about(question)
        places = {node: place for place, (node, _) in enumerate(ranking)}

        def fits(nodes: IntArray) -> NDArray[np.float64]:
            own = asked.prior(nodes)
            walked = np.array([1 - places.get(node, len(places)) / max(len(places), 1) for node in nodes.tolist()])
            return own + WALKED * float(own.max()) * walked

        mixed = with_walked(asked.pool.top(self.k), ranking, self.closely)  # over manuals the walk alone misleads
        further = asked.following if asked.has_all_vectors else None
        close = read_closely(tools.kb, network_of(tools), question, mixed, self.closely, steps, fits, further)
        if "document" in tools.kb.schema.type_names:
            return close
        return replace(close, ranking=ranking)  # articles, joined by their titles: the walk's order is the better one

    def _walked(self, question: str, tools: Toolbox) -> tuple[Ranking, list[ReasoningPath]]:
        search = search_of(tools)
        asked = search.about(question)

        def nearest(node: int) -> Ranking:
            vectors = tools.vectors
            return vectors.nearest(node, NEAREST, search.passages) if vectors.is_complete else Ranking.of([], [])

        graph = PassageGraph(tools.local, self.graph or KINDS, None if self.graph is None else nearest)
        traverser = traverser_named(self.traverser, tools)
        how = Walk(self.seeds, self.branching, self.hops, self.budget, self.beam)
        paths = [] if traverser is None else walk(asked, graph, traverser, how)  # 2, 3
        return fused(asked, paths, self.k), paths  # 4


def with_walked(found: Ranking, walked: Ranking, most: int) -> Ranking:
    """What search found, and at the last place that is read the best of the walk that is not among those before."""
    first = found.nodes.tolist()
    other = [node for node in walked.nodes.tolist() if node not in first[: most - 1]]
    nodes = list(dict.fromkeys((*first[: most - 1], *other[:1], *first, *other)))
    return Ranking.of(nodes, np.arange(len(nodes), 0, -1))


def shown_paths(kb: ArrayKnowledgeBase, paths: Sequence[ReasoningPath], ranking: Ranking) -> list[list[str]]:
    """How the walk came to the first passages that are no seeds: the keys from the seed on."""
    best = best_paths(paths)
    led = [best[node] for node, _ in ranking.top(SHOWN_PATHS) if node in best]
    return [[ref.key for ref in kb.refs(path.nodes)] for path in led]


def best_paths(paths: Sequence[ReasoningPath]) -> dict[int, ReasoningPath]:
    """For each passage that a walk came to after a seed, the path that gained most."""
    best: dict[int, ReasoningPath] = {}
    for path in paths:
        last = path.nodes[-1]
        if len(path.nodes) > 1 and (last not in best or path.gain > best[last].gain):
            best[last] = path
    return best


def network_of(tools: Toolbox) -> PassageNetwork:
    """The network that reads passages, opened once."""
    return tools.keep("passage network", PassageNetwork)


def search_of(tools: Toolbox) -> PassageSearch:
    """Search over the passages of a base, made once for it."""
    return tools.keep("passage search", lambda: PassageSearch(tools.local, tools.lexical, tools.vectors))


def tables_of(tools: Toolbox) -> TableReader:
    """Who reads the tables of a base, made once for it."""
    return tools.keep("table reader", lambda: TableReader(tools.local))


def structure_of(tools: Toolbox) -> StructureAnswers:
    """Pages, sections and tables of a base, made once for it."""
    return tools.keep("structure answers", lambda: StructureAnswers(tools.local, search_of(tools), tables_of(tools)))


def traverser_named(name: Traversers, toolbox: Toolbox) -> Traverser | None:
    """A traverser by its name."""

    def text(node: int) -> str:
        return toolbox.kb.node(node).text

    if name == "generative":
        model = toolbox.required_model("the generative traverser")
        return GenerativeTraverser(ModelWriter(model), toolbox.vectors, toolbox.embedder, text)
    if name == "embedding":
        return EmbeddingTraverser(toolbox.vectors, toolbox.embedder, text)
    plain: dict[str, Traverser | None] = {"evidence": MissingEvidence(), "lexical": LexicalTraverser(), "none": None}
    return plain[name]
