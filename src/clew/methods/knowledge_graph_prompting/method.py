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

from clew.core.errors import InputError
from clew.core.roles import Reader
from clew.core.types import Answer, Ranking
from clew.methods.knowledge_graph_prompting.answer import READ, answer_from_passages
from clew.methods.knowledge_graph_prompting.passages import KINDS, PassageGraph, PassageSearch
from clew.methods.knowledge_graph_prompting.structure_answer import StructureAnswers
from clew.methods.knowledge_graph_prompting.structure_questions import references
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
from clew.roles.read import BestSpan, ModelReader
from clew.roles.write import ModelWriter
from clew.toolbox import Toolbox

NAME = "knowledge_graph_prompting"
NEAREST = 10
"""Neighbours by vector, where no knn edges are stored."""
Traversers = Literal["evidence", "lexical", "embedding", "generative", "none"]


@dataclass(frozen=True)
class KnowledgeGraphPrompting:
    """Passages found by walking the graph of documents from the best ones, read and cited; with a model or none."""

    search: PassageSearch
    graph: PassageGraph
    traverser: Traverser | None
    reader: Reader
    how: Walk
    structure: StructureAnswers | None = None
    k: int = 30
    read: int = READ
    """Passages that are read."""

    @classmethod
    def build(
        cls,
        toolbox: Toolbox,
        traverser: Traversers = "evidence",
        graph: tuple[str, ...] | None = None,
        seeds: int = 8,
        branching: int = 4,
        hops: int = 3,
        budget: int = 60,
        beam: int | None = 8,
        k: int = 30,
    ) -> KnowledgeGraphPrompting:
        """`generative` needs a model; `graph` None walks all edges, knn named without stored edges finds them live."""
        search = PassageSearch(toolbox.local, toolbox.lexical, toolbox.vectors)

        def nearest(node: int) -> Ranking:
            vectors = toolbox.vectors
            return vectors.nearest(node, NEAREST, search.passages) if vectors.is_complete else Ranking.of([], [])

        return cls(
            search,
            PassageGraph(toolbox.local, graph or KINDS, None if graph is None else nearest),
            traverser_named(traverser, toolbox),
            BestSpan() if toolbox.model is None else ModelReader(toolbox.model),
            Walk(seeds, branching, hops, budget, beam),
            StructureAnswers(toolbox.local) if "document" in toolbox.kb.schema.type_names else None,
            k,
        )

    def answer(self, question: str) -> Answer:
        """A written answer with its citations; the candidates are the passages, best first."""
        if self.structure is not None and (named := references(question)):  # 1
            return self.structure.answer(question, named, self.reader, NAME)
        return answer_from_passages(
            self.search.kb, question, NAME, self.rank(question), self.reader, read=self.read
        )  # 5

    def rank(self, question: str) -> Ranking:
        """The passages that the reader is given, best first."""
        asked = self.search.about(question)
        paths = [] if self.traverser is None else walk(asked, self.graph, self.traverser, self.how)  # 2, 3
        return fused(asked, paths, self.k)  # 4


def traverser_named(name: Traversers, toolbox: Toolbox) -> Traverser | None:
    """A traverser by its name."""

    def text(node: int) -> str:
        return toolbox.kb.node(node).text

    if name == "generative":
        if toolbox.model is None:
            raise InputError("the generative traverser needs a model: name one with --model, or use evidence")
        return GenerativeTraverser(ModelWriter(toolbox.model), toolbox.vectors, toolbox.embedder, text)
    if name == "embedding":
        return EmbeddingTraverser(toolbox.vectors, toolbox.embedder, text)
    plain: dict[str, Traverser | None] = {"evidence": MissingEvidence(), "lexical": LexicalTraverser(), "none": None}
    return plain[name]
