"""Which implementation plays a role: the toolbox's model where there is one, the model-free one where there is none."""

from __future__ import annotations

from clew.steps.roles.choosing import ModelChooser
from clew.steps.roles.parsing_model import ModelParser
from clew.steps.roles.protocol import TripletParser
from clew.steps.roles.reranking import Reranker, RerankerName, open_reranker
from clew.steps.roles.scoring import FusedScorer, ModelScorer
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
