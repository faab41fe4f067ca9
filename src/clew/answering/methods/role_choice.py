"""Which implementation plays a role: the tools's model where there is one, the model-free one where there is none.

What plays a role is imported when it is chosen: most questions need none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clew.answering.queries.corrections import Corrections
from clew.answering.reading.parsing import LearnedParser
from clew.answering.reading.reader import LearnedReader
from clew.answering.roles.rerank import KeepOrder, Listwise, Pairwise, Pointwise, Reranker, RerankerName
from clew.core.errors import InputError
from clew.core.roles import Chooser, Parse, Parser, Reader
from clew.core.schema import Schema
from clew.models.settings import Settings
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.open_base import OpenBase

if TYPE_CHECKING:
    from clew.answering.reading.path_ranker import PathRanker, Taught

ParserName = Literal["auto", "model", "reader"]


def can_write(tools: OpenBase) -> bool:
    """Whether there is a model that parses and writes better than no model: by measurement, none below 7 billion."""
    return tools.model is not None and tools.model.capabilities.size != "small"


def reader_of(tools: OpenBase) -> LearnedReader:
    """The learned reader over a base."""
    cache = Settings.load().cache_folder / "reader"
    return tools.get_or_create("reader", lambda: LearnedReader(tools.kb, tools.names, cache=cache))


def reader_parser(tools: OpenBase) -> Parser:
    """The parser that needs no model."""
    return LearnedParser(reader_of(tools))


def path_ranker_of(tools: OpenBase) -> PathRanker:
    """What ranks the relation paths of a base, made once for it."""
    from clew.answering.reading.path_ranker import PathRanker

    return tools.get_or_create("path ranker", lambda: PathRanker(tools.kb, taught=taught_of(tools)))


def taught_of(tools: OpenBase) -> tuple[Taught, ...]:
    """What was learned from confirmed answers, where the base is embedded and something was."""
    from clew.answering.reading.feedback import read_taught

    return read_taught(tools.kb.folder) if isinstance(tools.kb, ArrayKnowledgeBase) else ()


def parser_for(tools: OpenBase, name: ParserName = "auto") -> Parser:
    """By name; `auto` asks a model that is not small where the learned reader is unsure, and else the reader alone."""
    if tools.parser is not None:
        return tools.parser
    reader = reader_parser(tools)
    if name == "model" and tools.model is None:
        raise InputError("parser=model asks a language model: give one with --model, or use parser=reader")
    if tools.model is None or name == "reader" or (name == "auto" and not can_write(tools)):
        return reader
    from clew.answering.roles.parse import ModelParser, ReaderFirst

    model = ModelParser(tools.model, reader)
    return model if name == "model" else ReaderFirst(reader, model)


@dataclass(frozen=True)
class CorrectedParser:
    """A parser whose queries are corrected by the user."""

    parser: Parser
    corrections: Corrections

    def parse(self, question: str, schema: Schema) -> Parse:
        """What is meant in the place of what was understood."""
        return self.corrections.corrected(self.parser.parse(question, schema), schema)


def corrected(tools: OpenBase, corrections: Corrections) -> OpenBase:
    """The same tools, where what is understood of a question is corrected."""
    return tools.with_parser(CorrectedParser(parser_for(tools), corrections)) if corrections else tools


def reranker_for(tools: OpenBase, name: RerankerName) -> Reranker:
    """A reranker by name; `auto` has a model score one by one, and keeps the order where there is none."""
    kb, model = tools.kb, tools.model
    if name == "none" or (name == "auto" and model is None):
        return KeepOrder()
    from clew.answering.roles.choose import ModelChooser
    from clew.answering.roles.score import FusedScorer, ModelScorer

    if name == "embedding":
        return Pointwise(kb, FusedScorer(tools.embedder), "embedding", relations=False)
    if model is None:
        raise InputError(f"{name} reranking asks a language model: give one with --model, or use reranker=embedding")
    if name == "listwise":
        return Listwise(kb, ModelChooser(model))
    if name == "pairwise":
        return Pairwise(kb, ModelChooser(model))
    if name == "likelihood":
        return Pointwise(kb, ModelScorer(model, "likelihood"), "likelihood")
    return Pointwise(kb, ModelScorer(model))


def chooser_for(tools: OpenBase) -> Chooser:
    """Who chooses among options: the model, or likeness to the question."""
    from clew.answering.roles.choose import ModelChooser, ScoredChooser
    from clew.answering.roles.score import FusedScorer

    model = tools.model
    return ScoredChooser(FusedScorer(tools.embedder)) if model is None else ModelChooser(model)


def reader_for(tools: OpenBase, words: int | None = 6) -> Reader:
    """Return the reader of passages: the model, or the search for a span if there is no model.

    `words` limits the answer to a few words. With None the model writes cited sentences, and nobody else does.
    """
    from clew.answering.roles.read import BestSpan, ModelReader

    if tools.model is None:
        return BestSpan()
    if words is None:
        return ModelReader(tools.model, embedder=tools.embedder, fallback=None)
    return ModelReader(tools.model, words)
