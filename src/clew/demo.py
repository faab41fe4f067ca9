"""The demonstration: a real medical knowledge base, built from a registry package, and a question answered on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.building import BuildReport, Say, build
from clew.core.errors import NotFoundError
from clew.datasets.hpo import hpo_schema, load_hpo
from clew.kb.protocol import KnowledgeBase
from clew.kb.storage import read_manifest
from clew.steps.subgraphs.graph_to_text import linearize
from clew.steps.subgraphs.subgraph import SubgraphExtractor
from clew.steps.subgraphs.subgraph_drawing import draw_subgraph

QUESTIONS = (
    "Which genes are associated with diseases that present with both polydactyly and rod-cone dystrophy?",
    "abnormally long fingers and lens dislocation",
)

PAIRS = (("NCBIGene:583", "HP:0010442"), ("NCBIGene:2200", "HP:0001083"), ("NCBIGene:583", "NCBIGene:7157"))
"""What lies between BBS2 and polydactyly, FBN1 and ectopia lentis, BBS2 and TP53."""


def demo_base(folder: Path, say: Say = lambda _: None) -> BuildReport:
    """The Human Phenotype Ontology as a knowledge base; built once."""
    try:
        facts = read_manifest(folder).facts
    except NotFoundError:
        say("reading the Human Phenotype Ontology")
        return build(load_hpo(), folder, edits=hpo_schema(), say=say)
    return BuildReport(folder, facts["nodes"], facts["edges"], notes=tuple(facts["notes"]))


def demo_pictures(kb: KnowledgeBase, folder: Path) -> Iterator[tuple[Path, str]]:
    """What lies between three pairs of entities, drawn into a folder, and the same in words."""
    extractor = SubgraphExtractor(kb)
    for number, (entity, candidate) in enumerate(PAIRS, start=1):
        [found] = extractor.extract([kb.find(entity)], [kb.find(candidate)])
        file = folder / f"subgraph-{number}.svg"
        file.write_text(draw_subgraph(kb, found), "utf-8")
        yield file, linearize(kb, found)
