"""`clew demo`: a real base and real questions in one command."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from clew.api import Base
from clew.api import open as open_base
from clew.building import BuildReport, Say, build
from clew.cli.ask import show_answer
from clew.cli.options import AsJson
from clew.cli.output import out, print_json, stages
from clew.core.disk import refuse_foreign
from clew.core.errors import NotFoundError
from clew.datasets.hpo import hpo_schema, load_hpo
from clew.kb.manifest import read_manifest

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


def demo_pictures(base: Base, folder: Path) -> Iterator[tuple[Path, str]]:
    """What lies between three pairs of entities, drawn into a folder, and the same in words."""
    for number, pair in enumerate(PAIRS, start=1):
        found = base.subgraph(*pair)
        file = folder / f"subgraph-{number}.svg"
        file.write_text(found.svg, "utf-8")
        yield file, str(found)


LONGEST_TEXT = 200


def demo(
    folder: Annotated[Path, typer.Option("--folder", help="Where to keep the demonstration base.")] = Path(".demo"),
    as_json: AsJson = False,
) -> None:
    """Build the Human Phenotype Ontology as a knowledge base and ask it two questions."""
    base = folder / "hpo.kb"
    refuse_foreign(folder, (base.name,), "demonstration", "name a new folder with --folder")
    begun = time.perf_counter()
    with stages("building the demonstration base") as say:
        report = demo_base(base, say)
    seconds = time.perf_counter() - begun
    opened = open_base(base)
    answers = [opened.ask(question) for question in QUESTIONS]
    pictures = list(demo_pictures(opened, folder))
    if as_json:
        shown = [answer.to_dict() for answer in answers]
        drawn = [{"file": str(file), "text": text} for file, text in pictures]
        print_json({"base": str(base), "seconds": seconds, "answers": shown, "pictures": drawn})
        return
    out.line(f"{base}: {report.nodes:,} nodes, {report.edges:,} edges, ready in {seconds:.1f} s")
    for note in report.notes:
        out.line((note, "dim"))
    for answer in answers:
        out.line((f"\n{answer.question}", "title"))
        show_answer(answer, 5)
    out.line(("\nWhat lies between two entities, drawn", "title"))
    for file, text in pictures:
        out.line(f"{file}: {text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + '…'}")
    out.line(f'\nYour turn: clew ask {base} "…"')
