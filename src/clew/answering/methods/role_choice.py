"""Which implementation plays a role: the toolbox's model where there is one, the model-free one where there is none.

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
from clew.core.roles import Chooser, Parse, Reader, TripletParser
from clew.core.schema import Schema
from clew.models.settings import Settings
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.toolbox import Toolbox

if TYPE_CHECKING:
    from clew.answering.reading.path_ranker import PathRanker, Taught

ParserName = Literal["auto", "model", "reader"]


def can_write(toolbox: Toolbox) -> bool:
    """Whether there is a model that parses and writes better than no model: by measurement, none below 7 billion."""
    return toolbox.model is not None and toolbox.model.capabilities.size != "small"


def reader_of(toolbox: Toolbox) -> LearnedReader:
    """The learned reader over a base."""
    cache = Settings.load().cache_folder / "reader"
    return toolbox.keep("reader", lambda: LearnedReader(toolbox.kb, toolbox.names, cache=cache))


def reader_parser(toolbox: Toolbox) -> TripletParser:
    """The parser that needs no model."""
    return LearnedParser(reader_of(toolbox))


def path_ranker_of(toolbox: Toolbox) -> PathRanker:
    """What ranks the relation paths of a base, made once for it."""
    from clew.answering.reading.path_ranker import PathRanker

    return toolbox.keep("path ranker", lambda: PathRanker(toolbox.kb, taught=taught_of(toolbox)))


def taught_of(toolbox: Toolbox) -> tuple[Taught, ...]:
    """What was learned from confirmed answers, where the base is embedded and something was."""
    from clew.answering.reading.feedback import read_taught

    return read_taught(toolbox.kb.folder) if isinstance(toolbox.kb, ArrayKnowledgeBase) else ()


def parser_for(toolbox: Toolbox, name: ParserName = "auto") -> TripletParser:
    """By name; `auto` asks a model that is not small where the learned reader is unsure, and else the reader alone."""
    if toolbox.parser is not None:
        return toolbox.parser
    reader = reader_parser(toolbox)
    if name == "model" and toolbox.model is None:
        raise InputError("parser=model asks a language model: give one with --model, or use parser=reader")
    if toolbox.model is None or name == "reader" or (name == "auto" and not can_write(toolbox)):
        return reader
    from clew.answering.roles.parse import ModelParser, ReaderFirst

    model = ModelParser(toolbox.model, reader)
    return model if name == "model" else ReaderFirst(reader, model)


@dataclass(frozen=True)
class CorrectedParser:
    """A parser whose queries are corrected by the user."""

    parser: TripletParser
    corrections: Corrections

    def parse(self, question: str, schema: Schema) -> Parse:
        """What is meant in the place of what was understood."""
        return self.corrections.corrected(self.parser.parse(question, schema), schema)


def corrected(tools: Toolbox, corrections: Corrections) -> Toolbox:
    """The same tools, where what is understood of a question is corrected."""
    return tools.with_parser(CorrectedParser(parser_for(tools), corrections)) if corrections else tools


def reranker_for(toolbox: Toolbox, name: RerankerName) -> Reranker:
    """A reranker by name; `auto` has a model score one by one, and keeps the order where there is none."""
    kb, model = toolbox.kb, toolbox.model
    if name == "none" or (name == "auto" and model is None):
        return KeepOrder()
    from clew.answering.roles.choose import ModelChooser
    from clew.answering.roles.score import FusedScorer, ModelScorer

    if name == "embedding":
        return Pointwise(kb, FusedScorer(toolbox.embedder), "embedding", relations=False)
    if model is None:
        raise InputError(f"{name} reranking asks a language model: give one with --model, or use reranker=embedding")
    if name == "listwise":
        return Listwise(kb, ModelChooser(model))
    if name == "pairwise":
        return Pairwise(kb, ModelChooser(model))
    if name == "likelihood":
        return Pointwise(kb, ModelScorer(model, "likelihood"), "likelihood")
    return Pointwise(kb, ModelScorer(model))


def chooser_for(toolbox: Toolbox) -> Chooser:
    """Who chooses among options: the model, or likeness to the question."""
    from clew.answering.roles.choose import ModelChooser, ScoredChooser
    from clew.answering.roles.score import FusedScorer

    model = toolbox.model
    return ScoredChooser(FusedScorer(toolbox.embedder)) if model is None else ModelChooser(model)


def reader_for(toolbox: Toolbox, words: int | None = 6) -> Reader:
    """Return the reader of passages: the model, or the search for a span if there is no model.

    `words` limits the answer to a few words. With None the model writes cited sentences, and nobody else does.
    """
    from clew.answering.roles.read import BestSpan, ModelReader

    if toolbox.model is None:
        return BestSpan()
    if words is None:
        return ModelReader(toolbox.model, embedder=toolbox.embedder, fallback=None)
    return ModelReader(toolbox.model, words)
