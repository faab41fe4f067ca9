"""Rerank answers by the subgraphs between question and answer (Salnikov et al., Semantic Web 2025).

1  candidates: from another method, the neighbourhood of the question, many answers of a model, or a file
2  linking: the entities that the question names
3  subgraph: all shortest paths from each question entity to each candidate, and the edges among their nodes
4  features: numbers of the subgraph, embeddings of question, answer and subgraph text
5  ranker: a learned function of the features, or the match of the path's relations with the question
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from clew.answering.methods.catalog import create
from clew.answering.methods.protocol import Method
from clew.answering.methods.subgraph_reranking import rankers
from clew.answering.methods.subgraph_reranking.candidates import (
    CandidateSource,
    near_entities,
    of_file,
    of_method,
    read_candidates,
    written_answers,
)
from clew.answering.methods.subgraph_reranking.features import make_pool
from clew.answering.methods.subgraph_reranking.graph_to_text import GraphWriter
from clew.answering.methods.subgraph_reranking.ranker_file import MANIFEST, Texts, load_ranker, read_card
from clew.answering.methods.subgraph_reranking.subgraph import Subgraph, SubgraphExtractor, path_evidence
from clew.answering.roles.write import Generation, ModelWriter
from clew.core.disk import file_sha256
from clew.core.errors import InputError
from clew.core.types import Answer, Candidate, Judgement
from clew.store.graph.paths import PathLimits
from clew.store.open_base import OpenBase

RETRIEVERS = ("bm25", "vector_search", "hybrid")
SOURCES = (*RETRIEVERS, "four_step_focus", "think_on_graph", "aligned_paths", "tournament_on_path")
"""Methods whose rankings can be reranked. Other sources are `nearby`, the answers of a model and FILE.jsonl."""
GENERATED: Mapping[str, Generation] = {"model": "list", "samples": "samples", "beams": "beams"}
"""Ways to generate answers with a model: in one list, sampled, or by diverse beam search."""


@dataclass(frozen=True)
class SubgraphReranking(Method):
    """Candidates of any source, reranked by their connections to the question."""

    name = "subgraph_reranking"
    source: str = "nearby"
    """A method, `nearby`, `model`, `samples`, `beams`, or a file of candidates."""
    ranker: str = "match"
    """The folder of a trained ranker, or none, random, semantic or match."""
    candidates: int = 20
    max_hops: int = 4
    max_paths: int = 50

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return the candidates in their new order, each with its paths and the ranker's score."""
        kb = tools.kb
        key = ("source", self.source, self.candidates, tools.model_name)
        source = tools.get_or_create(key, lambda: open_source(tools, self.source, self.candidates))
        ranker = tools.get_or_create(("ranker", self.ranker), lambda: open_ranker(tools, self.ranker))
        extractor = SubgraphExtractor(kb, PathLimits(most_hops=self.max_hops, most_paths=self.max_paths))
        proposal = source(question, self.candidates)  # 1, 2
        if proposal.value is not None:
            said = {True: "yes", False: "no"}.get(proposal.value) if isinstance(proposal.value, bool) else None
            note = "answered by the model alone: subgraphs rank entities, neither yes and no nor numbers"
            return Answer(question, value=proposal.value, text=said or str(proposal.value), notes=(note,))
        subgraphs = extractor.extract(proposal.entities, proposal.candidates)  # 3
        pool = make_pool(kb, proposal.question, subgraphs, graph_writer(tools, texts_of(self.ranker)))  # 4
        scores = ranker.scores(pool)  # 5
        refs = kb.refs(proposal.candidates)
        found = []
        for place in rankers.ranked(scores):
            first = Judgement(ranker.name, float(scores[place]), f"place {place + 1} of its source")
            found.append(Candidate(refs[place], float(scores[place]), (*path_evidence(kb, subgraphs[place]), first)))
        notes = [*proposal.notes]
        if not proposal.entities:
            notes.append("the question names no node: nothing connects it with the candidates")
        return Answer(question, tuple(found), notes=tuple(notes))

    def learned(self, tools: OpenBase) -> Mapping[str, Any]:  # noqa: ARG002 - the files are outside the base
        """Return the digests of a trained ranker and of a file of candidates."""
        files = {"ranker": Path(self.ranker) / MANIFEST, "source": Path(self.source)}
        return {what: file_sha256(file) for what, file in files.items() if file.is_file()}


def texts_of(ranker: str) -> Texts:
    """Return the text form of subgraphs in the ranker's training: facts, or written by a model."""
    return read_card(Path(ranker)).texts if (Path(ranker) / MANIFEST).is_file() else "facts"


def graph_writer(tools: OpenBase, texts: Texts) -> Callable[[Sequence[Subgraph]], Sequence[str]] | None:
    """Return a function that converts subgraphs to text for a ranker. None means fact by fact."""
    if texts == "facts":
        return None
    if tools.model is None:
        raise InputError("this ranker reads subgraphs written by a language model: give one with --model")
    writer = GraphWriter(tools.model, tools.kb)
    return lambda subgraphs: [written.text for written in writer.write(subgraphs)]


def open_source(tools: OpenBase, name: str, k: int) -> CandidateSource:
    """Return a source of candidates by name, or from a file."""
    if name in SOURCES:
        method = create(name, {"k": k + 5} if name in RETRIEVERS else None)  # question entities are removed later
        return partial(of_method, answer=lambda question: method.answer(question, tools), names=tools.names)
    if name == "nearby":
        return partial(near_entities, kb=tools.kb, names=tools.names)
    if name in GENERATED:
        if tools.model is None:
            raise InputError(f"source={name} needs a language model: give one with --model")
        return partial(written_answers, writer=ModelWriter(tools.model, GENERATED[name]), names=tools.names)
    if Path(name).is_file():
        return partial(of_file, lines=read_candidates(Path(name)), kb=tools.kb, names=tools.names)
    raise InputError(
        f"no source {name!r}: expected {', '.join((*SOURCES, 'nearby', *GENERATED))} or a file of candidates"
    )


def open_ranker(tools: OpenBase, name: str) -> rankers.Ranker:
    """Return a ranker by name, or from its folder."""
    if name in ("none", "random"):
        return rankers.SourceOrder() if name == "none" else rankers.RandomOrder()
    if name in ("semantic", "match"):
        return (rankers.SemanticRanker if name == "semantic" else rankers.MatchRanker)(tools.embedder)
    return load_ranker(Path(name), tools.kb.schema, tools.embedder)
