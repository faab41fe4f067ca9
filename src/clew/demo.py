"""The demonstration: a real medical knowledge base, built from a registry package, and a question answered on it."""

from __future__ import annotations

from pathlib import Path

from clew.building import BuildReport, Say, build
from clew.datasets.hpo import hpo_schema, load_hpo
from clew.errors import NotFoundError
from clew.kb.storage import read_manifest

QUESTIONS = (
    "Which genes are associated with diseases that present with both polydactyly and rod-cone dystrophy?",
    "abnormally long fingers and lens dislocation",
)


def demo_base(folder: Path, say: Say = lambda _: None) -> BuildReport:
    """The Human Phenotype Ontology as a knowledge base; built once."""
    try:
        facts = read_manifest(folder).facts
    except NotFoundError:
        say("reading the Human Phenotype Ontology")
        return build(load_hpo(), folder, edits=hpo_schema(), say=say)
    return BuildReport(folder, facts["nodes"], facts["edges"], notes=tuple(facts["notes"]))
