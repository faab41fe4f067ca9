"""Reranking answers with the subgraphs between question and answer (Salnikov et al., Semantic Web 2025).

1  candidates: from another method, the neighbourhood of the question, a model asked for many answers, or a file
2  linking: the entities the question names
3  subgraph: all shortest paths from each question entity to each candidate, and the edges among their nodes
4  features: numbers of the subgraph, embeddings of question, answer and subgraph in words
5  ranker: a learned function of these; without one, how well the relations of the path fit the question
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clew.core.errors import InputError
from clew.core.types import Answer, Candidate, Judgement
from clew.kb.paths import PathLimits
from clew.kb.protocol import KnowledgeBase
from clew.methods.focus.four_step_focus import FourStepFocus
from clew.methods.paths.think_on_graph import ThinkOnGraph
from clew.methods.paths.tournament_on_path import TournamentOnPath
from clew.methods.protocol import Method
from clew.methods.stark.retrievers import Bm25, Hybrid, VectorSearch
from clew.methods.subgraph_reranking.candidates import CandidateSource, FromFile, Nearby, OfMethod, WrittenAnswers
from clew.methods.subgraph_reranking.features import make_pool
from clew.methods.subgraph_reranking.ranker_file import load_ranker
from clew.methods.subgraph_reranking.rankers import (
    MatchRanker,
    RandomOrder,
    Ranker,
    SemanticRanker,
    SourceOrder,
    ranked,
)
from clew.methods.subgraph_reranking.subgraph import SubgraphExtractor, path_evidence
from clew.roles.write import ModelWriter
from clew.toolbox import Toolbox

SOURCES: dict[str, Callable[[Toolbox, int], Method]] = {
    "bm25": lambda tools, k: Bm25.build(tools, k=k),
    "vector_search": lambda tools, k: VectorSearch.build(tools, k=k),
    "hybrid": lambda tools, k: Hybrid.build(tools, k=k),
    "four_step_focus": lambda tools, _: FourStepFocus.build(tools),
    "think_on_graph": lambda tools, _: ThinkOnGraph.build(tools),
    "tournament_on_path": lambda tools, _: TournamentOnPath.build(tools),
}
"""The methods whose rankings can be reranked; beside them there are nearby, model and FILE.jsonl."""


@dataclass(frozen=True)
class SubgraphReranking:
    """Candidates of any source, reranked by what connects them with the question."""

    kb: KnowledgeBase
    source: CandidateSource
    extractor: SubgraphExtractor
    ranker: Ranker
    candidates: int = 20
    model: str = "none"

    @classmethod
    def build(
        cls,
        toolbox: Toolbox,
        source: str = "nearby",
        ranker: str = "match",
        candidates: int = 20,
        max_hops: int = 4,
        max_paths: int = 50,
    ) -> SubgraphReranking:
        """`ranker` is the folder of a trained one, or none, random, semantic or match."""
        return cls(
            toolbox.kb,
            open_source(toolbox, source, candidates),
            SubgraphExtractor(toolbox.kb, PathLimits(most_hops=max_hops, most_paths=max_paths)),
            open_ranker(toolbox, ranker),
            candidates,
            "none" if toolbox.model is None or source != "model" else toolbox.model.name,
        )

    def answer(self, question: str) -> Answer:
        """The candidates in their new order, each with paths that connect it and the ranker's score."""
        proposal = self.source.propose(question, self.candidates)  # 1, 2
        subgraphs = self.extractor.extract(proposal.entities, proposal.candidates)  # 3
        pool = make_pool(self.kb, proposal.question, subgraphs)  # 4
        scores = self.ranker.scores(pool)  # 5
        refs = self.kb.refs(proposal.candidates)
        found = []
        for place in ranked(scores):
            first = Judgement(self.ranker.name, float(scores[place]), f"place {place + 1} of its source")
            found.append(
                Candidate(refs[place], float(scores[place]), (*path_evidence(self.kb, subgraphs[place]), first))
            )
        notes = [*proposal.notes]
        if not proposal.entities:
            notes.append("the question names no node: nothing connects it with the candidates")
        return Answer(question, "subgraph_reranking", tuple(found), self.model, notes=tuple(notes))


def open_source(toolbox: Toolbox, name: str, k: int) -> CandidateSource:
    """A source of candidates by name, or a file of them."""
    if name in SOURCES:
        return OfMethod(SOURCES[name](toolbox, k + 5).answer, toolbox.names)  # a few more: question entities fall out
    if name == "nearby":
        return Nearby(toolbox.kb, toolbox.names)
    if name == "model":
        if toolbox.model is None:
            raise InputError("source=model needs a language model: give one with --model")
        return WrittenAnswers(ModelWriter(toolbox.model), toolbox.names)
    if Path(name).is_file():
        return FromFile.read(Path(name), toolbox.kb, toolbox.names)
    raise InputError(f"no source {name!r}: expected {', '.join(SOURCES)}, nearby, model or a file of candidates")


def open_ranker(toolbox: Toolbox, name: str) -> Ranker:
    """A ranker by name, or from its folder."""
    if name == "none":
        return SourceOrder()
    if name == "random":
        return RandomOrder()
    if name == "semantic":
        return SemanticRanker(toolbox.embedder)
    if name == "match":
        return MatchRanker(toolbox.embedder)
    return load_ranker(Path(name), toolbox.kb.schema, toolbox.embedder)
