"""`clew demo`: two example bases and five questions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from clew.cli.ask import show_answer
from clew.cli.options import AsJson
from clew.cli.output import out, print_json, stages
from clew.core.errors import NotFoundError

if TYPE_CHECKING:
    from clew.api import Base
    from clew.store.building import BuildReport, Say

GRAPH_QUESTIONS = (
    "Which genes are associated with diseases that present with both polydactyly and rod-cone dystrophy?",
    "Which phenotype is the presence of an abnormal lateral curvature of the spine?",
    "Which gene is associated with the most diseases?",
)
"""A path through the graph, a description in the text, and a superlative."""
DOCUMENT_QUESTIONS = ("Where do the dogs sleep?", "What does the sauna cost?")
"""A passage that answers, and a question that the documents do not answer."""
DOCUMENTS = Path(__file__).parent / "demo_documents"
"""The handbook of a mountain hut."""

PAIRS = (("NCBIGene:583", "HP:0010442"), ("NCBIGene:2200", "HP:0001083"), ("NCBIGene:583", "NCBIGene:7157"))
"""BBS2 and polydactyly, FBN1 and ectopia lentis, BBS2 and TP53."""
MAX_TEXT_CHARS = 200
"""Maximum characters of the text shown for a drawing."""


def demo_base(folder: Path, say: Say = lambda _: None) -> BuildReport:
    """Build the Human Phenotype Ontology as a knowledge base, unless it exists already."""
    from clew.lab.datasets.hpo import hpo_schema, load_hpo
    from clew.store.building import BuildReport, build
    from clew.store.graph.manifest import read_manifest

    try:
        facts = read_manifest(folder).facts
    except NotFoundError:
        say("reading the Human Phenotype Ontology")
        return build(load_hpo(), folder, edits=hpo_schema(), say=say)
    return BuildReport(folder, facts["nodes"], facts["edges"], notes=tuple(facts["notes"]))


def demo_pictures(base: Base, folder: Path) -> Iterator[tuple[Path, str]]:
    """Draw the connections between three pairs of entities into a folder, and return each file with its text."""
    for number, pair in enumerate(PAIRS, start=1):
        subgraph = base.subgraph(*pair)
        file = folder / f"subgraph-{number}.svg"
        file.write_text(subgraph.svg, "utf-8")
        yield file, str(subgraph)


def demo(
    folder: Annotated[Path, Option("--folder", help="Folder for the demonstration bases.")] = Path(".demo"),
    as_json: AsJson = False,
) -> None:
    """Build two small knowledge bases, a medical graph and a folder of documents, and ask them five questions."""
    from clew.api import open as open_base
    from clew.core.disk import refuse_foreign
    from clew.documents.building import build_documents
    from clew.store.graph.manifest import is_base

    graph, handbook = folder / "hpo.kb", folder / "handbook.kb"
    refuse_foreign(folder, (graph.name, handbook.name), "demonstration", "name a new folder with --folder")
    begun = time.perf_counter()
    with stages("building the demonstration bases") as say:
        report = demo_base(graph, say)
        if not is_base(handbook):
            build_documents([DOCUMENTS], handbook)
    seconds = time.perf_counter() - begun
    medicine, documents = open_base(graph), open_base(handbook)
    answers = [medicine.ask(question) for question in GRAPH_QUESTIONS]
    answers += [documents.ask(question) for question in DOCUMENT_QUESTIONS]
    pictures = list(demo_pictures(medicine, folder))
    if as_json:
        shown = [answer.to_dict() for answer in answers]
        drawn = [{"file": str(file), "text": text} for file, text in pictures]
        print_json({"base": str(graph), "seconds": seconds, "answers": shown, "pictures": drawn})
        return
    out.line(f"{graph}: {report.nodes:,} nodes, {report.edges:,} edges; {handbook}; ready in {seconds:.1f} s")
    for note in report.notes:
        out.line((note, "dim"))
    for answer in answers:
        out.line((f"\n{answer.question}", "title"))
        show_answer(answer, 3)
    out.line(("\nConnections between two entities, drawn", "title"))
    for file, text in pictures:
        out.line(f"{file}: {text if len(text) <= MAX_TEXT_CHARS else text[:MAX_TEXT_CHARS] + '…'}")
    out.line(f'\nYour turn: clew ask {graph} "…" or clew ask {handbook} "…"')
