"""Knowledge Graph Prompting (Wang et al., AAAI 2024): answers from a graph of passages that a traverser walks.

1  a question about structure (pages, tables) is answered from the nodes it names
2  seeds: the passages that fit best by words, by meaning and by titles in the question
3  Algorithm 1: paths grow from the seeds; the traverser ranks each path's neighbours, the best join, until the budget
4  rank everything visited by how well it fits by itself and by what it added to its path
5  read the best passages; the answer cites them by file, page and span, and what no citation carries is said

Deviations from the paper: the default traverser needs no model (missing evidence), seeds are found by hybrid search
instead of TF-IDF alone, and passages visited twice count once against the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clew.core.types import Answer, Ranking
from clew.methods.knowledge_graph_prompting.answer import READ, answer_from_passages
from clew.methods.knowledge_graph_prompting.passages import KINDS, PassageGraph, PassageSearch
from clew.methods.knowledge_graph_prompting.structure_answer import StructureAnswers
from clew.methods.knowledge_graph_prompting.tables import TableReader
from clew.methods.knowledge_graph_prompting.traversal import (
    EmbeddingTraverser,
    GenerativeTraverser,
    LexicalTraverser,
    MissingEvidence,
    Traverser,
    Walk,
    fused,
    walk,
)
from clew.methods.protocol import Method
from clew.methods.role_choice import reader_for
from clew.roles.write import ModelWriter
from clew.toolbox import Toolbox

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
    read: int = READ
    """Passages that are read."""

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """A written answer with its citations; the candidates are the passages, best first."""
        reader = reader_for(tools)
        if "document" in tools.kb.schema.type_names:  # 1
            structural = structure_of(tools).answer(question, reader)
            if structural is not None:
                return structural
        ranking = self.rank(question, tools)
        return answer_from_passages(tools.local, question, ranking, reader, read=self.read)  # 5

    def rank(self, question: str, tools: Toolbox) -> Ranking:
        """The passages that the reader is given, best first."""
        search = search_of(tools)
        asked = search.about(question)

        def nearest(node: int) -> Ranking:
            vectors = tools.vectors
            return vectors.nearest(node, NEAREST, search.passages) if vectors.is_complete else Ranking.of([], [])

        graph = PassageGraph(tools.local, self.graph or KINDS, None if self.graph is None else nearest)
        traverser = traverser_named(self.traverser, tools)
        how = Walk(self.seeds, self.branching, self.hops, self.budget, self.beam)
        paths = [] if traverser is None else walk(asked, graph, traverser, how)  # 2, 3
        return fused(asked, paths, self.k)  # 4


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
