"""Choose the implementation of each role: the model if there is one, otherwise a version without a model.

Implementations are imported when chosen, because most questions need few of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clew.answering.queries.corrections import Corrections
from clew.answering.reading.parsing import LearnedParser
from clew.answering.reading.reader import LearnedReader
from clew.answering.reading.writing import WritingReader
from clew.answering.roles.rerank import KeepOrder, Listwise, Pairwise, Pointwise, Reranker, RerankerName
from clew.core.errors import InputError
from clew.core.roles import Chooser, Parse, Parser, Reader
from clew.core.schema import Schema
from clew.models.settings import Settings
from clew.store.open_base import OpenBase

if TYPE_CHECKING:
    from clew.answering.reading.path_ranker import PathRanker, Taught
    from clew.answering.roles.formulate import BaseDescription

ParserName = Literal["auto", "model", "reader"]


def can_write(tools: OpenBase) -> bool:
    """Check for a model that parses and writes better than no model. By measurement, models below 7B do not."""
    return tools.model is not None and tools.model.capabilities.size != "small"


def reader_of(tools: OpenBase) -> LearnedReader:
    """Return the learned reader of a base."""
    cache = Settings.load().cache_folder / "reader"
    return tools.get_or_create("reader", lambda: WritingReader(tools.kb, tools.names, cache=cache))


def reader_parser(tools: OpenBase) -> Parser:
    """Return the parser that needs no model."""
    return LearnedParser(reader_of(tools))


def description_of(tools: OpenBase) -> BaseDescription:
    """Return the description of a base for a model."""
    from clew.answering.roles.formulate import BaseDescription

    return BaseDescription(tools.kb, tools.names, reader_of(tools).values)


def path_ranker_of(tools: OpenBase) -> PathRanker:
    """Return the ranker of relation paths, created once per base."""
    from clew.answering.reading.path_ranker import PathRanker

    return tools.get_or_create("path ranker", lambda: PathRanker(tools.kb, taught=taught_of(tools)))


def taught_of(tools: OpenBase) -> tuple[Taught, ...]:
    """Return the examples learned from confirmed answers. Empty for a base without a local folder."""
    from clew.answering.reading.path_ranker import read_taught

    return () if tools.kb.folder is None else read_taught(tools.kb.folder)


def parser_for(tools: OpenBase, name: ParserName = "auto") -> Parser:
    """Return a parser by name. `auto` asks a model if the learned reader is unsure and the model is not small."""
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
        """Parse the question and apply the corrections."""
        return self.corrections.corrected(self.parser.parse(question, schema), schema)


def corrected(tools: OpenBase, corrections: Corrections) -> OpenBase:
    """Return tools whose parser applies the corrections."""
    return tools.with_parser(CorrectedParser(parser_for(tools), corrections)) if corrections else tools


def reranker_for(tools: OpenBase, name: RerankerName) -> Reranker:
    """Return a reranker by name. `auto` scores with a model, or leaves the order unchanged without a model."""
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
    """Return the chooser among options: the model, or similarity to the question without a model."""
    from clew.answering.roles.choose import ModelChooser, ScoredChooser
    from clew.answering.roles.score import FusedScorer

    model = tools.model
    return ScoredChooser(FusedScorer(tools.embedder)) if model is None else ModelChooser(model)


def reader_for(tools: OpenBase, words: int | None = 6) -> Reader:
    """Return the reader of passages: the model, or the search for a span if there is no model.

    `words` limits the length of the answer. With None, a model writes cited sentences.
    """
    from clew.answering.roles.read import BestSpan, ModelReader

    if tools.model is None:
        return BestSpan()
    if words is None:
        return ModelReader(tools.model, embedder=tools.embedder, fallback=None)
    return ModelReader(tools.model, words)
