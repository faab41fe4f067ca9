"""Which implementation plays a role: the toolbox's model where there is one, the model-free one where there is none."""

from __future__ import annotations

from clew.steps.choosing import ModelChooser
from clew.steps.parsing_model import ModelParser
from clew.steps.reranking import Reranker, RerankerName, open_reranker
from clew.steps.roles import TripletParser
from clew.steps.scoring import FusedScorer, ModelScorer
from clew.steps.triplets.schema_linker import SchemaLinker
from clew.toolbox import Toolbox


def linker_for(toolbox: Toolbox) -> SchemaLinker:
    """The parser that needs no model."""
    return SchemaLinker(toolbox.kb, toolbox.names, toolbox.embedder)


def parser_for(toolbox: Toolbox) -> TripletParser:
    """The model, with the schema linker to fall back on; or the schema linker alone."""
    linker = linker_for(toolbox)
    return linker if toolbox.model is None else ModelParser(toolbox.model, linker)


def reranker_for(toolbox: Toolbox, name: RerankerName) -> Reranker:
    """A reranker by name, judging with the toolbox's model or by likeness."""
    model = toolbox.model
    return open_reranker(
        name,
        toolbox.kb,
        None if model is None else ModelScorer(model),
        None if model is None else ModelChooser(model),
        lambda: FusedScorer(toolbox.embedder),
    )
